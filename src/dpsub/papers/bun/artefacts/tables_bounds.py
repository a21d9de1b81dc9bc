"""Tables A, B and E: formulas on a grid, their distance from the truth, and what came of each statement."""

from __future__ import annotations

import pandas as pd

from dpsub.papers.bun.artefacts.grid import standing
from dpsub.reproduce.artefact import Artefact, Records, values_frame
from dpsub.reproduce.layout import Layout


class TableA(Artefact):
    """Every formula in its variants; `rigorous` is the exact value."""

    paper = "bun"
    name = "tableA"
    kind = "table"
    caption = (
        "Formulas of Bun et al. on a grid, in nats: as printed, as corrected, and the exact worst loss over all "
        "epsilon-DP mechanisms (rigorous), certified by a linear programme or equal to one."
    )
    experiments = ("bun_bounds",)
    keys = ("statement", "case", "epsilon")
    layout = Layout(panels=("statement",), stub=("case", "epsilon"), heads=("column",))

    def number_kind(self, column: str, variant: str) -> str:
        return "exact" if variant == "rigorous" else super().number_kind(column, variant)

    def values(self, records: Records) -> pd.DataFrame:
        rows = []
        for record in self.needed(records, "bun_bounds").to_dict("records"):
            if record["statement"].endswith("programme"):
                continue
            row = {"statement": record["statement"], "case": record["case"], "epsilon": record["epsilon"]}
            rows.append({**row, "column": record["side"], "variant": record["variant"], "value": record["bound"]})
        return values_frame(rows)


class _Standings(Artefact):
    """Numbers of a statement's cases, one line a statement."""

    paper = "bun"
    kind = "table"
    experiments = ("bun_bounds",)
    keys = ("statement",)
    layout = Layout(stub=("statement",), heads=("column",))

    def _lines(self, records: Records, columns: tuple[str, ...]) -> pd.DataFrame:
        frame = self.needed(records, "bun_bounds", variants=("stated", "consistent"))
        frame = frame[frame["side"] != "number"]
        rows = []
        for (statement, variant), part in frame.groupby(["statement", "variant"], sort=False):
            found = standing(part)
            shares = {"cases": found.cases, "right": found.right / found.cases, "tight": found.tight / found.cases,
                      "smallest_ratio": found.smallest, "largest_ratio": found.largest}  # fmt: skip
            rows += [{"statement": statement, "column": column, "variant": variant,
                      "value": shares[column], "note": found.worst} for column in columns]  # fmt: skip
        return values_frame(rows)


class TableB(_Standings):
    """How far a bound lies from the exact loss."""

    name = "tableB"
    caption = (
        "Bound over exact worst loss: smallest and largest ratio over all cases in which the loss is finite and above "
        "0. An upper bound below 1, or a lower one above 1, is no bound."
    )

    def values(self, records: Records) -> pd.DataFrame:
        return self._lines(records, ("cases", "smallest_ratio", "largest_ratio"))


class TableE(_Standings):
    """Which statements agree, are loose, or err."""

    name = "tableE"
    caption = (
        "Share of cases in which each statement is right, and in which it is tight (within 2e-6 nats of the exact "
        "loss). right = 1 and tight = 1: agrees; right = 1: holds, but is loose; right below 1: an erratum."
    )

    def values(self, records: Records) -> pd.DataFrame:
        return self._lines(records, ("right", "tight"))
