"""Table 7: bias and error of the regression coefficients of experiment 2."""

from __future__ import annotations

import pandas as pd

from dpsub.papers.must.artefacts.table6 import regression_cells
from dpsub.reproduce import statistics
from dpsub.reproduce.artefact import Artefact, Records, values_frame
from dpsub.reproduce.layout import Layout
from dpsub.reproduce.statistics import estimate_row


class Table7(Artefact):
    """How far the private coefficients are from the true ones."""

    name = "table7"
    kind = "table"
    caption = (
        "Bias and root mean squared error of the three regression coefficients in experiment 2 over repeated data "
        "sets, with standard errors."
    )
    experiments = ("linear_regression",)
    keys = ("epsilon_amplified", "sampler", "coefficient")
    layout = Layout(panels=("epsilon_amplified",), stub=("sampler",), heads=("column", "coefficient"))

    def values(self, records: Records) -> pd.DataFrame:
        rows = []
        cells = regression_cells(self.needed(records, "linear_regression"))
        for column, summary in (("bias", statistics.mean), ("rmse", statistics.root_mean_square)):
            for row, variant, cell in cells:
                for coefficient in ("beta0", "beta1", "beta2"):
                    estimate = summary(cell[f"error_{coefficient}"].to_numpy())
                    rows.append(estimate_row({**row, "coefficient": coefficient}, column, variant, estimate))
        return values_frame(rows)
