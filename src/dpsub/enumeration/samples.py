"""Samples as counts of records, their laws under the one-stage samplers, and their distances."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpsub import checks
from dpsub.errors import ArgumentError
from dpsub.relations import Relation

Dataset = tuple[int, ...]
"""How often each record of the universe occurs; the length is the size of the universe."""


def sample_law(sampler: str, data: Dataset, size: float) -> dict[Dataset, float]:
    """Return the exact law of the sample, by enumeration.

    Parameters
    ----------
    sampler : {"poisson", "wor", "wr"}
        The sampler.
    data : tuple of int
        Counts of records; a set (counts 0 and 1), not empty for "wor" and "wr".
    size : float
        The rate of "poisson", else the number of records drawn.

    Raises
    ------
    ArgumentError
        If the data are no set, or the size is out of range.
    """
    if any(count not in (0, 1) for count in data):
        raise ArgumentError(f"data must be a set, got counts {data}; samples may be multisets, data sets not")
    records = [record for record, count in enumerate(data) if count]
    match checks.one_of("sampler", sampler, ("poisson", "wor", "wr")):
        case "poisson":
            rate = checks.real("rate", size, at_least=0, at_most=1)
            drawn = [
                (chosen, rate**k * (1 - rate) ** (len(records) - k))
                for k in range(len(records) + 1)
                for chosen in itertools.combinations(records, k)
            ]
        case "wor":
            m = checks.integer("m", size, at_least=1, at_most=len(records), at_most_name="n")
            weight = 1 / math.comb(len(records), m)
            drawn = [(chosen, weight) for chosen in itertools.combinations(records, m)]
        case _:
            m = checks.integer("m", size, at_least=1)
            checks.integer("n", len(records), at_least=1)
            weight = len(records) ** -float(m)
            drawn = [(chosen, weight) for chosen in itertools.product(records, repeat=m)]
    law: dict[Dataset, float] = {}
    for chosen, probability in drawn:
        sample = tuple(chosen.count(record) for record in range(len(data)))
        law[sample] = law.get(sample, 0.0) + probability
    return law


def printed_multinomial(data: Dataset, sample: Dataset) -> float:
    """Return m! / n^m prod over the universe of x_u / y_u!, the printed law of a sample drawn with replacement.

    References
    ----------
    balle, Section 4; the factor must read x_u^y_u / y_u!, as x_u / y_u! is 0 for every record outside the data.
    """
    return _multinomial(data, sample, [float(count) for count in data])


def multinomial(data: Dataset, sample: Dataset) -> float:
    """Return m! / n^m prod x_u^y_u / y_u!, the law of a sample drawn with replacement."""
    return _multinomial(data, sample, [float(count**drawn) for count, drawn in zip(data, sample, strict=True)])


def _multinomial(data: Dataset, sample: Dataset, factors: Sequence[float]) -> float:
    m = sum(sample)
    orders = math.prod(math.factorial(count) for count in sample)
    return float(math.factorial(m) / sum(data) ** m * math.prod(factors) / orders)


@dataclass(frozen=True)
class Space:
    """All samples that can occur, with the distances of a relation.

    Parameters
    ----------
    samples : tuple of Dataset
        The samples.
    relation : Relation
        Of samples that are neighbours.
    """

    samples: tuple[Dataset, ...]
    relation: Relation

    @classmethod
    def sets(cls, universe: int, sizes: Sequence[int], relation: Relation) -> Space:
        """Return all sets of records with these sizes."""
        found = [counts for counts in itertools.product((0, 1), repeat=universe) if sum(counts) in sizes]
        return cls(tuple(found), relation)

    @classmethod
    def multisets(cls, universe: int, size: int, relation: Relation) -> Space:
        """Return all multisets of records of this size."""
        chosen = itertools.combinations_with_replacement(range(universe), size)
        return cls(tuple(tuple(drawn.count(record) for record in range(universe)) for drawn in chosen), relation)

    @cached_property
    def distances(self) -> np.ndarray:
        """Path distances, shape (samples, samples): |y| + |y'| - 2 |y and y'| for add_remove; for substitute
        |y| - |y and y'| at equal sizes and infinite at others."""
        counts = np.array(self.samples)
        shared = np.minimum(counts[:, np.newaxis], counts[np.newaxis]).sum(axis=2)
        sizes = counts.sum(axis=1)
        if self.relation is Relation.ADD_REMOVE:
            return (sizes[:, np.newaxis] + sizes - 2 * shared).astype(float)
        return np.where(sizes[:, np.newaxis] == sizes, sizes[:, np.newaxis] - shared, np.inf)

    @cached_property
    def positions(self) -> dict[Dataset, int]:
        """Position of each sample."""
        return {sample: place for place, sample in enumerate(self.samples)}

    def neighbours(self) -> list[tuple[int, int]]:
        """Return the pairs of positions at distance 1, each once."""
        rows, columns = np.nonzero(np.triu(self.distances == 1))
        return list(zip(rows.tolist(), columns.tolist(), strict=True))


def law_on(space: Space, law: Mapping[Dataset, float]) -> np.ndarray:
    """Return a law as an array over the samples of `space`.

    Raises
    ------
    ArgumentError
        If a sample of the law is not in the space.
    """
    array = np.zeros(len(space.samples))
    for sample, probability in law.items():
        if sample not in space.positions:
            raise ArgumentError(f"every sample must be in the space, got {sample}; make the space larger")
        array[space.positions[sample]] = probability
    return array
