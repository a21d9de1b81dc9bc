"""What the fair comparison trains: six tasks, each with its sizes, norm bound, step size and first measure.

Step sizes and bounds are fixed here, the same for all samplers, noise levels and variants. They were chosen by
looking at training without noise, which should come near its end in the steps of the configuration, and at training
with WOR batches at one noise level; samplers were not compared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dpsub.data import adult, bundled, ijcnn1
from dpsub.data.simulated import linear_datasets, normal_datasets
from dpsub.learning.descent import Residual, logistic_residual, squared_error_residual
from dpsub.streams import Streams

TRAIN_SHARE = 0.75
BETA = (1.0, 0.5, 0.2)
MEASURES = ("accuracy", "auc", "log_loss", "coefficient_error", "estimate_error", "covered", "interval_width")


@dataclass(frozen=True)
class Task:
    """One learning task.

    Attributes
    ----------
    name : str
    kind : {"classification", "linear", "mean"}
    n : int
        Number of records that samples are drawn from (training part).
    n_parameters : int
    clip : float
        Norm bound C of one record's vector.
    learning_rate : float
        Of DP-SGD; not used by the mean.
    measure : str
        What samplers are ranked by, chosen before any run: test log loss, error of the coefficients or of the mean.
    source : str
        Prepared data set that is read, "" for bundled or simulated data.
    """

    name: str
    kind: str
    n: int
    n_parameters: int
    clip: float
    learning_rate: float
    measure: str
    source: str = ""

    @property
    def residual(self) -> Residual:
        return squared_error_residual if self.kind == "linear" else logistic_residual


def _classification(name: str, n_records: int, features: int, rate: float, source: str = "") -> Task:
    n = int(TRAIN_SHARE * n_records)
    return Task(name, "classification", n, features + 1, 1.0, rate, "log_loss", source)


TASKS: dict[str, Task] = {
    task.name: task
    for task in (
        Task("linear", "linear", 1000, 3, 3.0, 0.04, "coefficient_error"),
        _classification("adult", 41292, 13, 2.0, "adult"),
        _classification("breast_cancer", 569, 30, 2.0),
        _classification("digits", 1797, 64, 2.0),
        _classification("ijcnn1", ijcnn1.N_RECORDS, ijcnn1.N_FEATURES, 2.0, "ijcnn1"),
        Task("bootstrap_mean", "mean", 300, 1, 4.0, 1.0, "estimate_error"),
    )
}
"""Tasks by the name that a cell gives as its data set."""

SOURCES = tuple(sorted({task.source for task in TASKS.values()} - {""}))


@dataclass(frozen=True, eq=False)
class TaskData:
    """Data of one task for several seeds.

    Attributes
    ----------
    features : ndarray, shape (N, p) shared by all seeds, or (R, n, p) with a data set a seed
        With a leading column of ones.
    targets : ndarray, shape (N,) or (R, n)
    train, test : ndarray of int, shape (R, n) and (R, N - n), or None where every seed has its own data
        Rows of the two parts of the split of each seed.
    label : str
        "real", "synthetic" or "simulated".
    """

    features: np.ndarray
    targets: np.ndarray
    train: np.ndarray | None
    test: np.ndarray | None
    label: str


def load(task: Task, replicates: Sequence[int], streams: Streams, data: Mapping[str, Path]) -> TaskData:
    """Return the data of `task` for each seed: the same for all samplers, targets and variants.

    Streams have the role "data" and the key {"dataset": name}; a seed decides the data set, or the split into training
    and test part (a permutation of all records: the splits that papers use are not kept).
    """
    rngs = [streams.data({"dataset": task.name}, r) for r in replicates]
    if task.kind == "linear":
        return TaskData(*linear_datasets(task.n, BETA, rngs), None, None, "simulated")
    if task.kind == "mean":
        values = np.clip(normal_datasets(task.n, rngs), -task.clip, task.clip)
        return TaskData(np.empty((0, 0)), values, None, None, "simulated")
    features, targets, label = _read(task.name, data)
    rows = np.hstack([np.ones((len(features), 1)), bundled.clipped_rows(features, 1.0)])
    orders = np.stack([rng.permutation(len(rows)) for rng in rngs])
    return TaskData(rows, targets, orders[:, : task.n], orders[:, task.n :], label)


def _read(name: str, data: Mapping[str, Path]) -> tuple[np.ndarray, np.ndarray, str]:
    """Return features, targets and label of a classification task."""
    if name == "ijcnn1":
        return ijcnn1.load(data[name])
    if name in bundled.NAMES:
        return (*bundled.load(name), "real")
    table = adult.load(data[name])
    features, targets = (np.concatenate(pair) for pair in
                         ((table.X_train, table.X_test), (table.y_train, table.y_test)))  # fmt: skip
    return features, targets.astype(float), table.label
