"""Printed numbers of the papers: as text, so that the last place is known, one row each, found by
their key columns."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from pathlib import Path
from string import digits

import numpy as np
import pandas as pd

from dpsub.errors import ArgumentError, DataError

FIELDS = ("column", "printed", "kind", "replicates", "spread", "status", "erratum", "note")
KINDS = (
    "exact",
    "monte_carlo",
    "extreme",
    "claim",
    "privacy",
    "real_data",
    "timing",
    "setting",
    "structure",
)
STATUSES = ("as_printed", "suspect")
STATEMENTS = ("claim", "privacy")
# these may print a statement instead of a number
WORDED_KINDS = (*STATEMENTS, "timing", "structure")
_ERRATUM = re.compile(r"([A-Z]{1,2}[1-9]\d*( [A-Z]{1,2}[1-9]\d*)*)?")
_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?([eE][+-]?\d+)?")


@dataclass(frozen=True)
class Printed:
    """A printed number, and the unit of its last place: 0.001 for "0.050", 1e-07 for "5.73e-05",
    1e+05 for "2e+05"."""

    value: Decimal
    place: Decimal

    @property
    def half_unit(self) -> Decimal:
        """Half a unit of the last place; 0 for a bare "0".

        A bare "0" has no last place: it is printed next to numbers in scientific notation, where
        any number other than zero would have shown its digits, so it says exactly zero.
        """
        # A printed number stands for all that round to it.
        return self.place / 2 if self.value or self.place != 1 else Decimal(0)


def parse_printed(text: str) -> Printed:
    """Return the number that a text such as "0.050", "5.73e-05", "0" or "2e+05" prints."""
    if not _NUMBER.fullmatch(text):
        raise DataError(
            "a printed number must be written like 0.050, 5.73e-05 or 0, got "
            f"{text!r}; mend the row"
        )
    value = Decimal(text)
    return Printed(value, Decimal(1).scaleb(int(value.as_tuple().exponent)))


def key_text(value: object) -> str:
    """Return the one form in which a key field is compared: a text as it is, a number in its
    shortest form."""
    # "10" from a file and 10 from a record must be one key.
    if isinstance(value, str) and not _NUMBER.fullmatch(value):
        return value
    number = float(value)  # type: ignore[arg-type]
    if not np.isfinite(number):
        raise ArgumentError(f"a number in a key must be finite, got {number}; leave the field out")
    return str(int(number)) if number.is_integer() else repr(number)


def row_text(fields: Mapping[str, str]) -> str:
    """Return key fields as one text, "sampler=wr; b=10", without those that are empty; a claim is
    its identifier."""
    return "; ".join(
        text if name == "claim" else f"{name}={text}" for name, text in fields.items() if text
    )


def row_texts(frame: pd.DataFrame, keys: Sequence[str]) -> list[str]:
    """Return `row_text` of each row of `frame`, its fields in the order of `keys`."""
    rows = frame[list(keys)].itertuples(index=False, name=None)
    return [row_text(dict(zip(keys, row, strict=True))) for row in rows]


def default_folder() -> Path:
    """Return the folder of the papers; each of them has its printed numbers in `published`."""
    return Path(__file__).resolve().parents[1] / "papers"


def artefacts(paper: str, folder: Path | None = None) -> list[str]:
    """Return the names of the artefacts of `paper` that print numbers, "table9" before
    "table10"."""
    folder_of_paper = (folder or default_folder()) / paper
    if not folder_of_paper.is_dir():
        raise DataError(
            f"printed numbers of {paper!r} must be in a folder, got no {folder_of_paper}; run "
            "from the project's top"
        )

    def word_and_number(name: str) -> tuple[str, int]:
        word = name.rstrip(digits)
        return word, int("0" + name.removeprefix(word))

    names = [path.stem for path in folder_of_paper.glob("published/*.csv")]
    return sorted(names, key=word_and_number)


def load(paper: str, artefact: str, folder: Path | None = None) -> pd.DataFrame:
    """Return the printed numbers of an artefact: `paper`, `artefact`, the keys of the file, then
    `FIELDS`.

    `replicates` and `spread`, the paper's repetitions and standard deviation behind a mean, are
    floats (NaN where they do not apply), the rest is text. In an exact row printed as a bare "0",
    `spread` is the resolution below which the paper's method could not tell a number from zero.
    `folder` holds the papers' folders.

    Raises
    ------
    DataError
        If the file is missing or breaks a rule; the sentence names file and line.
    """
    path = (folder or default_folder()) / paper / "published" / f"{artefact}.csv"
    frame = _checked(path, path.read_bytes() if path.is_file() else b"").copy()
    frame.insert(0, "paper", paper)
    frame.insert(1, "artefact", artefact)
    return frame


@lru_cache(maxsize=256)  # pages ask for each file again and again
def _checked(path: Path, content: bytes) -> pd.DataFrame:
    """Return the rows of a file of printed numbers with this content, which keep the rules."""
    frame = read_csv(path, "printed numbers must be in a file, got no {path}; see src/dpsub/papers")
    keys = key_names(frame)
    if not keys or tuple(frame.columns[len(keys) :]) != FIELDS:
        have = ", ".join(frame.columns)
        raise DataError(
            f"{path.name} must have its keys and then the columns {', '.join(FIELDS)}, got {have}"
        )
    # 10, 10.0 and 1e1 are one key: otherwise a printed number would silently find no partner
    frame = frame.assign(**{name: frame[name].map(key_text) for name in keys})
    for wrong, rule, name in _rules(frame, keys):
        for position in frame.index[wrong][:1]:
            got = "an empty field" if not (text := str(frame.at[position, name])) else repr(text)
            raise DataError(f"{path.name}, line {position + 2}: {rule}, got {got}; mend the row")
    cell_columns = [*keys, "column"]
    for _, row in frame[frame.duplicated(cell_columns)].head(1).iterrows():
        text = row_text({key: str(row[key]) for key in keys})
        raise DataError(
            f"{path.name} must hold each printed number once, got {text!r}, {row['column']!r} twice"
        )
    for name in ("replicates", "spread"):
        frame[name] = pd.to_numeric(frame[name]).astype(float)
    return frame


def key_names(frame: pd.DataFrame) -> list[str]:
    """Return the key columns of printed numbers, of values or of cells: those before `column`."""
    names = list(frame.columns)
    before = names[: names.index("column")] if "column" in names else []
    return [name for name in before if name not in ("paper", "artefact")]


def read_csv(path: Path, missing: str) -> pd.DataFrame:
    """Return a CSV file as text; a file that is not there is refused in the words of `missing`."""
    try:
        # As text: "0.050" and "0.05" are printed with different accuracy, and "nan" may be a word.
        return pd.read_csv(path, dtype=str, keep_default_na=False)
    except FileNotFoundError:
        raise DataError(missing.format(path=path)) from None
    except (pd.errors.ParserError, pd.errors.EmptyDataError, UnicodeDecodeError) as error:
        raise DataError(f"{path.name} must be a CSV file, got {error}; restore it") from None


def _rules(frame: pd.DataFrame, keys: Sequence[str]) -> Iterator[tuple[pd.Series, str, str]]:
    """Yield for each rule the rows that break it, the rule, and the column that shows it."""
    kind, number = frame["kind"], frame["printed"].str.fullmatch(_NUMBER)
    yield (frame[list(keys)] == "").all(axis=1), "a row must have a key", keys[0]
    for name in ("column", "printed"):
        yield frame[name] == "", f"{name} must be given", name
    yield ~kind.isin(KINDS), f"kind must be one of {', '.join(KINDS)}", "kind"
    yield ~frame["status"].isin(STATUSES), f"status must be one of {', '.join(STATUSES)}", "status"
    yield ~frame["erratum"].str.fullmatch(_ERRATUM), "erratum must be like E3 or E4 E5", "erratum"
    # Doubt about a printed number must be argued: it names the entry of the errata.
    nameless = (frame["status"] == "suspect") & (frame["erratum"] == "")
    yield nameless, "a suspect number must name its erratum", "erratum"
    worded = kind.isin(WORDED_KINDS)
    rule = "a number of this kind must be printed like 0.050 or 5.73e-05"
    yield ~worded & ~number, rule, "printed"
    for name in ("replicates", "spread"):
        zero_or_less = frame[name].str.fullmatch(r"-.*|[+]?0+(\.0+)?([eE].*)?")
        above = frame[name].str.fullmatch(_NUMBER) & ~zero_or_less
        yield (frame[name] != "") & ~above, f"{name} must be a number above 0 or empty", name
    # Without the number of repetitions there is no standard error to judge the difference by.
    lone = kind.isin(("monte_carlo", "extreme")) & (frame["replicates"] == "")
    yield lone, "a number of kind monte_carlo or extreme must have replicates", "replicates"
