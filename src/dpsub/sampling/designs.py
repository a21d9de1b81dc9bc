"""What a sampler offers that treats records by their stratum, cluster, size or place.

Samples without replacement whose size is random, or follows from the number of records by rounding.

How many records to draw from each stratum, and inclusion probabilities proportional to size.
"""

from __future__ import annotations

import abc
import heapq
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from math import comb
from typing import ClassVar

import numpy as np

from dpsub import checks
from dpsub.errors import ArgumentError
from dpsub.sampling.frame import Frame, Sample, Samples

Counts = tuple[int, ...]
Drawer = Callable[[np.random.Generator], np.ndarray]
MOST_SAMPLES = 200_000


class FrameSampler(abc.ABC):
    """A randomised map from a frame with design variables to a sample; subclasses are frozen dataclasses.

    Class attributes
    ----------------
    name : identifier in configuration, records and results.
    label : how figures and tables show it.
    """

    name: ClassVar[str]
    label: ClassVar[str]

    @classmethod
    @abc.abstractmethod
    def examples(cls) -> list[tuple[FrameSampler, Frame]]:
        """Pairs (sampler, frame) small enough to enumerate, for the conformance tests."""

    @abc.abstractmethod
    def inclusion_probabilities(self, frame: Frame) -> np.ndarray:
        """Return the chance of each record to be in the sample, shape (n,)."""

    @abc.abstractmethod
    def law(self, frame: Frame) -> dict[Counts, float]:
        """Return the probability of every possible sample of a tiny frame, by the counts of all n records."""

    @abc.abstractmethod
    def drawer(self, frame: Frame) -> Drawer:
        """Return what draws one sample of this frame: indices, a repeated one as often as it was drawn."""

    def draw(self, frame: Frame, rng: np.random.Generator) -> Sample:
        """Draw one sample."""
        return self.draw_block(frame, 1, rng)[0]

    def draw_block(self, frame: Frame, n_subsets: int, rng: np.random.Generator) -> Samples:
        """Draw `n_subsets` independent samples."""
        n_subsets, draw = checks.integer("n_subsets", n_subsets, at_least=1), self.drawer(frame)
        drawn = [np.unique(draw(rng), return_counts=True) for _ in range(n_subsets)]
        offsets = np.concatenate(([0], np.cumsum([len(indices) for indices, _ in drawn])))
        indices, counts = (np.concatenate([part[which] for part in drawn]).astype(np.int64) for which in (0, 1))
        return Samples(indices, counts, offsets)


def counts_of(n: int, indices: Iterable[int]) -> Counts:
    """Return how often each of n records occurs among `indices`."""
    counts = [0] * n
    for index in indices:
        counts[int(index)] += 1
    return tuple(counts)


def collected(pairs: Iterable[tuple[Counts, float]]) -> dict[Counts, float]:
    """Return the law of samples that may come about in several ways; impossible ones are left out.

    Raises
    ------
    ArgumentError
        If there are more than MOST_SAMPLES of them.
    """
    law: dict[Counts, float] = {}
    for state, probability in pairs:
        if probability > 0:
            law[state] = law.get(state, 0.0) + probability
            if len(law) > MOST_SAMPLES:
                raise ArgumentError(f"at most {MOST_SAMPLES} samples are enumerated, got more; take a smaller frame")
    return law


def subsets(records: np.ndarray, size: int) -> Iterator[tuple[tuple[int, ...], float]]:
    """Yield every subset of `size` records with its chance under sampling without replacement."""
    for chosen in combinations(records.tolist(), size):
        yield chosen, 1 / comb(len(records), size)


ROUNDINGS = ("half_up", "randomised")
SizeLaw = dict[int, float]


def exact_rate(rate: object) -> Fraction:
    """Return a rate as an exact rational number; 0.1, "0.1" and "1/10" are all one tenth.

    Raises
    ------
    ArgumentError
        If it is no number in (0, 1].
    """
    try:
        # a float stands for the decimal number that it prints as
        exact = Fraction(repr(float(rate)) if isinstance(rate, float) else str(rate))
    except (ValueError, ZeroDivisionError, OverflowError):
        raise ArgumentError(f"rate must be a number such as 0.1 or 1/10, got rate = {rate!r}") from None
    if not 0 < exact <= 1:
        raise ArgumentError(f"rate must be above 0 and at most 1, got rate = {rate}")
    return exact


def rounded_sizes(rate: object, n: int, rounding: str) -> SizeLaw:
    """Return the law of the size of a sample at `rate` from n records.

    half_up: floor(rate n + 1/2), in exact arithmetic (a language's own rounding sends ties to even numbers);
    randomised: the two integers around rate n, with the chances that keep the mean at rate n.

    References
    ----------
    bun, Section 4.3.
    """
    wanted = exact_rate(rate) * checks.integer("n", n, at_least=0)
    checks.one_of("rounding", rounding, ROUNDINGS)
    if rounding == "half_up":
        return {math.floor(wanted + Fraction(1, 2)): 1.0}
    low = math.floor(wanted)
    up = float(wanted - low)
    return {low: 1 - up, low + 1: up} if up else {low: 1.0}


