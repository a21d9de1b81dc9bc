"""How tight each bound is for the class of all (epsilon0, delta0)-DP mechanisms on one finite design."""

from __future__ import annotations

import math

import pandas as pd

from dpsub.reproduce.artefact import Artefact, Records, values_frame
from dpsub.reproduce.layout import Layout

ROUNDING = 1e-14  # a bound below this is 0


class Optimum(Artefact):
    """Bound, largest loss of any mechanism by linear programming, and their ratio."""

    paper = "balle"
    name = "optimum"
    kind = "table"
    caption = (
        "Bounds for all (epsilon0, delta0)-DP base mechanisms on designs of n = 4 records next to the largest loss of "
        "any such mechanism, a linear program in one event whose dual gives the same value; the ratio is 1 where the "
        "bound is tight for the design. Evaluated at base epsilon 0, epsilon0/2 and epsilon0. Empty: both are 0."
    )
    experiments = ("balle_optimum",)
    keys = ("theorem", "n", "rate", "epsilon0", "delta0", "epsilon", "m")
    layout = Layout(panels=("epsilon0", "delta0"), stub=("theorem", "n", "rate", "m"), heads=("epsilon", "column"))

    def values(self, records: Records) -> pd.DataFrame:
        rows = []
        for record in self.needed(records, "balle_optimum").to_dict("records"):
            poisson = record["size"] < 1
            row = {
                "theorem": record["theorem"], "n": record["n"], "rate" if poisson else "m": record["size"],
                "epsilon0": record["epsilon0"], "delta0": record["delta0"],
                "epsilon": record["share"] * record["epsilon0"],
            }  # fmt: skip
            zero = record["bound"] <= ROUNDING
            numbers = {
                "bound": 0.0 if zero else record["bound"],
                "optimum": 0.0 if zero else record["optimum"],
                "ratio_to_bound": math.nan if zero else record["optimum"] / record["bound"],
            }
            note = f"worst direction: {record['direction']}, duality gap {abs(record['dual'] - record['optimum']):.0e}"
            rows += [
                {**row, "column": column, "variant": record["variant"], "value": value, "note": note}
                for column, value in numbers.items()
            ]
        return values_frame(rows)
