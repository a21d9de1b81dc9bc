"""Tasks of the tournament: data and model of each, and the parts that their records are split into.

Features are mapped to ranges that are public or assumed, and rows clipped to norm 1 one by one: no
statistic of the records is used. The files of Adult and Song are prepared with such statistics
(maxima; a centre), taken as public.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from scipy.special import expit

from dpsub.data import bundled, point_sets
from dpsub.learning.models import KMeans, Linear, Logistic, Model, Perceptron, Softmax
from dpsub.papers.tournament import PAPER
from dpsub.reproduce.study.tasks import (
    LearningRecords,
    Split,
    Task,
    classification_records,
    with_intercept,
)
from dpsub.streams import Streams

MILLION, WIDE = 10**6, 100
_SONGS = 20_000
_AT_ONCE = 20_000  # rows of the large simulated data that are made together
_COVER = (0.365, 0.488, 0.061, 0.005, 0.016, 0.030, 0.035)
"""Shares of the seven classes of Covertype, which its documentation gives."""


@dataclass(frozen=True)
class TournamentTask(Task):
    """A task whose norm bound and step size are tuned on a validation part of each seed.

    Attributes
    ----------
    n_validation, n_test : int
        Records of these parts.
    records : str
        Name of its data, which tasks may share; seeds then split them alike.
    least_chance : float
        Of a record in importance sampling, relative to the longest possible one.
    """

    n_validation: int
    n_test: int
    records: str
    least_chance: float = 1.0

    @property
    def classified(self) -> bool:
        """Whether the model is a classifier, so that a test has an accuracy."""
        return not isinstance(self.model, (Linear, KMeans))

    def chances(self, x: np.ndarray) -> np.ndarray:
        """Return the probability with which importance sampling keeps each row of a Poisson sample,
        shape (N,).

        a + (1 - a) |x|^2 with the least chance a, a function of the row alone; 1 for a task that
        has no use for it, as the rows of most have norms near 1.
        """
        return self.least_chance + (1 - self.least_chance) * np.minimum(
            1.0, np.einsum("ij,ij->i", x, x)
        )


def _real(records: str, model: Model, n: int, n_validation: int, n_test: int) -> TournamentTask:
    return TournamentTask(records, model, n, n_validation, n_test, records, source=records)


def _on(
    records: str, model: Model, n: int, n_validation: int, n_test: int, name: str = ""
) -> TournamentTask:
    return TournamentTask(name or records, model, n, n_validation, n_test, records)


# Sizes of parts: training, validation, test. Perceptrons read the data of the softmax tasks.
TASKS = {
    task.name: task
    for task in (
        _on("linear", Linear(11), 4000, 1000, 4000),
        _real("song", Linear(90), 12_000, 2000, 5000),
        _on("breast_cancer", Logistic(31), 400, 69, 100),
        _real("adult", Logistic(14), 20_000, 4000, 8000),
        _real("ijcnn1", Logistic(23), 30_000, 4000, 8000),
        _on("ten_digits", Softmax(65, 10), 1000, 297, 500, "digits"),
        _on("cover", Softmax(55, 7), 20_000, 4000, 8000),
        # Only the mixture has norms that differ by much: others gain nothing from importance
        # sampling.
        replace(_on("mixture", KMeans(10, 8), 4000, 1000, 4000), least_chance=0.25),
        _on("ten_digits", Perceptron(65, 16, 10), 1000, 297, 500, "digits_perceptron"),
        _on("cover", Perceptron(55, 16, 7), 20_000, 4000, 8000, "cover_perceptron"),
        _on("million", Logistic(WIDE), MILLION, 10_000, 40_000),
    )
}
"""Tasks by the name that a cell gives as its data set."""


def load(task: TournamentTask, data: Mapping[str, Path], streams: Streams) -> LearningRecords:
    """Return the records of `task`; simulated ones are the same for every seed and experiment of a
    configuration."""
    if task.records in SIMULATED:
        # One data set for all seeds, as a file would be: seeds differ by their split.
        rng = _shared(streams).data({"dataset": task.records, "part": "records"}, 0)
        x, y = SIMULATED[task.records](_total(task), rng)
        return LearningRecords(x, y, "simulated")
    if task.records == "song":
        return _song(data[task.source])
    return classification_records(task.records, data.get(task.source))


def split(task: TournamentTask, total: int, seed: int, streams: Streams) -> Split:
    """Return the parts of `total` records: a test part by a stream of its own, the others from the
    rest by the seed."""
    own = _shared(streams)
    # one test part for all seeds, which no choice of a seed has seen
    order = own.data({"dataset": task.records, "part": "test"}, 0).permutation(total)
    test, rest = np.sort(order[: task.n_test]), np.sort(order[task.n_test :])
    drawn = own.data({"dataset": task.records, "part": "training"}, seed).permutation(rest)
    return Split(drawn[: task.n], drawn[task.n : task.n + task.n_validation], test)


def _shared(streams: Streams) -> Streams:
    """Streams that all experiments of the tournament share, so that tuning never sees a record of
    the test."""
    return replace(streams, experiment=PAPER.key)


def _total(task: TournamentTask) -> int:
    """Records of a simulation: so many more than one seed needs that seeds differ, but for the
    largest."""
    # The largest has no room for a second million.
    needed = task.n + task.n_validation
    return task.n_test + needed * (2 if needed < MILLION else 1)


def _song(path: Path) -> LearningRecords:
    """The first of twelve averages of timbre, a loudness, from the others and 78 covariances.

    Some songs, from all over the file.
    """
    songs = point_sets.load(path)
    # Every k-th song: the head of the file might be of one kind.
    points = songs.points[:: max(1, len(songs.points) // _SONGS)][:_SONGS].astype(float)
    features = np.hstack([points[:, 1:12] / 50, points[:, 12:] / 2000])  # assumed scales
    return LearningRecords(with_intercept(features), np.clip(points[:, 0] / 20, -1, 1), songs.label)


def _linear(total: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Ten normal features cut at three standard deviations, a linear response and normal errors."""
    # A third of a standard normal number, cut at 1: the range is assumed, not taken from the data.
    x = with_intercept(np.clip(rng.standard_normal((total, 10)) / 3, -1, 1))
    slopes = np.array([0.2, 1, -1, 0.8, -0.8, 0.6, -0.6, 0.4, -0.4, 0.2, -0.2])
    return x, np.clip(x @ slopes / 2 + 0.1 * rng.standard_normal(total), -1, 1)


