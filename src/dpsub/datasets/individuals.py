"""One number for each individual, as the queries of budget recycling read it: the prepared table and its subsets."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from dpsub import checks
from dpsub.datasets import prepared
from dpsub.datasets.sources import LABELS
from dpsub.errors import DataError

VALUE = "value"


def write(table: pd.DataFrame, path: Path, *, dataset: str, label: str, sources: Mapping[str, str]) -> None:
    """Write a `table` with the column `VALUE` and its description; see `dpsub.datasets.prepared`.

    Raises
    ------
    ArgumentError
        If the label is unknown.
    DataError
        If a value is negative or not finite.
    """
    checks.one_of("label", label, LABELS)
    _check(table, path)
    description = {"dataset": dataset, "label": label, "rows": len(table), "sources": dict(sorted(sources.items()))}
    prepared.write(table, path, description)


def load(path: Path) -> tuple[np.ndarray, str]:
    """Return the values, shape (individuals,), and the label of the data.

    Raises
    ------
    DataError
        If the files are missing or not what :func:`write` wrote.
    """
    table, facts = prepared.read(path, label=str)
    _check(table, path)
    return table[VALUE].to_numpy(dtype=float), facts["label"]


def disjoint_subsets(values: np.ndarray, size: int, count: int, rng: np.random.Generator) -> np.ndarray:
    """Return disjoint random subsets of `values`: `count` of them, or as many of `size` as there are values for.

    Parameters
    ----------
    values : ndarray, shape (individuals,)
    size, count : int
        At least 1.
    rng : numpy.random.Generator

    Returns
    -------
    ndarray, shape (subsets, size)

    Raises
    ------
    DataError
        If there are fewer values than one subset needs.

    References
    ----------
    brdp, Section 8.1.
    """
    size = checks.integer("size", size, at_least=1)
    count = min(checks.integer("count", count, at_least=1), len(values) // size)
    if count == 0:
        raise DataError(f"a subset needs {size} individuals, got {len(values)} in all; take smaller subsets")
    return values[rng.permutation(len(values))[: size * count]].reshape(count, size)


def _check(table: pd.DataFrame, path: Path) -> None:
    if VALUE not in table.columns:
        columns = ", ".join(map(str, table.columns))
        raise DataError(f"{path} must have the column {VALUE}, got {columns}; prepare it again")
    values = table[VALUE].to_numpy(dtype=float)
    if not (len(values) and np.isfinite(values).all() and (values >= 0).all()):
        raise DataError(f"{path} must hold finite values of at least 0, got others or none; prepare it again")
