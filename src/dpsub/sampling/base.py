"""Stages of a multistage sampler, each applied to the slots that the stage before it left.

A stage knows how the copies of one fixed record among its input slots become copies among its output slots: the
kernel of a Markov chain on counts.

What every sampler offers, and the multistage sampler of which the papers' simple ones are configurations.

Vectorised draws of indices for a block of subsets, at a cost that does not depend on the size of the frame.
"""

from __future__ import annotations

import abc
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from dpsub import checks
from dpsub.errors import ArgumentError, UnsupportedError
from dpsub.relations import Relation
from dpsub.sampling import laws
from dpsub.sampling.frame import Frame, Sample, Samples
from dpsub.sampling.laws import MultiplicityLaw

MOST_DRAWS = 10**7
"""Slots of a stage with replacement: the law of a record's copies has an entry for each number of them."""


class Stage(abc.ABC):
    """One step of a multistage sampler."""

    @abc.abstractmethod
    def check(self, n_slots: int, name: str) -> None:
        """Raise ArgumentError if the stage can't be applied to `n_slots` slots, `name` being what they are called."""

    @abc.abstractmethod
    def log_kernel(self, j: np.ndarray, n_slots: int) -> np.ndarray:
        """Log P(u copies after | j copies before), shape (len(j), u_max + 1)."""


@dataclass(frozen=True)
class PoissonStage(Stage):
    """Keep each slot independently with probability `rate`; leaves a random number of slots."""

    rate: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "rate", checks.real("rate", self.rate, at_least=0.0, at_most=1.0))

    def check(self, n_slots: int, name: str) -> None:
        """Every number of slots will do."""

    def log_kernel(self, j: np.ndarray, n_slots: int) -> np.ndarray:
        return laws.log_binomial(np.arange(j.max() + 1), j[:, None], self.rate)


@dataclass(frozen=True)
class WithoutReplacement(Stage):
    """Take `size` different slots, all subsets equally likely."""

    size: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", checks.integer("size", self.size, at_least=1))

    def check(self, n_slots: int, name: str) -> None:
        checks.integer("size", self.size, at_most=n_slots, at_most_name=name)

    def log_kernel(self, j: np.ndarray, n_slots: int) -> np.ndarray:
        u = np.arange(min(int(j.max()), self.size) + 1)
        return laws.log_hypergeometric(u, n_slots, j[:, None], self.size)


@dataclass(frozen=True)
class WithReplacement(Stage):
    """Take `size` slots independently and uniformly, with replacement."""

    size: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", checks.integer("size", self.size, at_least=1, at_most=MOST_DRAWS))

    def check(self, n_slots: int, name: str) -> None:
        """Every number of slots will do."""

    def log_kernel(self, j: np.ndarray, n_slots: int) -> np.ndarray:
        return laws.log_binomial(np.arange(self.size + 1), self.size, j[:, None] / n_slots)


def uniform(rng: np.random.Generator, n: int, shape: int | tuple[int, int]) -> np.ndarray:
    """Independent uniform indices 0..n-1, in the narrowest integer type (less memory, faster sorting).

    The type leaves room above n for the marks of absent entries.
    """
    return rng.integers(n, size=shape, dtype=np.int32 if n < 2**30 else np.int64)


