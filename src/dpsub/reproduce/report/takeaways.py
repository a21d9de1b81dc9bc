"""What a user should take from a paper: sentences whose numbers are looked up in the tables of the run."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import ClassVar

import numpy as np
import pandas as pd

from dpsub.errors import DataError
from dpsub.registry import Registry
from dpsub.reproduce.cells import EXTRAS
from dpsub.reproduce.published import key_names
from dpsub.reproduce.verdicts import VARIANTS

NUMBERS = {name for variant in VARIANTS for name in (variant, *(f"{variant}_{extra}" for extra in EXTRAS))}


def read_cells(path: Path) -> pd.DataFrame:
    """Return the cells of a table as `build` wrote them; texts stay texts, numbers become floats.

    Raises
    ------
    DataError
        If the file is missing or no table of cells.
    """
    try:
        frame = pd.read_csv(path, dtype=str, keep_default_na=False)
    except FileNotFoundError:
        raise DataError(f"the report needs every table of the run, got no {path}; build that table first") from None
    if not {"column", "printed", "verdict", "erratum"} <= set(frame.columns):
        have = ", ".join(frame.columns)
        raise DataError(f"{path.name} must be a table of cells, got the columns {have}; build it again")
    floats = {name: [float(text) if text else np.nan for text in frame[name]] for name in frame if name in NUMBERS}
    return frame.assign(**floats)


class Tables:
    """Look-up of single numbers in the tables of one paper.

    Parameters
    ----------
    cells : mapping of str to DataFrame
        Cells by table name, as `read_cells` returns them.
    """

    def __init__(self, cells: Mapping[str, pd.DataFrame]) -> None:
        self._cells = cells

    def rows(self, table: str, column: str, **fields: str) -> pd.DataFrame:
        """Return the cells of one quantity with exactly these fields; a field given as "*" takes any value but none."""
        frame = self._cells.get(table)
        if frame is None:
            return pd.DataFrame(columns=["column", "printed", "verdict"])
        chosen = frame["column"] == column
        for name in key_names(frame):
            wanted = fields.get(name, "")
            chosen &= (frame[name] != "") if wanted == "*" else (frame[name] == wanted)
        missing = [name for name, wanted in fields.items() if name not in frame.columns and wanted]
        return frame[chosen & (not missing)]

    def number(self, table: str, column: str, source: str, **fields: str) -> float:
        """Return one number from the column `source` ("stated", "consistent_lower", "printed"), NaN if not there."""
        rows = self.rows(table, column, **fields)
        if len(rows) != 1 or source not in rows.columns:
            return float("nan")
        try:
            return float(rows.iloc[0][source])
        except ValueError:
            return float("nan")


class Takeaways(ABC):
    """The sentences of one paper; `name` is the paper's key, `introduction` what must be known before reading them."""

    name: ClassVar[str]
    introduction: ClassVar[str] = ""

    @abstractmethod
    def sentences(self, tables: Tables) -> list[str]:
        """Return paragraphs in Markdown; one whose numbers this run lacks is left out."""

    def evidence(self, tables: Tables) -> Mapping[str, pd.DataFrame]:
        """Return by sentence a table of the numbers that it rests on; none by default."""
        return {}


def listed(names: Iterable[str]) -> str:
    """Return "a, b and c"."""
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def counted_claims(tables: Tables) -> str:
    """Say how many statements of a paper fail as printed, and whether they hold as corrected."""
    cells = tables.rows("claims", "holds", claim="*")
    if cells.empty or "stated" not in cells.columns:
        return ""
    tried = cells.dropna(subset=["stated"])
    failing = tried[tried["stated"] == 0]
    text = f"**Statements.** Of {len(tried)} statements that were put to a computation {len(failing)} fail as printed"
    if "consistent" in cells.columns and len(failing):
        mended = failing["consistent"].dropna()
        text += f"; {int((mended == 1).sum())} of the {len(mended)} that have a corrected form hold with it"
    # BN2 before BN10
    names = sorted({name for names in failing["erratum"] for name in names.split()}, key=lambda x: (len(x), x))
    return f"{text} ({', '.join(names)})." if names else f"{text}."


REGISTRY: Registry[Takeaways] = Registry("dpsub.papers", Takeaways, "summary of a paper", inside="takeaways")
