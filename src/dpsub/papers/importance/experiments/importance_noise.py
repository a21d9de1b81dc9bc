"""Noise of every clustering cell, on the data and from Table 1 alone (Fay et al., Section 4)."""

from __future__ import annotations

from typing import ClassVar

import pandas as pd

from dpsub.data.described import EIGHT
from dpsub.papers.importance.experiments.importance_cells import (
    NOISE_COLUMNS,
    cells,
    noise_of,
    noise_of_table1,
    noise_row,
)
from dpsub.papers.importance.experiments.importance_sets import OnPointSets, each
from dpsub.papers.importance.settings import Lloyd, OnCells, OnSets
from dpsub.reproduce.experiment import Run
from dpsub.reproduce.settings import ExperimentSettings


class ImportanceNoise(OnPointSets):
    """Scales of the noise, proved loss and attainable size; s is NaN where a size cannot be obtained at a target.

    Rows with the data label "table1" (not as_done) need no data: full data, uniform and core-set sampling at the
    paper's radius and mean square. Variants: as_done is the calibration of the released code, stated that of the text,
    consistent has a split between sums and counts that scales with the data.
    """

    name: ClassVar[str] = "importance_noise"
    columns: ClassVar[dict[str, str]] = {"replicate": "int64", **NOISE_COLUMNS}
    variants: ClassVar[tuple[str, ...]] = ("as_done", "stated", "consistent")

    class Settings(ExperimentSettings, OnSets, OnCells, Lloyd):
        pass

    def records(self, settings: Settings, run: Run) -> pd.DataFrame:
        rows = []
        # that the released grid misses part of the loss costs a search a cell: it is shown on the data only
        for name, paper in EIGHT.items() if run.variant != "as_done" else ():
            for cell in cells(settings, name):
                if cell.sampler != "opt":
                    noise = noise_of_table1(cell, paper, settings, run.variant)
                    rows.append(noise_row(name, "table1", cell, noise))
        for points in each(settings, run.data):
            for cell in cells(settings, points.name):
                rows.append(noise_row(points.name, points.label, cell, noise_of(cell, points, settings, run.variant)))
        return self.frame(pd.DataFrame(rows).assign(replicate=0))
