"""Amplification bounds that know for which sampler and which neighbouring relations they hold.

Poisson sampling when one record is substituted: no distance-compatible coupling, hence bounds of their own.

Which bound covers a sampler, a relation between samples and a relation between data sets, or why none does.
"""

from __future__ import annotations

import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from dpsub import checks
from dpsub.amplification.theorem import amplified_epsilon, amplify, base_epsilon
from dpsub.errors import ArgumentError, UnsupportedError
from dpsub.noise.base import Profile, nonnegative
from dpsub.noise.profiles import BlackBoxGroups, PairedSteps
from dpsub.relations import Relation
from dpsub.sampling import laws
from dpsub.sampling.laws import MultiplicityLaw

LARGEST = 10_000_000
"""Of the sizes over which a bound sums: arrays of that length are held."""
_WORDS = {Relation.ADD_REMOVE: "adding or removing a record", Relation.SUBSTITUTE: "substituting a record"}


@dataclass(frozen=True)
class DeclaredProfile:
    """A base profile and the neighbouring relations between samples for which it holds.

    Parameters
    ----------
    profile : Profile
        The profile; its groups are distances in the same relation.
    relations : frozenset of Relation
        At least one.

    Raises
    ------
    ArgumentError
        If no relation is declared.
    """

    profile: Profile
    relations: frozenset[Relation]

    def __post_init__(self) -> None:
        kept = frozenset(Relation(name) for name in self.relations)
        if not kept:
            raise ArgumentError(
                "a base profile must hold for a relation between samples, got none; declare add_remove or substitute"
            )
        object.__setattr__(self, "relations", kept)

    @classmethod
    def of(cls, profile: Profile, *relations: Relation) -> DeclaredProfile:
        """Return `profile` declared for `relations`."""
        return cls(profile, frozenset(relations))


class Bound(ABC):
    """An upper bound on the privacy profile of one release of a subsampled mechanism.

    It is valid for one release: composing its points naively is valid too, but rarely tight.

    Class attributes
    ----------------
    theorem : where it stands in the paper, or how it follows from it.
    sampler : name of the sampler.
    base : the relation between samples for which the base profile must hold.
    result : the relation between data sets for which the result holds.
    """

    theorem: ClassVar[str]
    sampler: ClassVar[str]
    base: ClassVar[Relation]
    result: ClassVar[Relation]

    @property
    def base_relation(self) -> Relation:
        """The relation between samples for which the base profile must hold."""
        return self.base

    @property
    def relation(self) -> Relation:
        """The relation between data sets for which the result holds."""
        return self.result

    @property
    @abstractmethod
    def eta(self) -> float:
        """Largest total variation distance between samples of neighbouring data sets, in [0, 1]."""

    @abstractmethod
    def _delta(self, profile: Profile, target: np.ndarray) -> np.ndarray:
        """Return the bound at epsilon' = `target` >= 0, for 0 < eta."""

    @property
    def name(self) -> str:
        """The theorem, in words."""
        return self.theorem

    @property
    def sampler_name(self) -> str:
        """Name of the sampler."""
        return self.sampler

    def delta(self, base: DeclaredProfile, epsilon_amplified: ArrayLike) -> np.ndarray:
        """Return delta'(epsilon'), an upper bound, of the shape of `epsilon_amplified`.

        Parameters
        ----------
        base : DeclaredProfile
            Profile of the base mechanism.
        epsilon_amplified : array_like
            epsilon' in nats, at least 0.

        Raises
        ------
        UnsupportedError
            If the base profile was declared for another relation.
        ArgumentError
            If an epsilon' is negative or not finite.
        """
        if self.base_relation not in base.relations:
            declared = " and ".join(sorted(_WORDS[name] for name in base.relations))
            raise UnsupportedError(
                f"{self.name} needs a base profile for {_WORDS[self.base_relation]}, got one for "
                f"{declared}; declare what holds, or ask for another bound"
            )
        target = nonnegative("epsilon_amplified", epsilon_amplified)
        if self.eta == 0:
            return np.zeros(target.shape)[()]
        found = np.minimum(self._delta(base.profile, np.atleast_1d(target)), 1.0)
        if math.isinf(float(base.profile.epsilon(0.0))):  # such a profile never is 0, it only underflows
            found = np.maximum(found, np.finfo(float).tiny)
        return found.reshape(target.shape)[()]

    def epsilon_base(self, epsilon_amplified: ArrayLike) -> np.ndarray:
        """Return the base epsilon that belongs to epsilon' = log(1 + eta (exp(epsilon) - 1)); eta above 0."""
        return base_epsilon(epsilon_amplified, self.eta)

    def epsilon_amplified(self, epsilon: ArrayLike) -> np.ndarray:
        """Return epsilon' of a base epsilon; eta above 0."""
        return amplified_epsilon(epsilon, self.eta)


