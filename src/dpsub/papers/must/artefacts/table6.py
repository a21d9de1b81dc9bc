"""Table 6: noise, delta' and prediction error of experiment 2."""

from __future__ import annotations

import math

import pandas as pd

from dpsub.papers.must.artefacts.labels import in_order
from dpsub.reproduce import statistics
from dpsub.reproduce.artefact import Artefact, Records, values_frame
from dpsub.reproduce.layout import Layout
from dpsub.reproduce.statistics import estimate_row


class Table6(Artefact):
    """Linear regression by noisy gradients: scale of the noise, delta' of one query, RMSE of the predictions."""

    name = "table6"
    kind = "table"
    caption = (
        "Scale of the Gaussian noise on the mean gradient, delta' of one query, and mean and standard deviation over "
        "repeated data sets of the root mean squared error of the predictions in experiment 2, with standard errors."
    )
    experiments = ("noise_calibration", "linear_regression")
    keys = ("epsilon_amplified", "sampler")
    layout = Layout(panels=("epsilon_amplified",), stub=("sampler",), heads=("column",))

    def values(self, records: Records) -> pd.DataFrame:
        noise = self.needed(records, "noise_calibration")
        rows = []
        for record in in_order(noise[noise["table"] == "table6"]).to_dict("records"):
            row = {"epsilon_amplified": record["epsilon_amplified"], "sampler": record["sampler"]}
            rows += [
                {**row, "column": name, "variant": record["variant"], "value": record[name]}
                for name in ("sigma", "delta_amplified")
            ]
        for row, variant, cell in regression_cells(self.needed(records, "linear_regression")):
            rows.append(estimate_row(row, "rmse_mean", variant, statistics.mean(cell["rmse"].to_numpy())))
            rows.append(estimate_row(row, "rmse_sd", variant, statistics.deviation(cell["rmse"].to_numpy())))
        return values_frame(rows)


def regression_cells(frame: pd.DataFrame) -> list[tuple[dict[str, object], str, pd.DataFrame]]:
    """Return (key fields, variant, records) of each cell of experiment 2; the non-private one has no epsilon'."""
    cells = []
    groups = in_order(frame).groupby(["variant", "sampler", "epsilon_amplified"], sort=False, dropna=False)
    for (variant, sampler, _), cell in groups:
        epsilon = float(cell["epsilon_amplified"].iloc[0])
        fields: dict[str, object] = {} if math.isnan(epsilon) else {"epsilon_amplified": epsilon}
        cells.append(({**fields, "sampler": sampler}, str(variant), cell))
    return cells
