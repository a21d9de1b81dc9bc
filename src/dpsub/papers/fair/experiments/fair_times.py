"""Clock time of one step of DP-SGD, by sampler: kept with the timings, never in compared files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from time import perf_counter
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from dpsub import checks
from dpsub.papers.fair.experiments.fair_cells import Cell, check_grid, expanded
from dpsub.papers.fair.experiments.fair_tasks import SOURCES, load
from dpsub.papers.fair.experiments.fair_training import train
from dpsub.reproduce.experiment import Experiment


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

    def check(self, settings: Mapping[str, Any]) -> None:
        checks.integer("turns", settings["turns"], at_least=1)
        check_grid(settings["grid"])

    def cells(self, settings: Mapping[str, Any]) -> Iterator[list[Cell]]:
        """Yield the cells of each data set, one target for all: what a step costs does not depend on the noise."""
        found: dict[str, dict[tuple[Any, ...], Cell]] = {}
        for cell in expanded(settings["grid"], "rigorous"):
            found.setdefault(cell.dataset, {}).setdefault(cell.key[1:5], cell)
        yield from (list(cells.values()) for cells in found.values())

    def run(
        self, *, settings: Mapping[str, Any], variant: str, replicates: range, root: int, data: Mapping[str, Path]
    ) -> pd.DataFrame:
        rows = []
        for replicate in replicates:
            for cells in self.cells(settings):
                task_data = load(cells[0].task, [replicate], root, data)
                seconds = np.empty((settings["turns"] + 1, len(cells)))
                for turn in range(len(seconds)):  # the first one warms up
                    for position, cell in enumerate(cells):
                        start = perf_counter()
                        train(cell, task_data, 1.0, [replicate], root)
                        seconds[turn, position] = perf_counter() - start
                rows += [
                    (replicate, cell.dataset, cell.sampler, cell.m, cell.b or 0, cell.steps, median / cell.steps,
                     cell.drawn.expected_distinct(cell.task.n))
                    for cell, median in zip(cells, np.median(seconds[1:], axis=0), strict=True)
                ]  # fmt: skip
        return self.frame(pd.DataFrame(rows, columns=list(self.columns)))
