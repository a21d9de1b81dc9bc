"""Which sampler gives the better model at the same privacy: training at calibrated noise, paired by seed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import pandas as pd

from dpsub import checks
from dpsub.learning.descent import ITERATIONS_AT_ONCE
from dpsub.papers.fair.experiments.fair_cells import CONVENTIONS, Cell, expanded
from dpsub.papers.fair.experiments.fair_noise import Calibrated, calibrate
from dpsub.papers.fair.experiments.fair_tasks import EXPERIMENT, MEASURES, SOURCES, TaskData, load
from dpsub.papers.fair.experiments.fair_training import train
from dpsub.papers.fair.settings import FairGrid
from dpsub.reproduce.experiment import Experiment, Run
from dpsub.reproduce.settings import ExperimentSettings, Replicates
from dpsub.streams import Streams

SEEDS_AT_ONCE = 50  # bounds the memory; has no influence on results


@dataclass(frozen=True)
class Cost:
    """What a cell is expected to take on one core.

    Attributes
    ----------
    seconds : float
        For all its seeds, the calibration included where it has to be made.
    mebibytes : float
        Largest resident memory of a process that runs this cell alone.
    """

    seconds: float
    mebibytes: float


class FairComparison(Experiment):
    """DP-SGD, or the bootstrap's mean, at one target for all samplers; a record is one seed of one cell.

    Variants: `rigorous` adds the noise that is proved to meet the target under substitution; `consistent` the noise at
    which the papers' pair meets it, which is no guarantee. Both have rows of the sampler "nonprivate", trained on
    Poisson batches without noise. Samplers are paired: one seed means the same data or split, the same initial values
    (zero) and the same standard normal numbers; batches are each sampler's own.
    """

    name: ClassVar[str] = EXPERIMENT
    columns: ClassVar[dict[str, str]] = {
        "replicate": "int64", "dataset": "str", "data_label": "str", "n": "int64", "sampler": "str",
        "m": "int64", "b": "int64", "steps": "int64", "target_epsilon": "float64", "target_delta": "float64",
        "convention": "str",
        "noise_multiplier": "float64", "epsilon_lower": "float64", "epsilon_upper": "float64",
        **dict.fromkeys(MEASURES, "float64"), "gradients": "float64", "gradients_expected": "float64",
    }  # fmt: skip
    variants: ClassVar[tuple[str, ...]] = tuple(CONVENTIONS)
    needs_data: ClassVar[tuple[str, ...]] = SOURCES
    needs_records: ClassVar[tuple[str, ...]] = ("fair_noise",)

    class Settings(ExperimentSettings, FairGrid):
        replicates: Replicates = 60

    def records(self, settings: Settings, run: Run) -> pd.DataFrame:
        rows: list[dict[str, Any]] = []
        tasks: dict[str, TaskData] = {}
        recorded = recorded_noise(run)
        for cell in expanded(settings.grid, CONVENTIONS[run.variant]):
            if cell.dataset not in tasks:
                # one task's data at a time
                tasks = {cell.dataset: load(cell.task, run.replicates, run.streams, run.data)}
                reference = replace(cell, sampler="poisson")
                rows += self._rows(reference, tasks[cell.dataset], None, run.replicates, run.streams)
            noise = recorded.get(cell.key) or calibrate(cell)
            rows += self._rows(cell, tasks[cell.dataset], noise, run.replicates, run.streams)
        return self.frame(rows)

    def run_cell(self, cell: Cell, run: Run) -> pd.DataFrame:
        """Return the records of one cell; a seed's record does not depend on which others are computed with it.

        The noise is that of the records of `fair_noise`, where the run has them, else computed, once a process.
        """
        recorded = recorded_noise(run)
        noise, rows = recorded.get(cell.key) or calibrate(cell), []
        for start in range(0, len(run.replicates), SEEDS_AT_ONCE):
            block = run.replicates[start : start + SEEDS_AT_ONCE]
            rows += self._rows(cell, load(cell.task, block, run.streams, run.data), noise, block, run.streams)
        return self.frame(rows)

    def expected(self, cell: Cell, seeds: int, *, calibrated: bool = True) -> Cost:
        """Return the expected cost of `seeds` seeds of a cell, without starting it.

        The rates were measured on one core of the machine of the benchmarks; docs/statistics.md says how.
        """
        checks.integer("seeds", seeds, at_least=1)
        task, work = cell.task, cell.m * (cell.task.n_parameters + 12)
        seconds = 0.05 + seeds * (2e-4 + task.n * 2e-7 * (task.kind == "classification"))
        seconds += seeds * cell.steps * (6e-6 + 2.2e-9 * work)
        if not calibrated:
            stages = len(cell.drawn.slots(task.n)) if ":" in cell.sampler else 1 + (cell.b is not None)
            seconds += (2.0, 12.0, 25.0)[min(stages, 3) - 1]
        block = min(seeds, SEEDS_AT_ONCE)
        numbers = block * (cell.steps * task.n_parameters + 3 * ITERATIONS_AT_ONCE * cell.m + 2 * cell.steps * cell.m)
        table = task.n * (task.n_parameters * (2.7 if task.kind == "classification" else block) + 1.4 * block)
        return Cost(seconds, 300 + 8 * (numbers + table + block * cell.m * task.n_parameters) / 2**20)

    def _rows(
        self, cell: Cell, data: TaskData, noise: Calibrated | None, replicates: Sequence[int], streams: Streams
    ) -> list[dict[str, Any]]:
        """Return the records of a cell; without noise, those of the reference that the target does not matter for."""
        nan, private = float("nan"), noise is not None
        shared = {
            "dataset": cell.dataset, "data_label": data.label, "n": cell.task.n,
            "sampler": cell.sampler if private else "nonprivate", "m": cell.m, "b": cell.b or 0, "steps": cell.steps,
            "target_epsilon": cell.target_epsilon if private else nan,
            "target_delta": cell.target_delta if private else nan,
            "convention": cell.convention, "noise_multiplier": noise.noise_multiplier if noise else 0.0,
            "epsilon_lower": noise.epsilon_lower if noise else nan,
            "epsilon_upper": noise.epsilon_upper if noise else nan,
            "gradients_expected": cell.drawn.expected_distinct(cell.task.n),
        }  # fmt: skip
        rows = []
        for start in range(0, len(replicates), SEEDS_AT_ONCE):
            block = replicates[start : start + SEEDS_AT_ONCE]
            found = train(cell, data.part(start, len(block)), noise.noise_multiplier if noise else None, block, streams)
            rows += [{"replicate": r, **shared, **measures} for r, measures in zip(block, found, strict=True)]
        return rows


def recorded_noise(run: Run) -> dict[tuple[Any, ...], Calibrated]:
    """Return the noise by `Cell.key` of the records of `fair_noise`, none if the run has no such records."""
    return dict(_read(run.records["fair_noise"])) if "fair_noise" in run.records else {}


def _read(frame: pd.DataFrame) -> Iterator[tuple[tuple[Any, ...], Calibrated]]:
    for row in frame.to_dict("records"):
        key = ("dataset", "sampler", "m", "b", "steps", "target_epsilon", "target_delta")
        noise = {name: float(row[name]) for name in Calibrated.__dataclass_fields__}
        yield (*(row[name] for name in key), CONVENTIONS[row["variant"]]), Calibrated(**noise)
