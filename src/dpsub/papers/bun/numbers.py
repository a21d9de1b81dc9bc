"""Numbers of Bun et al.'s pages that take several cells of a run, for the placeholders
`numbers`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from dpsub.reproduce.claims import MissingRecordsError
from dpsub.reproduce.report.cells import LookUp

IS_BOUND = 1 - 1e-9
"""The ratio of a bound to the exact loss is at least 1, up to rounding."""
NOT_PRIVATE = (", public", ", at best")
"""Endings of the names of allocations that need public numbers, or whose sensitivity is known from
below only, so that nothing is promised."""
BOUNDS = {
    "T4.3": "Theorem 4.3 (randomised rounding)",
    "T7.2": "Theorem 7.2 (strata)",
    "T5.2": "Theorem 5.2 (clusters)",
}
"""The upper bounds that a survey designer would use."""
DESIGNS = {
    "simple random": "simple random sampling",
    "6 of 60 clusters": "simple random sampling of 6 of 60 clusters",
    "one cluster, PPS": "one cluster, drawn with probability proportional to size",
    "systematic, known order": "systematic sampling in a known order",
    "rounded rate, half up": "simple random sampling, size rounded half up",
    "rounded rate, randomised": "simple random sampling, size rounded at random",
    "strata, proportional, randomised": "strata, proportional allocation, rounded at random",
    "strata, proportional, public": "strata, proportional allocation from public sizes",
    "strata, Neyman, from the data": "strata, Neyman allocation computed from the data",
}
"""Short names of designs -> names for readers; other names need none."""


def random_sizes(cells: LookUp) -> dict[str, float]:
    """Return the upper bound of Theorem 3.1 over the exact worst-case loss, as printed and as
    corrected."""
    cell = {"statement": "T3.1 upper"}
    return {
        # Below 1 the printed bound is exceeded by some mechanism (erratum BN1).
        "printed": cells.number("tableB", "smallest_ratio", "stated", **cell),
        "corrected": cells.number("tableB", "smallest_ratio", "consistent", **cell),
        "corrected_most": cells.number("tableB", "largest_ratio", "consistent", **cell),
    }


def design_names(cells: LookUp) -> Mapping[str, str]:
    """Return the names of designs for readers, by their short names in the run."""
    return DESIGNS


def loose_bounds(cells: LookUp) -> list[tuple[str, float]]:
    """Return the largest ratio of each bound that holds to the exact loss, by statement."""
    loose = []
    for statement, name in BOUNDS.items():
        try:
            least, most = (
                cells.number("tableB", f"{end}_ratio", "stated", statement=statement)
                for end in ("smallest", "largest")
            )
        except MissingRecordsError:
            continue
        if least >= IS_BOUND:
            loose.append((name, most))
    if not loose:
        raise MissingRecordsError("this run has no bound that holds")
    return loose


def designs(cells: LookUp) -> dict[str, Any]:
    """Return the designs that can lose more than the largest epsilon, the worst first, and those
    that are proved to lose at most half of it."""
    advice = cells.rows("advice", "lower", topic="advice", epsilon="*", design="*")
    if advice.empty:
        raise MissingRecordsError("this run has no advice")
    # The largest epsilon, at which amplification has least to give.
    epsilon = max(advice["epsilon"], key=float)
    lower, upper = (
        cells.rows("advice", end, topic="advice", epsilon=epsilon, design="*").set_index("design")[
            "rigorous"
        ]
        for end in ("lower", "upper")
    )
    # A lower bound above epsilon is certain, and so is an upper bound below epsilon / 2: neither
    # needs the exact loss.
    worse = lower[lower > float(epsilon)].sort_values(ascending=False)
    better = upper.index[upper <= float(epsilon) / 2]
    return {
        "epsilon": epsilon,
        "worse": [(DESIGNS.get(str(name), str(name)), loss) for name, loss in worse.items()],
        "better": [DESIGNS.get(str(name), str(name)) for name in better],
    }


def allocations(cells: LookUp) -> list[dict[str, Any]]:
    """Return for each epsilon the allocation with the smallest variance, and the best one that
    needs no public allocation."""
    menu = cells.rows("advice", "total_at_target", topic="menu", epsilon="*", design="*")
    compared = []
    for epsilon in sorted(set(menu.get("epsilon", ())), key=float):
        totals = menu[menu["epsilon"] == epsilon].set_index("design")["rigorous"].dropna()
        if totals.empty:
            continue
        best = totals.idxmin()
        # Allocations that need public numbers may win, but promise nothing if the numbers are
        # confidential (erratum BN12).
        is_private = [not str(name).endswith(NOT_PRIVATE) for name in totals.index]
        private: pd.Series = totals[is_private]
        compared.append(
            {
                "epsilon": epsilon,
                "best": best,
                "variance": totals[best],
                "private": private.idxmin() if len(private) else best,
                "times": private.min() / totals[best],
            }
        )
    if not compared:
        raise MissingRecordsError("this run compares no allocations")
    return compared


def exceeded_bound(cells: LookUp) -> dict[str, tuple[float, float]]:
    """Return the upper bound of Theorem 3.1 over the exact loss, as printed and as corrected, if
    the printed one is exceeded."""
    ratios = {}
    for end in ("smallest", "largest"):
        printed, corrected = (
            cells.number("tableB", f"{end}_ratio", variant, statement="T3.1 upper")
            for variant in ("stated", "consistent")
        )
        ratios[f"{end} ratio"] = (printed, corrected)
    if ratios["smallest ratio"][0] >= IS_BOUND:
        raise MissingRecordsError("the printed bound holds in this run")
    return ratios


def bound_for_clusters(cells: LookUp) -> float:
    """Return the largest ratio of the bound of Theorem 5.2 to the exact loss, if it holds."""
    least, most = (
        cells.number("tableB", f"{end}_ratio", "stated", statement="T5.2")
        for end in ("smallest", "largest")
    )
    if least < IS_BOUND:
        raise MissingRecordsError("the bound for clusters does not hold in this run")
    return most


def right_statements(cells: LookUp) -> dict[str, int]:
    """Return the number of statements that are right in every case, as printed and as corrected,
    and of corrected ones that are exact in every case."""
    right, tight = (cells.rows("tableE", what, statement="*") for what in ("right", "tight"))
    if not {"stated", "consistent"} <= {*right}:
        raise MissingRecordsError("this run judges no statement case by case")
    return {
        "of": len(right),
        "printed": int((right["stated"] == 1).sum()),
        "corrected": int((right["consistent"] == 1).sum()),
        "tight": int((tight["consistent"] == 1).sum()),
    }


def limits_on_tests(cells: LookUp) -> dict[str, float]:
    """Return the number of cases in which the stated limit on the advantage of a test is above 1,
    and the largest ratio of the corrected limit to the largest advantage."""
    limits = cells.rows("tableC", "limit", difference="*", epsilon="*")
    if limits.empty:
        raise MissingRecordsError("this run tells no sample sizes apart")
    times = limits["consistent"] / limits["rigorous"]
    if times.min() < IS_BOUND:
        raise MissingRecordsError("the corrected limit fails in this run")
    return {
        "cases": len(limits),
        "empty": int((limits["stated"] > 1).sum()),
        "times": times.max(),
    }
