"""The grids of the tournament: which scheme, of which size, at which target, and what is proved of its noise."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Annotated, Any, Literal

from pydantic import Field

from dpsub.accounting import search
from dpsub.accounting.account import Proof, Release
from dpsub.accounting.recommend import CYCLE, SCHEMES, Plan, scheme
from dpsub.errors import ArgumentError, UnsupportedError
from dpsub.reproduce import settings as kinds
from dpsub.reproduce.settings import AnyOf, Name, OneOrMore, Varied, known

NONPRIVATE = "nonprivate"
"""The scheme of trainings without privacy: Poisson batches, no noise, and no target."""
ACCURACY = 5e-3
"""Relative distance of a noise multiplier from a smaller one that is not proved."""
TIGHT = ("wor", "wr")
"""Schemes whose noise the tight bound proves under substitute, within some percent of what an attack refutes."""
_NEVER = 3600.0  # seconds, of a bound that takes some: a limit that is met would make numbers depend on the machine
_AT_LEAST = {"must_ow": 2, "must_ww": 2, "three_stage": 4, "cyclic_poisson": CYCLE}
"""How many batches' records a scheme needs."""
_BY_RATIO = {
    "add_remove": ("poisson", "random_allocation", "k_of_t", "cyclic_poisson"),
    "zero_out": ("poisson", "wor", "random_allocation", "k_of_t", "shuffle", "cyclic_poisson"),
    "substitute": ("poisson", "wor", "random_allocation", "k_of_t", "shuffle", "cyclic_poisson"),
}
"""Schemes whose ends depend on n and m by n / m alone. A record more makes n + 1 of those of a sample of fixed size."""

Scheme = Annotated[str, known("scheme", lambda: SCHEMES), Field(description="A scheme of `SCHEMES`.")]
Trained = Annotated[
    str, known("scheme", lambda: (NONPRIVATE, *SCHEMES)), Field(description="A scheme of `SCHEMES`, or nonprivate.")
]
Adjacency = Literal["add_remove", "zero_out", "substitute"]
EPSILONS = (0.5, 1.0, 2.0, 4.0, 8.0)


class Entry(kinds.Closed):
    """Noise of all combinations of its values; each setting is one value or a list."""

    adjacency: Varied[Adjacency] = Field(("add_remove", "zero_out", "substitute"), description="How neighbours differ.")
    samplers: Varied[Scheme] = Field(tuple(SCHEMES), description="Schemes.")
    n: Varied[kinds.Count] = Field(description="Numbers of records.")
    m: Varied[kinds.Count] = Field(description="(Expected) batch sizes.")
    epochs: Varied[kinds.Count] = Field(description="Epochs, each of n / m steps.")
    target_epsilon: Varied[kinds.Positive] = Field(EPSILONS, description="Targets for all steps together, in nats.")
    target_delta: Varied[kinds.Delta] = Field((1e-6,), description="Probabilities at which the targets are given.")
    tight: bool = Field(False, description="Proved by the tight bound: wor and wr under substitute.")


class TrainingEntry(kinds.Closed):
    """Trainings of all combinations of its values; the number of records is that of the task's training part."""

    datasets: Varied[Name] = Field(description="Tasks.")
    adjacency: Varied[Adjacency] = Field("zero_out", description="How neighbours differ.", validate_default=True)
    samplers: Varied[Trained] = Field(
        (NONPRIVATE, *SCHEMES), description="Schemes; nonprivate has no target and is trained once for all of them."
    )
    m: Varied[kinds.Count] = Field(description="(Expected) batch sizes.")
    epochs: Varied[kinds.Count] = Field(description="Epochs, each of n / m steps.")
    target_epsilon: Annotated[AnyOf[kinds.Positive], OneOrMore()] = Field(
        (), description="Targets for all steps together, in nats."
    )
    target_delta: Varied[kinds.Delta] = Field((1e-6,), description="Probabilities at which the targets are given.")

    def check(self) -> None:
        if self.samplers != (NONPRIVATE,) and not self.target_epsilon:
            raise ArgumentError(f"samplers other than {NONPRIVATE} need a target_epsilon, got none; add it")