class LawBound(Bound):
    """A bound in which only the multiplicity law of one record matters: delta' = sum of P(L = l) delta_l(epsilon)."""

    @cached_property
    @abstractmethod
    def law(self) -> MultiplicityLaw:
        """Law of the number of copies of the record in which neighbours differ."""

    @property
    def eta(self) -> float:
        return min(self.law.eta, 1.0)

    def _delta(self, profile: Profile, target: np.ndarray) -> np.ndarray:
        return amplify(self.law, profile, self.epsilon_base(target)).delta_amplified


@dataclass(frozen=True)
class PoissonRate:
    """gamma in [0, 1], which is eta for every relation."""

    rate: float

    sampler: ClassVar[str] = "poisson"

    def __post_init__(self) -> None:
        object.__setattr__(self, "rate", checks.real("rate", self.rate, at_least=0, at_most=1))

    @property
    def eta(self) -> float:
        """The rate."""
        return self.rate


@dataclass(frozen=True)
class PoissonAddRemove(PoissonRate, LawBound):
    """Poisson sampling, one record added or removed: delta'(epsilon') = gamma delta(epsilon); attained by membership.

    Parameters
    ----------
    rate : float
        gamma in [0, 1].

    References
    ----------
    balle, Theorem 8.
    """

    theorem: ClassVar[str] = "Theorem 8"
    base: ClassVar[Relation] = Relation.ADD_REMOVE
    result: ClassVar[Relation] = Relation.ADD_REMOVE

    @cached_property
    def law(self) -> MultiplicityLaw:
        return MultiplicityLaw.single(self.rate)


@dataclass(frozen=True)
class WorSubstitute(LawBound):
    """m of n records without replacement, one substituted: delta'(epsilon') = (m/n) delta(epsilon); attained.

    Parameters
    ----------
    n, m : int
        1 <= m <= n. The decomposition behind it needs m < n; at m = n the bound is the base profile itself.

    References
    ----------
    balle, Theorem 9.
    """

    n: int
    m: int

    theorem: ClassVar[str] = "Theorem 9"
    sampler: ClassVar[str] = "wor"
    base: ClassVar[Relation] = Relation.SUBSTITUTE
    result: ClassVar[Relation] = Relation.SUBSTITUTE

    def __post_init__(self) -> None:
        object.__setattr__(self, "n", checks.integer("n", self.n, at_least=1))
        object.__setattr__(self, "m", checks.integer("m", self.m, at_least=1, at_most=self.n, at_most_name="n"))

    @cached_property
    def law(self) -> MultiplicityLaw:
        return MultiplicityLaw.single(self.m / self.n)


@dataclass(frozen=True)
class WrSubstitute(LawBound):
    """m draws with replacement from n records, one substituted:

        delta'(epsilon') = sum over k = 1..m of C(m, k) n^-k (1 - 1/n)^(m - k) delta_k(epsilon);  attained.

    Parameters
    ----------
    n : int
        Size of the data set, at least 1.
    m : int
        Number of draws, 0 to 10^7; it may exceed n.

    References
    ----------
    balle, Theorem 10.
    """

    n: int
    m: int

    theorem: ClassVar[str] = "Theorem 10"
    sampler: ClassVar[str] = "wr"
    base: ClassVar[Relation] = Relation.SUBSTITUTE
    result: ClassVar[Relation] = Relation.SUBSTITUTE
    smallest: ClassVar[int] = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "n", checks.integer("n", self.n, at_least=self.smallest))
        object.__setattr__(self, "m", checks.integer("m", self.m, at_least=0, at_most=LARGEST))

    @cached_property
    def law(self) -> MultiplicityLaw:
        return MultiplicityLaw(laws.log_binomial(np.arange(self.m + 1), self.m, 1 / self.n))


@dataclass(frozen=True)
class WrAddRemove(WrSubstitute):
    """The same sum for one record added to or removed from a data set of the declared size n, at least 2.

    Its guarantee holds at data sets of that size, so that it is no guarantee over data sets of all sizes.

    References
    ----------
    balle, Theorem 11.
    """

    theorem: ClassVar[str] = "Theorem 11"
    result: ClassVar[Relation] = Relation.ADD_REMOVE
    smallest: ClassVar[int] = 2


@dataclass(frozen=True)
class ThroughPairs(Bound):
    """A bound for substitution between samples, used with a base profile for adding and removing: k becomes 2 k.

    Parameters
    ----------
    bound : LawBound
        With `base_relation` substitute.
    """

    bound: LawBound

    theorem: ClassVar[str] = "two steps a substitution"

    @property
    def name(self) -> str:
        return f"{self.bound.name} with {self.theorem}"

    @property
    def sampler_name(self) -> str:
        return self.bound.sampler

    @property
    def base_relation(self) -> Relation:
        return Relation.ADD_REMOVE

    @property
    def relation(self) -> Relation:
        return self.bound.relation

    @property
    def eta(self) -> float:
        return self.bound.eta

    def _delta(self, profile: Profile, target: np.ndarray) -> np.ndarray:
        return self.bound._delta(PairedSteps(profile), target)


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
        return laws.log_binomial(k - 1, self.n - 1, self.rate), odds + np.log(self.n / k[:-1] - 1)


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


