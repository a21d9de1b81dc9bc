"""The data sets as they are clustered: rows, columns, radius, mean squared norm (Fay et al., Table 1)."""

from __future__ import annotations

from typing import ClassVar

import pandas as pd

from dpsub.data import centred
from dpsub.papers.importance.experiments.importance_sets import OnPointSets, each
from dpsub.papers.importance.settings import OnSets
from dpsub.reproduce.experiment import Run
from dpsub.reproduce.settings import ExperimentSettings


class ImportanceData(OnPointSets):
    """One record a data set; `data_label` says whether it is the paper's or a stand-in."""

    name: ClassVar[str] = "importance_data"
    columns: ClassVar[dict[str, str]] = {
        "replicate": "int64", "dataset": "str", "data_label": "str", "n_original": "int64", "n": "int64", "d": "int64",
        "radius": "float64", "mean_square": "float64", "percentile": "float64",
    }  # fmt: skip
    variants: ClassVar[tuple[str, ...]] = ("stated",)

    class Settings(ExperimentSettings, OnSets):
        pass

    def records(self, settings: Settings, run: Run) -> pd.DataFrame:
        rows = [
            (0, one.name, one.label, one.n_original, *one.points.shape, one.radius, one.mean_square, centred.PERCENTILE)
            for one in each(settings, run.data)
        ]
        return self.frame(pd.DataFrame(rows, columns=list(self.columns)))