def drawn_size(law: SizeLaw, rng: np.random.Generator) -> int:
    """Draw a size."""
    sizes = sorted(law)
    return int(rng.choice(sizes, p=[law[size] for size in sizes])) if len(sizes) > 1 else sizes[0]


class _OfRandomSize(FrameSampler):
    """All subsets of a size are equally likely; a subclass says which sizes."""

    @abc.abstractmethod
    def size_law(self, n: int) -> SizeLaw:
        """Return the chances of the sizes for n records."""

    def inclusion_probabilities(self, frame: Frame) -> np.ndarray:
        mean = math.fsum(size * p for size, p in self.size_law(frame.n).items())
        return np.full(frame.n, mean / frame.n)

    def law(self, frame: Frame) -> dict[Counts, float]:
        everyone = np.arange(frame.n)
        return collected(
            (counts_of(frame.n, chosen), p * q)
            for size, p in self.size_law(frame.n).items()
            for chosen, q in subsets(everyone, size)
        )

    def drawer(self, frame: Frame) -> Drawer:
        law = self.size_law(frame.n)
        return lambda rng: rng.choice(frame.n, drawn_size(law, rng), replace=False)


@dataclass(frozen=True)
class RandomSize(_OfRandomSize):
    """A size drawn from a law that does not depend on the data, then that many different records.

    Parameters
    ----------
    probabilities : sequence of float
        Chances of the sizes 0, ..., n: one more than the frame has records.

    Raises
    ------
    ArgumentError
        If a chance is negative or they do not sum to 1 within 1e-9.
    """

    probabilities: tuple[float, ...]

    name: ClassVar[str] = "random_size"
    label: ClassVar[str] = "random size"

    def __post_init__(self) -> None:
        t = checks.finite_array("probabilities", self.probabilities, ndim=1)
        if t.size < 2 or t.min() < 0 or abs(math.fsum(t) - 1) > 1e-9:
            raise ArgumentError(f"chances of sizes must be at least 0 and sum to 1, got a sum of {math.fsum(t)!r}")
        object.__setattr__(self, "probabilities", tuple(t.tolist()))

    def size_law(self, n: int) -> SizeLaw:
        if len(self.probabilities) != n + 1:
            raise ArgumentError(f"chances must be given for the sizes 0..n = {n}, got {len(self.probabilities)}")
        return {size: p for size, p in enumerate(self.probabilities) if p > 0}

    @classmethod
    def examples(cls) -> list[tuple[FrameSampler, Frame]]:
        return [(cls((0.1, 0.0, 0.4, 0.5)), Frame(3)), (cls((0.0, 0.25, 0.25, 0.2, 0.2, 0.1)), Frame(5))]


@dataclass(frozen=True)
class RoundedRate(_OfRandomSize):
    """A share `rate` of the records, the size rounded half up or at random.

    Parameters
    ----------
    rate : str, float or Fraction
        In (0, 1]; kept as an exact rational number.
    rounding : {"half_up", "randomised"}
    """

    rate: Fraction
    rounding: str

    name: ClassVar[str] = "rounded_rate"
    label: ClassVar[str] = "rounded rate"

    def __post_init__(self) -> None:
        object.__setattr__(self, "rate", exact_rate(self.rate))
        checks.one_of("rounding", self.rounding, ROUNDINGS)

    def size_law(self, n: int) -> SizeLaw:
        return rounded_sizes(self.rate, n, self.rounding)

    @classmethod
    def examples(cls) -> list[tuple[FrameSampler, Frame]]:
        return [(cls(Fraction(1, 2), "half_up"), Frame(5)), (cls(Fraction(3, 10), "randomised"), Frame(6))]


def proportional(sizes: Sequence[int], m: int, *, at_least: int = 1) -> tuple[int, ...]:
    """Return the allocation proportional to the sizes N_i of the strata, integers that sum to m."""
    return allocate(sizes, np.asarray(sizes, dtype=float), m, at_least=at_least)


def neyman(sizes: Sequence[int], deviations: Sequence[float], m: int, *, at_least: int = 1) -> tuple[int, ...]:
    """Return the allocation m N_i S_i / sum N_j S_j, which minimises the variance of the weighted mean.

    Parameters
    ----------
    deviations : sequence of float
        Standard deviations of the strata, all with one divisor: N_i - 1 makes the variance formula exact.
    at_least : int
        Smallest size of a stratum's sample: 1, or 2 where its variance is to be estimated.

    References
    ----------
    bun, Section 7.2.
    """
    return optimal(sizes, deviations, np.ones(len(sizes)), m, at_least=at_least)


