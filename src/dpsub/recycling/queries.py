"""Sum, average and count of one number a record, on all records or on a sample of fixed size, and what they need.

A sample of m of n records (rate p = m / n) answers with the sum over the sample divided by p, the sample's mean, or the
sample's count divided by p. Each then moves with one record by 1 / p times what it moves by on all records, so that
this, and not the sensitivity at p = 1, is what a release on the sample must be calibrated to.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpsub import checks
from dpsub.errors import UnsupportedError
from dpsub.relations import Relation


@dataclass(frozen=True)
class Query(ABC):
    """A linear query of n records with values clipped to [0, `clip`].

    Parameters
    ----------
    n : int
        Number of records, at least 1.
    clip : float
        Largest value of a record, above 0, in the units of the answer (a count uses indicators and takes 1).
    spread : float
        Standard deviation of the records' values after clipping (divisor n), at least 0; of the indicators for a count:
        sqrt(p_c (1 - p_c)).

    Raises
    ------
    ArgumentError
        If a parameter is out of range.

    References
    ----------
    brdp, Sections 7 and 8.
    """

    n: int
    clip: float
    spread: float

    name: ClassVar[str]

    def __post_init__(self) -> None:
        object.__setattr__(self, "n", checks.integer("n", self.n, at_least=1))
        object.__setattr__(self, "clip", checks.real("clip", self.clip, above=0))
        object.__setattr__(self, "spread", checks.real("spread", self.spread, at_least=0))

    @classmethod
    def of_values(cls, values: np.ndarray, clip: float) -> Query:
        """Return the query of these records, whose spread is that of their clipped values."""
        clipped = np.clip(checks.finite_array("values", values, ndim=1), 0.0, clip)
        return cls(len(clipped), clip, float(clipped.std()))

    @abstractmethod
    def sensitivity(self, rate: float = 1.0, relation: Relation = Relation.SUBSTITUTE) -> float:
        """Largest change of the released statistic at sampling rate `rate` when one record is changed.

        Raises
        ------
        ArgumentError
            If `rate` is not in (0, 1].
        UnsupportedError
            If the answer has no bounded change under `relation`.
        """

    def sampling_sd(self, rate: float) -> float:
        """Standard deviation of the statistic on m = rate n of n records drawn without replacement.

        For the sum sigma_x sqrt(n (1 - p) / p), up to the factor sqrt(n / (n - 1)) of the finite population, which the
        paper leaves out and which is included here.

        References
        ----------
        brdp, Proposition 6.
        """
        rate = checks.real("rate", rate, above=0, at_most=1)
        whole = self.n * self.spread * math.sqrt((1 - rate) / rate / max(1, self.n - 1))
        return whole * self.per_record

    def stated_sampling_sd(self, rate: float) -> float:
        """Proposition 6 as printed: without the finite-population factor."""
        rate = checks.real("rate", rate, above=0, at_most=1)
        return self.spread * math.sqrt(self.n * (1 - rate) / rate) * self.per_record

    @property
    def per_record(self) -> float:
        """What the statistic on all records moves by per unit of a record's value: 1, or 1 / n for an average."""
        return 1.0

    def answer(self, values: np.ndarray) -> float:
        """Return the exact answer on all records, shape (n,)."""
        return float(np.clip(values, 0.0, self.clip).sum() * self.per_record)

    def estimates(self, values: np.ndarray, size: int, repeats: int, rng: np.random.Generator) -> np.ndarray:
        """Return the statistic on `repeats` independent samples of `size` records, shape (repeats,)."""
        size = checks.integer("size", size, at_least=1, at_most=self.n, at_most_name="n")
        clipped = np.clip(values, 0.0, self.clip)
        if size == self.n:
            return np.full(repeats, self.answer(values))
        order = np.argpartition(rng.random((repeats, self.n)), size, axis=1)[:, :size]
        return clipped[order].sum(axis=1) * (self.n / size) * self.per_record


@dataclass(frozen=True)
class Total(Query):
    """Sum of the values: a record moves it by at most the clipping range."""

    name: ClassVar[str] = "sum"

    def sensitivity(self, rate: float = 1.0, relation: Relation = Relation.SUBSTITUTE) -> float:
        return self.clip / checks.real("rate", rate, above=0, at_most=1)


@dataclass(frozen=True)
class Average(Query):
    """Mean of the values; the number of records is public and stays, so only substitution is bounded by clip / m."""

    name: ClassVar[str] = "avg"

    @property
    def per_record(self) -> float:
        return 1.0 / self.n

    def sensitivity(self, rate: float = 1.0, relation: Relation = Relation.SUBSTITUTE) -> float:
        if relation is not Relation.SUBSTITUTE:
            raise UnsupportedError(
                f"an average over a public number of records is released under substitute, got {relation.value}; "
                "release a sum and a count instead"
            )
        return self.clip / (self.n * checks.real("rate", rate, above=0, at_most=1))


@dataclass(frozen=True)
class Count(Query):
    """Number of records with a property: values are indicators, `clip` is 1."""

    name: ClassVar[str] = "cnt"

    @classmethod
    def of_share(cls, n: int, share: float) -> Count:
        """Return the count over n records of which the share p_c has the property."""
        share = checks.real("share", share, at_least=0, at_most=1)
        return cls(n, 1.0, math.sqrt(share * (1 - share)))

    def sensitivity(self, rate: float = 1.0, relation: Relation = Relation.SUBSTITUTE) -> float:
        return self.clip / checks.real("rate", rate, above=0, at_most=1)


KINDS: dict[str, type[Query]] = {kind.name: kind for kind in (Total, Average, Count)}


def poisson_sampling_sd(kind: str, values: np.ndarray, rate: float) -> float:
    """Standard deviation of the sum or the count under Poisson sampling: the size of the sample varies too.

    sqrt(sum x^2 (1 - p) / p): second moments stand where fixed-size sampling has variances.

    Raises
    ------
    UnsupportedError
        For an average, whose divisor would vary.
    """
    checks.one_of("query", kind, KINDS)
    if kind == Average.name:
        raise UnsupportedError("a Poisson sample has a random size, got the query avg; take sum or cnt")
    rate = checks.real("rate", rate, above=0, at_most=1)
    squares = float((checks.finite_array("values", values, ndim=1) ** 2).sum())
    return math.sqrt(squares * (1 - rate) / rate)
