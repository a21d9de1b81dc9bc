"""A frame from a CSV file, with every fault named in one sentence; texts of the file stay data."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from dpsub.errors import DataError
from dpsub.frame import Frame

COLUMNS = ("stratum", "cluster", "size")
_SHOWN = 40
_LARGEST = 1e100
"""Of sizes and values: their squares, summed over all records, are to be finite."""
MOST_ROWS = 2_000_000


@dataclass(frozen=True, eq=False)
class FrameTable:
    """The records of a file.

    Attributes
    ----------
    frame : Frame
        With strata, clusters and sizes; labels are numbered in the order of first appearance.
    values : ndarray, shape (n,)
        The study variable.
    stratum_names : tuple of str
        Labels of the strata as they stand in the file.
    allocation : tuple of int or None
        Wanted sample size of each stratum, where the file has a column of that name.
    """

    frame: Frame
    values: np.ndarray
    stratum_names: tuple[str, ...]
    allocation: tuple[int, ...] | None


def read_frame(path: Path, *, value: str = "size") -> FrameTable:
    """Return the frame in a CSV file with the columns stratum, cluster and size, and optionally allocation.

    Parameters
    ----------
    path : Path
        The file, in UTF-8.
    value : str
        Column of the study variable, whose total is estimated.

    Raises
    ------
    DataError
        If the file can't be read, a column is missing or comes twice, a value is missing or no number, a size or study
        value is negative or beyond 1e+-100, or the allocation of a stratum is contradictory or larger than it.
    """
    try:
        # heads as data: with header=0 pandas takes surplus fields for an index, which moves all columns, and renames
        # a column whose name comes twice
        rows = pd.read_csv(
            path, header=None, dtype=str, keep_default_na=False, skipinitialspace=True, nrows=MOST_ROWS + 2,
            encoding="utf-8-sig", index_col=False,
        )  # fmt: skip
    except FileNotFoundError:
        raise DataError(f"a frame must be in a file, got no {str(path)!r}; check the path") from None
    except (OSError, ValueError) as problem:  # pandas' own errors, and paths with a NUL, are of the latter kind
        reason = " ".join(str(problem).split())
        raise DataError(f"a frame must be a CSV file in UTF-8, got {str(path)!r}: {reason}") from None
    heads = [str(name).strip() for name in rows.iloc[0]]
    table = rows.iloc[1:].set_axis(heads, axis="columns")
    used = dict.fromkeys((*COLUMNS, value, "allocation"))
    twice = [name for name in used if heads.count(name) > 1]
    if twice:
        raise DataError(f"a frame must have one column {twice[0]!r}, got {heads.count(twice[0])}; rename the others")
    absent = [name for name in dict.fromkeys((*COLUMNS, value)) if name not in table.columns]
    if absent:
        raise DataError(f"a frame must have the column {absent[0]!r}, got {_shown(', '.join(table.columns))}; add it")
    if not 2 <= len(table) <= MOST_ROWS:
        raise DataError(f"a frame must have 2 to {MOST_ROWS} records, got {len(table)}")
    for name in dict.fromkeys((*COLUMNS, value)):
        empty = np.flatnonzero(table[name].fillna("").str.strip() == "")
        if len(empty):
            raise DataError(f"every record must have a {name}, got none in line {empty[0] + 2}; fill it in")
    sizes, values = _numbers(table, "size"), _numbers(table, value)
    strata, stratum_names = pd.factorize(table["stratum"].str.strip())
    clusters, _ = pd.factorize(table["cluster"].str.strip())
    frame = Frame(len(table), strata=strata, clusters=clusters, sizes=sizes)
    names = tuple(str(name) for name in stratum_names)
    allocation = _allocation(table, frame, names) if "allocation" in table.columns else None
    return FrameTable(frame, values, names, allocation)


def _numbers(table: pd.DataFrame, name: str) -> np.ndarray:
    numbers = pd.to_numeric(table[name], errors="coerce").to_numpy(dtype=float)
    bad = np.flatnonzero(~np.isfinite(numbers))
    if len(bad):
        text = _shown(str(table[name].iloc[bad[0]]))
        raise DataError(f"{name} must be a number, got {text} in line {bad[0] + 2}; mend it")
    negative = np.flatnonzero(numbers < 0)
    if len(negative):
        raise DataError(f"{name} must not be negative, got {numbers[negative[0]]:g} in line {negative[0] + 2}; mend it")
    extreme = np.flatnonzero((numbers > _LARGEST) | ((numbers > 0) & (numbers < 1 / _LARGEST)))
    if len(extreme):
        raise DataError(
            f"{name} must be 0 or lie in {1 / _LARGEST:g}..{_LARGEST:g}, got {numbers[extreme[0]]:g} in line "
            f"{extreme[0] + 2}; use another unit"
        )
    return numbers


def _allocation(table: pd.DataFrame, frame: Frame, names: tuple[str, ...]) -> tuple[int, ...]:
    wanted = _numbers(table, "allocation")
    found = []
    for stratum, held in enumerate(frame.stratum_sizes.tolist()):
        own = np.unique(wanted[frame.needed("strata") == stratum])
        name = _shown(names[stratum])
        if len(own) > 1 or not own[0].is_integer() or own[0] < 1:
            raise DataError(f"allocation must be one whole number of at least 1 for all records of stratum {name}")
        if own[0] > held:
            raise DataError(
                f"a stratum must be at least as large as its allocation, got {held} records and {own[0]:g} to draw in "
                f"stratum {name}"
            )
        found.append(int(own[0]))
    return tuple(found)


def _shown(text: str) -> str:
    """Return a text of the file, quoted and shortened: it is only ever shown."""
    return repr(text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…")
