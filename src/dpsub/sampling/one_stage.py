"""The one-stage samplers: Poisson, without replacement, with replacement."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from dpsub import checks
from dpsub.relations import Relation
from dpsub.sampling import base
from dpsub.sampling.base import Sampler, StagedSampler


@dataclass(frozen=True)
class Poisson(StagedSampler):
    """Include each record independently with probability `rate` (gamma in the papers).

    Drawn as a Binomial(n, rate) number of different records, which has the same law.
    """

    rate: float

    name: ClassVar[str] = "poisson"
    label: ClassVar[str] = "Poisson"
    colour: ClassVar[str] = "#E69F00"
    marker: ClassVar[str] = "o"
    relation: ClassVar[Relation] = Relation.ADD_REMOVE

    def __post_init__(self) -> None:
        object.__setattr__(self, "rate", base.PoissonStage(self.rate).rate)

    @cached_property
    def stages(self) -> tuple[base.Stage, ...]:
        return (base.PoissonStage(self.rate),)

    @classmethod
    def of_sizes(cls, n: int, m: int, b: int | None) -> Sampler:
        return cls(checks.integer("m", m, at_least=1, at_most=n, at_most_name="n") / n)

    @classmethod
    def examples(cls) -> list[tuple[Sampler, int]]:
        return [(cls(0.3), 10), (cls(0.02), 60), (cls(0.9), 5)]


@dataclass(frozen=True)
class Wor(StagedSampler):
    """Take m different records, all subsets equally likely: WOR(n, m)."""

    m: int

    name: ClassVar[str] = "wor"
    label: ClassVar[str] = "WOR"
    colour: ClassVar[str] = "#0072B2"
    marker: ClassVar[str] = "s"

    def __post_init__(self) -> None:
        object.__setattr__(self, "m", checks.integer("m", self.m, at_least=1))

    @cached_property
    def stages(self) -> tuple[base.Stage, ...]:
        return (base.WithoutReplacement(self.m),)

    @classmethod
    def of_sizes(cls, n: int, m: int, b: int | None) -> Sampler:
        return cls(checks.integer("m", m, at_least=1, at_most=n, at_most_name="n"))

    @classmethod
    def examples(cls) -> list[tuple[Sampler, int]]:
        return [(cls(3), 10), (cls(8), 9), (cls(20), 60)]


@dataclass(frozen=True)
class Wr(StagedSampler):
    """Take m records independently and uniformly: WR(n, m), the bootstrap when m = n."""

    m: int

    name: ClassVar[str] = "wr"
    label: ClassVar[str] = "WR"
    colour: ClassVar[str] = "#009E73"
    marker: ClassVar[str] = "^"

    def __post_init__(self) -> None:
        object.__setattr__(self, "m", checks.integer("m", self.m, at_least=1, at_most=base.MOST_DRAWS))

    @cached_property
    def stages(self) -> tuple[base.Stage, ...]:
        return (base.WithReplacement(self.m),)

    @classmethod
    def of_sizes(cls, n: int, m: int, b: int | None) -> Sampler:
        return cls(m)

    @classmethod
    def examples(cls) -> list[tuple[Sampler, int]]:
        return [(cls(4), 5), (cls(12), 6), (cls(20), 60)]
