"""Table 1: the data sets, judged where they are the paper's."""

from __future__ import annotations

import pandas as pd

from dpsub.papers.importance.artefacts.labels import TITLES, OnData, not_real
from dpsub.reproduce.artefact import Records, values_frame
from dpsub.reproduce.layout import Layout

COLUMNS = ("n_original", "n", "d", "radius", "mean_square")


class Table1(OnData):
    """Rows, columns, largest norm and mean squared norm after removal of outliers and centring."""

    name = "table1"
    kind = "table"
    caption = (
        "Data sets: rows before and after the outermost 2.5 % are removed, columns, largest norm and mean squared "
        "norm of the centred rows. Data that are not the paper's (synthetic: a stand-in of at most the configured "
        "number of rows, scaled to the printed radius and mean square; subsample, partial: a part of the original "
        "file) are shown and not compared."
    )
    experiments = ("importance_data",)
    keys = ("dataset",)
    layout = Layout(stub=("dataset",), heads=("column",))

    def values(self, records: Records) -> pd.DataFrame:
        rows = []
        for record in self.needed(records, "importance_data").to_dict("records"):
            row, note = {"dataset": TITLES[record["dataset"]]}, not_real(record["data_label"])
            # no error: the numbers are computed from the file, and must round to the printed ones
            rows += [{**row, "column": name, "variant": record["variant"], "value": float(record[name]),
                      "standard_error": 0.0, "replicates": 1, "note": note} for name in COLUMNS]  # fmt: skip
        return values_frame(rows)

    def labels(self, records: Records) -> tuple[str, ...]:
        """None: each row says itself what its data are."""
        return ()
