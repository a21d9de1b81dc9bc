"""Table 5: released mean and variance of experiment 1 over repeated data sets."""

from __future__ import annotations

import pandas as pd

from dpsub.papers.must.artefacts.labels import in_order
from dpsub.papers.must.artefacts.rows import sampler_key
from dpsub.reproduce import statistics
from dpsub.reproduce.artefact import Artefact, Records, values_frame
from dpsub.reproduce.layout import Layout
from dpsub.reproduce.statistics import Estimate, estimate_row


class Table5(Artefact):
    """Mean and spread of the estimates, with the exact expectation of the variance estimate next to them."""

    name = "table5"
    kind = "table"
    caption = (
        "Mean and standard deviation, over repeated data sets, of the released mean and variance in experiment 1 "
        "(true values 0 and 1), with standard errors, and the exact expectation of the variance estimate."
    )
    experiments = ("subset_statistics",)
    keys = ("parameter", "sampler", "b")
    layout = Layout(panels=("parameter",), stub=("sampler", "b"), heads=("column",))

    def values(self, records: Records) -> pd.DataFrame:
        frame = in_order(self.needed(records, "subset_statistics"))
        rows = []
        for parameter in ("mean", "variance"):
            for (variant, _, _), cell in frame.groupby(["variant", "sampler", "b"], sort=False):
                first = cell.iloc[0].to_dict()
                name = str(variant)
                row, estimates = sampler_key(first, parameter=parameter), cell[parameter].to_numpy()
                rows.append(estimate_row(row, "mean", name, statistics.mean(estimates)))
                rows.append(estimate_row(row, "sd", name, statistics.deviation(estimates)))
                if parameter == "variance":
                    exact = Estimate(first["expected_variance"], 0.0, len(cell))
                    rows.append(estimate_row(row, "expected", name, exact))
        return values_frame(rows)
