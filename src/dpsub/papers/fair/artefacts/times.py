"""Clock time of one step of training on this machine: kept with the timings."""

from __future__ import annotations

import pandas as pd

from dpsub.reproduce.artefact import Artefact, Records, values_frame
from dpsub.reproduce.layout import Layout


class Times(Artefact):
    """Microseconds a step, by sampler."""

    paper = "fair"
    name = "times"
    kind = "table"
    caption = (
        "Clock time of one step of training, batch, gradients and noise together, on this machine (microseconds, one "
        "seed at a time, median of several runs), next to the distinct gradients that it evaluates."
    )
    experiments = ("fair_times",)
    keys = ("dataset", "sampler")
    timed = True
    layout = Layout(panels=("dataset",), stub=("sampler",), heads=("column",))

    def values(self, records: Records) -> pd.DataFrame:
        frame = self.needed(records, "fair_times")
        rows = []
        for (variant, dataset, sampler), part in frame.groupby(["variant", "dataset", "sampler"], sort=False):
            row = {"dataset": str(dataset), "sampler": str(sampler)}
            found = {
                "microseconds_per_step": 1e6 * float(part["seconds_per_step"].mean()),
                "gradients_expected": float(part["gradients_expected"].iloc[0]),
            }
            rows += [{**row, "column": name, "variant": variant, "value": value} for name, value in found.items()]
        return values_frame(rows)