R, S = Relation.ADD_REMOVE, Relation.SUBSTITUTE

# (sampler, base relation, target relation) -> (what makes the bound, the sizes that it needs)
BOUNDS: dict[tuple[str, Relation, Relation], tuple[Callable[..., Bound], tuple[str, ...]]] = {
    ("poisson", R, R): (PoissonAddRemove, ("rate",)),
    ("poisson", R, S): (PoissonSubstituteFromAddRemove, ("rate",)),
    ("poisson", S, S): (PoissonSubstituteBySize, ("rate", "n")),
    ("wor", S, S): (WorSubstitute, ("n", "m")),
    ("wor", R, S): (lambda n, m: ThroughPairs(WorSubstitute(n, m)), ("n", "m")),
    ("wr", S, S): (WrSubstitute, ("n", "m")),
    ("wr", R, S): (lambda n, m: ThroughPairs(WrSubstitute(n, m)), ("n", "m")),
    ("wr", S, R): (WrAddRemove, ("n", "m")),
    ("wr", R, R): (lambda n, m: ThroughPairs(WrAddRemove(n, m)), ("n", "m")),
}
NONE = {
    ("poisson", S, R): "a mechanism that is private under substitution may release the size of its sample, and the "
    "size of a Poisson sample tells when a record is added; use a base profile for add_remove",
    ("wor", S, R): "the inclusion probability m/n needs the size n of the data set, which adding a record changes; "
    "take the target substitute",
    ("wor", R, R): "the inclusion probability m/n needs the size n of the data set, which adding a record changes; "
    "take the target substitute",
}
SAMPLERS = ("poisson", "wor", "wr")


def translate(
    sampler: str, base: Relation | str, target: Relation | str, *, rate: float | None = None, n: int | None = None,
    m: int | None = None,
) -> Bound:
    """Return the best available bound for a sampler, a base relation and a target relation.

    Parameters
    ----------
    sampler : {"poisson", "wor", "wr"}
        The sampler.
    base : Relation
        Relation between samples for which the base mechanism's profile is known.
    target : Relation
        Relation between data sets for which a guarantee is wanted.
    rate : float, optional
        gamma of Poisson sampling. Where m of sampling with replacement is not given, m = rate n, with a warning that
        the inclusion probability is another number.
    n : int, optional
        Size of the data set, a public number.
    m : int, optional
        Size of the sample.

    Returns
    -------
    Bound
        Its `name` says by which theorem.

    Raises
    ------
    UnsupportedError
        If no bound exists; the message says why.
    ArgumentError
        If a name is unknown, or a size is missing or out of range.

    References
    ----------
    balle, Table 1 and Theorem 14.

    Examples
    --------
    >>> bound = translate("wor", "substitute", "substitute", n=1000, m=10)
    >>> bound.name, round(bound.eta, 12)
    ('Theorem 9', 0.01)
    >>> translate("wor", "substitute", "add_remove", n=1000, m=10)
    Traceback (most recent call last):
    dpsub.errors.UnsupportedError: no bound takes wor from substitute to add_remove: ...
    """
    key = (checks.one_of("sampler", sampler, SAMPLERS), _relation("base", base), _relation("target", target))
    if key in NONE:
        raise UnsupportedError(f"no bound takes {key[0]} from {key[1].value} to {key[2].value}: {NONE[key]}")
    make, needs = BOUNDS[key]
    given: dict[str, Any] = {"rate": rate, "n": n, "m": m}
    if sampler == "wr" and m is None and rate is not None and n is not None:
        given["m"] = _draws(rate, n)
    missing = [name for name in needs if given[name] is None]
    if missing:
        raise ArgumentError(f"the bound for {key[0]} from {key[1].value} to {key[2].value} needs "
                            f"{' and '.join(needs)}, got no {missing[0]}; declare it as a public number")
    return make(**{name: given[name] for name in needs})


def _relation(name: str, value: Relation | str) -> Relation:
    return Relation(checks.one_of(f"{name} relation", str(value), [relation.value for relation in Relation]))


def _draws(rate: float, n: int) -> int:
    share = checks.real("rate", rate, at_least=0, at_most=1)
    m = checks.integer("m = rate n", round(share * checks.integer("n", n, at_least=1), 9))
    eta = WrSubstitute(n, m).eta
    warnings.warn(f"the inclusion probability of {m} draws with replacement from {n} is {eta:.6g}, not the rate "
                  f"{share:g}; the former is used", stacklevel=3)
    return m
