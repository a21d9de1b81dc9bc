"""The fair comparison, cell by cell."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd

from dpsub import checks
from dpsub.accounting.account import Release
from dpsub.accounting.proofs import ChainProfile
from dpsub.papers.fair.experiments.fair_cells import MOST_NOISE, Cell
from dpsub.papers.fair.experiments.fair_comparison import SEEDS_AT_ONCE, FairComparison
from dpsub.papers.fair.experiments.fair_tasks import EXPERIMENT, TASKS
from dpsub.reproduce.experiment import Run
from dpsub.reproduce.sweeps.cells import KEYS, CellExperiment, Cost
from dpsub.streams import Streams

_IN_THE_KEY = [name for name in FairComparison.columns if name in KEYS]


class FairSweep(CellExperiment):
    """`FairComparison` of the experiments; the job of a cell calibrates it, once for its seeds there.

    Cells have no row of the sampler "nonprivate".
    """

    name: ClassVar[str] = EXPERIMENT
    axes: ClassVar[tuple[str, ...]] = ("steps", "targets", "datasets", "conventions")
    columns: ClassVar[dict[str, str]] = {
        column: kind
        for column, kind in FairComparison.columns.items()
        if column not in ("replicate", "data_label", *_IN_THE_KEY)
    }

    def __init__(self) -> None:
        self.experiment = FairComparison()
        self.proved: set[tuple[str, str]] = set()

    def size_of(self, dataset: str) -> int:
        return TASKS[checks.one_of("data set", dataset, TASKS)].n

    def check(self, fields: Mapping[str, Any]) -> None:
        cell = _cell(fields)
        cell.check_reach()
        if ":" in cell.sampler and (cell.sampler, cell.dataset) not in self.proved:
            # refuses a chain that no bound covers, or only one that takes too long
            ChainProfile(Release(cell.drawn, cell.task.n, MOST_NOISE, cell.steps).chain(), MOST_NOISE)
            self.proved.add((cell.sampler, cell.dataset))

    def cost(self, fields: Mapping[str, Any]) -> Cost:
        cell = _cell(fields)
        one, two = (self.experiment.cost(cell, seeds, calibrated=False) for seeds in (1, 2))
        each = two.seconds - one.seconds
        most = self.experiment.cost(cell, SEEDS_AT_ONCE, calibrated=False)
        return Cost(setup=one.seconds - each, replicate=each, memory=most.mebibytes)

    def data_sets(self, fields: Mapping[str, Any]) -> tuple[str, ...]:
        source = TASKS[fields["dataset"]].source
        return (source,) if source else ()

    def run(self, fields: Mapping[str, Any], replicates: range, *, root: int, data: Mapping[str, Path]) -> pd.DataFrame:
        run = Run(str(fields["convention"]), replicates, Streams(root, EXPERIMENT), data)
        frame = self.experiment.run_cell(_cell(fields), run)
        return frame.drop(columns=_IN_THE_KEY).rename(columns={"data_label": "data"})


def _cell(fields: Mapping[str, Any]) -> Cell:
    return Cell.of({name: value for name, value in fields.items() if name != "n"})
