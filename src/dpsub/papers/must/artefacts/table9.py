"""Table 9: number of distinct records in a subset."""

from __future__ import annotations

import pandas as pd

from dpsub.papers.must.artefacts.labels import in_order
from dpsub.reproduce.artefact import Artefact, Records, values_frame
from dpsub.reproduce.layout import Layout


class Table9(Artefact):
    """Smallest, mean and largest number of distinct records over many subsets, next to what the exact law says."""

    name = "table9"
    kind = "table"
    caption = (
        "Smallest, mean and largest number of distinct records over the drawn subsets, in the sizes of the three "
        "experiments; the intervals of the extremes hold 99.8 % of the exact law, whose mean is the law mean."
    )
    experiments = ("distinct_counts",)
    keys = ("experiment", "sampler")
    layout = Layout(panels=("experiment",), stub=("column",), heads=("sampler",))

    def values(self, records: Records) -> pd.DataFrame:
        frame = in_order(self.needed(records, "distinct_counts"), by=("variant", "experiment", "sampler"))
        rows = []
        for record in frame.to_dict("records"):
            row = {"experiment": record["experiment"], "sampler": record["sampler"]}
            base = {**row, "variant": record["variant"]}
            for end in ("min", "max"):
                bounds = {"lower": record[f"{end}_lower"], "upper": record[f"{end}_upper"]}
                rows.append({**base, "column": f"distinct_{end}", "value": record[f"distinct_{end}"], **bounds})
            draws = record["draws"]
            error = {"standard_error": record["sd"] / draws**0.5, "replicates": draws}
            rows.append({**base, "column": "distinct_mean", "value": record["distinct_mean"], **error})
            rows.append({**base, "column": "law_mean", "value": record["law_mean"]})
        blocks = ("distinct_min", "distinct_mean", "law_mean", "distinct_max")
        return values_frame([row for name in blocks for row in rows if row["column"] == name])