def _cover(total: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Simulated features and classes with the columns of Covertype: 10 measurements, one of 4
    areas, one of 40 soils, 7 unequal classes.

    Each class consists of three kinds, so that its bounds are no planes.
    """
    kinds = rng.standard_normal((7, 3, 10))
    areas, soils = rng.dirichlet(np.ones(4), (7, 3)), rng.dirichlet(np.full(40, 0.1), (7, 3))
    y, kind = rng.choice(7, total, p=np.array(_COVER)), rng.integers(3, size=total)
    measured = np.clip((kinds[y, kind] + 0.7 * rng.standard_normal((total, 10))) / 3, -1, 1)
    hot = [np.eye(chances.shape[-1])[_chosen(chances[y, kind], rng)] for chances in (areas, soils)]
    return with_intercept(np.hstack([measured, *hot])), y


def _chosen(chances: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """One column for each row, by the chances of the row."""
    steps = np.cumsum(chances, axis=1)
    # Scaled by the last sum, so that rounding leaves no row without a column.
    return np.asarray((steps < steps[:, -1:] * rng.random((len(chances), 1))).sum(axis=1))


def _mixture(total: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Eight clusters in ten dimensions, with sizes that fall like 1 / j and norms that differ; no
    column of ones."""
    sizes = 1 / np.arange(1, 9)
    centres = rng.standard_normal((8, 10))
    centres *= (rng.uniform(0.2, 0.9, 8) / np.linalg.norm(centres, axis=1))[:, None]
    # Sizes that fall like 1 / j: small clusters are what noise hides first.
    y = rng.choice(8, total, p=sizes / sizes.sum())
    return bundled.clipped_rows(centres[y] + 0.05 * rng.standard_normal((total, 10)), 1.0), y


def _million(total: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Normal directions in single precision and a logistic response, made some rows at a time; no
    column of ones."""
    slopes = 10 * rng.standard_normal(WIDE) / np.sqrt(np.arange(1, WIDE + 1))
    # A million rows of a hundred numbers take 0.4 GB in single precision.
    x, y = np.empty((total, WIDE), dtype=np.float32), np.empty(total, dtype=np.int8)
    for start in range(0, total, _AT_ONCE):
        rows = slice(start, start + _AT_ONCE)
        x[rows] = bundled.clipped_rows(rng.standard_normal(x[rows].shape), 1.0)
        y[rows] = rng.random(len(x[rows])) < expit(x[rows] @ slopes)
    return x, y


SIMULATED: dict[str, Callable[[int, np.random.Generator], tuple[np.ndarray, np.ndarray]]] = {
    "linear": _linear,
    "cover": _cover,
    "mixture": _mixture,
    "million": _million,
}
