"""One row a cell of a table: the printed number, ours in every variant, and what came of the comparison."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from dpsub.reproduce import published as printed_numbers
from dpsub.reproduce.verdicts import VARIANTS

EXTRAS = ("standard_error", "lower", "upper")
AS_DONE = "_as_done"


def table_cells(
    published: pd.DataFrame,
    values: pd.DataFrame,
    comparison: pd.DataFrame,
    formulas: Mapping[tuple[str, str], str] | None = None,
) -> pd.DataFrame:
    """Return the cells of a table.

    Parameters
    ----------
    published, values, comparison : DataFrame
        Printed numbers, our values, and their comparison.
    formulas : mapping, optional
        LaTeX that stands where a printed number would, by (row, column).

    Returns
    -------
    DataFrame
        Columns: the fields of the row keys, `column`, `printed`, then for each variant that has values `<variant>`,
        and `<variant>_standard_error`, `<variant>_lower`, `<variant>_upper` where any is given, then `verdict`,
        `erratum`, `note`. Cells stand in the order of `values`, then those that only the paper has.
    """
    formulas = formulas or {}
    printed = {(p["row"], p["column"]): p for p in published.to_dict("records")}
    ours: dict[tuple[str, str], dict[str, dict]] = {}
    for value in values.to_dict("records"):
        ours.setdefault((value["row"], value["column"]), {})[value["variant"]] = value
    judged: dict[tuple[str, str], list[dict]] = {}
    for judgement in comparison.to_dict("records"):
        judged.setdefault((judgement["row"], judgement["column"]), []).append(judgement)
    variants = [name for name in VARIANTS if name in set(values["variant"])]
    rows = []
    for row, column in dict.fromkeys([*formulas, *ours, *printed]):
        found = ours.get((row, column), {})
        cell: dict[str, object] = {**printed_numbers.parse_row_key(row), "column": column}
        cell["printed"] = printed.get((row, column), {}).get("printed", formulas.get((row, column), ""))
        for variant in variants:
            value = found.get(variant, {})
            cell[variant] = value.get("value", np.nan)
            cell |= {f"{variant}_{extra}": value.get(extra, np.nan) for extra in EXTRAS}
        judgements = judged.get((row, column), [])
        cell["verdict"] = overall(judgements)
        cell["erratum"] = printed.get((row, column), {}).get("erratum", "")
        notes = [value["note"] for value in found.values()] + [judgement["note"] for judgement in judgements]
        parts = [part for note in notes if isinstance(note, str) for part in note.split("; ")]
        cell["note"] = "; ".join(dict.fromkeys(part for part in parts if part))
        rows.append(cell)
    fields = [name for name in dict.fromkeys(name for cell in rows for name in cell) if name not in _fixed(variants)]
    frame = pd.DataFrame(rows, columns=[*fields, *_fixed(variants)])
    frame[fields] = frame[fields].fillna("")
    empty = [f"{variant}_{extra}" for variant in variants for extra in EXTRAS]
    return frame.drop(columns=[name for name in empty if frame[name].isna().all()])


def overall(judgements: list[dict]) -> str:
    """Return the verdict of a cell from those of its variants: `stated`, or as done where only that agrees."""
    by_variant = {judgement["variant"]: judgement["verdict"] for judgement in judgements}
    if by_variant.get("as_done", "").endswith(AS_DONE):
        return by_variant["as_done"]
    return by_variant.get("stated") or by_variant.get("as_done", "")


def key_fields(cells: pd.DataFrame) -> list[str]:
    """Return the names of the fields of the row keys in `cells`."""
    return list(cells.columns[: cells.columns.get_loc("column")])


def variants_of(cells: pd.DataFrame) -> list[str]:
    """Return the variants that have a column in `cells`."""
    return [name for name in VARIANTS if name in cells.columns]


def _fixed(variants: list[str]) -> list[str]:
    numbers = [name for variant in variants for name in (variant, *(f"{variant}_{extra}" for extra in EXTRAS))]
    return ["column", "printed", *numbers, "verdict", "erratum", "note"]
