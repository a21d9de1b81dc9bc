"""Numbers of the page that take several cells of a run."""

from __future__ import annotations

from typing import Any

import pandas as pd

from dpsub.papers.lebeda.experiments import CASES
from dpsub.reproduce.claims import MissingRecordsError
from dpsub.reproduce.report.cells import LookUp


def column(cells: LookUp, table: str, name: str, **where: str) -> pd.DataFrame:
    """Return the rows of one quantity as stated."""
    rows = cells.rows(table, name, **where)
    if "stated" not in rows or rows.empty:
        raise MissingRecordsError(f"this run has no {name} of {table}")
    return rows.assign(stated=rows["stated"].astype(float))


def samplers(cells: LookUp) -> list[dict[str, Any]]:
    """Return for each noise multiplier our two bounds on epsilon, by sampler and adjacency."""
    ends: dict[str, list[tuple[float, float]]] = {}
    for sampler, adjacency in CASES:
        where = {"noise": "*", "sampler": sampler, "adjacency": adjacency}
        lower = column(cells, "samplers", "epsilon_lower", **where)
        upper = column(cells, "samplers", "epsilon_upper", **where)
        for noise, low, high in zip(lower["noise"], lower["stated"], upper["stated"], strict=True):
            ends.setdefault(noise, []).append((low, high))
    return [{"noise": f"{float(noise):g}", "ends": both} for noise, both in ends.items()]


def conjectured(cells: LookUp) -> dict[str, tuple[float, float]]:
    """Return epsilon of a removed record and of an attack, over several steps, for the report."""
    where = {"noise": "*", "steps": "*"}
    removed = column(cells, "removed", "removed_upper", **where)
    attack = column(cells, "removed", "epsilon_lower", **where)
    return {
        f"noise multiplier {float(noise):g}, {steps} steps": (of_removed, attained)
        for noise, steps, of_removed, attained in zip(
            removed["noise"], removed["steps"], removed["stated"], attack["stated"], strict=True
        )
        if int(steps) > 1
    }