def optimal(
    sizes: Sequence[int], deviations: Sequence[float], costs: Sequence[float] | np.ndarray, m: int, *, at_least: int = 1
) -> tuple[int, ...]:
    """Return the allocation proportional to N_i S_i / sqrt(c_i), c_i the cost of one unit of the stratum.

    Raises
    ------
    ArgumentError
        If lengths differ, a deviation is negative or all are 0, or a cost is not above 0.
    """
    s, c = checks.finite_array("deviations", deviations, ndim=1), checks.finite_array("costs", costs, ndim=1)
    if not len(sizes) == len(s) == len(c):
        raise ArgumentError(f"sizes, deviations and costs must have one length, got {len(sizes)}, {len(s)}, {len(c)}")
    if (s.size and s.min() < 0) or not np.any(s > 0):
        raise ArgumentError("standard deviations must not be negative and some must be above 0; use another allocation")
    if c.min() <= 0:
        raise ArgumentError(f"costs must be above 0, got {c.min():g}")
    return allocate(sizes, np.asarray(sizes, dtype=float) * s / np.sqrt(c), m, at_least=at_least)


def allocate(sizes: Sequence[int], weights: np.ndarray, m: int, *, at_least: int = 1) -> tuple[int, ...]:
    """Return integers m_i in [at_least, N_i] that sum to m and minimise sum weights_i^2 / m_i.

    Units go one by one to the stratum in which weights_i / sqrt(m_i (m_i + 1)) is largest: the exact integer optimum,
    which takes all of a stratum where its share exceeds it and hands the rest on.

    Raises
    ------
    ArgumentError
        If a stratum is smaller than `at_least`, or m does not fit between the limits.
    """
    limits = [checks.integer("the size of a stratum", size, at_least=0) for size in sizes]
    m = checks.integer("m", m, at_least=1)
    at_least = checks.integer("at_least", at_least, at_least=1)
    small = [i for i, size in enumerate(limits) if size < at_least]
    if small:
        raise ArgumentError(
            f"every stratum must hold its smallest allocation of {at_least}, got stratum {small[0]} with "
            f"{limits[small[0]]}; merge strata"
        )
    if not at_least * len(limits) <= m <= sum(limits):
        raise ArgumentError(
            f"m must lie between {at_least} a stratum = {at_least * len(limits)} and all {sum(limits)} records, "
            f"got m = {m}"
        )
    total = float(weights.sum())
    # Units that every optimum gives to a stratum: at the last unit's worth v, m_i lies between w_i/v - 1 and the larger
    # of at_least and w_i/v + 1/2, so 1/v is at least (m - 2 at_least k) / sum(w). The greedy rule spends the rest.
    spare = max(0, m - 2 * at_least * len(limits))
    sure = [math.floor(spare * w / total) - 1 if total > 0 else 0 for w in weights.tolist()]
    found = [min(size, max(at_least, count)) for size, count in zip(limits, sure, strict=True)]
    queue = [(-w / math.sqrt(k * (k + 1)), i) for i, (w, k) in enumerate(zip(weights.tolist(), found, strict=True))
             if k < limits[i]]  # fmt: skip
    heapq.heapify(queue)
    for _ in range(m - sum(found)):
        _, i = heapq.heappop(queue)
        found[i] += 1
        if found[i] < limits[i]:
            heapq.heappush(queue, (-float(weights[i]) / math.sqrt(found[i] * (found[i] + 1)), i))
    return tuple(found)


def inclusion_probabilities(sizes: np.ndarray, m: int) -> np.ndarray:
    """Return pi_i = m r_i / sum r, where units with a share above 1 are taken for certain and the rest is shared again.

    Parameters
    ----------
    sizes : ndarray, shape (n,)
        Measures of size r_i, above 0.
    m : int
        Sample size, at least 1 and below n.

    Raises
    ------
    ArgumentError
        If a size is not above 0, or m does not lie in 1..n-1.

    References
    ----------
    bun, Section 6.1.
    """
    r = checks.finite_array("sizes", sizes, ndim=1)
    m = checks.integer("m", m, at_least=1)
    if r.size == 0 or r.min() <= 0:
        raise ArgumentError("sizes must be above 0 for sampling in proportion to them; leave the others out")
    if m >= len(r):
        raise ArgumentError(f"m must be below the number of units with a size = {len(r)}, got m = {m}; take all")
    pi = np.zeros(len(r))
    certain = np.zeros(len(r), dtype=bool)
    while True:
        rest = m - int(certain.sum())
        pi[~certain] = rest * r[~certain] / r[~certain].sum()
        over = (pi >= 1) & ~certain
        if not over.any():
            break
        certain |= over
        pi[certain] = 1.0
    return pi
