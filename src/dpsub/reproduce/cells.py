"""One row a cell of a table: the printed number, ours in every variant, and what came of the comparison."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from dpsub.reproduce.verdicts import VARIANTS, overall_by_cell

EXTRAS = ("standard_error", "lower", "upper")


def table_cells(
    keys: Sequence[str],
    printed: pd.DataFrame,
    values: pd.DataFrame,
    comparison: pd.DataFrame,
    formulas: pd.DataFrame | None = None,
    quoted: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """Return the cells of a table.

    Parameters
    ----------
    keys : sequence of str
        Its key columns.
    printed, values, comparison : DataFrame
        Printed numbers, our values, and their comparison.
    formulas, quoted : DataFrame, optional
        LaTeX, and numbers printed elsewhere, that stand where a printed number would: keys, `column`, `printed`.

    Returns
    -------
    DataFrame
        Columns: those of `keys` that occur, `column`, `printed`, then for each variant that has values `<variant>`,
        and `<variant>_standard_error`, `<variant>_lower`, `<variant>_upper` where any is given, then `verdict`,
        `erratum`, `note`. Cells stand in the order of `formulas`, `values`, then those that only the paper has.
    """
    place = [*keys, "column"]
    theirs = [frame for frame in (printed, quoted, formulas) if frame is not None and len(frame)]
    texts = pd.concat([pd.DataFrame(columns=[*place, "printed", "erratum"]), *theirs])
    texts = texts[[*place, "printed", "erratum"]].fillna("").drop_duplicates(place)
    first = [] if formulas is None else [formulas]
    cells = pd.concat([*first, values, texts]).reindex(columns=place).fillna("").drop_duplicates()
    cells = cells.merge(texts, "left", place).fillna("")
    for name in (name for name in VARIANTS if (values["variant"] == name).any()):
        numbers = values.loc[values["variant"] == name, [*place, "value", *EXTRAS]]
        given = [extra for extra in EXTRAS if numbers[extra].notna().any()]
        numbers = numbers[[*place, "value", *given]]
        names = {"value": name, **{extra: f"{name}_{extra}" for extra in given}}
        cells = cells.merge(numbers.rename(columns=names), "left", place)
    judged = overall_by_cell(comparison, place)
    cells["verdict"] = [judged.get(cell, "") for cell in cells[place].itertuples(index=False, name=None)]
    cells["erratum"] = cells.pop("erratum")  # behind the verdict
    notes: dict[tuple[str, ...], list[str]] = {}
    for frame in (values, comparison):
        for *cell, note in frame[[*place, "note"]].itertuples(index=False, name=None):
            notes.setdefault(tuple(cell), []).extend(str(note).split("; ") if pd.notna(note) else [])
    parts = (notes.get(cell, []) for cell in cells[place].itertuples(index=False, name=None))
    cells["note"] = ["; ".join(dict.fromkeys(filter(None, found))) for found in parts]
    return cells.drop(columns=[key for key in keys if (cells[key] == "").all()])


def variants_of(cells: pd.DataFrame) -> list[str]:
    """Return the variants that have a column in `cells`."""
    return [name for name in VARIANTS if name in cells.columns]