def distinct_rows(rng: np.random.Generator, n: int, sizes: np.ndarray) -> np.ndarray:
    """Return for each row i a uniformly chosen set of `sizes[i]` different indices of 0..n-1.

    Parameters
    ----------
    rng : numpy.random.Generator
    n : int
        Number of indices.
    sizes : ndarray of int, shape (rows,)
        How many each row needs, at most n.

    Returns
    -------
    ndarray, shape (sum(sizes),)
        The rows one after the other, in no particular order within a row.

    Notes
    -----
    Sparse rows: draw with replacement, then redraw repeated values until none is left. The procedure treats all labels
    alike, so every set of a size is equally likely. Rows above half of the frame are shuffled whole instead.
    """
    width = int(sizes.max(initial=0))
    present = np.arange(width) < sizes[:, None]
    if 2 * width > n:
        order = rng.permuted(np.broadcast_to(np.arange(n), (len(sizes), n)), axis=1)[:, :width]
        return order[present]
    # absent entries hold n, n + 1, ...: they sort behind all indices and never repeat
    labels = uniform(rng, n, present.shape)
    if int(sizes.min(initial=width)) < width:
        np.copyto(labels, n + np.arange(width, dtype=labels.dtype), where=~present)
    labels.sort(axis=1)
    rows, open_labels = None, labels
    while True:
        repeated = open_labels[:, 1:] == open_labels[:, :-1]
        where = np.flatnonzero(repeated.any(axis=1))
        if not len(where):
            break
        rows = where if rows is None else rows[where]
        open_labels = open_labels[where]
        repeated = repeated[where]
        open_labels[:, 1:][repeated] = uniform(rng, n, int(repeated.sum()))
        open_labels.sort(axis=1)
        labels[rows] = open_labels
    return labels[present] if int(sizes.min(initial=width)) < width else labels.ravel()


