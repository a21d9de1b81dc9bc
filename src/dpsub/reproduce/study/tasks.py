"""Tasks of a study: a model, its records, and the parts that a seed splits them into."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from dpsub.data import adult, bundled, ijcnn1
from dpsub.learning.models import Model

_NONE = np.empty(0, dtype=np.intp)


@dataclass(frozen=True)
class Task:
    """A model and the number of records that its batches are drawn from, the same for all samplers.

    Attributes
    ----------
    name : str
        By this a cell names it as its data set.
    model : Model
    n : int
        Records that samples are drawn from.
    source : str
        Prepared data set that is read; "" for bundled or simulated data.
    """

    name: str
    model: Model
    n: int
    source: str = field(default="", kw_only=True)


@dataclass(frozen=True, eq=False)
class LearningRecords:
    """All records of a task, of every part and, where each seed has data of its own, of every seed.

    Attributes
    ----------
    x : ndarray
        Shape (N, d), float64 or float32; a leading column of ones where the model has an intercept.
    y : ndarray
        Shape (N,).
    label : str
        "real", "synthetic", "subsample" or "simulated".
    """

    x: np.ndarray
    y: np.ndarray
    label: str


@dataclass(frozen=True, eq=False)
class Split:
    """Rows of the parts that one seed splits the records into."""

    training: np.ndarray  # shape (n,): what samples are drawn from
    validation: np.ndarray = field(default_factory=lambda: _NONE)
    test: np.ndarray = field(default_factory=lambda: _NONE)


def with_intercept(features: np.ndarray) -> np.ndarray:
    """Return the rows of features clipped to norm 1, one by one, behind a column of ones."""
    return np.hstack([np.ones((len(features), 1)), bundled.clipped_rows(features, 1.0)])


def classification_records(name: str, path: Path | None) -> LearningRecords:
    """Return the records of a prepared data set, in the file at `path`, or of a bundled one."""
    label = "real"
    # the splits that papers use are not kept: each seed of a study makes its own
    if name == "adult" and path is not None:
        table = adult.load(path)
        features = np.concatenate([table.X_train, table.X_test])
        labels = np.concatenate([table.y_train, table.y_test])
        label = table.label
    # The file has its label with it: a stand-in says that it is one.
    elif name == "ijcnn1" and path is not None:
        features, labels, label = ijcnn1.load(path)
    else:
        features, labels = bundled.load(name)
    return LearningRecords(with_intercept(features), labels, label)
