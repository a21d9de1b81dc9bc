"""Sampling designs over a frame: random sizes, strata, clusters and systematic samples.

Designs with probabilities proportional to size are in `dpsub.sampling.pps`.
"""

from __future__ import annotations

import abc
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, product
from math import comb
from typing import ClassVar

import numpy as np

from dpsub import checks
from dpsub.errors import ArgumentError
from dpsub.sampling.allocation import (
    ROUNDINGS,
    SizeChances,
    exact_rate,
    log_normal_sizes,
    rounded_sizes,
)
from dpsub.sampling.frame import Frame, Sample, Samples

Counts = tuple[int, ...]
Drawer = Callable[[np.random.Generator], np.ndarray]
MOST_SAMPLES = 200_000


class FrameSampler(abc.ABC):
    """Base class of designs: a randomised map from a frame with design variables to a sample.

    Subclasses are frozen dataclasses.
    """

    name: ClassVar[str]  # identifier in configuration, records and results
    label: ClassVar[str]  # in figures and tables

    @classmethod
    @abc.abstractmethod
    def examples(cls) -> list[tuple[FrameSampler, Frame]]:
        """Pairs (sampler, frame) that are small enough to enumerate, for the conformance tests."""

    @abc.abstractmethod
    def inclusion_probabilities(self, frame: Frame) -> np.ndarray:
        """Return the inclusion probability of each record, shape (n,)."""

    @abc.abstractmethod
    def law(self, frame: Frame) -> dict[Counts, float]:
        """Return the probability of every possible sample of a tiny frame.

        Samples are given by the counts of all n records.
        """

    @abc.abstractmethod
    def drawer(self, frame: Frame) -> Drawer:
        """Return a function that draws one sample of this frame as indices, with repetitions."""

    def draw(self, frame: Frame, rng: np.random.Generator) -> Sample:
        """Draw one sample."""
        return self.draw_block(frame, 1, rng)[0]

    def draw_block(self, frame: Frame, n_subsets: int, rng: np.random.Generator) -> Samples:
        """Draw `n_subsets` independent samples."""
        n_subsets, draw = checks.integer("n_subsets", n_subsets, at_least=1), self.drawer(frame)
        drawn = [np.unique(draw(rng), return_counts=True) for _ in range(n_subsets)]
        offsets = np.concatenate(([0], np.cumsum([len(indices) for indices, _ in drawn])))
        indices, counts = (
            np.concatenate([part[which] for part in drawn]).astype(np.int64) for which in (0, 1)
        )
        return Samples(indices, counts, offsets)


def counts_of(n: int, indices: Iterable[int]) -> Counts:
    """Return the number of occurrences of each of n records among `indices`."""
    return tuple(np.bincount(np.fromiter(indices, np.intp), minlength=n).tolist())


def collected(pairs: Iterable[tuple[Counts, float]]) -> dict[Counts, float]:
    """Sum the probabilities of equal samples, without impossible ones.

    ArgumentError beyond MOST_SAMPLES samples.
    """
    law: dict[Counts, float] = {}
    for state, probability in pairs:
        if probability > 0:
            law[state] = law.get(state, 0.0) + probability
            if len(law) > MOST_SAMPLES:
                raise ArgumentError(
                    f"at most {MOST_SAMPLES} samples are enumerated, got more; take a smaller frame"
                )
    return law


def subsets(records: np.ndarray, size: int) -> Iterator[tuple[tuple[int, ...], float]]:
    """Yield every subset of `size` records with its probability, without replacement."""
    for chosen in combinations(records.tolist(), size):
        yield chosen, 1 / comb(len(records), size)


class _OfSizes(FrameSampler):
    """Independent simple random samples within groups of records; subclasses define the sizes."""

    def groups(self, frame: Frame) -> list[np.ndarray]:
        """The records of each group; by default there is one group with all records."""
        return [np.arange(frame.n)]

    @abc.abstractmethod
    def chances(self, sizes: list[int]) -> list[SizeChances]:
        """Return the law of the sample's size in each of the groups, given their sizes."""

    def _drawn(self, frame: Frame) -> list[tuple[np.ndarray, SizeChances]]:
        groups = self.groups(frame)
        return list(zip(groups, self.chances([len(members) for members in groups]), strict=True))

    def inclusion_probabilities(self, frame: Frame) -> np.ndarray:
        inclusion = np.empty(frame.n)
        for members, chances in self._drawn(frame):
            inclusion[members] = math.fsum(size * p for size, p in chances.items()) / len(members)
        return inclusion

    def law(self, frame: Frame) -> dict[Counts, float]:
        parts = [
            [(chosen, p * q) for size, p in chances.items() for chosen, q in subsets(members, size)]
            for members, chances in self._drawn(frame)
        ]
        return collected(
            (
                counts_of(frame.n, [i for chosen, _ in pieces for i in chosen]),
                math.prod(p for _, p in pieces),
            )
            for pieces in product(*parts)
        )

    def drawer(self, frame: Frame) -> Drawer:
        groups = [
            (members, list(chances), list(chances.values()))
            for members, chances in self._drawn(frame)
        ]

        def drawn(
            rng: np.random.Generator, members: np.ndarray, sizes: list[int], p: list[float]
        ) -> np.ndarray:
            return rng.choice(
                members, rng.choice(sizes, p=p) if len(sizes) > 1 else sizes[0], replace=False
            )

        return lambda rng: np.concatenate([drawn(rng, *group) for group in groups])


