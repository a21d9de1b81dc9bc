"""Cells of the fair comparison: what is trained on what, at which privacy, and with how much
noise."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

from dpsub import checks, sampling
from dpsub.accounting import search
from dpsub.accounting.account import Account, Proof, account
from dpsub.accounting.proofs import ChainProfile
from dpsub.accounting.release import Release
from dpsub.accounting.roots import safe_root
from dpsub.errors import ArgumentError, UnsupportedError
from dpsub.papers.fair.settings import NONPRIVATE, TASKS, Entry, Task
from dpsub.relations import Relation
from dpsub.reproduce.experiment import takes_first_stage
from dpsub.sampling import Multistage, Sampler, Schedule
from dpsub.sampling.base import PoissonStage, StagedSampler

VARIANTS = ("rigorous", "consistent")
"""Noise is proved to meet the target under `substitute`; or the papers' pair meets it, which is no
guarantee."""

ACCURACY = 5e-3
"""Relative distance of a noise multiplier from one that is not shown to meet the target, in both
variants."""

MOST_NOISE = 1e4
SIZED_ALONE = {"cyclic_poisson": "cycle", "truncated_poisson": "max_batch"}
"""Samplers and schedules with a size besides m, and its name."""
_SAME_LAW = {"must_oo": "wor", "must_wo": "wr"}
_TIGHT = ("wor",)
"""Samplers whose noise the tight bound proves, in a second or two."""
# seconds, of a bound that takes two: a limit that is met would make numbers depend on the machine
_NEVER = 3600.0


@dataclass(frozen=True)
class Cell:
    """One sampler, its sizes, a target and a data set; seeds are the replicates."""

    sampler: str  # name of a sampler or schedule, stages such as "wor:500,wr:400", or "nonprivate"
    m: int  # (expected) size of a batch, which the sum of gradients is divided by
    b: int | None  # size of the first stage of a two-stage sampler; None for every other
    steps: int  # number of noisy sums that are released
    target_epsilon: float  # what all steps together must meet, in nats; NaN without privacy
    target_delta: float
    dataset: str  # one of `TASKS`
    variant: str = "rigorous"

    def __post_init__(self) -> None:
        checks.one_of("data set", self.dataset, TASKS)
        if not self.private or not takes_first_stage(self.sampler):
            object.__setattr__(self, "b", None)
        if isinstance(self.drawn, StagedSampler):
            self.drawn.slots(self.task.n)
        else:
            self._check_plan()

    def _check_plan(self) -> None:
        """Refuse what is not accounted for, or trained, on other than chains of stages."""
        if self.variant != "rigorous":
            raise ArgumentError(
                "the papers' pair is that of chains of stages, got "
                f"{self.sampler}; take rigorous only"
            )
        if self.task.kind == "mean":
            raise ArgumentError(
                f"the bootstrap's interval is that of chains of stages, got {self.sampler}; drop it"
            )
        Proof.of([Release(self.drawn, self.task.n, 1.0, self.steps)], Relation.SUBSTITUTE)

    @property
    def private(self) -> bool:
        return self.sampler != NONPRIVATE

    @property
    def task(self) -> Task:
        return TASKS[self.dataset]

    @property
    def batches(self) -> str:
        """Sampler of the batches."""
        return self.sampler if self.private else "poisson"

    @cached_property
    def drawn(self) -> Sampler | Schedule:
        """The sampler or schedule on the training part of the data set."""
        return sampler_of(self.batches, n=self.task.n, m=self.m, b=self.b)

    @property
    def fields(self) -> dict[str, Any]:
        """What names the cell in records; b = 0 where there is none."""
        return {
            "dataset": self.dataset,
            "n": self.task.n,
            "sampler": self.sampler,
            "m": self.m,
            "b": self.b or 0,
            "steps": self.steps,
            "target_epsilon": self.target_epsilon,
            "target_delta": self.target_delta,
        }

    @property
    def entry(self) -> Entry:
        """The entry of a grid that stands for this cell alone."""
        fixed: dict[str, Any] = {
            "dataset": (self.dataset,),
            "samplers": (self.sampler,),
            "m": (self.m,),
            "b": () if self.b is None else (self.b,),
            "steps": (self.steps,),
        }
        if self.private:
            fixed |= {
                "target_epsilon": (self.target_epsilon,),
                "target_delta": (self.target_delta,),
            }
        return Entry.model_construct(**fixed)

    def bounds(
        self,
        noise_multiplier: float,
        adjacency: str | None = "substitute",
        *,
        width: float = 0.01,
        variant: str = "rigorous",
    ) -> Account:
        """Return what is known of epsilon at the target delta with this noise; `width` is relative
        to the target."""
        return account(
            self.drawn,
            self.task.n,
            noise_multiplier=noise_multiplier,
            steps=self.steps,
            delta=self.target_delta,
            adjacency=adjacency,
            variant=variant,
            width=width * self.target_epsilon,
        )

    def check_reach(self) -> None:
        """Raise UnsupportedError if no bound covers the sampler, or no noise multiplier up to 1e4
        meets the target.

        The bound is computed only where a rough rule puts the noise needed within a factor of 10 of
        that limit.
        """
        if not self.private:
            return
        if ":" in self.sampler and isinstance(self.drawn, StagedSampler):
            _check_chain(self.sampler, self.task.n)
        rough = 2 * self.m / self.task.n * (2 * self.steps) ** 0.5 / self.target_epsilon
        if rough < MOST_NOISE / 100 or self.bounds(MOST_NOISE).upper <= self.target_epsilon:
            return
        raise UnsupportedError(
            f"the target epsilon = {self.target_epsilon:g} at delta = {self.target_delta:g} must "
            f"be within reach of a noise multiplier of {MOST_NOISE:g}, got {self.sampler} with m "
            f"= {self.m} and {self.steps} steps on {self.dataset}, which is not; raise the target "
            "or take fewer steps"
        )


def sampler_of(text: str, *, n: int, m: int, b: int | None) -> Sampler | Schedule:
    """Return the sampler or schedule that a cell names, for n records: by its name, with a size of
    its own as in "cyclic_poisson:10" (groups) and "truncated_poisson:150" (largest batch), or
    stages "kind:size" (kinds wor, wr, and poisson as the last) that leave m slots."""
    name, colon, size = text.partition(":")
    if name in SIZED_ALONE:
        if not size.isdecimal():
            raise ArgumentError(
                f"{name} needs a whole number, the {SIZED_ALONE[name]}, got "
                f"{text!r}; write {name}:10"
            )
        return sampling.kind_of(name).of_sizes(n, m=m, **{SIZED_ALONE[name]: int(size)})
    if not colon:
        return sampling.kind_of(name).of_sizes(n, m=m, b=b)
    chain = Multistage.of_text(text)
    slots, last = chain.slots(n)[-1], chain.stages[-1]
    left = slots * last.rate if isinstance(last, PoissonStage) else last.size
    if abs(left - m) > 1e-9 * m:
        raise ArgumentError(
            f"m must be the {left:g} slots that the chain {text!r} leaves, got m = {m}"
        )
    return chain


@lru_cache(maxsize=4096)
def _check_chain(text: str, n: int) -> None:
    """Raise UnsupportedError if no bound covers the chain, or only one that takes too long."""
    ChainProfile(Release(Multistage.of_text(text), n, MOST_NOISE, 1).chain(), MOST_NOISE)


def expanded(grid: Sequence[Entry], variant: str) -> Iterator[Cell]:
    """Yield the cells of a grid: of each entry every data set, number of steps, target, m, sampler
    and, where it has one, b; without privacy only one for all targets."""
    for one in grid:
        targets = list(itertools.product(one.target_epsilon, one.target_delta)) or [
            (math.nan, math.nan)
        ]
        places = itertools.product(one.dataset, one.steps, enumerate(targets), one.m, one.samplers)
        for dataset, steps, (number, (epsilon, delta)), m, sampler in places:
            if sampler == NONPRIVATE:
                if number == 0:
                    yield Cell(sampler, m, None, steps, math.nan, math.nan, dataset, variant)
                continue
            for b in (one.b or (None,)) if takes_first_stage(sampler) else (None,):
                yield Cell(sampler, m, b, steps, float(epsilon), delta, dataset, variant)


def check_grid(grid: Sequence[Entry]) -> None:
    """Raise if a cell of the grid is impossible, out of reach, or, with privacy, there twice."""
    seen = set()
    for cell in expanded(grid, "rigorous"):
        cell.check_reach()
        if cell in seen:
            raise ArgumentError(
                f"a grid must hold each cell once, got {cell.sampler} on {cell.dataset} twice"
            )
        seen |= {cell} if cell.private else set()


@dataclass(frozen=True)
class Calibrated:
    """The noise of one privacy cell, and what is proved about it under `substitute` at the target
    delta."""

    # s: scale of the noise on the sum over the norm bound of one record
    noise_multiplier: float = 0.0
    # with so much noise or less an attack exceeds the target (rigorous); 0 where none is known
    necessary: float = 0.0
    epsilon_lower: float = math.nan  # attained by an attack
    epsilon_upper: float = math.nan  # proved
    # of the same noise under add_remove; NaN for several stages and schedules
    epsilon_add_remove: float = math.nan


@dataclass(frozen=True)
class OtherRelations:
    """What the target of one privacy cell takes under the weaker relations; NaN where it was not
    computed or no bound is known. Noise that is necessary is refuted by an attack, and so is
    less."""

    noise_add_remove: float = math.nan
    necessary_add_remove: float = math.nan
    noise_zero_out: float = math.nan
    necessary_zero_out: float = math.nan


def calibrate(cell: Cell) -> Calibrated:
    """Return the noise of a cell, none without privacy: computed once a process for all cells that
    share it.

    MUST.OO has the law and the outputs of WOR, MUST.WO those of WR: their noise is the same.
    UnsupportedError if no noise multiplier up to 1e4 meets the target.
    """
    if not cell.private:
        return Calibrated()
    return _calibrate(replace(cell, sampler=_SAME_LAW.get(cell.sampler, cell.sampler)))


def other_relations(cell: Cell, *, several: bool) -> OtherRelations:
    """Return the noise that a cell needs under `add_remove` and `zero_out`, computed once a process
    like `calibrate`; for samplers of several stages, which take seconds, only if `several`."""
    cell = replace(cell, sampler=_SAME_LAW.get(cell.sampler, cell.sampler), variant=VARIANTS[0])
    staged = isinstance(cell.drawn, StagedSampler) and (several or len(cell.drawn.stages) == 1)
    return _other_relations(cell) if staged else OtherRelations()


@lru_cache(maxsize=4096)
def _other_relations(cell: Cell) -> OtherRelations:
    added = _needed(cell, Relation.ADD_REMOVE)
    found = OtherRelations(added.noise_multiplier, added.refuted or 0.0)
    if cell.sampler not in ("poisson", "wor"):
        return found
    zeroed = _needed(cell, Relation.ZERO_OUT)
    return replace(
        found, noise_zero_out=zeroed.noise_multiplier, necessary_zero_out=zeroed.refuted or 0.0
    )


def _needed(cell: Cell, relation: Relation) -> search.Calibration:
    tight = relation is Relation.SUBSTITUTE and cell.sampler in _TIGHT
    return search.calibrate(
        cell.drawn,
        cell.task.n,
        epsilon=cell.target_epsilon,
        delta=cell.target_delta,
        steps=cell.steps,
        adjacency=relation,
        accuracy=ACCURACY,
        tight=tight,
        time_limit=_NEVER if tight else None,
    )


@lru_cache(maxsize=4096)
def _calibrate(cell: Cell) -> Calibrated:
    if cell.variant == "rigorous":
        found = _needed(cell, Relation.SUBSTITUTE)
        noise, necessary, bounds = found.noise_multiplier, found.refuted or 0.0, found.account
    else:
        noise, necessary = papers_noise(cell), 0.0
        bounds = cell.bounds(noise)
    known = Calibrated(noise, necessary, bounds.lower, bounds.upper)
    if not isinstance(cell.drawn, StagedSampler) or len(cell.drawn.stages) > 1:
        return known
    return replace(known, epsilon_add_remove=cell.bounds(noise, "add_remove").upper)


def papers_noise(cell: Cell) -> float:
    """Return the smallest noise multiplier at which the papers' pair meets the target: not a
    guarantee.

    References
    ----------
    MUST, Section 3.4 and Sections S5 and S6 of its supplement.
    """
    start = max(1.0, 4 * cell.m / cell.task.n * cell.steps**0.5 / cell.target_epsilon)
    return safe_root(
        lambda scale: cell.bounds(scale, None, variant="paper", width=ACCURACY).upper,
        cell.target_epsilon,
        search.NOISE,
        start=start,
        accuracy=ACCURACY,
    ).safe
