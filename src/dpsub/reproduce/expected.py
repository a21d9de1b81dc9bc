"""The verdict that each printed number is known to get, and what changed against it."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from dpsub.errors import DataError
from dpsub.reproduce import comparison
from dpsub.reproduce.comparison import KEY, NOT_REAL

COLUMNS = (*KEY, "verdict")


def expected_changes(found: pd.DataFrame, expected: pd.DataFrame) -> list[dict[str, str]]:
    """Return the verdicts that differ from the expected ones.

    What could not be compared because a stand-in replaced the real data is accepted in place of any verdict.

    Parameters
    ----------
    found : DataFrame
        A comparison (`dpsub.reproduce.comparison.COLUMNS`).
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


def from_comparison(found: pd.DataFrame, present: pd.DataFrame) -> pd.DataFrame:
    """Return the verdicts of a comparison as the expected ones.

    Numbers that a stand-in kept from being compared have none: some data sets cannot be obtained by everybody.

    Parameters
    ----------
    found : DataFrame
        A comparison (`dpsub.reproduce.comparison.COLUMNS`).
    present : DataFrame
        The verdicts expected so far, columns `COLUMNS`.

    Raises
    ------
    DataError
        If a stand-in replaced data on which a number was judged before: it would never be judged again.
    """
    excused = (found["verdict"] == "not_compared") & found["note"].str.startswith(NOT_REAL)
    judged = set(present[list(KEY[:-1])].itertuples(index=False, name=None))
    lost = sum(key in judged for key in found.loc[excused, list(KEY[:-1])].itertuples(index=False, name=None))
    if lost:
        raise DataError(
            f"expected verdicts must come from a run on the real data, got {lost} numbers not compared; "
            "provide the data and run again"
        )
    return found.loc[~excused, list(COLUMNS)].astype(str)


def changes_on_acceptance(accepted: pd.DataFrame, present: pd.DataFrame) -> int:
    """Return how many of the verdicts expected so far new ones change, add or drop."""
    old = {tuple(row[:-1]): row[-1] for row in present.itertuples(index=False, name=None)}
    new = {tuple(row[:-1]): row[-1] for row in accepted.itertuples(index=False, name=None)}
    return sum(old.get(key) != new.get(key) for key in old.keys() | new.keys())


def as_text(changes: list[dict[str, str]], compared: int) -> str:
    """Return changes as a table in plain text, one line each, under a line that counts them."""
    if not changes:
        return f"all {compared} verdicts are as expected"
    columns = ("paper", "artefact", "row", "column", "variant", "expected", "found", "note")
    lines = [columns, *(tuple(change[name] or "-" for name in columns) for change in changes)]
    widths = [max(len(line[position]) for line in lines) for position in range(len(columns))]
    table = ["  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip() for line in lines]
    head = f"{len(changes)} verdicts changed ({compared} compared); if they are right, run accept_verdicts.py"
    return "\n".join([head, *table])


def read_expected(path: Path) -> pd.DataFrame:
    """Return the expected verdicts: columns `KEY` and `verdict`, as text.

    Raises
    ------
    DataError
        If the file is missing or has other columns.
    """
    return comparison.read_text(path, COLUMNS)


