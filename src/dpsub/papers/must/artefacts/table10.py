"""Table 10: time to draw a subset, relative to sampling without replacement."""

from __future__ import annotations

import pandas as pd

from dpsub.errors import DataError
from dpsub.papers.must.artefacts.labels import in_order
from dpsub.reproduce.artefact import Artefact, Records, values_frame
from dpsub.reproduce.layout import Layout


class Table10(Artefact):
    """Clock times on the machine of the run: shown next to the printed ones, never judged."""

    name = "table10"
    kind = "table"
    caption = (
        "Increase of the time to draw one subset over sampling without replacement, in percent, on this machine. "
        "Poisson is drawn by n Bernoulli trials, as the paper says; a sparse draw draws only what is taken."
    )
    experiments = ("sampling_time",)
    keys = ("experiment", "sampler", "draw")
    timed = True
    layout = Layout(panels=("draw",), stub=("experiment",), heads=("sampler",))

    def values(self, records: Records) -> pd.DataFrame:
        frame = in_order(self.needed(records, "sampling_time"), by=("variant", "experiment", "sampler"))
        means = frame.groupby(["variant", "experiment", "sampler", "naive"], sort=False)["seconds"].mean().reset_index()
        rows = []
        for (variant, experiment), cell in means.groupby(["variant", "experiment"], sort=False):
            base = cell.loc[cell["sampler"] == "wor", "seconds"]
            if base.empty or not base.iloc[0] > 0:
                raise DataError(f"times relative to 'wor' need its time above 0 s, got experiment {experiment} "
                                "without one; time it with more draws")
            loop = bool(cell["naive"].any())
            for record in cell.to_dict("records"):
                fields = {"experiment": experiment, "sampler": record["sampler"]}
                if record["sampler"] == "poisson" and loop and not record["naive"]:
                    fields["draw"] = "sparse"
                increase = 100 * (record["seconds"] / base.iloc[0] - 1)
                note = f"{record['seconds'] * 1e6:.3g} microseconds a subset"
                rows.append({**fields, "column": "time_increase_percent", "variant": variant,
                             "value": increase, "note": note})
        return values_frame(sorted(rows, key=lambda row: "draw" in row))
