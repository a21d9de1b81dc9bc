"""All samplers at equal privacy: the noise, the trained model, and the time of a training step."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from functools import lru_cache
from time import perf_counter
from typing import Annotated, Any, ClassVar

import numpy as np
import pandas as pd
from pydantic import Field

from dpsub.learning.models import NUMBERS_AT_ONCE
from dpsub.papers.fair.experiments.cells import (
    VARIANTS,
    Calibrated,
    OtherRelations,
    calibrate,
    cell_of,
    check_grid,
    entry_of,
    expanded,
    fields_of,
    other_relations,
)
from dpsub.papers.fair.experiments.training import MEASURES, SeedData, load, measured
from dpsub.papers.fair.settings import TASKS, FairEntry, FairGrid
from dpsub.reproduce.experiment import Cost, Experiment, Run
from dpsub.reproduce.records import first_stage_of
from dpsub.reproduce.settings import ExperimentSettings, Parts, Replicates, Several
from dpsub.reproduce.study.cells import Cell
from dpsub.sampling.base import StagedSampler

SEEDS_AT_ONCE = 50  # bounds the memory; has no influence on results
SECONDS_OF_CALIBRATION = (2.0, 12.0, 25.0)
# Bounds for one, two and three or more stages, measured on one core.
"""Seconds of a calibration, by the number of stages."""

CELL: dict[str, str] = {
    "n": "int64",
    "sampler": "str",
    "m": "int64",
    "b": "int64",
    "steps": "int64",
    "target_epsilon": "float64",
    "target_delta": "float64",
}
KEYS = ("dataset", *CELL)


class OnGrid(ExperimentSettings, FairGrid):
    """Settings of an experiment on the cells of the grid."""

    def check(self) -> None:
        check_grid(self.grid)


class FairNoise(Experiment):
    """Calibrated noise multipliers; a record is one privacy cell of the grids, numbered by the
    column `replicate`.

    Variants: `rigorous` is proved, under substitution of a record for all samplers, by the tight
    bound for samples with and without replacement; `consistent` is noise by the papers'
    pair, with the bounds that are proved for this noise. The noise under the other adjacency
    relations is the same for both.
    """

    name: ClassVar[str] = "fair_noise"
    stage = "account"
    columns: ClassVar[dict[str, str]] = {
        "replicate": "int64",
        "dataset": "str",
        **CELL,
        "surface": "int64",
        "noise_multiplier": "float64",
        "necessary": "float64",
        "epsilon_lower": "float64",
        "epsilon_upper": "float64",
        "epsilon_add_remove": "float64",
        **dict.fromkeys(vars(OtherRelations()), "float64"),
        "expected_distinct": "float64",
    }
    keys: ClassVar[tuple[str, ...]] = KEYS
    variants: ClassVar[tuple[str, ...]] = VARIANTS

    class Settings(OnGrid):
        parts: Parts = 4
        surface: Several[FairEntry] = Field(
            (
                FairEntry(
                    dataset=("linear",),
                    samplers=("must_ow", "must_ww"),
                    m=(100,),
                    b=(100, 800),
                    steps=(200,),
                    target_epsilon=(2,),
                ),
                FairEntry(
                    dataset=("linear",),
                    samplers=("poisson", "wor", "wr", "must_ow", "must_ww"),
                    m=(50, 200),
                    b=(200,),
                    steps=(200,),
                    target_epsilon=(2,),
                ),
            ),
            description="Cells that are calibrated only, to show noise against b and m.",
        )

        def check(self) -> None:
            super().check()
            check_grid(self.surface)

    def replicates(self, settings: Settings) -> int:
        """Return the number of privacy cells: each is computed by one job, whatever the number of
        seeds."""
        return len(self.calibrations(settings, "rigorous"))

    def calibrations(self, settings: Settings, variant: str) -> list[tuple[Cell, int]]:
        """Return the cells, each with 1 if it is calibrated only."""
        cells: list[tuple[Cell, int]] = []
        # Trained cells first, those of the surface after them: `replicate` numbers both.
        for only_noise, grid in enumerate((settings.grid, settings.surface)):
            private = [cell for cell in expanded(grid, variant) if cell.private]
            cells += [(cell, only_noise) for cell in private]
        return cells

    def records(self, settings: Settings, run: Run) -> pd.DataFrame:
        cells = self.calibrations(settings, run.variant)
        # these show samplers of several stages under the weaker relations, and stand for the others
        surfaces = [entry for entry in settings.surface if len(entry.m) > 1]
        along_m = set(expanded(surfaces, "rigorous"))
        rows = []
        for number in run.replicates:
            cell, only_noise = cells[number]
            weaker = other_relations(cell, several=cell in along_m)
            row = {
                "replicate": number,
                **fields_of(cell),
                "surface": only_noise,
                **vars(calibrate(cell)),
                **vars(weaker),
                "expected_distinct": cell.plan.expected_distinct(cell.n),
            }
            rows.append(row)
        return self.frame(rows)


class OnTasks(Experiment):
    """An experiment that reads the data of the tasks on its grid."""

    needs_data: ClassVar[tuple[str, ...]] = tuple(
        sorted({task.source for task in TASKS.values()} - {""})
    )

    def data_of(self, settings: Any) -> tuple[str, ...]:
        datasets = {name for entry in settings.grid for name in entry.dataset}
        return tuple(sorted({TASKS[name].source for name in datasets} - {""}))


class FairComparison(OnTasks):
    """DP-SGD, or the bootstrap's mean, at one target for all samplers; a record is one seed of one
    cell.

    Variants: `rigorous` adds the noise that is proved to meet the target under substitution;
    `consistent` the noise at which the papers' pair meets it, which is no guarantee. Rows of the
    sampler "nonprivate" are trained on Poisson batches without noise. Samplers are paired: one seed
    means the same data or split, the same initial values (zero) and the same standard normal
    numbers; batches are each sampler's own.
    """

    name: ClassVar[str] = "fair_comparison"
    stage = "train"
    columns: ClassVar[dict[str, str]] = {
        "replicate": "int64",
        "dataset": "str",
        "data_label": "str",
        **CELL,
        "noise_multiplier": "float64",
        "epsilon_lower": "float64",
        "epsilon_upper": "float64",
        **dict.fromkeys(MEASURES, "float64"),
        "gradients": "float64",
        "gradients_expected": "float64",
    }
    keys: ClassVar[tuple[str, ...]] = (*KEYS, "data_label")
    variants: ClassVar[tuple[str, ...]] = VARIANTS
    # a sweep has none, and each job calibrates its cells
    needs_records: ClassVar[tuple[str, ...]] = ("fair_noise",)

    class Settings(OnGrid):
        replicates: Replicates = 60

    def cells(self, settings: Settings) -> Iterator[Settings]:
        for cell in expanded(settings.grid, "rigorous"):
            yield settings.model_copy(update={"grid": (entry_of(cell),)})

    def cost(self, settings: Settings) -> Cost:
        """Return the sum over cells; the rates were measured on one core: docs/verdicts.md says
        how."""
        costs = [_cost(cell) for cell in expanded(settings.grid, "rigorous")]
        setup = sum(cost.setup for cost in costs)
        replicate = sum(cost.replicate for cost in costs)
        return Cost(setup, replicate, max(cost.memory for cost in costs))

    def records(self, settings: Settings, run: Run) -> pd.DataFrame:
        @lru_cache(maxsize=2)  # the samplers of a data set meet the same data
        def data_of_seeds(dataset: str, seeds: range) -> SeedData:
            return load(TASKS[dataset], seeds, run.streams, run.data)

        recorded = _recorded_noise(run)
        rows: list[dict[str, Any]] = []
        for cell in expanded(settings.grid, run.variant):
            # a sweep has no records of the noise: there each job calibrates its own cells
            noise = recorded.get(cell) or calibrate(cell)
            multiplier = noise.noise_multiplier
            for start in range(0, len(run.replicates), SEEDS_AT_ONCE):
                seeds = run.replicates[start : start + SEEDS_AT_ONCE]
                data = data_of_seeds(cell.dataset, seeds)
                fixed = {
                    **fields_of(cell),
                    "data_label": data.records.label,
                    "noise_multiplier": multiplier,
                    "epsilon_lower": noise.epsilon_lower,
                    "epsilon_upper": noise.epsilon_upper,
                    "gradients_expected": cell.plan.expected_distinct(cell.n),
                }
                answers = measured(cell, data, multiplier, seeds, run.streams)
                for seed, measures in zip(seeds, answers, strict=True):
                    rows.append({"replicate": seed, **fixed, **measures})
        return self.frame(rows)


def _cost(cell: Cell) -> Cost:
    """Return the cost of one cell, as measured on one core."""
    task, seeds = TASKS[cell.dataset], SEEDS_AT_ONCE
    p, classifies = task.model.n_parameters, task.classifies
    # Schedules are trained like samplers of one stage.
    stages = len(cell.plan.stages) if isinstance(cell.plan, StagedSampler) else 1
    setup = 0.05
    if cell.private:
        setup += SECONDS_OF_CALIBRATION[min(stages, 3) - 1]
    step = 6e-6 + 2.2e-9 * cell.m * (p + 12)
    replicate = 2e-4 + task.n * 2e-7 * classifies + cell.steps * step
    # the noise and the batches of all seeds, and the products of a step
    numbers = 4 * NUMBERS_AT_ONCE + seeds * cell.steps * (p + 2 * cell.m)
    # splits share their records, other seeds have a data set each
    records = task.n * (p * (2.7 if classifies else seeds) + 1.4 * seeds)
    gradients = seeds * cell.m * p
    return Cost(setup, replicate, 300 + 8 * (numbers + records + gradients) / 2**20)


def _recorded_noise(run: Run) -> dict[Cell, Calibrated]:
    """Return the noise of each cell in the records of `fair_noise`, none if the run has no such
    records."""
    known: dict[Cell, Calibrated] = {}
    if "fair_noise" not in run.records:
        return known
    sizes = ("sampler", "dataset", "m", "steps", "target_epsilon", "target_delta", "variant")
    # The records name a cell; noise is looked up by the cell itself, whatever the order of the
    # rows.
    for row in run.records["fair_noise"].to_dict("records"):
        cell = cell_of(**{name: row[name] for name in sizes}, b=first_stage_of(row["b"]))
        known[cell] = Calibrated(**{name: float(row[name]) for name in vars(Calibrated())})
    return known


class FairTimes(OnTasks):
    """Median seconds per step of drawing the batch, the gradients and the noise, for one seed at a
    time.

    The samplers of a data set take turns, so that a slow moment of the machine meets all of them;
    the measures at the end of a training are in the time of its last step, the same for all
    samplers. One target stands for all: what a step costs does not depend on the noise.
    """

    name: ClassVar[str] = "fair_times"
    stage = "train"
    columns: ClassVar[dict[str, str]] = {
        "replicate": "int64",
        "dataset": "str",
        "sampler": "str",
        "m": "int64",
        "b": "int64",
        "steps": "int64",
        "seconds_per_step": "float64",
        "gradients_expected": "float64",
    }
    keys: ClassVar[tuple[str, ...]] = ("dataset", "sampler", "m", "b", "steps")
    variants: ClassVar[tuple[str, ...]] = ("rigorous",)
    timed: ClassVar[bool] = True
    streams_of: ClassVar[str] = FairComparison.name

    class Settings(OnGrid):
        turns: Annotated[
            int, Field(ge=1, le=1_000, description="Trainings timed a sampler; the median counts.")
        ] = 5

    def records(self, settings: Settings, run: Run) -> pd.DataFrame:
        by_dataset: dict[str, dict[tuple[Any, ...], Cell]] = {}
        for cell in expanded(settings.grid, run.variant):
            # one target stands for all, as what a step costs does not depend on the noise
            if cell.private:
                sizes = (cell.sampler, cell.m, cell.b, cell.steps)
                by_dataset.setdefault(cell.dataset, {}).setdefault(sizes, cell)
        rows = []
        for replicate, (dataset, by_size) in itertools.product(run.replicates, by_dataset.items()):
            # read before the clock runs
            data = load(TASKS[dataset], [replicate], run.streams, run.data)
            # One training a turn for each sampler, in turns: see the class.
            cells = list(by_size.values())
            seconds = np.empty((settings.turns + 1, len(cells)))  # the first turn warms up
            for turn, (column, cell) in itertools.product(range(len(seconds)), enumerate(cells)):
                start = perf_counter()
                measured(cell, data, 1.0, [replicate], run.streams)
                seconds[turn, column] = perf_counter() - start
            medians = np.median(seconds[1:], axis=0)
            for cell, median in zip(cells, medians, strict=True):
                row = {
                    **fields_of(cell),
                    "replicate": replicate,
                    "seconds_per_step": median / cell.steps,
                    "gradients_expected": cell.plan.expected_distinct(cell.n),
                }
                rows.append({name: row[name] for name in self.columns})
        return self.frame(rows)
