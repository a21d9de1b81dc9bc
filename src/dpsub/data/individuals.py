"""One number for each individual, as the queries of budget recycling read it: the prepared table
and its subsets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from dpsub import checks
from dpsub.data import dataset as stored
from dpsub.errors import DataError

VALUE = "value"


@dataclass(frozen=True, eq=False)
class Individuals:
    """The prepared data."""

    values: np.ndarray  # one number for each, shape (individuals,)
    label: str  # "real", "subset" or "synthetic"
    events: int  # lines of the raw file behind the values
    attributes: int  # fields of a line


def write(
    table: pd.DataFrame,
    path: Path,
    *,
    dataset: str,
    label: str,
    sources: Mapping[str, str],
    events: int,
    attributes: int,
) -> None:
    """Write a `table` with the column `VALUE`; DataError if a value is negative or not finite."""
    if VALUE not in table.columns:
        raise DataError(
            f"{path} must have the column {VALUE}, got {', '.join(map(str, table.columns))}; "
            "prepare it again"
        )
    values = table[VALUE].to_numpy(dtype=float)
    if not (len(values) and np.isfinite(values).all() and (values >= 0).all()):
        raise DataError(
            f"{path} must hold finite values of at least 0, got others or none; prepare it again"
        )
    stored.write_table(
        table,
        path,
        {
            "dataset": dataset,
            "label": label,
            "rows": len(table),
            "events": events,
            "attributes": attributes,
            "sources": dict(sources),
        },
    )


def load(path: Path) -> Individuals:
    """Return the prepared values and the facts of their description; DataError if the files are not
    what :func:`write` wrote."""
    table, facts = stored.read_table(path, label=str, events=int, attributes=int)
    return Individuals(table[VALUE].to_numpy(dtype=float), **facts)


def disjoint_subsets(
    values: np.ndarray, size: int, count: int, rng: np.random.Generator
) -> np.ndarray:
    """Return disjoint random subsets of `values` (brdp, Section 8.1): `count`, or as many as there
    are values for.

    Shape (subsets, size); DataError if there are fewer values than one subset needs.
    """
    size = checks.integer("size", size, at_least=1)
    count = min(checks.integer("count", count, at_least=1), len(values) // size)
    if count == 0:
        raise DataError(
            f"a subset needs {size} individuals, got {len(values)} in all; take smaller subsets"
        )
    return values[rng.permutation(len(values))[: size * count]].reshape(count, size)
