"""Numbers of the page that take several cells of a run."""

from __future__ import annotations

from typing import Any

from dpsub.papers.birrell.figures import NAMES
from dpsub.reproduce.claims import MissingRecordsError
from dpsub.reproduce.report.cells import LookUp

DELTA = "1e-05"


def theorems(cells: LookUp) -> list[dict[str, Any]]:
    """Return for each theorem its epsilon at delta = 1e-5 and our two ends."""
    found = []
    for name, words in NAMES.items():
        where = {"theorem": name, "sampler": "*", "adjacency": "*", "delta": DELTA}
        values = {}
        for column in ("paper", "lower", "upper"):
            rows = cells.rows("epsilon", f"epsilon_{column}", **where)
            if "stated" in rows and len(rows):
                values[column] = float(rows["stated"].iloc[0])
        if len(values) == 3:
            found.append({"theorem": name, "words": words, **values})
    if not found:
        raise MissingRecordsError("this run has no epsilon of the training")
    return found


def with_replacement(cells: LookUp) -> dict[str, Any]:
    """Return the row of draws with replacement."""
    for row in theorems(cells):
        if row["theorem"] == "3.6":
            return {**row, "times": row["paper"] / row["upper"]}
    raise MissingRecordsError("this run has no draws with replacement")


def shown(cells: LookUp) -> dict[str, tuple[float, float]]:
    """Return the paper's epsilon and the attained one of each theorem, for the report."""
    return {row["words"]: (row["paper"], row["lower"]) for row in theorems(cells)}
