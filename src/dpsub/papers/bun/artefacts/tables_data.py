"""Table C: tests of sizes. Table D: Neyman allocation of a population and a neighbour."""

from __future__ import annotations

import pandas as pd

from dpsub.reproduce.artefact import Artefact, Records, values_frame
from dpsub.reproduce.layout import Layout


class TableC(Artefact):
    """Advantage of the best private test of two sizes, next to its limits and a noisy count."""

    paper = "bun"
    name = "tableC"
    kind = "table"
    caption = (
        "Two sizes a number apart: the largest advantage of an epsilon-DP test of the size, that of a threshold on the "
        "size plus Laplace noise, and the limit on any test (stated: exp of the loss, less 1; consistent: tanh of half "
        "the loss; rigorous: the best advantage again)."
    )
    experiments = ("bun_size_tests",)
    keys = ("difference", "epsilon")
    layout = Layout(panels=("column",), stub=("difference",), heads=("epsilon",))

    def values(self, records: Records) -> pd.DataFrame:
        frame = self.needed(records, "bun_size_tests")
        rows = []
        for record in frame[frame["topic"] == "jump"].to_dict("records"):
            row = {"difference": record["difference"], "epsilon": record["epsilon"]}
            columns = ("limit",) if record["variant"] != "stated" else ("advantage", "laplace_count", "limit")
            rows += [{**row, "column": name, "variant": record["variant"], "value": record[name]}
                     for name in columns]  # fmt: skip
        return values_frame(rows)


class TableD(Artefact):
    """Allocations class by class before and after one establishment is raised to the top code."""

    paper = "bun"
    name = "tableD"
    kind = "table"
    caption = (
        "Neyman allocation by size class before and after the smallest establishment is raised to the top code: the "
        "printed vectors, their replay by one growth factor, and synthetic populations with four ways to fill the "
        "classes (made-up class counts, no real establishments). stated: every class rounded on its own; consistent: "
        "integers that sum to m."
    )
    experiments = ("bun_neyman",)
    keys = ("topic", "stratum")
    layout = Layout(panels=("topic",), stub=("stratum",), heads=("column",))

    def values(self, records: Records) -> pd.DataFrame:
        rows = []
        for record in self.needed(records, "bun_neyman").to_dict("records"):
            row = {"topic": record["topic"], "stratum": record["stratum"]}
            found = {"before": record["before"], "after": record["after"], "change": record["after"] - record["before"]}
            rows += [{**row, "column": name, "variant": record["variant"], "value": value}
                     for name, value in found.items()]  # fmt: skip
        return values_frame(rows)

    def labels(self, records: Records) -> tuple[str, ...]:
        return ("synthetic",)
