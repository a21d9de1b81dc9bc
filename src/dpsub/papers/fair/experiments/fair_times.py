"""Clock time of one step of DP-SGD, by sampler: kept with the timings, never in compared files."""

from __future__ import annotations

from collections.abc import Iterator
from time import perf_counter
from typing import Annotated, Any, ClassVar

import numpy as np
import pandas as pd
from pydantic import Field

from dpsub.papers.fair.experiments.fair_cells import Cell, expanded
from dpsub.papers.fair.experiments.fair_tasks import EXPERIMENT, SOURCES, load
from dpsub.papers.fair.experiments.fair_training import train
from dpsub.papers.fair.settings import FairGrid
from dpsub.reproduce.experiment import Experiment, Run
from dpsub.reproduce.settings import ExperimentSettings


class FairTimes(Experiment):
    """Median seconds a step of drawing the batch, the gradients and the noise, for one seed at a time.

    The samplers of a data set take turns, so that a slow moment of the machine meets all of them; the measures at the
    end of a training are in the time of its last step, the same for all samplers.
    """

    name: ClassVar[str] = "fair_times"
    columns: ClassVar[dict[str, str]] = {
        "replicate": "int64", "dataset": "str", "sampler": "str", "m": "int64", "b": "int64", "steps": "int64",
        "seconds_per_step": "float64", "gradients_expected": "float64",
    }  # fmt: skip
    variants: ClassVar[tuple[str, ...]] = ("rigorous",)
    needs_data: ClassVar[tuple[str, ...]] = SOURCES
    timed: ClassVar[bool] = True
    streams_of: ClassVar[str] = EXPERIMENT

    class Settings(ExperimentSettings, FairGrid):
        turns: Annotated[int, Field(ge=1, le=1_000, description="Trainings timed a sampler; the median counts.")] = 5

    def timed_cells(self, settings: Settings) -> Iterator[list[Cell]]:
        """Yield the cells of each data set, one target for all: what a step costs does not depend on the noise."""
        found: dict[str, dict[tuple[Any, ...], Cell]] = {}
        for cell in expanded(settings.grid, "rigorous"):
            found.setdefault(cell.dataset, {}).setdefault(cell.key[1:5], cell)
        yield from (list(cells.values()) for cells in found.values())

    def records(self, settings: Settings, run: Run) -> pd.DataFrame:
        rows = []
        for replicate in run.replicates:
            for cells in self.timed_cells(settings):
                task_data = load(cells[0].task, [replicate], run.streams, run.data)
                seconds = np.empty((settings.turns + 1, len(cells)))
                for turn in range(len(seconds)):  # the first one warms up
                    for position, cell in enumerate(cells):
                        start = perf_counter()
                        train(cell, task_data, 1.0, [replicate], run.streams)
                        seconds[turn, position] = perf_counter() - start
                rows += [
                    (replicate, cell.dataset, cell.sampler, cell.m, cell.b or 0, cell.steps, median / cell.steps,
                     cell.drawn.expected_distinct(cell.task.n))
                    for cell, median in zip(cells, np.median(seconds[1:], axis=0), strict=True)
                ]  # fmt: skip
        return self.frame(pd.DataFrame(rows, columns=list(self.columns)))
