"""Amplification bounds that know for which sampler and which neighbouring relations they hold."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from dpsub import checks, discrete
from dpsub.amplification.theorem import amplified_epsilon, amplify, base_epsilon
from dpsub.errors import ArgumentError, UnsupportedError
from dpsub.multiplicity import MultiplicityLaw
from dpsub.profiles.base import Profile, nonnegative
from dpsub.profiles.groups import PairedSteps
from dpsub.relations import Relation

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
        return MultiplicityLaw(discrete.log_binomial(np.arange(self.m + 1), self.m, 1 / self.n))


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
