"""Table 4: noise scales and per-query delta' of experiment 1."""

from __future__ import annotations

import pandas as pd

from dpsub.papers.must.artefacts.labels import in_order
from dpsub.papers.must.artefacts.rows import sampler_key
from dpsub.reproduce.artefact import Artefact, Records, values_frame
from dpsub.reproduce.layout import Layout


class Table4(Artefact):
    """What the Gaussian mechanism adds to each statistic of a subset, over the first-stage size b."""

    name = "table4"
    kind = "table"
    caption = (
        "Scale of the Gaussian noise for the mean and the variance (in the units of each statistic) and the delta' of "
        "one query in experiment 1, by sampler and first-stage size b; exact values, no intervals."
    )
    experiments = ("noise_calibration",)
    keys = ("sampler", "b")
    layout = Layout(panels=("column",), stub=("sampler",), heads=("b",))

    def values(self, records: Records) -> pd.DataFrame:
        frame = self.needed(records, "noise_calibration")
        frame = in_order(frame[frame["table"] == "table4"])
        rows = []
        for record in frame.to_dict("records"):
            row, variant = sampler_key(record), record["variant"]
            note = "" if record["epsilon_valid"] else f"epsilon = {record['epsilon']:.3g} is outside the rule's range"
            sigma = {**row, "variant": variant, "value": record["sigma"], "note": note}
            rows.append({**sigma, "column": f"sigma_{record['statistic']}"})
            if record["statistic"] == "mean":
                rows.append({**sigma, "column": "delta_amplified", "value": record["delta_amplified"]})
        blocks = ("sigma_mean", "sigma_variance", "delta_amplified")
        return values_frame([row for name in blocks for row in rows if row["column"] == name])
