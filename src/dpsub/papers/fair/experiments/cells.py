"""Cells of the fair comparison: the expansion of its grids, and the noise of each cell."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from dpsub import checks
from dpsub.accounting.questions.proof import Proof
from dpsub.accounting.release import Release
from dpsub.errors import ArgumentError
from dpsub.papers.fair.settings import TASKS, FairEntry
from dpsub.relations import Relation
from dpsub.reproduce.experiment import takes_first_stage
from dpsub.reproduce.records import recorded_first_stage
from dpsub.reproduce.study import noise
from dpsub.reproduce.study.cells import NONPRIVATE, Cell
from dpsub.sampling.base import StagedSampler

VARIANTS = ("rigorous", "consistent")
"""Noise is proved to meet the target under `substitute`; or the papers' pair meets it, which is no
guarantee."""
_SAME_LAW = {"must_oo": "wor", "must_wo": "wr"}
_TIGHT: dict[str, float | None] = {"wor": None, "wr": 2.0}
"""Samplers whose noise the tight bound proves, and the work that a target may take: None for as
much as its accuracy takes. For several stages the tight bound is no closer than the first one."""
_ZEROED = ("poisson", "wor")
"""Samplers whose bound under zero-out is found fast enough for a grid."""


def cell_of(
    sampler: str,
    dataset: str,
    *,
    m: int,
    b: int | None,
    steps: int,
    target_epsilon: float,
    target_delta: float,
    variant: str = "rigorous",
) -> Cell:
    """Return a cell of the comparison; b counts only where the sampler has a first stage.

    Raises
    ------
    ArgumentError
        If there is no such data set or sampler, or the sizes contradict each other.
    UnsupportedError
        If no bound covers a schedule.
    """
    checks.one_of("data set", dataset, TASKS)
    cell = Cell(
        sampler=sampler,
        n=TASKS[dataset].n,
        m=m,
        b=b if sampler != NONPRIVATE and takes_first_stage(sampler) else None,
        steps=steps,
        target_epsilon=target_epsilon,
        target_delta=target_delta,
        dataset=dataset,
        variant=variant,
    )
    # Sizes that contradict each other are refused when the grid is read, not hours later.
    if isinstance(cell.plan, StagedSampler):
        cell.plan.slots(cell.n)
    else:
        _check_schedule(cell)
    return cell


def _check_schedule(cell: Cell) -> None:
    """Refuse a schedule where only chains of stages are covered."""
    if cell.variant != "rigorous":
        raise ArgumentError(
            f"the papers' pair is that of chains of stages, got {cell.sampler}; take rigorous only"
        )
    if TASKS[cell.dataset].averages:
        raise ArgumentError(
            f"the bootstrap's interval is that of chains of stages, got {cell.sampler}; drop it"
        )
    # Whether a proof exists depends on the schedule and not on the noise: any multiplier will do.
    Proof.of([Release(cell.plan, cell.n, 1.0, cell.steps)], Relation.SUBSTITUTE)


def fields_of(cell: Cell) -> dict[str, Any]:
    """Return the fields that name the cell in records."""
    names = ("dataset", "n", "sampler", "m", "b", "steps", "target_epsilon", "target_delta")
    fields = {name: getattr(cell, name) for name in names}
    return {**fields, "b": recorded_first_stage(cell.b)}


def entry_of(cell: Cell) -> FairEntry:
    """Return the entry of a grid that stands for this cell alone."""
    fields: dict[str, Any] = {
        "dataset": (cell.dataset,),
        "samplers": (cell.sampler,),
        "m": (cell.m,),
        "b": () if cell.b is None else (cell.b,),
        "steps": (cell.steps,),
    }
    if cell.private:
        fields["target_epsilon"] = (cell.target_epsilon,)
        fields["target_delta"] = (cell.target_delta,)
    # The cell has been checked; an entry without targets would be refused where none is wanted.
    return FairEntry.model_construct(**fields)


def expanded(grid: Sequence[FairEntry], variant: str) -> Iterator[Cell]:
    """Yield the cells of a grid, one for every combination of the values of an entry.

    Trainings without privacy are one for all targets.
    """
    for entry in grid:
        targets = entry.targets or [(math.nan, math.nan)]
        places = itertools.product(
            entry.dataset, entry.steps, enumerate(targets), entry.m, entry.samplers
        )
        for dataset, steps, (number, (epsilon, delta)), m, sampler in places:
            if sampler == NONPRIVATE:
                # the same training for every target
                if number > 0:
                    continue
                epsilon = delta = math.nan
            # Samplers of one stage stand once in the grid, whatever sizes b it lists.
            first_stages = entry.b if entry.b and _has_first_stage(sampler) else (None,)
            for b in first_stages:
                yield cell_of(
                    sampler,
                    dataset,
                    m=m,
                    b=b,
                    steps=steps,
                    target_epsilon=epsilon,
                    target_delta=delta,
                    variant=variant,
                )


def _has_first_stage(sampler: str) -> bool:
    return sampler != NONPRIVATE and takes_first_stage(sampler)


def check_grid(grid: Sequence[FairEntry]) -> None:
    """Raise if a cell of the grid is impossible, out of reach, or, with privacy, there twice."""
    seen = set()
    # Trainings without privacy may stand in several entries: they have no noise to be computed
    # twice.
    for cell in expanded(grid, "rigorous"):
        if not cell.private:
            continue
        noise.check_reach(cell)
        if cell in seen:
            raise ArgumentError(
                f"a grid must hold each cell once, got {cell.sampler} on {cell.dataset} twice"
            )
        seen.add(cell)


@dataclass(frozen=True)
class Calibrated:
    """The noise of one privacy cell, and its bounds at the target delta.

    Attributes
    ----------
    noise_multiplier : float
        Scale s of the noise on the sum, over the norm bound of one record.
    necessary : float
        An attack exceeds the target with this noise or less; 0 if no attack is known to, and for
        noise by the papers' pair.
    epsilon_lower, epsilon_upper : float
        Attained by an attack, and proved, under `substitute`.
    epsilon_add_remove : float
        Proved for the same noise under `add_remove`; NaN for several stages and schedules.
    """

    noise_multiplier: float = 0.0
    necessary: float = 0.0
    epsilon_lower: float = math.nan
    epsilon_upper: float = math.nan
    epsilon_add_remove: float = math.nan


@dataclass(frozen=True)
class OtherRelations:
    """Noise for the target of one privacy cell under the other adjacency relations.

    An attack refutes the necessary noise, and any smaller one; NaN if it was not computed or no
    bound is known.
    """

    noise_add_remove: float = math.nan
    necessary_add_remove: float = math.nan
    noise_zero_out: float = math.nan
    necessary_zero_out: float = math.nan


def calibrate(cell: Cell) -> Calibrated:
    """Return the noise of a cell, none without privacy: computed once a process for all cells that
    share it.

    Raises
    ------
    UnsupportedError
        If no noise multiplier up to 1e4 meets the target.
    """
    return _calibrate(_of_its_law(cell)) if cell.private else Calibrated()


def _of_its_law(cell: Cell) -> Cell:
    """Return the cell that stands for all cells of its law: MUST.OO has the law and the outputs of
    WOR, MUST.WO those of WR."""
    sampler = _SAME_LAW.get(cell.sampler, cell.sampler)
    return replace(cell, sampler=sampler, b=None if sampler != cell.sampler else cell.b)


@lru_cache(maxsize=4096)
def _calibrate(cell: Cell) -> Calibrated:
    if cell.variant == "rigorous":
        # The tight bound is worth its seconds where it lowers the noise.
        is_tight = cell.sampler in _TIGHT
        proved = noise.calibrated(replace(cell, tight=is_tight), _TIGHT.get(cell.sampler))
        known = Calibrated(*proved)
    else:
        # The pair chooses the noise; the bound for that noise stands next to it.
        multiplier = noise.papers_noise(cell)
        account = noise.bounds(cell, multiplier, "substitute")
        known = Calibrated(multiplier, 0.0, account.lower, account.upper)
    # of several stages the bound takes seconds, and no table shows it
    if _stages(cell) != 1:
        return known
    added = noise.bounds(cell, known.noise_multiplier, "add_remove")
    return replace(known, epsilon_add_remove=added.upper)


def _stages(cell: Cell) -> int:
    """Return the number of stages, 0 for a schedule."""
    return len(cell.plan.stages) if isinstance(cell.plan, StagedSampler) else 0


def other_relations(cell: Cell, *, several: bool) -> OtherRelations:
    """Return the noise that a cell needs under `add_remove` and `zero_out`, computed once a process
    like `calibrate`; for samplers of several stages, which take seconds, only if `several`."""
    # Both variants ask for the same proved noise: one entry of the cache.
    cell = replace(_of_its_law(cell), variant="rigorous")
    stages = _stages(cell)
    return _other_relations(cell) if stages == 1 or (several and stages) else OtherRelations()


@lru_cache(maxsize=4096)
def _other_relations(cell: Cell) -> OtherRelations:
    added = noise.calibrated(replace(cell, adjacency="add_remove"))
    known = OtherRelations(added.noise_multiplier, added.necessary)
    if cell.sampler not in _ZEROED:
        return known
    zeroed = noise.calibrated(replace(cell, adjacency="zero_out"))
    return replace(
        known, noise_zero_out=zeroed.noise_multiplier, necessary_zero_out=zeroed.necessary
    )
