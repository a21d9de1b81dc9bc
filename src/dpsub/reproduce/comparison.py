"""The comparison of printed numbers with ours: one row a printed number and variant, each with its verdict."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dpsub.errors import ArgumentError, DataError
from dpsub.reproduce import published as printed_numbers
from dpsub.reproduce import verdicts

COLUMNS = (
    "paper", "artefact", "row", "column", "printed", "kind", "variant", "value", "lower", "upper", "verdict", "erratum",
    "note",
)  # fmt: skip
KEY = ("paper", "artefact", "row", "column", "variant")
VALUE_COLUMNS = ("row", "column", "variant", "value", "standard_error", "replicates", "lower", "upper", "note")
NOT_REAL = "not the real data"  # begins the note of what is not compared because a stand-in was used
TIMINGS = "clock times are in the run's folder of timings"
REDUCED = "no value in this run, which may be of reduced size"
_NUMBERS = ("value", "lower", "upper")


@dataclass
class _Cell:
    """One printed number in one variant on its way to a verdict."""

    printed: Mapping[str, Any]
    variant: str
    value: float = math.nan
    lower: float = math.nan
    upper: float = math.nan
    note: str = ""
    verdict: str = ""
    agrees: bool | None = None
    p_value: float = math.nan

    def as_row(self) -> dict[str, object]:
        notes = [self.printed["note"], self.note]
        return {
            **{name: self.printed[name] for name in ("paper", "artefact", "row", "column", "printed", "kind")},
            "variant": self.variant, "value": self.value, "lower": self.lower, "upper": self.upper,
            "verdict": self.verdict, "erratum": self.printed["erratum"],
            "note": "; ".join(note for note in (notes[::-1] if self.verdict == "not_compared" else notes) if note),
        }  # fmt: skip


def compare(published: pd.DataFrame, values: pd.DataFrame, data_labels: Collection[str] = ()) -> pd.DataFrame:
    """Compare the printed numbers of one artefact with ours.

    Rules (design, section 6): an exact number must round into the printed one's half-unit interval; a Monte Carlo
    number, or one on real data, must lie within both standard errors and the rounding of it, judged by Holm's procedure
    at 1 % over the artefact; an extreme must lie in the interval that our row gives from the exact law; a claim must
    have the value 1. `stated` and `as_done` are judged, other variants are shown.

    Parameters
    ----------
    published : DataFrame
        As `dpsub.reproduce.published.load` returns it.
    values : DataFrame
        Columns `VALUE_COLUMNS`, at most one row for each (row, column, variant). A row without value says in its note
        why there is none. Rows that the paper does not print are ignored.
    data_labels : collection of str
        Labels of the data behind `values`; empty where all data are simulated. Numbers on real data are compared only
        if every label is "real".

    Returns
    -------
    DataFrame
        Columns `COLUMNS`, in the order of `published`, variants in the order of `verdicts.VARIANTS`.

    Raises
    ------
    DataError
        If the values lack columns, come twice, or name an unknown variant.
    """
    _check(values)
    if isinstance(data_labels, str):
        raise ArgumentError(f"data_labels must be a list of labels, got the text {data_labels!r}; put it in a list")
    stand_in = ", ".join(sorted(label for label in data_labels if label and label != "real"))
    ours = {(value["row"], value["column"], value["variant"]): value for value in _rows(values)}
    cells: list[list[_Cell]] = []
    for printed in _rows(published):
        keys = [(printed["row"], printed["column"], variant) for variant in verdicts.VARIANTS]
        group = [_examine(printed, ours[key], stand_in) for key in keys if key in ours]
        if not any(cell.variant in verdicts.JUDGED for cell in group):
            group.insert(0, _without_value(printed))
        cells.append(group)
    flat = [cell for group in cells for cell in group]
    for variant in verdicts.JUDGED:
        family = [cell for cell in flat if cell.variant == variant and not math.isnan(cell.p_value)]
        for cell, rejected in zip(family, verdicts.holm([cell.p_value for cell in family]), strict=True):
            cell.agrees = not rejected
    for group in cells:
        stated = any(cell.variant == "stated" and bool(cell.agrees) for cell in group)
        for cell in group:
            if cell.agrees is not None:
                cell.verdict = verdicts.word(cell.printed["kind"], cell.variant, cell.agrees, stated)
    return pd.DataFrame([cell.as_row() for cell in flat], columns=list(COLUMNS))


def _check(values: pd.DataFrame) -> None:
    missing = [name for name in VALUE_COLUMNS if name not in values.columns]
    if missing:
        raise DataError(f"values must have the columns {', '.join(VALUE_COLUMNS)}, got none named {', '.join(missing)}")
    for variant in set(values["variant"]) - set(verdicts.VARIANTS):
        raise DataError(f"a variant must be one of {', '.join(verdicts.VARIANTS)}, got {variant!r}")
    twice = values[values.duplicated(["row", "column", "variant"])]
    if len(twice):
        row, column, variant = twice.iloc[0][["row", "column", "variant"]]
        raise DataError(f"each value must come once, got {row!r}, {column!r}, {variant!r} twice; remove one")


def _without_value(printed: Mapping[str, Any]) -> _Cell:
    kind = printed["kind"]
    cell = _Cell(printed, "stated")
    if kind in verdicts.UNJUDGED:
        cell.verdict = verdicts.UNJUDGED[kind]
        if kind == "timing":
            cell.note = TIMINGS
        if kind == "setting":
            cell.value = float(_number(printed).value)
    else:
        cell.verdict, cell.note = "not_compared", REDUCED
    return cell


def _examine(printed: Mapping[str, Any], value: Mapping[str, Any], stand_in: str) -> _Cell:
    """Return a cell with all of its verdict that does not depend on other cells."""
    kind, variant = printed["kind"], value["variant"]
    note = "" if pd.isna(value["note"]) else str(value["note"])
    if kind == "timing":
        return _Cell(printed, variant, note=note or TIMINGS, verdict="reported")
    cell = _Cell(printed, variant, float(value["value"]), float(value["lower"]), float(value["upper"]), note)
    if kind == "real_data" and stand_in:
        cell.note = "; ".join(text for text in (f"{NOT_REAL} but {stand_in}", note) if text)
    if kind == "structure":
        cell.verdict = "structure_only"
    elif math.isnan(cell.value):
        cell.verdict, cell.note = "not_compared", cell.note or REDUCED
    elif kind == "setting":
        _use(cell)
    elif kind in ("monte_carlo", "real_data"):
        _weigh(cell, float(value["standard_error"]), float(value["replicates"]))
    elif variant not in verdicts.JUDGED:
        cell.verdict = "shown"
    elif kind == "exact":
        zero = printed["spread"]
        cell.agrees = verdicts.rounds_into(cell.value, _number(printed), 0.0 if math.isnan(zero) else zero)
    elif kind == "extreme":
        cell.agrees = cell.lower <= float(_number(printed).value) <= cell.upper
    else:
        cell.agrees = cell.value == 1
    return cell


def _use(cell: _Cell) -> None:
    cell.verdict = "used"
    if not verdicts.rounds_into(cell.value, _number(cell.printed)):
        cell.verdict, cell.note = "not_compared", f"this run uses {cell.value:g}"


def _weigh(cell: _Cell, standard_error: float, replicates: float) -> None:
    """Give a Monte Carlo cell its interval and, where it is judged, its p-value."""
    column = cell.printed["column"]
    if math.isnan(standard_error) and (column == "sd" or column.endswith("_sd")) and replicates >= 2:
        standard_error = verdicts.spread_error(cell.value, replicates)
    if math.isnan(cell.lower) and math.isnan(cell.upper):
        cell.lower, cell.upper = cell.value - 1.96 * standard_error, cell.value + 1.96 * standard_error
    if cell.variant not in verdicts.JUDGED:
        cell.verdict = "shown"
    elif cell.note.startswith(NOT_REAL):
        cell.verdict = "not_compared"
    elif math.isnan(standard_error):
        cell.verdict, cell.note = "not_compared", "no standard error: this run has too few replicates"
    else:
        theirs = cell.printed["replicates"]
        error = verdicts.paper_error(
            standard_error, replicates, 1.0 if math.isnan(theirs) else theirs, cell.printed["spread"]
        )
        z, cell.p_value = verdicts.two_sided_p(cell.value, _number(cell.printed), standard_error, error)
        if z > 0:
            cell.note = "; ".join(note for note in (cell.note, f"z = {z:.2g}") if note)


def _number(printed: Mapping[str, Any]) -> printed_numbers.Printed:
    return printed_numbers.parse_printed(printed["printed"])


def _rows(frame: pd.DataFrame) -> list[dict[str, Any]]:
    return [{str(name): value for name, value in row.items()} for row in frame.to_dict("records")]


def read(path: Path) -> pd.DataFrame:
    """Return a comparison written by `write`.

    Raises
    ------
    DataError
        If the file is missing or has other columns.
    """
    frame = read_text(path, COLUMNS)
    return frame.assign(**{name: [float(text) if text else np.nan for text in frame[name]] for name in _NUMBERS})


def write(frame: pd.DataFrame, path: Path) -> None:
    """Write a comparison, or expected verdicts, as CSV with shortest round-trip floats."""
    path.parent.mkdir(parents=True, exist_ok=True)
    frame.to_csv(path, index=False, lineterminator="\n")


def read_text(path: Path, columns: tuple[str, ...]) -> pd.DataFrame:
    """Return a CSV as text after a check of its columns."""
    try:
        frame = pd.read_csv(path, dtype=str, keep_default_na=False)
    except FileNotFoundError:
        raise DataError(f"verdicts must be in a file, got no {path}; run the comparison first") from None
    except (pd.errors.ParserError, pd.errors.EmptyDataError) as error:
        raise DataError(f"{path.name} must be a CSV file, got {error}; make it again") from None
    if tuple(frame.columns) != columns:
        raise DataError(f"{path.name} must have the columns {', '.join(columns)}, got {', '.join(frame.columns)}")
    return frame
