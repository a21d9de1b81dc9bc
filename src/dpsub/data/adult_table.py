"""The prepared Adult table on disk: a Parquet file with a JSON sidecar that says what the numbers are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from dpsub import checks
from dpsub.data import prepared
from dpsub.data.sources import LABELS
from dpsub.errors import DataError

FEATURES = (
    "age", "workclass_private", "fnlwgt", "education_num", "married", "white", "male", "capital_gain", "capital_loss",
    "hours_per_week", "occupation_professional", "occupation_office", "occupation_worker",
)  # fmt: skip
TARGET = "income"
COLUMNS = (*FEATURES, TARGET)
N_TRAIN = 30969
N_TEST = 10323


@dataclass(frozen=True, eq=False)
class AdultData:
    """Training and test part; the matrices have no column for the intercept and cannot be written to.

    Parameters
    ----------
    X_train, X_test : ndarray, shape (30969, 13) and (10323, 13)
        Features in [0, 1].
    y_train, y_test : ndarray of int64, shape (30969,) and (10323,)
        1 for an income above 50K, else 0.
    label : str
        "real", or "synthetic" for the stand-in.
    feature_names : tuple of str
        Names of the columns of the matrices.
    """

    X_train: np.ndarray
    y_train: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    label: str
    feature_names: tuple[str, ...] = FEATURES


def write(
    table: pd.DataFrame, path: Path, *, label: str, sources: Mapping[str, str], n_train: int = N_TRAIN
) -> None:
    """Write a prepared `table` to `path` (Parquet) and its description next to it (JSON).

    Both files get their names only when they are complete, and the description holds the checksum of the table, so
    that no interruption leaves a pair that :func:`load` accepts. The same table gives the same bytes.

    Parameters
    ----------
    table : DataFrame
        The columns `COLUMNS`; features in [0, 1], label 0 or 1.
    path : Path
        Where to write; folders are made.
    label : str
        One of :data:`dpsub.data.sources.LABELS`.
    sources : mapping of str to str
        SHA-256 sums of the raw files, by name; empty for a stand-in.
    n_train : int
        Number of leading rows that form the training part.

    Raises
    ------
    ArgumentError
        If the label is unknown or `n_train` leaves no row for the test part.
    DataError
        If the table has other columns, or a value is NaN or out of range.
    """
    checks.one_of("label", label, LABELS)
    checks.integer("n_train", n_train, at_least=1, at_most=len(table) - 1, at_most_name="rows - 1")
    _check(table)
    target = table[TARGET]
    description = {
        "dataset": "adult",
        "label": label,
        "rows": len(table),
        "n_train": n_train,
        "positives_train": int(target.iloc[:n_train].sum()),
        "positives_test": int(target.iloc[n_train:].sum()),
        "sources": dict(sorted(sources.items())),
    }
    prepared.write(table, path, description)


def load(path: Path) -> AdultData:
    """Return the prepared data at `path`.

    Raises
    ------
    DataError
        If the file or its description is missing, or the two do not belong together.
    """
    table, facts = prepared.read(path, label=str, n_train=int)
    n_train = facts["n_train"]
    _check(table)
    X, y = table[list(FEATURES)].to_numpy(dtype=float), table[TARGET].to_numpy(dtype=np.int64)
    data = AdultData(X[:n_train].copy(), y[:n_train].copy(), X[n_train:].copy(), y[n_train:].copy(), facts["label"])
    for part in (data.X_train, data.y_train, data.X_test, data.y_test):
        part.setflags(write=False)
    return data


def _check(table: pd.DataFrame) -> None:
    if tuple(table.columns) != COLUMNS:
        columns = ", ".join(map(str, table.columns))
        raise DataError(f"the prepared table must have the columns {', '.join(COLUMNS)}, got {columns}")
    inside = ((table >= 0) & (table <= 1)).all()  # False for NaN
    if not inside.all():
        raise DataError(f"every value of the prepared table must lie in [0, 1], got another one in {inside.idxmin()}")
    if not table[TARGET].isin((0, 1)).all():
        raise DataError(f"{TARGET} must be 0 or 1 in every row, got another value; prepare the data again")
