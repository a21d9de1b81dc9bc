"""The two-stage samplers of MUST (Section 3.1, Table 1): a first stage of b slots, a second stage of m."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from dpsub import checks
from dpsub.errors import ArgumentError
from dpsub.sampling.base import MOST_DRAWS, Sampler, Stage, StagedSampler, WithoutReplacement, WithReplacement


@dataclass(frozen=True)
class TwoStage(StagedSampler):
    """First stage of b slots, second stage of m; O is a stage without, W one with replacement."""

    b: int
    m: int

    first: ClassVar[type[WithoutReplacement] | type[WithReplacement]]
    second: ClassVar[type[WithoutReplacement] | type[WithReplacement]]

    def __post_init__(self) -> None:
        object.__setattr__(self, "b", checks.integer("b", self.b, at_least=1, at_most=MOST_DRAWS))
        object.__setattr__(self, "m", checks.integer("m", self.m, at_least=1, at_most=MOST_DRAWS))
        if self.second is WithoutReplacement:
            checks.integer("m", self.m, at_most=self.b, at_most_name="b")

    def slots(self, n: int) -> list[int]:
        if self.first is WithoutReplacement:
            checks.integer("b", self.b, at_most=n, at_most_name="n")
        return super().slots(n)

    @cached_property
    def stages(self) -> tuple[Stage, ...]:
        return (self.first(self.b), self.second(self.m))

    @classmethod
    def of_sizes(cls, n: int, m: int, b: int | None) -> Sampler:
        if b is None:
            raise ArgumentError(f"{cls.name} needs the size b of its first stage, got none")
        sampler = cls(b, m)
        sampler.slots(n)
        return sampler


@dataclass(frozen=True)
class MustOW(TwoStage):
    """MUST.OW(n, b, m): b different records, then m of them with replacement. With b = n it is WR."""

    name: ClassVar[str] = "must_ow"
    label: ClassVar[str] = "MUST.OW"
    colour: ClassVar[str] = "#D55E00"
    marker: ClassVar[str] = "D"
    first = WithoutReplacement
    second = WithReplacement

    @classmethod
    def examples(cls) -> list[tuple[Sampler, int]]:
        return [(cls(4, 6), 7), (cls(5, 3), 9), (cls(20, 10), 60)]


@dataclass(frozen=True)
class MustWO(TwoStage):
    """MUST.WO(n, b, m), b >= m: b records with replacement, then m of these slots without. Its law is that of WR(n, m).

    References
    ----------
    MUST, Corollary 6.
    """

    name: ClassVar[str] = "must_wo"
    label: ClassVar[str] = "MUST.WO"
    colour: ClassVar[str] = "#56B4E9"
    marker: ClassVar[str] = "v"
    first = WithReplacement
    second = WithoutReplacement

    @classmethod
    def examples(cls) -> list[tuple[Sampler, int]]:
        return [(cls(6, 4), 5), (cls(3, 3), 7), (cls(25, 10), 60)]


@dataclass(frozen=True)
class MustWW(TwoStage):
    """MUST.WW(n, b, m): b records with replacement, then m of these slots with replacement; aggregated by record."""

    name: ClassVar[str] = "must_ww"
    label: ClassVar[str] = "MUST.WW"
    colour: ClassVar[str] = "#CC79A7"
    marker: ClassVar[str] = "X"
    first = WithReplacement
    second = WithReplacement

    @classmethod
    def examples(cls) -> list[tuple[Sampler, int]]:
        return [(cls(4, 6), 7), (cls(6, 3), 4), (cls(20, 10), 60)]


@dataclass(frozen=True)
class MustOO(TwoStage):
    """MUST.OO(n, b, m): two stages without replacement. Its law is that of WOR(n, m)."""

    name: ClassVar[str] = "must_oo"
    label: ClassVar[str] = "MUST.OO"
    colour: ClassVar[str] = "#0072B2"
    marker: ClassVar[str] = "p"
    first = WithoutReplacement
    second = WithoutReplacement

    @classmethod
    def examples(cls) -> list[tuple[Sampler, int]]:
        return [(cls(6, 3), 9), (cls(30, 10), 60)]
