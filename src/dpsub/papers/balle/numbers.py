"""Numbers of Balle et al.'s pages that take several cells of a run: what placeholders `numbers` and
`derived` ask for."""

from __future__ import annotations

from typing import Any

import pandas as pd

from dpsub.reproduce.claims import MissingRecordsError
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


def attained_bounds(cells: LookUp) -> dict[str, Any]:
    """Return the theorems whose bound some mechanism attains at a positive epsilon, and of the
    others the share of it that the best mechanism tried has."""
    anything = dict.fromkeys(("theorem", "sampler", "base_relation", "relation"), "*")
    shares = cells.rows("table1", "attained_at_positive_epsilon", **anything)
    if shares.empty or "rigorous" not in shares:
        raise MissingRecordsError("this run has no bound that is attained")
    # At a positive epsilon: Theorem 14 is attained at epsilon = 0 alone.
    is_attained = shares["rigorous"] >= ATTAINED
    if not is_attained.any():
        raise MissingRecordsError("no bound is attained in this run")
    # A share below 1 says that no mechanism tried reaches the bound, not that none does: the
    # optimum table does that.
    short = shares[~is_attained]
    return {
        "attained": list(shares.loc[is_attained, "theorem"]),
        "short": list(zip(short["theorem"], short["rigorous"], strict=True)),
    }


def tightness_by_design(cells: LookUp) -> dict[str, Any]:
    """Return the theorems whose bound is the largest loss everywhere, and of the others the
    smallest ratio of loss to bound, smallest first."""
    # The linear programme is over all mechanisms with the declared guarantee: a ratio below 1 is
    # looseness of the bound for that design.
    ratios = smallest_ratios(cells)
    if ratios.empty:
        raise MissingRecordsError("this run has no optima of designs")
    loose = ratios[ratios < ATTAINED].sort_values()
    return {
        "tight": list(ratios.index[ratios >= ATTAINED]),
        "loose": list(loose.items()),
    }


def poisson_substitution(cells: LookUp) -> dict[str, Any]:
    """Return how far the two bounds of Poisson sampling under substitution are above the largest
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
    """Return by how much, in percent, Theorem 14 is above the optimum of the linear program."""
    where = dict.fromkeys(("n", "epsilon0", "delta0", "epsilon", "rate"), "*")
    ratio = cells.least("optimum", "ratio_to_bound", "rigorous", theorem="Theorem 14", **where)
    return 100 * (1 / ratio - 1)
