"""The papers' samplers as chains of stages (MUST, Section 3.1, Table 1): O a stage without, W with
replacement."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

from dpsub import checks
from dpsub.errors import ArgumentError, UnsupportedError
from dpsub.relations import Relation
from dpsub.sampling.base import (
    STAGES,
    Family,
    PoissonStage,
    Sampler,
    Stage,
    StagedSampler,
    WithoutReplacement,
    WithReplacement,
)


@dataclass(frozen=True)
class Poisson(StagedSampler):
    """Include each record independently with probability `rate` (gamma); drawn as a Binomial(n,
    rate) number."""

    rate: float
    name = "poisson"
    label, colour, marker = "Poisson", "#E69F00", "o"
    line_style = (0, (6, 1.5))
    relation = Relation.ADD_REMOVE
    kinds: ClassVar = {"rate": PoissonStage}

    @classmethod
    def examples(cls) -> list[tuple[Sampler, int]]:
        return [(cls(0.3), 10), (cls(0.02), 60), (cls(0.9), 5)]


@dataclass(frozen=True)
class Wor(StagedSampler):
    """Take m different records, all subsets equally likely: WOR(n, m)."""

    m: int
    name = "wor"
    label, colour, marker = "WOR", "#0072B2", "s"
    kinds: ClassVar = {"m": WithoutReplacement}

    @classmethod
    def examples(cls) -> list[tuple[Sampler, int]]:
        return [(cls(3), 10), (cls(8), 9), (cls(20), 60)]


@dataclass(frozen=True)
class Wr(StagedSampler):
    """Take m records independently and uniformly: WR(n, m), the bootstrap when m = n."""

    m: int
    name = "wr"
    label, colour, marker = "WR", "#009E73", "^"
    line_style = (0, (4, 1.5))
    kinds: ClassVar = {"m": WithReplacement}

    @classmethod
    def examples(cls) -> list[tuple[Sampler, int]]:
        return [(cls(4), 5), (cls(12), 6), (cls(20), 60)]


@dataclass(frozen=True)
class _TwoStage(StagedSampler):
    b: int
    m: int


class MustOW(_TwoStage):
    """MUST.OW(n, b, m): b different records, then m of them with replacement. With b = n it is
    WR."""

    name = "must_ow"
    label, colour, marker = "MUST.OW", "#D55E00", "D"
    line_style = (0, (5, 1.2, 1, 1.2))
    kinds: ClassVar = {"b": WithoutReplacement, "m": WithReplacement}

    @classmethod
    def examples(cls) -> list[tuple[Sampler, int]]:
        return [(cls(4, 6), 7), (cls(5, 3), 9), (cls(20, 10), 60)]


class MustWO(_TwoStage):
    """MUST.WO(n, b, m), b >= m: b with replacement, then m of them without; the law of WR(n, m)
    (MUST, Corollary 6)."""

    name = "must_wo"
    label, colour, marker = "MUST.WO", "#56B4E9", "v"
    line_style = (0, (1, 1.2))
    kinds: ClassVar = {"b": WithReplacement, "m": WithoutReplacement}

    @classmethod
    def examples(cls) -> list[tuple[Sampler, int]]:
        return [(cls(6, 4), 5), (cls(3, 3), 7), (cls(25, 10), 60)]


class MustWW(_TwoStage):
    """MUST.WW(n, b, m): b records with replacement, then m of these slots with replacement;
    aggregated by record."""

    name = "must_ww"
    label, colour, marker = "MUST.WW", "#CC79A7", "X"
    line_style = (0, (2.5, 1))
    kinds: ClassVar = {"b": WithReplacement, "m": WithReplacement}

    @classmethod
    def examples(cls) -> list[tuple[Sampler, int]]:
        return [(cls(4, 6), 7), (cls(6, 3), 4), (cls(20, 10), 60)]


class MustOO(_TwoStage):
    """MUST.OO(n, b, m): two stages without replacement. Its law is that of WOR(n, m)."""

    name = "must_oo"
    label, colour, marker = "MUST.OO", "#0072B2", "p"
    kinds: ClassVar = {"b": WithoutReplacement, "m": WithoutReplacement}

    @classmethod
    def examples(cls) -> list[tuple[Sampler, int]]:
        return [(cls(6, 3), 9), (cls(30, 10), 60)]


@dataclass(frozen=True)
class Multistage(StagedSampler):
    """A chain of any number of stages (MUST, Definition 4, with r = 1 subset per stage).

    `relation` is that of chains of fixed size. No amplification theorem covers a chain that ends
    with a Poisson stage under substitution: a mechanism that shows the size of its sample would not
    be amplified at all. Such a stage leaves a random number of slots and can only be the last one
    (UnsupportedError). ArgumentError for an empty chain, an entry that is no stage, or a stage that
    takes more different slots than there are.

    Examples
    --------
    >>> sampler = Multistage.of_text("wor:50, wr:100")
    >>> sampler == Multistage([WithoutReplacement(50), WithReplacement(100)])
    True
    >>> round(sampler.multiplicity_law(1000).mean, 12)      # 100 draws over 1000 records
    0.1
    """

    chain: Sequence[Stage]
    name = "multistage"
    label, colour, marker = "multistage", "#999999", "P"
    sizes: ClassVar = {}

    def __post_init__(self) -> None:
        chain = tuple(self.chain)
        if not chain or not all(isinstance(stage, Stage) for stage in chain):
            raise ArgumentError(
                f"a multistage sampler needs at least one stage, got {self.chain!r}"
            )
        object.__setattr__(self, "chain", chain)
        self._check_chain()

    @cached_property
    def stages(self) -> tuple[Stage, ...]:
        return tuple(self.chain)

    @property
    def stage_names(self) -> Sequence[str]:
        return [f"the size of stage {position}" for position in range(1, len(self.chain) + 1)]

    @classmethod
    def of_text(cls, text: str) -> Self:
        """Return the chain that a text such as "wor:500,wr:400" or "wr:500,poisson:0.1"
        describes."""
        chain = []
        for part in text.split(","):
            kind, colon, size = (piece.strip() for piece in part.partition(":"))
            if not colon or not size:
                raise ArgumentError(
                    f"a stage must be KIND:SIZE, got {part.strip()!r}; write wor:500,wr:400"
                )
            stage = STAGES[checks.one_of("kind of stage", kind, STAGES)]
            try:
                number: Any = int(size) if size.isdecimal() else float(size)
            except ValueError:
                raise ArgumentError(
                    f"the size of a stage must be a number, got {part.strip()!r}"
                ) from None
            chain.append(stage(number))
        return cls(chain)

    @classmethod
    def of_sizes(cls, n: int, **sizes: int | None) -> Self:
        raise UnsupportedError(
            "a multistage sampler has no default stages; give them as Multistage([...])"
        )

    @classmethod
    def last_open(cls, chain: Sequence[Stage], n: int) -> Family:
        """Return the chains that remain when the size or rate of the last stage is left open."""
        *before, last = chain
        kind = STAGES[last.kind]
        if kind is PoissonStage:
            return Family(lambda rate: cls([*before, kind(rate)]), 1.0, "rate")
        slots = before[-1].size if before else n
        most = slots if kind is WithoutReplacement else max(n, slots)
        return Family(lambda size: cls([*before, kind(int(size))]), most, "size")

    @classmethod
    def examples(cls) -> list[tuple[Sampler, int]]:
        chains = (
            ("wr:6,wor:5,wr:4", 7),
            ("wor:6,wr:7,wor:3", 8),
            ("wr:5,wr:5,wr:5", 4),
            ("wor:6,wr:5,poisson:0.4", 9),
        )
        return [(cls.of_text(text), n) for text, n in chains]
