"""The cells of a paper's tables, and the looking up of single numbers in them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd

from dpsub.errors import DataError
from dpsub.reproduce.artefact import Artefact, OutputDirs
from dpsub.reproduce.claims import MissingRecordsError
from dpsub.reproduce.layout import EXTRAS
from dpsub.reproduce.published import key_names, read_csv
from dpsub.reproduce.verdicts import FAILING, VARIANTS, Tally, tally

CellTables = Mapping[str, pd.DataFrame]
"""Cells by the name of their table, as `read_cells` returns them."""

NUMBERS = tuple(
    name for variant in VARIANTS for name in (variant, *(f"{variant}_{extra}" for extra in EXTRAS))
)
"""Columns of our own numbers: "stated", "stated_lower", ..."""
NOT_OF_THIS_RUN = "‡"
"""Stands behind a number that the run itself does not have."""


def read_cells(path: Path) -> pd.DataFrame:
    """Return the cells of a table as `build` wrote them, with floats for numbers."""
    frame = read_csv(
        path, "the report needs every table of the run, got no {path}; build that table first"
    )
    if not {"column", "printed", "verdict", "erratum"} <= set(frame.columns):
        columns = ", ".join(frame.columns)
        raise DataError(
            f"{path.name} must be a table of cells, got the columns {columns}; build it again"
        )
    return with_floats(frame)


def with_floats(cells: pd.DataFrame) -> pd.DataFrame:
    """Return cells with floats in the columns of our numbers, NaN for an empty text."""
    floats = {
        name: [float(text) if text else np.nan for text in cells[name]]
        for name in cells
        if name in NUMBERS
    }
    return cells.assign(**floats)


def without_stand_ins(artefact: Artefact, cells: pd.DataFrame) -> pd.DataFrame:
    """Return cells without the numbers of stand-in data, from which no conclusion is drawn."""
    rows = [{str(name): value for name, value in row.items()} for row in cells.to_dict("records")]
    masked: dict[str, pd.Series] = {}
    for variant in VARIANTS:
        if variant not in cells:
            continue
        # Per variant: one may be computed from Table 1 of the paper, another from stand-in data.
        is_stand_in = np.array([bool(artefact.stand_in(row, variant)) for row in rows])
        for name in (variant, *(f"{variant}_{extra}" for extra in EXTRAS)):
            if name in cells:
                masked[name] = cells[name].mask(is_stand_in)
    return cells.assign(**masked)


def tables_of(artefacts: Iterable[Artefact], dirs: OutputDirs) -> dict[str, pd.DataFrame]:
    """Return the cells of the tables and claims that a run has made of a paper.

    Numbers of stand-in data and tables of clock times are left out: no conclusion is drawn from
    them.
    """
    return {
        artefact.name: without_stand_ins(artefact, read_cells(dirs.files(artefact)["csv"]))
        for artefact in artefacts
        if artefact.kind != "figure" and not artefact.timed
    }


@dataclass(frozen=True)
class StatementCounts:
    """Numbers of statements of a paper: judged, failing, and failing ones with a corrected form."""

    judged: int
    failing: int
    correctable: int
    """Failing statements that have a corrected form."""
    corrected: int
    """Correctable statements that hold in their corrected form."""
    errata: list[str]


@dataclass
class LookUp:
    """Looks numbers up in the tables of one paper, and notes the cells from which they came."""

    tables: CellTables
    """Cells of the run."""
    kept: CellTables = field(default_factory=dict)
    """Cells of another run, where a number is looked up next; such a number is marked."""
    seen: dict[str, set[int]] = field(default_factory=dict)
    """Rows of each table of the run that were looked up."""
    errata: set[str] = field(default_factory=set)
    """Names of the errata of all cells that were looked up."""
    marks: set[str] = field(default_factory=set)
    """`NOT_OF_THIS_RUN` once a number was found among the cells that are kept."""
    evidence: list[pd.DataFrame] = field(default_factory=list)
    """Numbers that the report lists below a paragraph, as given to `show`."""

    def rows(self, table: str, column: str, **fields: str) -> pd.DataFrame:
        """Return the cells of one quantity with exactly these fields, in a frame that may be empty.

        A field given as "*" takes any value but none.
        """
        for tables, mark in self._places():
            cells = self._rows_of(tables, table, column, fields)
            if len(cells):
                self.marks.update(mark)
                break
        return cells

    def number(self, table: str, column: str, source: str, **fields: str) -> float:
        """Return the number of one cell from the column `source`: "stated", "consistent_lower",
        "printed"."""
        numbers = self._numbers(table, column, source, fields)
        if len(numbers) > 1:
            raise DataError(
                f"a number of a page must stand in one cell, got {len(numbers)} in {table}: "
                f"{column}, {source}, {fields}; give more fields"
            )
        return float(numbers[0])

    def least(self, table: str, column: str, source: str, **fields: str) -> float:
        """Return the smallest number of these cells."""
        return float(self._numbers(table, column, source, fields).min())

    def greatest(self, table: str, column: str, source: str, **fields: str) -> float:
        """Return the largest number of these cells."""
        return float(self._numbers(table, column, source, fields).max())

    def noted(self, table: str, column: str, pattern: str, which: int = 0, **fields: str) -> str:
        """Return the match of a pattern's group in the notes of these cells, the first one or the
        `which`-th after."""
        for tables, mark in self._places():
            notes = self._rows_of(tables, table, column, fields)["note"]
            matches = [match for note in notes for match in re.findall(pattern, str(note))]
            # a run of fewer variants has a shorter note
            if len(matches) > which:
                self.marks.update(mark)
                return str(matches[which])
        raise MissingRecordsError(f"no note in {table} matches {pattern!r}: {column}, {fields}")

    def agreement(self, table: str) -> Tally:
        """Return the comparison of the printed numbers of a table; MissingRecordsError where none
        is confirmed."""
        cells = self.tables.get(table)
        if cells is None:
            raise MissingRecordsError(f"this run lacks the table {table}")
        # Rows that were looked up are what is kept for pages without a run.
        self.seen.setdefault(table, set()).update(cells.index)
        counts = tally(cells["verdict"])
        if not counts.confirmed:
            raise MissingRecordsError(f"this run confirms no number of {table}")
        return counts

    def statements(self) -> StatementCounts:
        """Return the counts of statements of the paper that fail as printed, and that hold as
        corrected."""
        cells = self.rows("claims", "holds", claim="*")
        counts = tally(cells["verdict"])
        if not any(cells["verdict"]):
            raise MissingRecordsError("this run judges no statement")
        failing = cells[cells["verdict"].isin(FAILING)]
        # A run need not have the consistent variant.
        corrected = pd.Series(dtype=float)
        if "consistent" in failing.columns:
            corrected = failing["consistent"].dropna()
        return StatementCounts(
            judged=counts.judged,
            failing=counts.failing,
            correctable=len(corrected),
            corrected=int((corrected == 1).sum()),
            errata=in_order(name for names in failing["erratum"] for name in names.split()),
        )

    def show(self, *frames: pd.DataFrame) -> None:
        """Have the report list these numbers below the paragraph that is being written."""
        self.evidence.extend(frames)

    def _places(self) -> tuple[tuple[CellTables, str], ...]:
        """Places to look numbers up, in order, each with the mark of a number that is found
        there."""
        return (self.tables, ""), (self.kept, NOT_OF_THIS_RUN)

    def _rows_of(
        self, tables: CellTables, table: str, column: str, fields: Mapping[str, str]
    ) -> pd.DataFrame:
        cells = tables.get(table)
        if cells is None:
            return pd.DataFrame(columns=["column", "printed", "verdict", "erratum", "note"])
        keys = key_names(cells)
        chosen = cells["column"] == column
        for name in keys:
            wanted = fields.get(name, "")
            # A key that is not given must be empty: cells of finer tables do not match.
            chosen &= (cells[name] != "") if wanted == "*" else (cells[name] == wanted)
        # A field that the table does not have matches no row: a misspelt one must not match all.
        unknown = [name for name, wanted in fields.items() if name not in cells and wanted]
        rows = cells[chosen & (not unknown)]
        if tables is self.tables:
            self.seen.setdefault(table, set()).update(rows.index)
        self.errata.update(name for names in rows.get("erratum", ()) for name in names.split())
        return rows

    def _numbers(
        self, table: str, column: str, source: str, fields: Mapping[str, str]
    ) -> np.ndarray:
        for tables, mark in self._places():
            rows = self._rows_of(tables, table, column, fields)
            # A variant that the run lacks is a missing number, not an error.
            texts = rows[source] if source in rows else pd.Series(dtype=float)
            numbers = pd.to_numeric(texts, errors="coerce").dropna().to_numpy(float)
            if numbers.size:
                self.marks.update(mark)
                return numbers
        raise MissingRecordsError(
            f"there is no number in {table}: {column}, {source}, {dict(fields)}"
        )


def in_order(errata: Iterable[str]) -> list[str]:
    """Return names of errata, each once, BN2 before BN10."""
    # Shorter names first, so that numbers are in order without being parsed.
    return sorted(set(errata), key=lambda name: (len(name), name))
