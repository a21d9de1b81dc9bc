"""What a sampler offers that treats records by their stratum, cluster, size or place."""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterable, Iterator
from itertools import combinations
from math import comb
from typing import ClassVar

import numpy as np

from dpsub import checks
from dpsub.errors import ArgumentError
from dpsub.frame import Frame
from dpsub.sample import Sample, Samples

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