@dataclass(frozen=True)
class Cell:
    """One scheme of given sizes at one target."""

    adjacency: str
    sampler: str  # a name of `SCHEMES`
    n: int
    m: int
    epochs: int
    target_epsilon: float  # what all steps together must meet, in nats
    target_delta: float
    tight: bool = False

    @property
    def plan(self) -> Plan:
        """The sampler or schedule."""
        return scheme(self.sampler, self.n, self.m, self.epochs)[0]

    @property
    def steps(self) -> int:
        """Number of noisy sums that are released."""
        return self.epochs * -(-self.n // self.m)

    @property
    def law(self) -> tuple[Any, ...]:
        """What cells share whose ends are the same at the same noise, and their delta.

        Where it is public in which step a record can be, only the number of epochs counts; elsewhere a record's chance
        to be in a step, or the number of steps, which are n / m: `_BY_RATIO` says where that is all.
        """
        sizes: tuple[Any, ...] = (self.n, self.m)
        if self.sampler == "deterministic":
            sizes = ()
        elif self.sampler in _BY_RATIO[self.adjacency]:
            sizes = (Fraction(self.n, self.m),)
        return self.adjacency, self.sampler, self.epochs, self.target_delta, self.tight, *sizes


@dataclass(frozen=True)
class Needed:
    """The noise of a cell, and what is known about it at the target delta."""

    noise_multiplier: float  # proved: scale of the noise on the sum over the norm bound of one record
    necessary: float  # with so much noise or less an attack exceeds the target; 0 where none is known
    epsilon_lower: float  # attained by an attack
    epsilon_upper: float  # proved


_FOUND: dict[tuple[Any, ...], Needed] = {}


def needed(cell: Cell) -> Needed:
    """Return the noise that a cell needs, computed once a process for all cells of its law and target.

    Raises
    ------
    UnsupportedError
        If no bound covers the cell, or no noise multiplier up to 1e4 meets the target.
    """
    key = (*cell.law, cell.target_epsilon)
    if key not in _FOUND:
        found = search.calibrate(
            cell.plan, cell.n, epsilon=cell.target_epsilon, delta=cell.target_delta, steps=cell.steps,
            adjacency=cell.adjacency, accuracy=ACCURACY, tight=cell.tight, time_limit=_NEVER if cell.tight else None,
        )  # fmt: skip
        account = found.account
        _FOUND[key] = Needed(found.noise_multiplier, found.refuted or 0.0, account.lower, account.upper)
    return _FOUND[key]


@cache
def _proof_missing(adjacency: str, sampler: str, tight: bool) -> str:
    """Return why there is no bound, which does not depend on the sizes; "" if there is one."""
    plan, steps = scheme(sampler, 1000, 10, 1)
    try:
        Proof.of([Release(plan, 1000, 1.0, steps)], adjacency)
    except UnsupportedError as problem:
        return f"{sampler} under {adjacency}: {problem}"
    if tight and (adjacency != "substitute" or sampler not in TIGHT):
        return f"{sampler} under {adjacency}: the tight bound proves noise under substitute, of {' and '.join(TIGHT)}"
    return ""


def why_not(cell: Cell) -> str:
    """Return in a sentence why a cell cannot be; "" if it can."""
    if missing := _proof_missing(cell.adjacency, cell.sampler, cell.tight):
        return missing
    least = _AT_LEAST.get(cell.sampler, 1)
    if cell.n < least * cell.m:
        return f"{cell.sampler} needs n of at least {f'{least} ' if least > 1 else ''}m"
    if cell.sampler == "cyclic_poisson" and cell.steps % CYCLE:
        return f"cyclic_poisson needs a number of steps that {CYCLE} divides"
    return ""


def _product(grid: Sequence[Entry]) -> Iterator[Cell]:
    for one in grid:
        places = itertools.product(
            one.adjacency, one.samplers, one.n, one.m, one.epochs, one.target_epsilon, one.target_delta
        )
        for adjacency, sampler, n, m, epochs, epsilon, delta in places:
            yield Cell(adjacency, sampler, n, m, epochs, float(epsilon), float(delta), one.tight)


def expanded(grid: Sequence[Entry]) -> Iterator[Cell]:
    """Yield the cells of a grid that can be: of each entry every combination of its values."""
    return (cell for cell in _product(grid) if not why_not(cell))


def left_out(grid: Sequence[Entry]) -> Counter[str]:
    """Return why combinations of a grid are left out, a sentence each, and how many cells are left out for it."""
    return Counter(reason for reason in map(why_not, _product(grid)) if reason)


class TournamentGrid(kinds.Group):
    """The cells whose noise is computed."""

    grid: kinds.Several[Entry] = Field(
        (Entry(n=(100_000,), m=(1000,), epochs=(10,)),),
        description="Entries, each standing for all combinations of its values.",
    )


class TournamentTrainings(kinds.Group):
    """The cells that are trained."""

    trainings: kinds.Several[TrainingEntry] = Field(
        (TrainingEntry(datasets=("digits",), adjacency=("zero_out",), m=(100,), epochs=(10,), target_epsilon=(1, 4)),),
        description="Entries, each standing for all combinations of its values.",
    )
