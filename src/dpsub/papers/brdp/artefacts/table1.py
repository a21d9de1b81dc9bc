"""Table I: epsilon after 1000 releases; and its clock times, kept apart."""

from __future__ import annotations

import numpy as np
import pandas as pd

from dpsub.papers.brdp.artefacts.styles import OURS, SHORT
from dpsub.reproduce.artefact import Artefact, Records, values_frame
from dpsub.reproduce.layout import Layout

RATIOS = {("BRDP/DP", "lap"): ("lap_br", "lap_dp"), ("BRDP/DP", "gau"): ("gau_br", "gau_dp"),
          ("SMP/BRDP", "lap"): ("lap_smp", "lap_br"), ("SMP/BRDP", "gau"): ("gau_smp", "gau_br")}  # fmt: skip
"""Runtimes that the paper's numbers put in proportion."""


class Table1(Artefact):
    """Composed epsilon of the six methods, by the paper's accountants and exactly."""

    paper = "brdp"
    name = "table1"
    kind = "table"
    caption = (
        "Epsilon after 1000 releases for epsilon = 0.1 each: stated, by Theorem 3 (Gaussian kernels in closed form, "
        "Laplace ones by Renyi divergences in two conversions); rigorous, both ends of the exact value. SMP methods "
        "compose at the inner budget and are amplified once, which is valid only if all queries use one sample; they "
        "have no exact value. The line of low split is Laplace noise that spends 0.09 on its kernel: it meets the "
        f"printed numbers, and accepts less than plain Laplace noise. {OURS}sensitivity 1, bound 3, delta 1e-5 of a "
        "query, and a count over 1,000 records for the sampling rate."
    )
    experiments = ("brdp_table1",)
    keys = ("method", "accountant", "delta")
    layout = Layout(panels=("column",), stub=("method", "accountant"), heads=("delta",))

    def values(self, records: Records) -> pd.DataFrame:
        rows = []
        for record in self.needed(records, "brdp_table1").to_dict("records"):
            row = {"method": SHORT[record["method"]], "accountant": record["conversion"], "delta": record["delta"]}
            base = {**row, "variant": record["variant"]}
            note = f"acceptance {record['acceptance']:.4g}, q {record['rate']:.4g}, p {record['sampling_rate']:.4g}"
            ends = {"lower": record["lower"], "upper": record["upper"]} if record["variant"] == "rigorous" else {}
            rows.append({**base, "column": "epsilon", "value": record["upper"], **ends, "note": note})
        return values_frame(rows)


class Table1Times(Artefact):
    """Clock times of choosing parameters and of composing."""

    paper = "brdp"
    name = "table1_times"
    kind = "table"
    timed = True
    caption = (
        "Seconds of choosing a release's parameters, of epsilon by Theorem 3, and of both ends of the exact epsilon, "
        "by method and number of releases; slope of the logarithms of time and T; and the quotients of whole runtimes "
        "at T = 1000 that stand next to the printed 5.14, 5.74, 63.8 and 66.6 (unit not stated)."
    )
    experiments = ("brdp_times",)
    keys = ("method", "task", "n_compositions")
    layout = Layout(panels=("column",), stub=("method",), heads=("task", "n_compositions"))

    def values(self, records: Records) -> pd.DataFrame:
        frame = self.needed(records, "brdp_times")
        rows = []
        for record in frame.to_dict("records"):
            row = {"method": SHORT[record["method"]], **{name: record[name] for name in ("task", "n_compositions")}}
            rows.append({**row, "column": "seconds", "variant": "stated", "value": record["seconds"]})
        for (method, task), part in frame.groupby(["method", "task"]):
            if part["n_compositions"].nunique() > 1:
                slope = np.polyfit(np.log(part["n_compositions"]), np.log(part["seconds"]), 1)[0]
                row = {"method": SHORT[str(method)], "task": str(task)}
                rows.append({**row, "column": "log_log_slope", "variant": "stated", "value": float(slope)})
        whole = runtimes(frame)
        for (name, kernel), (top, bottom) in RATIOS.items():
            if {top, bottom} <= set(whole.index):
                rows.append({"method": f"{name}, {kernel}", "column": "quotient", "variant": "stated",
                             "value": float(whole[top] / whole[bottom])})  # fmt: skip
        return values_frame(rows)


def runtimes(frame: pd.DataFrame) -> pd.Series:
    """Return seconds of parameters and Theorem 3 at the largest T, by method."""
    last = int(frame.loc[frame["task"] == "theorem3", "n_compositions"].max())
    part = frame[(frame["task"] == "parameters") | ((frame["task"] == "theorem3") & (frame["n_compositions"] == last))]
    return part.groupby("method")["seconds"].sum()
