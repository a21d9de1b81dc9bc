"""The verdict that each printed number is known to get, and what changed against it."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from dpsub import comparison
from dpsub.comparison import KEY, NOT_REAL

COLUMNS = (*KEY, "verdict")


def expected_changes(found: pd.DataFrame, expected: pd.DataFrame) -> list[dict[str, str]]:
    """Return the verdicts that differ from the expected ones.

    What could not be compared because a stand-in replaced the real data is accepted in place of any verdict.

    Parameters
    ----------
    found : DataFrame
        A comparison (`dpsub.comparison.COLUMNS`).
    expected : DataFrame
        Columns `COLUMNS`.

    Returns
    -------
    list of dict
        For each change the fields of `KEY`, `expected`, `found` ("" where a side has no such row) and `note`.
    """
    known = {tuple(row[name] for name in KEY): row["verdict"] for row in expected.to_dict("records")}
    changes: list[dict[str, str]] = []
    seen: set[tuple[str, ...]] = set()
    excused: set[tuple[str, ...]] = set()

    def change(key: tuple[str, ...], was: str, now: str, note: str) -> None:
        changes.append({**dict(zip(KEY, key, strict=True)), "expected": was, "found": now, "note": note})

    for row in found.to_dict("records"):
        key = tuple(row[name] for name in KEY)
        seen.add(key)
        if row["verdict"] == "not_compared" and str(row["note"]).startswith(NOT_REAL):
            excused.add(key[:-1])
        elif known.get(key) != row["verdict"]:
            change(key, known.get(key, ""), row["verdict"], row["note"])
    for key, verdict in known.items():
        if key not in seen and key[:-1] not in excused:
            change(key, verdict, "", "the comparison has no such row")
    return changes


def from_comparison(found: pd.DataFrame) -> pd.DataFrame:
    """Return the verdicts of a comparison as the expected ones."""
    return found[list(COLUMNS)].astype(str)


def read_expected(path: Path) -> pd.DataFrame:
    """Return the expected verdicts: columns `KEY` and `verdict`, as text.

    Raises
    ------
    DataError
        If the file is missing or has other columns.
    """
    return comparison.read_text(path, COLUMNS)


