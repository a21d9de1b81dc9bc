"""What every sampler offers, and the multistage sampler of which the papers' simple ones are configurations."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from dpsub import checks, discrete
from dpsub.errors import ArgumentError, UnsupportedError
from dpsub.frame import Frame
from dpsub.multiplicity import MultiplicityLaw
from dpsub.relations import Relation
from dpsub.sample import Sample, Samples
from dpsub.samplers import index_draws
from dpsub.samplers.stages import Poisson, Stage, WithoutReplacement, WithReplacement


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
            moved = discrete.mix_rows(log_p, stage.log_kernel(counts, n_slots))
            counts = np.arange(len(moved))
            kept = moved > discrete.LOG_NEGLIGIBLE
            counts, log_p = counts[kept], moved[kept]
        return MultiplicityLaw(moved)

    def log_distinct_law(self, n: int) -> np.ndarray:
        slots = self.slots(n)
        last = self.stages[-1]
        if isinstance(last, Poisson):
            log_p = discrete.log_binomial(np.arange(slots[-1] + 1), slots[-1], last.rate)
            kept = np.flatnonzero(log_p > discrete.LOG_NEGLIGIBLE)
            log_p = log_p[: kept[-1] + 1]
        else:
            assert isinstance(last, WithoutReplacement | WithReplacement)
            log_p = np.full(last.size + 1, -np.inf)
            log_p[-1] = 0.0
        for stage, n_slots in zip(reversed(self.stages), reversed(slots), strict=True):
            if isinstance(stage, WithReplacement):
                log_p = discrete.occupancy_mixture(log_p, n_slots)
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
        if isinstance(last, Poisson):
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
                labels, first = index_draws.regroup(rng, n_slots, first, (n_subsets, width), sizes)
        if first is None:
            needed = np.full(n_subsets, width) if sizes is None else sizes
            indices = index_draws.distinct_rows(rng, frame.n, needed)
            offsets = np.concatenate(([0], np.cumsum(needed)))
            return Samples(indices, np.ones(len(indices), dtype=np.int32), offsets)
        starts, counts, offsets = index_draws.groups(first, sizes)
        if labels is not None and isinstance(self.stages[0], WithReplacement):
            return Samples(labels.ravel().take(starts), counts, offsets)
        return Samples(index_draws.distinct_rows(rng, frame.n, np.diff(offsets)), counts, offsets)


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
    >>> from dpsub.frame import Frame
    >>> from dpsub.samplers.stages import WithoutReplacement, WithReplacement
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
            if isinstance(stage, Poisson):
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
            (cls([wo(6), wr(5), Poisson(0.4)]), 9),
        ]
