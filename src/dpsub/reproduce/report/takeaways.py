"""What a user should take from a paper: sentences whose numbers are looked up in the tables of the
run."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from dpsub.errors import DataError
from dpsub.reproduce.artefact import Artefact, OutputDirs
from dpsub.reproduce.labels import in_symbols
from dpsub.reproduce.layout import EXTRAS
from dpsub.reproduce.papers import PACKAGE, Paper
from dpsub.reproduce.published import key_names, read_csv
from dpsub.reproduce.report.findings import Headline
from dpsub.reproduce.verdicts import FAILING, VARIANTS, tally

NUMBERS = {
    name for variant in VARIANTS for name in (variant, *(f"{variant}_{extra}" for extra in EXTRAS))
}


def read_cells(path: Path) -> pd.DataFrame:
    """Return the cells of a table as `build` wrote them; texts stay texts, numbers become
    floats."""
    frame = read_csv(
        path, "the report needs every table of the run, got no {path}; build that table first"
    )
    if not {"column", "printed", "verdict", "erratum"} <= set(frame.columns):
        have = ", ".join(frame.columns)
        raise DataError(
            f"{path.name} must be a table of cells, got the columns {have}; build it again"
        )
    return numbers_of(frame)


def numbers_of(cells: pd.DataFrame) -> pd.DataFrame:
    """Return cells whose numbers are texts with floats in their place."""
    floats = {
        name: [float(text) if text else np.nan for text in cells[name]]
        for name in cells
        if name in NUMBERS
    }
    return cells.assign(**floats)


def without_stand_ins(artefact: Artefact, cells: pd.DataFrame) -> pd.DataFrame:
    """Return the cells of a table without numbers of data that stand in for the paper's: nothing
    follows from them."""
    rows = [{str(name): value for name, value in row.items()} for row in cells.to_dict("records")]
    blank = {
        name: np.array([bool(artefact.stand_in(row, name)) for row in rows])
        for name in VARIANTS
        if name in cells
    }
    numbers = {
        column: cells[column].mask(blank[name])
        for name in blank
        for column in (name, *(f"{name}_{extra}" for extra in EXTRAS))
        if column in cells
    }
    return cells.assign(**numbers)


class Tables:
    """Look-up of single numbers in the tables of one paper: cells by table name, as `read_cells`
    returns them."""

    def __init__(self, cells: Mapping[str, pd.DataFrame]) -> None:
        self._cells = cells
        self.errata: set[str] = set()
        """Names of the errata of all cells looked up so far."""
        self.seen: dict[str, set[int]] = {}
        """Rows of each table that were looked up so far."""

    def rows(self, table: str, column: str, **fields: str) -> pd.DataFrame:
        """Return the cells of one quantity with exactly these fields; a field given as "*" takes
        any value but none."""
        frame = self._cells.get(table)
        if frame is None:
            return pd.DataFrame(columns=["column", "printed", "verdict"])
        chosen = frame["column"] == column
        for name in key_names(frame):
            wanted = fields.get(name, "")
            chosen &= (frame[name] != "") if wanted == "*" else (frame[name] == wanted)
        missing = [name for name, wanted in fields.items() if name not in frame.columns and wanted]
        found = frame[chosen & (not missing)]
        self.seen.setdefault(table, set()).update(found.index)
        self.errata.update(name for names in found.get("erratum", ()) for name in names.split())
        return found

    def number(self, table: str, column: str, source: str, **fields: str) -> float:
        """Return one number from the column `source` ("stated", "consistent_lower", "printed"), NaN
        if not there."""
        rows = self.rows(table, column, **fields)
        if len(rows) != 1 or source not in rows.columns:
            return float("nan")
        return float(pd.to_numeric(rows[source], errors="coerce").iloc[0])

    def agreement(self, table: str) -> tuple[int, int]:
        """Return how many printed numbers of a table are confirmed, and how many are judged; 0 and
        0 without it."""
        cells = self._cells.get(table)
        if cells is not None:
            self.seen.setdefault(table, set()).update(cells.index)
        found = tally(cells["verdict"] if cells is not None else ())
        return found.confirmed, found.judged


def tables_of(artefacts: Iterable[Artefact], dirs: OutputDirs) -> Tables:
    """Return what the tables and claims that a run has made of a paper hold, without stand-ins and
    clock times."""
    return Tables(
        {
            one.name: without_stand_ins(one, read_cells(dirs.files(one)["csv"]))
            for one in artefacts
            if one.kind != "figure" and not one.timed
        }
    )


@dataclass(frozen=True)
class Takeaways:
    """What to conclude from one paper, found as `TAKEAWAYS` in the module `takeaways` of its
    folder."""

    parts: Sequence[Callable[[Tables], str | list[str]]]
    """Each writes a paragraph in Markdown, "" if this run lacks the numbers, or a list of
    paragraphs."""
    introduction: str = ""
    """What must be known before reading them."""
    evidence: Callable[[Tables], Mapping[str, pd.DataFrame]] = lambda tables: {}
    """Returns by paragraph a table of the numbers that it rests on; none by default."""
    worst: Callable[[Tables], Headline | None] | None = None
    """Returns the finding that a user of the paper must know, None if this run lacks its
    numbers."""
    best: Callable[[Tables], Headline | None] | None = None
    """Returns what is confirmed best."""

    def sentences(self, tables: Tables) -> list[str]:
        """Return the paragraphs for which this run has the numbers, with the symbols of the
        field."""
        return list(self.with_errata(tables))

    def with_errata(self, tables: Tables) -> dict[str, list[str]]:
        """Return these paragraphs with the errata of the cells that they rest on, BN2 before
        BN10."""
        found = {}
        for part in self.parts:
            tables.errata.clear()
            texts = part(tables)
            names = sorted(tables.errata, key=lambda name: (len(name), name))
            found.update(
                {
                    in_symbols(text): names
                    for text in ([texts] if isinstance(texts, str) else texts)
                    if text
                }
            )
        return found

    def grounds(self, tables: Tables) -> Mapping[str, pd.DataFrame]:
        """Return `evidence` by the paragraphs as `sentences` has them."""
        return {in_symbols(text): table for text, table in self.evidence(tables).items()}


def of_paper(paper: Paper) -> Takeaways | None:
    """Return what to conclude from a paper, None if its folder has no module `takeaways`."""
    if not (paper.folder / "takeaways.py").exists():
        return None
    found: Takeaways = importlib.import_module(f"{PACKAGE}.{paper.key}.takeaways").TAKEAWAYS
    return found


def listed(names: Iterable[str]) -> str:
    """Return "a, b and c"."""
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def counted_claims(tables: Tables) -> str:
    """Say how many statements of a paper fail as printed, and whether they hold as corrected."""
    cells = tables.rows("claims", "holds", claim="*")
    if not any(cells["verdict"]):
        return ""
    found = tally(cells["verdict"])
    failing = cells[cells["verdict"].isin(FAILING)]
    text = (
        f"**Statements.** Of {found.judged} statements that were put to a computation "
        f"{found.failing} fail as "
    )
    text += "printed"
    if "consistent" in cells.columns and len(failing):
        mended = failing["consistent"].dropna()
        text += (
            f"; {int((mended == 1).sum())} of the {len(mended)} that have a corrected form "
            "hold with it"
        )
    # BN2 before BN10
    names = sorted(
        {name for names in failing["erratum"] for name in names.split()}, key=lambda x: (len(x), x)
    )
    return f"{text} ({', '.join(names)})." if names else f"{text}."
