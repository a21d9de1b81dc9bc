"""Profiles of one-bit mechanisms, of mechanisms known at one point (epsilon, delta) only, and of
groups of records."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from dpsub import checks
from dpsub.errors import UnsupportedError
from dpsub.noise.base import Profile, mirrored


@dataclass(frozen=True)
class RandomisedResponseProfile(Profile):
    """Exact profile of a bit that is kept with probability p = `keep_probability`, else flipped.

        delta(epsilon) = max(0, P - exp(epsilon) (1 - P)) + max(0, 1 - P - exp(epsilon) P),
        P = max(p, 1 - p).

    The printed p - exp(epsilon) (1 - p) (balle, Section 5) is right for p >= 1/2 and
    epsilon >= log((1 - p) / p) only.
    """

    keep_probability: float
    any_distance: ClassVar[bool] = False

    def __post_init__(self) -> None:
        p = checks.real("keep_probability", self.keep_probability, at_least=0, at_most=1)
        object.__setattr__(self, "keep_probability", p)

    @classmethod
    def with_guarantee(cls, epsilon: float, delta: float) -> RandomisedResponseProfile:
        """Return the randomised response with delta(`epsilon`) = `delta` exactly.

        Its keep probability is (e^eps + delta) / (e^eps + 1).
        """
        order = checks.real("epsilon", epsilon, at_least=0)
        gap = checks.real("delta", delta, at_least=0, at_most=1)
        return cls((1 + gap * math.exp(-order)) / (1 + math.exp(-order)))

    @property
    def likely(self) -> float:
        """P: the larger one of the two probabilities."""
        return max(self.keep_probability, 1 - self.keep_probability)

    def group_log_delta(self, epsilon: ArrayLike, occurrences: ArrayLike) -> np.ndarray:
        order, distance = np.broadcast_arrays(
            np.asarray(epsilon, dtype=float), np.asarray(occurrences)
        )
        if not self.any_distance and (distance > 1).any():
            raise UnsupportedError(
                "randomised response of one bit is defined for data sets at distance 1 "
                "only; use the profile of membership for larger distances"
            )
        rare = 1 - self.likely
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            factor = np.exp(order)
            # An infinite factor times a rare probability of 0 is 0.
            scaled_rare = np.where(rare > 0, factor * rare, 0.0)
            from_likely = np.maximum(self.likely - scaled_rare, 0.0)
            from_rare = np.maximum(rare - factor * self.likely, 0.0)
            return np.log(from_likely + from_rare)[()]

    def log_moment(self, order: float) -> float:
        """Return log E exp(s L) = log(P (P/Q)^s + Q (Q/P)^s), Q = 1 - P, s = `order` >= 0.

        It is infinite if Q = 0 < s.
        """
        s = checks.real("order", order, at_least=0)
        likely, rare = self.likely, 1 - self.likely
        if s == 0:
            return 0.0
        if rare == 0:
            return math.inf
        odds = math.log(likely / rare)
        return float(np.logaddexp(math.log(likely) + s * odds, math.log(rare) - s * odds))


@dataclass(frozen=True)
class MembershipProfile(RandomisedResponseProfile):
    """Profile of randomised response on whether a fixed record is in the data.

    It holds under any relation that can add or remove the record. No pair of data sets is easier to
    distinguish, so the profile is the same at every distance (balle, Section 5).
    """

    any_distance: ClassVar[bool] = True


@dataclass(frozen=True)
class BlackBoxGroups(Profile):
    """The profile `base`, with the group bound that holds for every mechanism, at epsilon >= 0:

        delta_l(epsilon) <= min(1, (exp(epsilon) - 1) / (exp(epsilon / l) - 1) delta(epsilon / l));

    balle, Section 3 (after Vadhan 2017, Lemma 2.2).
    """

    base: Profile

    def log_bound(self, epsilon: ArrayLike, occurrences: ArrayLike) -> np.ndarray:
        """Return the logarithm of the bound for epsilon >= 0, before it is clipped to 1.

        At epsilon = 0 it is log(l delta(0)).
        """
        order, distance = np.broadcast_arrays(
            np.asarray(epsilon, dtype=float), np.asarray(occurrences, dtype=float)
        )
        share = order / distance
        with np.errstate(divide="ignore", invalid="ignore"):
            # The size of the factor is carried by exp(epsilon - share), in logarithms, so that a
            # large epsilon does not overflow before delta is applied.
            quotient = np.expm1(-order) / np.expm1(-share)
            factor = order - share + np.log(np.where(share > 0, quotient, distance))
        return factor + self.base.log_delta(share)

    def group_log_delta(self, epsilon: ArrayLike, occurrences: ArrayLike) -> np.ndarray:
        order, distance = np.broadcast_arrays(
            np.asarray(epsilon, dtype=float), np.asarray(occurrences)
        )
        return mirrored(order, np.minimum(self.log_bound(np.abs(order), distance), 0.0))


@dataclass(frozen=True)
class ConstantGroups(Profile):
    """The profile `base` at every distance, as if copies of a record revealed nothing more.

    This is true of membership. For other mechanisms it is no bound; it shows which part of a bound
    is due to groups.
    """

    base: Profile

    def group_log_delta(self, epsilon: ArrayLike, occurrences: ArrayLike) -> np.ndarray:
        order, _ = np.broadcast_arrays(np.asarray(epsilon, dtype=float), np.asarray(occurrences))
        return self.base.log_delta(order)


@dataclass(frozen=True)
class PairedSteps(Profile):
    """Upper bound under substitution from a `base` profile under adding and removing.

    A substitution is one removal and one addition: distance l becomes distance 2 l.
    """

    base: Profile

    def group_log_delta(self, epsilon: ArrayLike, occurrences: ArrayLike) -> np.ndarray:
        return self.base.group_log_delta(epsilon, 2 * np.asarray(occurrences))


@dataclass(frozen=True)
class PointGuarantee(Profile):
    """The smallest profile that holds for all (epsilon0, delta0)-DP mechanisms.

    An event of probability a on one data set has a probability of at most

        g(a) = min(1, exp(epsilon0) a + delta0, 1 - exp(-epsilon0) (1 - delta0 - a))

    on a neighbour, hence of at most g applied l times at distance l, and some mechanism attains it.
    So delta_l(epsilon) is the largest (g o ... o g)(a) - exp(epsilon) a over a in [0, 1], which is
    at a breakpoint of the concave, piecewise linear iterate. For l = 1 it is
    1 - (1 - delta0) (1 + exp(epsilon)) / (1 + exp(epsilon0)) where |epsilon| <= epsilon0, and
    delta0 above; at epsilon = epsilon0 randomised response attains it (balle, Section 5). The
    iteration is ours.
    """

    epsilon0: float
    delta0: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon0", checks.real("epsilon0", self.epsilon0, at_least=0))
        object.__setattr__(
            self, "delta0", checks.real("delta0", self.delta0, at_least=0, at_most=1)
        )

    def group_log_delta(self, epsilon: ArrayLike, occurrences: ArrayLike) -> np.ndarray:
        order, distance = np.broadcast_arrays(
            np.asarray(epsilon, dtype=float), np.asarray(occurrences, dtype=int)
        )
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
        rise, rest = math.exp(self.epsilon0), 1 - self.delta0
        breakpoints = {0.0, 1.0}
        for point in (rest / (1 + rise), rest):
            for _ in range(steps):
                if point < 0:
                    break
                breakpoints.add(point)
                # The inverse of g on its strictly increasing part; negative if no probability is
                # mapped to the point.
                point = max(
                    math.exp(-self.epsilon0) * (point - self.delta0), rest - rise * (1 - point)
                )
        return np.array(sorted(breakpoints))