@dataclass(frozen=True)
class RandomSize(_OfSizes):
    """A simple random sample of random size, independent of the data.

    The size is normal with `mean` and `sd`, restricted to 0, ..., n.
    """

    mean: float
    sd: float
    name, label = "random_size", "random size"

    def __post_init__(self) -> None:
        object.__setattr__(self, "mean", checks.real("mean", self.mean))
        object.__setattr__(self, "sd", checks.real("sd", self.sd, above=0))

    def chances(self, sizes: list[int]) -> list[SizeChances]:
        p = np.exp(log_normal_sizes(sizes[0], self.mean, self.sd))
        return [{size: chance for size, chance in enumerate((p / p.sum()).tolist()) if chance > 0}]

    @classmethod
    def examples(cls) -> list[tuple[FrameSampler, Frame]]:
        return [(cls(2, 0.8), Frame(3)), (cls(0, 2), Frame(5))]


@dataclass(frozen=True)
class RoundedRate(_OfSizes):
    """A simple random sample of a share of the records, 0 < `rate` <= 1.

    The rate is kept exactly; the size is rounded "half_up" or "randomised".

    Examples
    --------
    >>> RoundedRate("1/4", "randomised").law(Frame(2))
    {(0, 0): 0.5, (1, 0): 0.25, (0, 1): 0.25}
    """

    rate: Fraction
    rounding: str
    name, label = "rounded_rate", "rounded rate"

    def __post_init__(self) -> None:
        object.__setattr__(self, "rate", exact_rate(self.rate))
        checks.one_of("rounding", self.rounding, ROUNDINGS)

    def chances(self, sizes: list[int]) -> list[SizeChances]:
        return [rounded_sizes(self.rate, size, self.rounding) for size in sizes]

    @classmethod
    def examples(cls) -> list[tuple[FrameSampler, Frame]]:
        return [
            (cls(Fraction(1, 2), "half_up"), Frame(5)),
            (cls(Fraction(3, 10), "randomised"), Frame(6)),
        ]


class _ByStratum(_OfSizes):
    def groups(self, frame: Frame) -> list[np.ndarray]:
        labels = frame.needed("strata")
        return [np.flatnonzero(labels == stratum) for stratum in range(len(frame.stratum_sizes))]


_STRATA = Frame(8, strata=np.array([0, 0, 0, 1, 1, 1, 1, 1]))


class StratifiedRate(_ByStratum, RoundedRate):
    """Proportional allocation: the share `rate` of each stratum, rounded half up or at random."""

    name, label = "stratified_rate", "proportional"

    @classmethod
    def examples(cls) -> list[tuple[FrameSampler, Frame]]:
        return [
            (cls(Fraction(2, 5), "randomised"), _STRATA),
            (cls(Fraction(1, 2), "half_up"), _STRATA),
        ]


@dataclass(frozen=True)
class Stratified(_ByStratum):
    """A fixed allocation: the number of records from each stratum, at least 1.

    See `dpsub.sampling.allocation`.
    """

    allocation: tuple[int, ...]
    name, label = "stratified", "stratified"

    def __post_init__(self) -> None:
        sizes = tuple(checks.integer("an allocation", size, at_least=1) for size in self.allocation)
        object.__setattr__(self, "allocation", sizes)

    def chances(self, sizes: list[int]) -> list[SizeChances]:
        if len(sizes) != len(self.allocation):
            raise ArgumentError(
                f"an allocation must be given for all {len(sizes)} strata, got "
                f"{len(self.allocation)}"
            )
        for stratum, (wanted, held) in enumerate(zip(self.allocation, sizes, strict=True)):
            if wanted > held:
                got = f"stratum {stratum} with {held} records and {wanted} to draw"
                raise ArgumentError(
                    f"a stratum must be at least as large as its allocation, got {got}"
                )
        return [{size: 1.0} for size in self.allocation]

    @classmethod
    def examples(cls) -> list[tuple[FrameSampler, Frame]]:
        return [(cls((1, 3)), _STRATA), (cls((3, 2)), _STRATA)]


_CLUSTERS = Frame(7, clusters=np.array([0, 1, 1, 2, 2, 2, 3]))


