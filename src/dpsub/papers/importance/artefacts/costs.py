"""Cost of private k-means by data set, target, size, sampler and mode."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from dpsub.papers.importance.artefacts.labels import TITLES, OnData, not_real
from dpsub.reproduce.artefact import Records, values_frame
from dpsub.reproduce.layout import Layout

EXPERIMENT = "importance_clustering"
CELL = ["variant", "dataset", "sampler", "m_paper", "epsilon"]


def summary(frame: pd.DataFrame) -> pd.DataFrame:
    """Return median and quartiles over the repeats of each cell, runs that failed left out, and how many these are."""
    groups = frame.groupby(CELL, sort=False)["cost"]
    quartiles = groups.quantile(np.array([0.25, 0.5, 0.75])).unstack()
    quartiles.columns = pd.Index(["lower", "median", "upper"])
    first = frame.groupby(CELL, sort=False)[["data_label", "mean_square"]].first()
    failed = groups.apply(lambda cost: int(cost.isna().sum()))
    return quartiles.assign(failed=failed, repeats=groups.size(), **first).reset_index()


class Costs(OnData):
    """Median costs of all cells; the modes stand side by side as variants."""

    name = "costs"
    kind = "table"
    caption = (
        "Median over repeats of the mean squared distance of all rows to the centres that weighted DP-Lloyd finds on "
        "a sample, with quartiles (lower, upper), by data set, expected size m (as in the paper; samples of stand-ins "
        "have the same rates), target epsilon and sampler. As done: the released code; as stated: the text; "
        "consistent: the repaired algorithm. Without epsilon: no noise. Empty: no such size meets the target."
    )
    experiments = (EXPERIMENT,)
    keys = ("dataset", "sampler", "m", "epsilon")
    layout = Layout(panels=("dataset", "m"), stub=("epsilon",), heads=("sampler",))

    def values(self, records: Records) -> pd.DataFrame:
        rows = []
        for cell in summary(self.needed(records, EXPERIMENT)).to_dict("records"):
            private = math.isfinite(cell["epsilon"])
            sampler = cell["sampler"] if private else f"{cell['sampler']}_nonprivate"
            fields = {"dataset": TITLES[cell["dataset"]], "sampler": sampler}
            fields |= {"m": cell["m_paper"]} if cell["m_paper"] else {}
            fields |= {"epsilon": cell["epsilon"]} if private else {}
            failed = f"{cell['failed']} of {cell['repeats']} runs without a result" if cell["failed"] else ""
            rows.append({**fields, "column": "cost", "variant": cell["variant"],
                         "value": cell["median"], "lower": cell["lower"], "upper": cell["upper"],
                         "replicates": cell["repeats"],
                         "note": "; ".join(filter(None, (not_real(cell["data_label"]), failed)))})  # fmt: skip
        return values_frame(rows)
