"""The design advisor's table on a simulated frame, and allocation rules at one promise."""

from __future__ import annotations

import math

import pandas as pd

from dpsub.reproduce.artefact import Artefact, Records, values_frame
from dpsub.reproduce.layout import Layout

COLUMNS = {
    "advice": ("lower", "upper", "exact", "size_mean", "size_sd", "sampling", "total", "base", "total_at_target"),
    "menu": ("base", "sampling", "noise_at_target", "total_at_target"),
}


class TableAdvice(Artefact):
    """What each design gives: epsilon', the law of the sample's size, variances with and without noise."""

    paper = "bun"
    name = "advice"
    kind = "table"
    caption = (
        "Design advisor on a simulated frame. advice: end-to-end loss of a mechanism with this epsilon on the sample "
        "(lower, upper, exact), records drawn, variance of the estimated total without and with the mechanism's noise; "
        "base: epsilon on the sample if the promise is epsilon, with the variance that follows. menu: allocation "
        "rules for a mean at one promise, the worst of three populations. Empty: unknown, or none."
    )
    experiments = ("bun_designs",)
    keys = ("topic", "epsilon", "design")
    layout = Layout(panels=("topic", "epsilon"), stub=("design",), heads=("column",))

    def values(self, records: Records) -> pd.DataFrame:
        rows = []
        for record in self.needed(records, "bun_designs").to_dict("records"):
            numbers = {
                **record,
                "total": record["sampling"] + record["noise"],
                "total_at_target": record["sampling"] + record["noise_at_target"],
            }
            row = {"topic": record["topic"], "epsilon": record["epsilon"], "design": record["design"]}
            note = "; ".join(part for part in (record["relation"], record["note"]) if part)
            rows += [{**row, "column": name, "variant": record["variant"], "note": note,
                      "value": numbers[name] if math.isfinite(numbers[name]) and numbers[name] >= 0 else math.nan}
                     for name in COLUMNS[record["topic"]]]  # fmt: skip
        return values_frame(rows)
