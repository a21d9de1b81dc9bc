"""What (epsilon, delta)-DP at one point says of the whole profile, and of groups."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dpsub import checks
from dpsub.profiles.base import Profile


@dataclass(frozen=True)
class PointGuarantee(Profile):
    """The smallest profile that all mechanisms obey of which only (epsilon0, delta0)-DP is known.

    If an event has probability a on one data set, it has at most

        g(a) = min(1, exp(epsilon0) a + delta0, 1 - exp(-epsilon0) (1 - delta0 - a))

    on a neighbour, hence at most g applied l times at distance l, and some mechanism attains it. So

        delta_l(epsilon) = max over a in [0, 1] of (g o ... o g)(a) - exp(epsilon) a,

    attained at a breakpoint of the concave piecewise linear iterate. For l = 1 and |epsilon| <= epsilon0 this is
    1 - (1 - delta0) (1 + exp(epsilon)) / (1 + exp(epsilon0)), for epsilon >= epsilon0 it is delta0.

    Parameters
    ----------
    epsilon0 : float
        Nats, at least 0.
    delta0 : float
        In [0, 1].

    Raises
    ------
    ArgumentError
        If a parameter is out of range.

    References
    ----------
    balle, Section 5 (l = 1 and epsilon = epsilon0: randomised response attains it); iteration over neighbours is ours.
    """

    epsilon0: float
    delta0: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon0", checks.real("epsilon0", self.epsilon0, at_least=0))
        object.__setattr__(self, "delta0", checks.real("delta0", self.delta0, at_least=0, at_most=1))

    def group_log_delta(self, epsilon: ArrayLike, occurrences: ArrayLike) -> np.ndarray:
        order, distance = np.broadcast_arrays(np.asarray(epsilon, dtype=float), np.asarray(occurrences, dtype=int))
        delta = np.zeros(order.shape)
        growth = np.exp(np.minimum(order, 700.0))
        for steps in np.unique(distance):
            here = distance == steps
            starts = self._breakpoints(int(steps))
            ends = starts
            for _ in range(int(steps)):
                ends = self._largest(ends)
            gains = ends - growth[here][..., np.newaxis] * starts
            delta[here] = np.clip(gains.max(axis=-1), 0.0, 1.0)
        with np.errstate(divide="ignore"):
            return np.log(delta)[()]

    def _largest(self, share: np.ndarray) -> np.ndarray:
        """g: the largest probability of an event on a neighbour."""
        rise = math.exp(self.epsilon0) * share + self.delta0
        cap = 1 - math.exp(-self.epsilon0) * (1 - self.delta0 - share)
        return np.minimum(1.0, np.minimum(rise, cap))

    def _breakpoints(self, steps: int) -> np.ndarray:
        """Return 0, 1 and the points that some iterate g^j, j < `steps`, sends to a kink of g."""
        bend = (1 - self.delta0) / (1 + math.exp(self.epsilon0))
        found = [0.0, 1.0]
        for kink in (bend, 1 - self.delta0):
            point = kink
            for _ in range(steps):
                if point < 0:
                    break
                found.append(point)
                point = self._smallest(point)
        return np.array(sorted(set(found)))

    def _smallest(self, share: float) -> float:
        """Inverse of g on its strictly increasing part; negative where nothing is sent to `share`."""
        first = math.exp(-self.epsilon0) * (share - self.delta0)
        second = 1 - self.delta0 - math.exp(self.epsilon0) * (1 - share)
        return max(first, second)
