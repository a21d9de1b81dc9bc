"""Samples of whole clusters, or of a share of each drawn cluster."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import ClassVar

import numpy as np

from dpsub import checks
from dpsub.errors import ArgumentError
from dpsub.sampling.designs import Counts, Drawer, FrameSampler, collected, counts_of, subsets
from dpsub.sampling.frame import Frame

_EXAMPLE = Frame(7, clusters=np.array([0, 1, 1, 2, 2, 2, 3]))


@dataclass(frozen=True)
class ClusterSample(FrameSampler):
    """`drawn` clusters, uniformly without replacement; a Poisson sample of rate `second_stage` of each one's members.

    Parameters
    ----------
    drawn : int
        Number of clusters drawn, at least 1 and at most all of them.
    second_stage : float
        In (0, 1]; 1 keeps all members (single-stage cluster sampling).
    """

    drawn: int
    second_stage: float = 1.0

    name: ClassVar[str] = "cluster"
    label: ClassVar[str] = "cluster"

    def __post_init__(self) -> None:
        object.__setattr__(self, "drawn", checks.integer("drawn", self.drawn, at_least=1))
        rate = checks.real("second_stage", self.second_stage, above=0, at_most=1)
        object.__setattr__(self, "second_stage", rate)

    def _clusters(self, frame: Frame) -> int:
        k = len(frame.cluster_sizes)
        if self.drawn > k:
            raise ArgumentError(f"drawn must be at most the number of clusters = {k}, got drawn = {self.drawn}")
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
            return members if self.second_stage == 1 else members[rng.random(len(members)) < self.second_stage]

        return draw

    @classmethod
    def examples(cls) -> list[tuple[FrameSampler, Frame]]:
        return [(cls(2), _EXAMPLE), (cls(1, 0.4), _EXAMPLE), (cls(4), _EXAMPLE)]


@dataclass(frozen=True)
class PpsCluster(FrameSampler):
    """One cluster, drawn with a chance proportional to its number of members, and all of them."""

    name: ClassVar[str] = "pps_cluster"
    label: ClassVar[str] = "PPS cluster"

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
        return [(cls(), _EXAMPLE)]
