"""Numbers of Balle et al.'s pages that take several cells of a run, for the placeholders `numbers`
and `derived`."""

from __future__ import annotations

from typing import Any

import pandas as pd

from dpsub.papers.balle.tables import RELATED
from dpsub.reproduce.claims import MissingRecordsError
from dpsub.reproduce.labels import display, sampler_label
from dpsub.reproduce.report.cells import LookUp

TABLE1 = {"B016": "8", "B018": "9", "B020": "10", "B022": "11", "B024": "14"}
"""Statements that the bounds of Table 1 hold -> their theorems."""
ATTAINED = 1 - 1e-6
"""A ratio from here on is 1 up to the tolerance of the linear program."""


def bounds_of_table_1(cells: LookUp) -> dict[str, list[str]]:
    """Return the theorems of Table 1 that no enumerated mechanism exceeds, and those that one
    does."""
    theorems: dict[str, list[str]] = {"holding": [], "exceeded": []}
    for claim, theorem in TABLE1.items():
        try:
            # As stated: losses of enumerated mechanisms against the printed bound.
            holds = cells.number("claims", "holds", "stated", claim=claim)
        except MissingRecordsError:
            continue
        theorems["holding" if holds == 1 else "exceeded"].append(theorem)
    if not any(theorems.values()):
        raise MissingRecordsError("this run judges no bound of Table 1")
    return theorems


def tightness(cells: LookUp) -> list[dict[str, Any]]:
    """Return for each bound the largest share that an enumerated mechanism attains at a positive
    epsilon, and the smallest share that the best of all mechanisms attains at any point."""
    anything = dict.fromkeys(RELATED, "*")
    shares = cells.rows("table1", "attained_at_positive_epsilon", **anything)
    optima = smallest_ratios(cells)
    if "rigorous" not in shares or optima.empty:
        raise MissingRecordsError("this run has no bound that is compared with the largest loss")
    return [
        {
            "bound": display("theorem", row["theorem"], plain=True),
            "sampler": sampler_label(row["sampler"]),
            "relation": display("relation", row["relation"], plain=True),
            # At a positive epsilon: Theorem 14 is attained at epsilon = 0 alone.
            "attained": up_to_tolerance(row["rigorous"]),
            "optimum": up_to_tolerance(optima[row["theorem"]]),
        }
        for row in shares.to_dict("records")
        if row["theorem"] in optima
    ]


def up_to_tolerance(share: float) -> float:
    """Return a share that is 1 up to the tolerance of the linear program as 1."""
    return 1.0 if share >= ATTAINED else share


def poisson_substitution(cells: LookUp) -> dict[str, Any]:
    """Return the excess of the two bounds of Poisson sampling under substitution over the largest
    loss."""
    ratios = smallest_ratios(cells)
    theorem_14 = ratios.get("Theorem 14", float("nan"))
    by_size = ratios.get("Theorem 2 given the size", float("nan"))
    # A NaN of a theorem that the run left out ends here as well.
    if not by_size > theorem_14:
        raise MissingRecordsError("this run does not show which of the two bounds is smaller")
    return {
        "is_tight": by_size >= ATTAINED,
        "by_size": 1 / by_size,
        "theorem_14": 1 / theorem_14,
    }


def loosest_bound(cells: LookUp) -> dict[str, Any]:
    """Return the bound of Table 1 that lies highest above the largest loss, and the loss over the
    bound of all of them."""
    names = [f"Theorem {theorem}" for theorem in TABLE1.values()]
    ratios = smallest_ratios(cells)
    printed = ratios[ratios.index.isin(names)]
    if not (printed < ATTAINED).any():
        raise MissingRecordsError("this run has no loose bound")
    return {
        "theorem": str(printed.idxmin()),
        "times": 1 / printed.min(),
        "shown": {str(name): (1.0, float(ratio)) for name, ratio in printed.items()},
    }


def smallest_ratios(cells: LookUp) -> pd.Series:
    """Return the smallest optimum over bound of each theorem, empty if a run has none."""
    where = dict.fromkeys(("theorem", "n", "epsilon0", "delta0", "epsilon"), "*")
    optima = [
        # Rows of Poisson sampling have a rate, those of the other samplers a size m.
        cells.rows("optimum", "ratio_to_bound", **where, **{size: "*"})
        for size in ("rate", "m")
    ]
    known = [part for part in optima if "rigorous" in part]
    if not known:
        return pd.Series(dtype=float)
    return pd.concat(known).groupby("theorem")["rigorous"].min().dropna()


def theorem_14_above_optimum(cells: LookUp) -> float:
    """Return the excess in percent of Theorem 14 over the optimum of the linear program."""
    where = dict.fromkeys(("n", "epsilon0", "delta0", "epsilon", "rate"), "*")
    ratio = cells.least("optimum", "ratio_to_bound", "rigorous", theorem="Theorem 14", **where)
    return 100 * (1 / ratio - 1)
