"""Noise multipliers at one proved privacy, or at what the papers' pair says, for every sampler."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import ClassVar

import pandas as pd
from pydantic import Field

from dpsub.accounting import search
from dpsub.accounting.account import account
from dpsub.accounting.pairs import MIN_SCALE
from dpsub.accounting.search import Calibration, safe_root
from dpsub.papers.fair.experiments.fair_cells import CONVENTIONS, MOST_NOISE, Cell, check_grid, expanded, proved
from dpsub.papers.fair.settings import Entry, FairGrid
from dpsub.relations import Relation
from dpsub.reproduce.experiment import Experiment, Run
from dpsub.reproduce.settings import ExperimentSettings, Parts, Several

ACCURACY = 5e-3
"""Relative distance of a noise multiplier from one that is not shown to meet the target, in both conventions."""

_SAME_LAW = {"must_oo": "wor", "must_wo": "wr"}


@dataclass(frozen=True)
class Calibrated:
    """The noise of one privacy cell, and what is proved about it under `substitute`.

    Attributes
    ----------
    noise_multiplier : float
        s: scale of the noise on the sum over the norm bound of one record.
    necessary : float
        With this much noise or less an attack exceeds the target (rigorous convention); 0 where none is known.
    epsilon_lower, epsilon_upper : float
        Attained by an attack, and proved, at the target delta and `noise_multiplier`.
    epsilon_add_remove : float
        Proved at `noise_multiplier` under add_remove; NaN where no bound covers that.
    noise_add_remove : float
        Noise multiplier that add_remove would need for the target; NaN likewise.
    """

    noise_multiplier: float
    necessary: float
    epsilon_lower: float
    epsilon_upper: float
    epsilon_add_remove: float
    noise_add_remove: float


def calibrate(cell: Cell) -> Calibrated:
    """Return the noise of a cell: computed once a process for all cells and seeds that share it.

    MUST.OO has the law and the outputs of WOR, MUST.WO those of WR: their noise is the same.

    Raises
    ------
    UnsupportedError
        If no noise multiplier up to 1e4 meets the target.
    """
    return _calibrate(replace(cell, sampler=_SAME_LAW.get(cell.sampler, cell.sampler)))


@lru_cache(maxsize=4096)
def _calibrate(cell: Cell) -> Calibrated:
    if cell.convention == "rigorous":
        found = _proved_noise(cell, Relation.SUBSTITUTE)
        noise, necessary, bounds = found.noise_multiplier, found.refuted or 0.0, found.account
    else:
        noise, necessary = papers_noise(cell), 0.0
        bounds = proved(cell, noise)
    beside, with_add_remove = float("nan"), float("nan")
    if cell.sampler == "poisson":
        beside = proved(cell, noise, adjacency=Relation.ADD_REMOVE).upper
        with_add_remove = _proved_noise(cell, Relation.ADD_REMOVE).noise_multiplier
    return Calibrated(noise, necessary, bounds.lower, bounds.upper, beside, with_add_remove)


def _proved_noise(cell: Cell, relation: Relation) -> Calibration:
    return search.calibrate(
        cell.drawn, cell.task.n, epsilon=cell.target_epsilon, delta=cell.target_delta, steps=cell.steps,
        adjacency=relation, accuracy=ACCURACY,
    )  # fmt: skip


def papers_noise(cell: Cell) -> float:
    """Return the smallest noise multiplier at which the papers' pair meets the target: not a guarantee.

    References
    ----------
    MUST, Section 3.4 and Sections S5 and S6 of its supplement.
    """

    def bound(scale: float) -> float:
        return account(
            cell.drawn, cell.task.n, noise_multiplier=scale, steps=cell.steps, delta=cell.target_delta,
            variant="paper", width=ACCURACY * cell.target_epsilon,
        ).upper  # fmt: skip

    start = max(1.0, 4 * cell.m / cell.task.n * cell.steps**0.5 / cell.target_epsilon)
    return safe_root(
        bound, cell.target_epsilon, "a noise multiplier",
        start=start, least=MIN_SCALE, most=MOST_NOISE, accuracy=ACCURACY,
    ).safe  # fmt: skip


class FairNoise(Experiment):
    """Calibrated noise multipliers; a record is one privacy cell of the grids, numbered by the column `replicate`.

    Variants: `rigorous` is proved, under substitution of a record for all samplers; `consistent` is the papers'
    convention, for which the record holds what can be proved at that noise. `grid` is that of the comparison, `surface`
    has the cells that are only calibrated.
    """

    name: ClassVar[str] = "fair_noise"
    columns: ClassVar[dict[str, str]] = {
        "replicate": "int64", "dataset": "str", "n": "int64", "sampler": "str", "m": "int64", "b": "int64",
        "steps": "int64", "target_epsilon": "float64", "target_delta": "float64", "surface": "int64",
        "noise_multiplier": "float64", "necessary": "float64", "epsilon_lower": "float64", "epsilon_upper": "float64",
        "epsilon_add_remove": "float64", "noise_add_remove": "float64", "expected_distinct": "float64",
    }  # fmt: skip
    variants: ClassVar[tuple[str, ...]] = tuple(CONVENTIONS)

    class Settings(ExperimentSettings, FairGrid):
        parts: Parts = 4
        surface: Several[Entry] = Field(
            (
                Entry(dataset="linear", samplers=("must_ow", "must_ww"), m=(100,), b=(100, 800), steps=200,
                      target_epsilon=(2,)),
                Entry(dataset="linear", samplers=("poisson", "wor", "wr", "must_ow", "must_ww"), m=(50, 200), b=(200,),
                      steps=200, target_epsilon=(2,)),
            ),
            description="Cells that are calibrated only, to show noise against b and m.",
        )  # fmt: skip

        def check(self) -> None:
            super().check()
            check_grid(self.surface)

    def replicates(self, settings: Settings) -> int:
        """Return the number of privacy cells: each is computed by one job, whatever the number of seeds."""
        return len(list(self.calibrations(settings, "rigorous")))

    def calibrations(self, settings: Settings, variant: str) -> Iterator[tuple[Cell, int]]:
        """Yield (cell, 1 if it is calibrated only)."""
        for only, grid in enumerate((settings.grid, settings.surface)):
            for cell in expanded(grid, CONVENTIONS[variant]):
                yield cell, only

    def records(self, settings: Settings, run: Run) -> pd.DataFrame:
        cells = list(self.calibrations(settings, run.variant))
        rows = []
        for number in run.replicates:
            cell, only = cells[number]
            found = calibrate(cell)
            rows.append((
                number, cell.dataset, cell.task.n, cell.sampler, cell.m, cell.b or 0, cell.steps, cell.target_epsilon,
                cell.target_delta, only, found.noise_multiplier, found.necessary, found.epsilon_lower,
                found.epsilon_upper, found.epsilon_add_remove, found.noise_add_remove,
                cell.drawn.expected_distinct(cell.task.n),
            ))  # fmt: skip
        return self.frame(pd.DataFrame(rows, columns=list(self.columns)))
