"""Printed numbers of the papers: as text, so that the last place is known, one row each."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path

import numpy as np
import pandas as pd

from dpsub.errors import ArgumentError, DataError

COLUMNS = (
    "paper", "artefact", "row", "column", "printed", "kind", "replicates", "spread", "status", "erratum", "note",
)  # fmt: skip
KEY = ("paper", "artefact", "row", "column")
KINDS = ("exact", "monte_carlo", "extreme", "claim", "real_data", "timing", "setting", "structure")
STATUSES = ("as_printed", "suspect")
WORDED_KINDS = ("claim", "timing", "structure")  # these may print a statement instead of a number
_ERRATUM = re.compile(r"([A-Z]{1,2}[1-9]\d*( [A-Z]{1,2}[1-9]\d*)*)?")
_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?([eE][+-]?\d+)?")


@dataclass(frozen=True)
class Printed:
    """A printed number.

    Attributes
    ----------
    value : Decimal
        The number.
    place : Decimal
        Unit of its last printed place: 0.001 for "0.050", 1e-07 for "5.73e-05", 1e+05 for "2e+05".
    """

    value: Decimal
    place: Decimal

    @property
    def half_unit(self) -> Decimal:
        """Half a unit of the last place; 0 for a bare "0".

        A bare "0" has no last place: it is printed next to numbers in scientific notation, where any number other
        than zero would have shown its digits, so it says exactly zero.
        """
        return self.place / 2 if self.value or self.place != 1 else Decimal(0)


def parse_printed(text: str) -> Printed:
    """Return the number and the unit of the last place of a printed text ("0.050", "5.73e-05", "0", "2e+05").

    Raises
    ------
    DataError
        If `text` is not a plain decimal number.
    """
    if not isinstance(text, str) or not _NUMBER.fullmatch(text):
        raise DataError(f"a printed number must be written like 0.050, 5.73e-05 or 0, got {text!r}; mend the row")
    value = Decimal(text)
    exponent = value.as_tuple().exponent
    if not isinstance(exponent, int):
        raise InvalidOperation(text)
    return Printed(value, Decimal(1).scaleb(exponent))


def row_key(**fields: object) -> str:
    """Return the key of a row, "field=value; field=value" in the order given, numbers in their shortest form.

    Raises
    ------
    ArgumentError
        If a name or a text contains "=" or ";", or a number is not finite.
    """
    return "; ".join(f"{name}={_shortest(name, value)}" for name, value in fields.items())


def parse_row_key(text: str) -> dict[str, str]:
    """Return the fields of a row key; a text without "=" (the identifier of a claim) is the field "claim".

    Raises
    ------
    ArgumentError
        If a part is not "field=value" or a field comes twice.
    """
    if "=" not in text:
        return {"claim": text}
    parts = [part.split("=") for part in text.split("; ")]
    if any(len(part) != 2 or not part[0] or not part[1] for part in parts):
        raise ArgumentError(f"a row key must read 'field=value; field=value', got {text!r}")
    fields = {part[0]: part[1] for part in parts}
    if len(fields) != len(parts):
        raise ArgumentError(f"a row key must name each field once, got {text!r}")
    return fields


def _shortest(name: str, value: object) -> str:
    if isinstance(value, str):
        if "=" in value or ";" in value or not value:
            raise ArgumentError(f"a value in a row key must be a text without '=' and ';', got {name} = {value!r}")
        return value
    number = float(value)  # type: ignore[arg-type]
    if not np.isfinite(number):
        raise ArgumentError(f"a number in a row key must be finite, got {name} = {number}; leave the field out")
    return str(int(number)) if number.is_integer() else repr(number)


def default_folder() -> Path:
    """Return the folder of the papers, each of which has its printed numbers in `published`."""
    return Path(__file__).resolve().parents[1] / "papers"


def artefacts(paper: str, folder: Path | None = None) -> list[str]:
    """Return the names of the artefacts of `paper` that print numbers.

    Raises
    ------
    DataError
        If there is no folder of that paper.
    """
    place = (folder or default_folder()) / paper / "published"
    if not place.is_dir():
        raise DataError(f"printed numbers of {paper!r} must be in a folder, got no {place}; run from the project's top")
    return sorted((path.stem for path in place.glob("*.csv")), key=_natural)


def _natural(name: str) -> tuple[str, int]:
    """Order "table9" before "table10"."""
    found = re.fullmatch(r"(.*?)(\d*)", name)
    return (found[1], int(found[2] or 0)) if found else (name, 0)


def load(paper: str, artefact: str, folder: Path | None = None) -> pd.DataFrame:
    """Return the printed numbers of an artefact.

    Parameters
    ----------
    paper, artefact : str
        "must", "table8".
    folder : path, optional
        Folder of the papers' folders; by default `src/dpsub/papers`.

    Returns
    -------
    DataFrame
        Columns `COLUMNS`; `replicates` and `spread` are floats (NaN where they do not apply), the rest is text.
        `replicates` and `spread` are the paper's repetitions and standard deviation behind a mean. In an exact row
        printed as a bare "0", `spread` is the resolution below which the paper's method could not tell a number
        from zero.

    Raises
    ------
    DataError
        If the file is missing or malformed.
    """
    path = (folder or default_folder()) / paper / "published" / f"{artefact}.csv"
    frame = read(path)
    for name, expected in (("paper", paper), ("artefact", artefact)):
        for other in frame.loc[frame[name] != expected, name].head(1):
            raise DataError(f"{path.name} must hold rows of {name} {expected!r} only, got {other!r}; move the row")
    return frame


def read(path: Path) -> pd.DataFrame:
    """Return the validated content of one file of printed numbers.

    Raises
    ------
    DataError
        If the file is missing or breaks a rule; the sentence names file and row.
    """
    try:
        frame = pd.read_csv(path, dtype=str, keep_default_na=False)
    except FileNotFoundError:
        raise DataError(f"printed numbers must be in a file, got no {path}; see src/dpsub/papers") from None
    except (pd.errors.ParserError, pd.errors.EmptyDataError, UnicodeDecodeError) as error:
        raise DataError(f"{path.name} must be a CSV file, got {error}; restore it") from None
    if tuple(frame.columns) != COLUMNS:
        raise DataError(f"{path.name} must have the columns {', '.join(COLUMNS)}, got {', '.join(frame.columns)}")
    for position, row in enumerate(frame.to_dict("records"), start=2):
        fault = _fault({str(name): str(value) for name, value in row.items()})
        if fault:
            raise DataError(f"{path.name}, line {position}: {fault}; mend the row")
    twice = frame[frame.duplicated(list(KEY))]
    if len(twice):
        row, column = twice.iloc[0][["row", "column"]]
        raise DataError(f"{path.name} must hold each printed number once, got {row!r}, {column!r} twice; remove one")
    numbers = {name: [float(text) if text else np.nan for text in frame[name]] for name in ("replicates", "spread")}
    return frame.assign(**numbers)


def _fault(row: dict[str, str]) -> str:
    """Return what is wrong with a row as rule and finding, "" if nothing is."""
    kind = row["kind"]
    for name in ("paper", "artefact", "row", "column", "printed"):
        if not row[name]:
            return f"{name} must be given, got an empty field"
    if kind not in KINDS:
        return f"kind must be one of {', '.join(KINDS)}, got {kind!r}"
    if row["status"] not in STATUSES:
        return f"status must be one of {', '.join(STATUSES)}, got {row['status']!r}"
    if not _ERRATUM.fullmatch(row["erratum"]):
        return f"erratum must be like E3 or E4 E5, got {row['erratum']!r}"
    if row["status"] == "suspect" and not row["erratum"]:
        return "a suspect number must name its erratum, got none"
    if kind not in WORDED_KINDS and not _NUMBER.fullmatch(row["printed"]):
        return f"a number of kind {kind} must be printed like 0.050 or 5.73e-05, got {row['printed']!r}"
    for name in ("replicates", "spread"):
        if row[name] and not (_NUMBER.fullmatch(row[name]) and float(row[name]) > 0):
            return f"{name} must be a number above 0 or empty, got {row[name]!r}"
    if kind in ("monte_carlo", "extreme") and not row["replicates"]:
        return f"a number of kind {kind} must have replicates, got none"
    try:
        parse_row_key(row["row"])
    except ArgumentError as error:
        return str(error)
    return ""
