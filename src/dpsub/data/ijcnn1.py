"""ijcnn1 (the 2001 neural network challenge): 49,990 records, 22 features, a rare positive
class."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

import numpy as np
import pandas as pd
from scipy.special import expit

from dpsub import streams
from dpsub.data import dataset
from dpsub.data.dataset import DataSet, Obtained
from dpsub.errors import DataError

FILE = "ijcnn1.trn.bz2"
N_RECORDS, N_FEATURES, N_POSITIVE = 49990, 22, 4853
TARGET = "positive"
COLUMNS = (*(f"x{i}" for i in range(1, N_FEATURES + 1)), TARGET)
# the first features mark one of ten phases; in every tenth-or-so record all of them are zero
_ONE_HOT = 10


def libsvm(path: Path, n_features: int) -> tuple[np.ndarray, np.ndarray]:
    """Return features, shape (n, d), and labels of the lines "label index:value ..."; a file .bz2
    is decompressed."""
    # imported here: it takes a second, and only files in this format need it
    from sklearn.datasets import load_svmlight_file

    features, labels = load_svmlight_file(str(path), n_features=n_features, zero_based=False)
    return features.toarray(), labels


def prepare(path: Path) -> pd.DataFrame:
    """Return the records of the compressed file, in its order; shape (49990, 23), the label is 0 or
    1.

    DataError if the file is damaged or holds other records than expected.
    """
    try:
        features, labels = libsvm(path, N_FEATURES)
    except (OSError, EOFError, ValueError) as problem:
        raise DataError(
            f"{path} must hold {N_RECORDS} lines of 'label index:value ...', got: {problem}"
        ) from None
    facts = (len(labels), int((labels > 0).sum()))
    if facts != (N_RECORDS, N_POSITIVE):
        raise DataError(
            f"{path} must hold {N_RECORDS} records, {N_POSITIVE} of them positive, got {facts[0]} "
            f"and {facts[1]}; restore the original file"
        )
    return pd.DataFrame(features, columns=list(COLUMNS[:-1])).assign(
        **{TARGET: (labels > 0).astype("int64")}
    )


def stand_in() -> pd.DataFrame:
    """Return a stand-in of the same shape and rate of positives: a phase, and a slow signal seen at
    twelve lags."""
    rng = streams.stream(49990, experiment="synthetic_ijcnn1", cell={}, role="data", replicate=0)
    values = np.zeros((N_RECORDS, N_FEATURES + 1))
    phase = np.arange(N_RECORDS) % _ONE_HOT
    values[np.arange(N_RECORDS), phase] = 1
    lags = N_FEATURES - _ONE_HOT
    noise = rng.standard_normal(N_RECORDS + lags)
    values[:, _ONE_HOT:-1] = (
        0.15 * np.lib.stride_tricks.sliding_window_view(noise, lags)[:N_RECORDS]
    )
    chance = expit(
        12 * values[:, -4] - 8 * values[:, -3] + 2 * (phase == 0) + rng.logistic(size=N_RECORDS) - 3
    )
    values[np.argsort(-chance, kind="stable")[:N_POSITIVE], -1] = 1
    return pd.DataFrame(values, columns=list(COLUMNS)).astype({TARGET: "int64"})


def write(table: pd.DataFrame, path: Path, *, label: str, sources: Mapping[str, str]) -> None:
    """Write a prepared `table` as `dataset.write_table` does."""
    dataset.write_table(
        table,
        path,
        {"dataset": "ijcnn1", "label": label, "rows": len(table), "sources": dict(sources)},
    )


def load(path: Path) -> tuple[np.ndarray, np.ndarray, str]:
    """Return features, shape (49990, 22), labels in {0, 1}, and the label of the data; DataError as
    `read_table`."""
    table, facts = dataset.read_table(path, label=str)
    return (
        table[list(COLUMNS[:-1])].to_numpy(dtype=float),
        table[TARGET].to_numpy(dtype=float),
        facts["label"],
    )


class Ijcnn1(DataSet):
    """Features and label; `dpsub.data.point_sets.from_ijcnn1` makes points of them."""

    name = "ijcnn1"
    files: ClassVar = {"real": (FILE,)}

    def make(self, obtained: Obtained, path: Path) -> int:
        table = prepare(obtained.paths[FILE]) if obtained.paths else stand_in()
        write(table, path, label=obtained.label, sources=obtained.sha256)
        return len(table)
