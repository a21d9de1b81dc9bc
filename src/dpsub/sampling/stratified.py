"""Stratified samples: simple random samples within each stratum, independently."""

from __future__ import annotations

import abc
import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import ClassVar

import numpy as np

from dpsub import checks
from dpsub.errors import ArgumentError
from dpsub.sampling.designs import (
    ROUNDINGS,
    Counts,
    Drawer,
    FrameSampler,
    SizeLaw,
    collected,
    counts_of,
    drawn_size,
    exact_rate,
    rounded_sizes,
    subsets,
)
from dpsub.sampling.frame import Frame

_EXAMPLE = Frame(8, strata=np.array([0, 0, 0, 1, 1, 1, 1, 1]))


class _WithinStrata(FrameSampler):
    """Simple random samples in each stratum; a subclass says of which sizes."""

    @abc.abstractmethod
    def size_laws(self, frame: Frame) -> list[SizeLaw]:
        """Return the law of the sample's size in each stratum."""

    def inclusion_probabilities(self, frame: Frame) -> np.ndarray:
        means = [math.fsum(size * p for size, p in law.items()) for law in self.size_laws(frame)]
        return (np.array(means) / frame.stratum_sizes)[frame.needed("strata")]

    def law(self, frame: Frame) -> dict[Counts, float]:
        parts = []
        for stratum, sizes in enumerate(self.size_laws(frame)):
            members = np.flatnonzero(frame.needed("strata") == stratum)
            parts.append([(chosen, p * q) for size, p in sizes.items() for chosen, q in subsets(members, size)])
        return collected(
            (counts_of(frame.n, [i for chosen, _ in pieces for i in chosen]), math.prod(p for _, p in pieces))
            for pieces in product(*parts)
        )

    def drawer(self, frame: Frame) -> Drawer:
        labels = frame.needed("strata")
        strata = [(np.flatnonzero(labels == stratum), law) for stratum, law in enumerate(self.size_laws(frame))]
        return lambda rng: np.concatenate(
            [rng.choice(members, drawn_size(law, rng), replace=False) for members, law in strata]
        )


@dataclass(frozen=True)
class Stratified(_WithinStrata):
    """A fixed allocation: so many records from each stratum (see `dpsub.sampling.designs`).

    Parameters
    ----------
    allocation : sequence of int
        Size of each stratum's sample, at least 1 and at most the stratum.
    """

    allocation: tuple[int, ...]

    name: ClassVar[str] = "stratified"
    label: ClassVar[str] = "stratified"

    def __post_init__(self) -> None:
        sizes = tuple(checks.integer("an allocation", size, at_least=1) for size in self.allocation)
        object.__setattr__(self, "allocation", sizes)

    def size_laws(self, frame: Frame) -> list[SizeLaw]:
        sizes = frame.stratum_sizes.tolist()
        if len(sizes) != len(self.allocation):
            raise ArgumentError(f"an allocation must be given for all {len(sizes)} strata, got {len(self.allocation)}")
        for stratum, (wanted, held) in enumerate(zip(self.allocation, sizes, strict=True)):
            if wanted > held:
                raise ArgumentError(
                    f"a stratum must be at least as large as its allocation, got stratum {stratum} with {held} records "
                    f"and {wanted} to draw"
                )
        return [{size: 1.0} for size in self.allocation]

    @classmethod
    def examples(cls) -> list[tuple[FrameSampler, Frame]]:
        return [(cls((1, 3)), _EXAMPLE), (cls((3, 2)), _EXAMPLE)]


@dataclass(frozen=True)
class StratifiedRate(_WithinStrata):
    """The share `rate` of each stratum, each size rounded half up or at random: proportional allocation."""

    rate: Fraction
    rounding: str

    name: ClassVar[str] = "stratified_rate"
    label: ClassVar[str] = "proportional"

    def __post_init__(self) -> None:
        object.__setattr__(self, "rate", exact_rate(self.rate))
        checks.one_of("rounding", self.rounding, ROUNDINGS)

    def size_laws(self, frame: Frame) -> list[SizeLaw]:
        return [rounded_sizes(self.rate, int(size), self.rounding) for size in frame.stratum_sizes]

    @classmethod
    def examples(cls) -> list[tuple[FrameSampler, Frame]]:
        return [(cls(Fraction(2, 5), "randomised"), _EXAMPLE), (cls(Fraction(1, 2), "half_up"), _EXAMPLE)]
