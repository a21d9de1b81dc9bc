"""Poisson sampling when one record is substituted: no distance-compatible coupling, hence bounds of their own."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from dpsub import checks, discrete
from dpsub.amplification.bounds import LARGEST, Bound, PoissonAddRemove, PoissonRate
from dpsub.profiles.base import Profile, nonnegative
from dpsub.profiles.groups import BlackBoxGroups
from dpsub.relations import Relation

_BLOCK = 4096  # sizes evaluated at once


@dataclass(frozen=True)
class PoissonSubstitute(PoissonRate, Bound):
    """Poisson sampling of n records, one substituted, from a base profile for substitution.

    With beta = exp(epsilon' - epsilon), g_k = C(n - 1, k - 1) gamma^(k - 1) (1 - gamma)^(n - k) and
    epsilon_k = epsilon + log(gamma / (1 - gamma) (n / k - 1)),

        delta'(epsilon') <= gamma beta delta(epsilon)
                            + gamma (1 - beta) (sum over k = 1..n-1 of g_k delta(epsilon_k) + g_n).

    epsilon_k is negative for large k, where the profile is the mirrored one, not the formula for epsilon >= 0. Not
    tight: :class:`PoissonSubstituteBySize` is never larger.

    Parameters
    ----------
    rate : float
        gamma in [0, 1].
    n : int
        Size of the data set, a public number, 1 to 10^7.

    References
    ----------
    balle, Theorem 14.
    """

    n: int

    theorem: ClassVar[str] = "Theorem 14"
    base: ClassVar[Relation] = Relation.SUBSTITUTE
    result: ClassVar[Relation] = Relation.SUBSTITUTE

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "n", checks.integer("n", self.n, at_least=1, at_most=LARGEST))

    def _delta(self, profile: Profile, target: np.ndarray) -> np.ndarray:
        if self.rate == 1:
            return profile.delta(target)
        base = self.epsilon_base(target)
        sizes, orders = self._sizes()
        apart = np.full(base.shape, math.exp(float(sizes[-1])))  # all n records: nothing to compare with
        apart += _mixed(profile, sizes[:-1], lambda block: base[:, np.newaxis] + orders[block])
        shrink = target - base
        return self.rate * (np.exp(shrink) * profile.delta(base) - np.expm1(shrink) * np.minimum(apart, 1.0))

    def _sizes(self) -> tuple[np.ndarray, np.ndarray]:
        """Return log g_k for k = 1..n and epsilon_k - epsilon for k = 1..n - 1; for 0 < gamma < 1."""
        k = np.arange(1, self.n + 1)
        odds = math.log(self.rate) - math.log1p(-self.rate)
        return discrete.log_binomial(k - 1, self.n - 1, self.rate), odds + np.log(self.n / k[:-1] - 1)


@dataclass(frozen=True)
class PoissonSubstituteBySize(PoissonSubstitute):
    """The bound of Poisson sampling under substitution that compares samples of each size before it uses convexity.

        delta'(epsilon') <= gamma sum over k = 1..n of g_k delta(e_k),
        exp(e_k) = alpha' + (alpha - alpha') gamma / (1 - gamma) (n / k - 1),

    with alpha = exp(epsilon) and alpha' = exp(epsilon').

    By Theorem 2 the loss is gamma D_alpha(omega1 K || (1 - beta) omega0 K + beta omega1' K). Given the size k, the
    second law is a mixture of samples one substitution away from those of omega1, of total weight exp(e_k) / alpha
    relative to g_k: one more joint convexity gives delta(e_k), at an e_k that is never below epsilon'. Theorem 14
    splits the mixture first, which loses; by convexity of the profile in exp(epsilon) it is never smaller. The bound
    is attained by the mechanism that shows the size of its sample and randomised membership of one record.

    References
    ----------
    balle, Theorem 2 and the proof of Theorem 14; the order of the two steps is ours.
    """

    theorem: ClassVar[str] = "Theorem 2 given the size"

    def _delta(self, profile: Profile, target: np.ndarray) -> np.ndarray:
        if self.rate == 1:
            return profile.delta(target)
        base = self.epsilon_base(target)
        sizes, orders = self._sizes()
        with np.errstate(divide="ignore"):
            # log of (alpha / alpha' - 1) times the odds; e_n = epsilon'
            rise = np.log(np.expm1(base - target))

        def places(block: slice) -> np.ndarray:
            return target[:, np.newaxis] + np.logaddexp(0.0, rise[:, np.newaxis] + orders[block])

        last = math.exp(float(sizes[-1])) * profile.delta(target)
        return self.rate * (_mixed(profile, sizes[:-1], places) + last)


def _mixed(profile: Profile, log_weights: np.ndarray, places: Callable[[slice], np.ndarray]) -> np.ndarray:
    """Sum over k of exp(log_weights[k]) delta(places[k]), block by block."""
    total: np.ndarray = np.zeros(1)
    for first in range(0, log_weights.size, _BLOCK):
        block = slice(first, first + _BLOCK)
        total = total + np.exp(log_weights[block] + profile.log_delta(places(block))).sum(axis=1)
    return total


@dataclass(frozen=True)
class PoissonSubstituteFromAddRemove(PoissonRate, Bound):
    """Poisson sampling, one record substituted, from a base profile for adding and removing.

    Samples without the record, with it, and with its substitute come in triples y, y + v, y + v' of equal weight, one
    step and two steps apart. Three bounds follow, of which the smallest is returned:

    - by advanced joint convexity, gamma ((1 - beta) delta(epsilon) + beta delta_2(epsilon));
    - two steps of the amplified profile: (exp(epsilon') - 1) / (exp(epsilon'/2) - 1) delta'_R(epsilon'/2);
    - for a base that is (epsilon0, 0)-DP, 0 from epsilon' = log((1 - gamma + gamma e^epsilon0) /
      (1 - gamma + gamma e^-epsilon0)) on, which is exact for the class of such mechanisms.

    Parameters
    ----------
    rate : float
        gamma in [0, 1].

    References
    ----------
    balle, Theorems 2 and 8 and Section 3 (group privacy); the combination is ours.
    """

    theorem: ClassVar[str] = "Theorem 2 on triples of samples"
    base: ClassVar[Relation] = Relation.ADD_REMOVE
    result: ClassVar[Relation] = Relation.SUBSTITUTE

    def pure_epsilon(self, epsilon: ArrayLike) -> np.ndarray:
        """Return the exact largest loss for the class of (epsilon, 0)-DP base mechanisms, in nats.

        Raises
        ------
        ArgumentError
            If an epsilon is negative or not finite.
        """
        order = nonnegative("epsilon", epsilon)
        if self.rate == 0:
            return np.zeros(order.shape)[()]
        return (self.epsilon_amplified(order) - np.log1p(self.rate * np.expm1(-order)))[()]

    def _delta(self, profile: Profile, target: np.ndarray) -> np.ndarray:
        base = self.epsilon_base(target)
        shrink = target - base
        single, double = profile.delta(base), np.exp(profile.group_log_delta(base, 2))
        best = self.rate * (np.exp(shrink) * double - np.expm1(shrink) * single)
        best = np.minimum(best, np.exp(BlackBoxGroups(_Amplified(profile, self.rate)).group_log_delta(target, 2)))
        limit = float(profile.epsilon(0.0))
        if math.isfinite(limit):
            best = np.where(target >= self.pure_epsilon(limit), 0.0, best)
        return best


@dataclass(frozen=True)
class _Amplified(Profile):
    """The bound of Theorem 8 as a profile, at epsilon >= 0."""

    base: Profile
    rate: float

    def group_log_delta(self, epsilon: ArrayLike, occurrences: ArrayLike) -> np.ndarray:
        order = np.asarray(epsilon, dtype=float)
        with np.errstate(divide="ignore"):
            return np.log(PoissonAddRemove(self.rate)._delta(self.base, order.ravel())).reshape(order.shape)