def regroup(
    rng: np.random.Generator, n: int, first: np.ndarray | None, shape: tuple[int, int], sizes: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """Give each group of entries an independent uniform label 0..n-1 and merge the groups of a row that share one.

    Parameters
    ----------
    rng : numpy.random.Generator
    n : int
        Number of labels.
    first : ndarray of bool, shape (rows, width), or None
        Where a new group begins; the entries of a group are neighbours in a row. None: each entry is its own group.
    shape : (rows, width)
    sizes : ndarray, shape (rows,), or None
        How many entries of each row are present; the others are at its end. None: all.

    Returns
    -------
    labels : ndarray of int, shape (rows, width)
        Sorted rows; absent entries at the end hold n.
    first : ndarray of bool, shape (rows, width)
        Where a new label begins, False for absent entries.
    """
    total = shape[0] * shape[1]
    if first is None:
        labels = uniform(rng, n, total)
    else:
        fresh = uniform(rng, n, int(np.count_nonzero(first)))
        # rows without any group come first at most with absent entries, which are overwritten below
        labels = fresh.take(np.cumsum(first.ravel(), dtype=np.intp) - 1, mode="clip") if len(fresh) else fresh
        labels = labels if len(fresh) else np.zeros(total, dtype=fresh.dtype)
    labels = labels.reshape(shape)
    if sizes is not None:
        present = np.arange(shape[1]) < sizes[:, None]
        np.copyto(labels, n, where=~present)
    labels.sort(axis=1)
    begins = np.empty(shape, dtype=bool)
    # one pass over the flat table is faster than one over each row; the first column is set after it
    flat = labels.ravel()
    np.not_equal(flat[1:], flat[:-1], out=begins.ravel()[1:])
    begins[:, :1] = True
    if sizes is not None:
        begins &= present
    return labels, begins


def groups(first: np.ndarray, sizes: np.ndarray | None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return what `first` marks: flat starts and sizes of groups, shape (groups,); row offsets, shape (rows + 1,)."""
    rows, width = first.shape
    starts = np.flatnonzero(first)
    offsets = np.searchsorted(starts, np.arange(rows + 1) * width)
    counts = np.empty(len(starts), dtype=np.int32)
    np.subtract(starts[1:], starts[:-1], out=counts[:-1], casting="same_kind")
    if sizes is None:
        counts[-1:] = first.size - starts[-1:]
    else:
        # the last group of a row must not run on over absent entries, or over the empty rows that follow it
        occupied = np.flatnonzero(offsets[1:] > offsets[:-1])
        last = offsets[1:][occupied] - 1
        counts[last] = occupied * width + sizes[occupied] - starts[last]
    return starts, counts, offsets


class Sampler(abc.ABC):
    """A randomised map from a frame to a sample. Subclasses are frozen dataclasses whose fields are public facts.

    Class attributes
    ----------------
    name : identifier in configuration, records and results.
    label, colour, marker : how figures and tables show it.
    relation : the neighbouring relation for which its amplification theorem is stated.
    """

    name: ClassVar[str]
    label: ClassVar[str]
    colour: ClassVar[str]
    marker: ClassVar[str]
    relation: ClassVar[Relation] = Relation.SUBSTITUTE

    @classmethod
    @abc.abstractmethod
    def of_sizes(cls, n: int, m: int, b: int | None) -> Sampler:
        """Return the sampler of expected size m from n records, with first-stage size b where it has one."""

    @classmethod
    @abc.abstractmethod
    def examples(cls) -> list[tuple[Sampler, int]]:
        """Pairs (sampler, n) small enough to enumerate or simulate, for the conformance tests."""

    @abc.abstractmethod
    def draw_block(self, frame: Frame, n_subsets: int, rng: np.random.Generator) -> Samples:
        """Draw `n_subsets` independent subsets."""

    def draw(self, frame: Frame, rng: np.random.Generator) -> Sample:
        """Draw one subset."""
        return self.draw_block(frame, 1, rng)[0]

    @abc.abstractmethod
    def multiplicity_law(self, n: int) -> MultiplicityLaw:
        """Law of the number of copies of one fixed record of n."""

    @abc.abstractmethod
    def log_distinct_law(self, n: int) -> np.ndarray:
        """Log probabilities of the number of distinct records, 0..d_max."""

    def distinct_law(self, n: int) -> np.ndarray:
        """Probabilities of the number of distinct records, 0..d_max."""
        return np.exp(self.log_distinct_law(n))

    def expected_distinct(self, n: int) -> float:
        """E[distinct] = n eta."""
        return n * self.multiplicity_law(n).eta


class StagedSampler(Sampler):
    """A sampler that is a chain of stages; a subclass says which.

    The count of a fixed record is a Markov chain along the stages, so its law is a product of small matrices; the
    number of distinct records is a Markov chain along the stages in reverse.
    """

    @cached_property
    @abc.abstractmethod
    def stages(self) -> tuple[Stage, ...]:
        """The stages, first one first."""

    def slots(self, n: int) -> list[int]:
        """Number of slots that each stage draws from; checks that the stages fit together.

        Raises
        ------
        ArgumentError
            If a stage asks for more slots without replacement than there are.
        """
        n = checks.integer("n", n, at_least=1)
        slots, name = [n], "n"
        for position, stage in enumerate(self.stages):
            stage.check(slots[-1], name)
            if position < len(self.stages) - 1:
                # a Poisson stage can only be the last one (checked at construction), so this one has a size
                assert isinstance(stage, WithoutReplacement | WithReplacement)
                slots.append(stage.size)
                name = "b" if len(self.stages) == 2 else f"the size of stage {position + 1}"
        return slots

    def multiplicity_law(self, n: int) -> MultiplicityLaw:
        counts, log_p = np.array([1]), np.array([0.0])
        for stage, n_slots in zip(self.stages, self.slots(n), strict=True):
            moved = laws.mix_rows(log_p, stage.log_kernel(counts, n_slots))
            counts = np.arange(len(moved))
            kept = moved > laws.LOG_NEGLIGIBLE
            counts, log_p = counts[kept], moved[kept]
        return MultiplicityLaw(moved)

    def log_distinct_law(self, n: int) -> np.ndarray:
        slots = self.slots(n)
        last = self.stages[-1]
        if isinstance(last, PoissonStage):
            log_p = laws.log_binomial(np.arange(slots[-1] + 1), slots[-1], last.rate)
            kept = np.flatnonzero(log_p > laws.LOG_NEGLIGIBLE)
            log_p = log_p[: kept[-1] + 1]
        else:
            assert isinstance(last, WithoutReplacement | WithReplacement)
            log_p = np.full(last.size + 1, -np.inf)
            log_p[-1] = 0.0
        for stage, n_slots in zip(reversed(self.stages), reversed(slots), strict=True):
            if isinstance(stage, WithReplacement):
                log_p = laws.occupancy_mixture(log_p, n_slots)
        return log_p

    def draw_block(self, frame: Frame, n_subsets: int, rng: np.random.Generator) -> Samples:
        """Draw `n_subsets` independent subsets, at a cost of the sizes drawn.

        Slots are followed from the last stage back to the frame, and only those that the final sample needs are ever
        drawn: a stage without replacement hands on different slots, a stage with replacement independent ones. Slots
        are exchangeable, so their labels matter only where a collision can occur, and at the frame.
        """
        n_subsets = checks.integer("n_subsets", n_subsets, at_least=1)
        slots = self.slots(frame.n)
        last = self.stages[-1]
        sizes = None
        if isinstance(last, PoissonStage):
            sizes = rng.binomial(slots[-1], last.rate, n_subsets)
            width = int(sizes.max())
        else:
            assert isinstance(last, WithoutReplacement | WithReplacement)
            width = last.size
        # groups of final draws that are copies of one slot; None: every draw is its own
        first: np.ndarray | None = None
        labels = None
        for stage, n_slots in zip(reversed(self.stages), reversed(slots), strict=True):
            if isinstance(stage, WithReplacement):
                labels, first = regroup(rng, n_slots, first, (n_subsets, width), sizes)
        if first is None:
            needed = np.full(n_subsets, width) if sizes is None else sizes
            indices = distinct_rows(rng, frame.n, needed)
            offsets = np.concatenate(([0], np.cumsum(needed)))
            return Samples(indices, np.ones(len(indices), dtype=np.int32), offsets)
        starts, counts, offsets = groups(first, sizes)
        if labels is not None and isinstance(self.stages[0], WithReplacement):
            return Samples(labels.ravel().take(starts), counts, offsets)
        return Samples(distinct_rows(rng, frame.n, np.diff(offsets)), counts, offsets)


@dataclass(frozen=True)
class Multistage(StagedSampler):
    """A chain of any number of stages (MUST, Definition 4, with r = 1 subset a stage).

    `relation` is that of chains of fixed size. No amplification theorem covers a chain that ends with a Poisson stage
    under substitution: a mechanism that shows the size of its sample would not be amplified at all.

    Parameters
    ----------
    chain : sequence of Stage
        At least one stage. A Poisson stage leaves a random number of slots and can only be the last one.

    Raises
    ------
    ArgumentError
        If there is no stage or an entry is not a stage.
    UnsupportedError
        If a Poisson stage is not the last one.

    Examples
    --------
    >>> import numpy as np
    >>> from dpsub.sampling.frame import Frame
    >>> from dpsub.sampling.base import WithoutReplacement, WithReplacement
    >>> sampler = Multistage([WithoutReplacement(50), WithReplacement(100)])
    >>> round(sampler.multiplicity_law(1000).mean, 12)      # 100 draws over 1000 records
    0.1
    >>> sample = sampler.draw(Frame(1000), np.random.default_rng(1))
    >>> sample.size, len(sample.indices) <= 50
    (100, True)
    """

    chain: Sequence[Stage]

    name: ClassVar[str] = "multistage"
    label: ClassVar[str] = "multistage"
    colour: ClassVar[str] = "#999999"
    marker: ClassVar[str] = "P"

    def __post_init__(self) -> None:
        chain = tuple(self.chain)
        if not chain or not all(isinstance(stage, Stage) for stage in chain):
            raise ArgumentError(f"a multistage sampler needs at least one stage, got {self.chain!r}")
        for position, stage in enumerate(chain[:-1]):
            if isinstance(stage, PoissonStage):
                raise UnsupportedError(
                    f"a Poisson stage leaves a random number of slots and can only be the last stage, "
                    f"got it as stage {position + 1} of {len(chain)}"
                )
        object.__setattr__(self, "chain", chain)

    @cached_property
    def stages(self) -> tuple[Stage, ...]:
        return tuple(self.chain)

    @classmethod
    def of_sizes(cls, n: int, m: int, b: int | None) -> Sampler:
        raise UnsupportedError("a multistage sampler has no default stages; give them as Multistage([...])")

    @classmethod
    def examples(cls) -> list[tuple[Sampler, int]]:
        wo, wr = WithoutReplacement, WithReplacement
        return [
            (cls([wr(6), wo(5), wr(4)]), 7),
            (cls([wo(6), wr(7), wo(3)]), 8),
            (cls([wr(5), wr(5), wr(5)]), 4),
            (cls([wo(6), wr(5), PoissonStage(0.4)]), 9),
        ]