@dataclass(frozen=True)
class ClusterSample(FrameSampler):
    """A uniform draw of `drawn` clusters without replacement, and a Poisson sample of each.

    The rate of the second stage is `second_stage`.

    Examples
    --------
    >>> ClusterSample(1).law(Frame(3, clusters=np.array([0, 1, 1])))
    {(1, 0, 0): 0.5, (0, 1, 1): 0.5}
    """

    drawn: int
    second_stage: float = 1.0
    name, label = "cluster", "cluster"

    def __post_init__(self) -> None:
        object.__setattr__(self, "drawn", checks.integer("drawn", self.drawn, at_least=1))
        rate = checks.real("second_stage", self.second_stage, above=0, at_most=1)
        object.__setattr__(self, "second_stage", rate)

    def _clusters(self, frame: Frame) -> int:
        k = len(frame.cluster_sizes)
        if self.drawn > k:
            raise ArgumentError(
                f"drawn must be at most the number of clusters = {k}, got drawn = {self.drawn}"
            )
        return k

    def inclusion_probabilities(self, frame: Frame) -> np.ndarray:
        return np.full(frame.n, self.drawn / self._clusters(frame) * self.second_stage)

    def law(self, frame: Frame) -> dict[Counts, float]:
        labels, rate = frame.needed("clusters"), self.second_stage

        def outcomes() -> Iterator[tuple[Counts, float]]:
            for chosen, p in subsets(np.arange(self._clusters(frame)), self.drawn):
                members = np.flatnonzero(np.isin(labels, chosen))
                if rate == 1:
                    yield counts_of(frame.n, members), p
                    continue
                for kept in product((0, 1), repeat=len(members)):
                    chance = rate ** sum(kept) * (1 - rate) ** (len(members) - sum(kept))
                    yield counts_of(frame.n, members[np.array(kept, dtype=bool)]), p * chance

        return collected(outcomes())

    def drawer(self, frame: Frame) -> Drawer:
        k, labels = self._clusters(frame), frame.needed("clusters")

        def draw(rng: np.random.Generator) -> np.ndarray:
            members = np.flatnonzero(np.isin(labels, rng.choice(k, self.drawn, replace=False)))
            return (
                members
                if self.second_stage == 1
                else members[rng.random(len(members)) < self.second_stage]
            )

        return draw

    @classmethod
    def examples(cls) -> list[tuple[FrameSampler, Frame]]:
        return [(cls(2), _CLUSTERS), (cls(1, 0.4), _CLUSTERS), (cls(4), _CLUSTERS)]


@dataclass(frozen=True)
class PpsCluster(FrameSampler):
    """All members of one cluster, drawn with a probability proportional to its size."""

    name, label = "pps_cluster", "PPS cluster"

    def inclusion_probabilities(self, frame: Frame) -> np.ndarray:
        return frame.cluster_sizes[frame.needed("clusters")] / frame.n

    def law(self, frame: Frame) -> dict[Counts, float]:
        labels = frame.needed("clusters")
        return collected(
            (counts_of(frame.n, np.flatnonzero(labels == c)), size / frame.n)
            for c, size in enumerate(frame.cluster_sizes.tolist())
        )

    def drawer(self, frame: Frame) -> Drawer:
        # the cluster of a uniformly drawn record has this chance
        labels = frame.needed("clusters")
        return lambda rng: np.flatnonzero(labels == labels[rng.integers(frame.n)])

    @classmethod
    def examples(cls) -> list[tuple[FrameSampler, Frame]]:
        return [(cls(), _CLUSTERS)]


@dataclass(frozen=True)
class Systematic(FrameSampler):
    """Every `step`-th record from a uniform start among the first `step`.

    `step` must divide the number of records. `order` is "frame", which is known, or "random", which
    is uniform and secret and makes the sample a simple random one.
    """

    step: int
    order: str = "frame"
    name, label = "systematic", "systematic"

    def __post_init__(self) -> None:
        object.__setattr__(self, "step", checks.integer("step", self.step, at_least=1))
        checks.one_of("order", self.order, ("frame", "random"))

    def _size(self, frame: Frame) -> int:
        if frame.n % self.step:
            raise ArgumentError(
                f"step must divide the number of records = {frame.n}, got step = {self.step}"
            )
        return frame.n // self.step

    def inclusion_probabilities(self, frame: Frame) -> np.ndarray:
        return np.full(frame.n, self._size(frame) / frame.n)

    def law(self, frame: Frame) -> dict[Counts, float]:
        size, everyone = self._size(frame), np.arange(frame.n)
        if self.order == "random":
            return collected(
                (counts_of(frame.n, chosen), p) for chosen, p in subsets(everyone, size)
            )
        return collected(
            (counts_of(frame.n, everyone[j :: self.step]), 1 / self.step) for j in range(self.step)
        )

    def drawer(self, frame: Frame) -> Drawer:
        self._size(frame)

        def draw(rng: np.random.Generator) -> np.ndarray:
            order = rng.permutation(frame.n) if self.order == "random" else np.arange(frame.n)
            return order[int(rng.integers(self.step)) :: self.step]

        return draw

    @classmethod
    def examples(cls) -> list[tuple[FrameSampler, Frame]]:
        return [(cls(3), Frame(9)), (cls(2, "random"), Frame(6))]
