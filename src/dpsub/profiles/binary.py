"""Profiles of mechanisms that release one bit: randomised response, and its use on membership."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dpsub import checks
from dpsub.errors import UnsupportedError
from dpsub.profiles.base import Profile


@dataclass(frozen=True)
class RandomisedResponseProfile(Profile):
    """Exact profile of a bit that is reported as it is with probability p and flipped with probability 1 - p.

    Both outcomes can contribute: with P = max(p, 1 - p) and every real epsilon

        delta(epsilon) = max(0, P - exp(epsilon) (1 - P)) + max(0, 1 - P - exp(epsilon) P).

    The printed p - exp(epsilon) (1 - p) is right for p >= 1/2 and epsilon >= log((1 - p) / p) only: at p = 0.2 and
    epsilon = 0 the divergence is 0.6 where the printed formula gives 0.

    Parameters
    ----------
    keep_probability : float
        p in [0, 1].

    Raises
    ------
    ArgumentError
        If p lies outside [0, 1].

    References
    ----------
    balle, Section 5.
    """

    keep_probability: float

    def __post_init__(self) -> None:
        p = checks.real("keep_probability", self.keep_probability, at_least=0, at_most=1)
        object.__setattr__(self, "keep_probability", p)

    @classmethod
    def with_guarantee(cls, epsilon: float, delta: float) -> RandomisedResponseProfile:
        """Return the randomised response whose delta at `epsilon` is exactly `delta`: p = (e^eps + delta)/(e^eps + 1).

        Raises
        ------
        ArgumentError
            If epsilon is negative or delta lies outside [0, 1].
        """
        order = checks.real("epsilon", epsilon, at_least=0)
        gap = checks.real("delta", delta, at_least=0, at_most=1)
        return cls((1 + gap * math.exp(-order)) / (1 + math.exp(-order)))

    @property
    def likely(self) -> float:
        """P: the larger one of the two probabilities."""
        return max(self.keep_probability, 1 - self.keep_probability)

    def group_log_delta(self, epsilon: ArrayLike, occurrences: ArrayLike) -> np.ndarray:
        order, distance = np.broadcast_arrays(np.asarray(epsilon, dtype=float), np.asarray(occurrences))
        self._check_distance(distance)
        rare = 1 - self.likely
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            growth = np.exp(order)
            taken = np.where(rare > 0, growth * rare, 0.0)
            delta = np.maximum(self.likely - taken, 0.0) + np.maximum(rare - growth * self.likely, 0.0)
            return np.log(delta)[()]

    def _check_distance(self, distance: np.ndarray) -> None:
        if (distance > 1).any():
            raise UnsupportedError("randomised response of one bit knows no data sets at a distance above 1; "
                                   "take the profile of membership for larger data sets")

    def log_moment(self, order: float) -> float:
        """Return log E exp(s L) = log(P (P/Q)^s + Q (Q/P)^s), Q = 1 - P; infinite for s > 0 where Q = 0.

        Raises
        ------
        ArgumentError
            If `order` is negative or not finite.
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
    """Profile of randomised response on whether a fixed record is in the data, under any relation that can toggle it.

    No pair of data sets is easier to tell apart than a toggled record, so the profile is the same at every distance.

    References
    ----------
    balle, Section 5.
    """

    def _check_distance(self, distance: np.ndarray) -> None:
        return
