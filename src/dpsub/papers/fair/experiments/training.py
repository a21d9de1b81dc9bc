"""Trainings of the fair comparison: the data of each seed, and the measures of its model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dpsub.data.simulated import linear_datasets, normal_datasets
from dpsub.learning import metrics
from dpsub.papers.fair.settings import TASKS, FairTask
from dpsub.papers.fair.subsets import mean_interval, noise_of_average
from dpsub.reproduce.study.cells import Cell
from dpsub.reproduce.study.tasks import LearningRecords, Split, classification_records
from dpsub.reproduce.study.training import Batches, Fit, train
from dpsub.sampling import Sampler
from dpsub.streams import Streams

# The truth of MUST's experiment 2: y = 1 + 0.5 x1 + 0.2 x2 + noise.
BETA = (1.0, 0.5, 0.2)
MEASURES = (
    "accuracy",
    "auc",
    "log_loss",
    "coefficient_error",
    "estimate_error",
    "covered",
    "interval_width",
)
LEVEL = 0.95
"""Level of the bootstrap's intervals."""


@dataclass(frozen=True, eq=False)
class SeedData:
    """Data of one task for several seeds: the records of all, and the split of each."""

    records: LearningRecords
    splits: Mapping[int, Split]


def load(
    task: FairTask, seeds: Sequence[int], streams: Streams, data: Mapping[str, Path]
) -> SeedData:
    """Return the data of `task` for each seed: the same for all samplers, targets and variants.

    A seed decides the split of real records into training and test part (a permutation of all
    records: the splits that papers use are not kept), or it has a simulated data set of its own.
    """
    rngs = [streams.data({"dataset": task.name}, seed) for seed in seeds]
    if task.classifies:
        records = classification_records(task.name, data.get(task.source))
        orders = [rng.permutation(len(records.y)) for rng in rngs]
        splits = [Split(order[: task.n], test=order[task.n :]) for order in orders]
    else:
        if task.averages:
            # cut at the bound C, which the noise is scaled to
            values = np.clip(normal_datasets(task.n, rngs), -task.clip, task.clip)
            features = np.ones((*values.shape, 1))
        else:
            features, values = linear_datasets(task.n, BETA, rngs)
        # one data set a seed, one after the other
        rows = np.arange(values.size).reshape(values.shape)
        splits = [Split(own) for own in rows]
        table = features.reshape(values.size, -1)
        records = LearningRecords(table, values.reshape(-1), "simulated")
    return SeedData(records, dict(zip(seeds, splits, strict=True)))


def batches_of(cell: Cell) -> Batches:
    """Return the sampler and the random streams of a cell's batches; targets and variants share
    them."""
    # Without privacy there is no sampler to compare: batches are Poisson's, as in MUST.
    sampler = cell.sampler if cell.private else "poisson"
    key = {"sampler": sampler, "m": cell.m, "b": cell.b}
    return Batches(cell.dataset, cell.plan, cell.n, cell.m, cell.steps, key)


def measured(
    cell: Cell, data: SeedData, noise_multiplier: float, seeds: Sequence[int], streams: Streams
) -> list[dict[str, Any]]:
    """Train a cell on every seed and return its `MEASURES` (NaN where a task has no such measure)
    and the observed `gradients` a step.

    A cell without privacy is clipped all the same, and gets no noise.
    """
    task, batches = TASKS[cell.dataset], batches_of(cell)
    multiplier = noise_multiplier if cell.private else 0.0
    rows = []
    if task.averages:
        # nothing is trained: the noisy sums of the batches are what is released
        for seed in seeds:
            samples = batches.drawn(seed, streams)
            x = data.records.y[data.splits[seed].training]
            # Named without the sampler: all samplers of a seed get the same standard normal
            # numbers.
            noise = _noise_of_mean(cell, task, multiplier, streams.noise(batches.paired, seed))
            releases = samples.totals(samples.counts * x[samples.indices]) / cell.m + noise
            measures = mean_measures(cell, task, releases, noise_multiplier)
            rows.append(measures | {"gradients": float(samples.distinct.mean())})
    else:
        fits = [Fit(multiplier, task.clip, task.learning_rate)]
        runs = train(task, batches, data.records, data.splits.__getitem__, fits, seeds, streams)
        for parameters, split, samples in runs:
            measures = model_measures(task, data.records, split, parameters[0])
            rows.append(measures | {"gradients": float(samples.distinct.mean())})
    empty = dict.fromkeys(MEASURES, float("nan"))
    return [empty | row for row in rows]


def model_measures(
    task: FairTask, records: LearningRecords, split: Split, beta: np.ndarray
) -> dict[str, float]:
    """Return the measures of a linear predictor: on the test part, or against the truth."""
    # A simulated data set has a truth; real ones have a test part.
    if not task.classifies:
        return {"coefficient_error": float(np.linalg.norm(beta - np.array(BETA)))}
    scores, labels = records.x[split.test] @ beta, records.y[split.test]
    return {
        "accuracy": float(np.mean((scores > 0) == (labels > 0.5))),
        "auc": metrics.area_under_curve(scores, labels),
        "log_loss": float(np.mean(metrics.log_loss(scores, labels))),
    }


def _noise_of_mean(
    cell: Cell, task: FairTask, noise_multiplier: float, rng: np.random.Generator
) -> np.ndarray | float:
    """Return the noise on sum / m of every step; 0 without privacy."""
    # Without privacy the releases are the subsets' means alone.
    if noise_multiplier == 0:
        return 0.0
    noise = noise_of_average(noise_multiplier, task.clip, cell.m, cell.steps, 1, [rng])
    return np.asarray(noise[0, :, 0])


def mean_measures(
    cell: Cell, task: FairTask, releases: np.ndarray, noise_multiplier: float
) -> dict[str, float]:
    """Return the measures of the subsampling bootstrap of MUST's experiment 1.

    The denominator is fixed, and the data are N(0, 1), so that the truth is 0.
    """
    assert isinstance(cell.plan, Sampler)  # as the cell has checked
    law = cell.plan.multiplicity_law(cell.n)
    # Noise on the sum is s C; the release is divided by the fixed m.
    scale = noise_multiplier * task.clip / cell.m
    centre, lower, upper = mean_interval(releases, law, cell.n, cell.m, scale, LEVEL)
    return {
        "estimate_error": abs(centre),
        "covered": float(lower <= 0 <= upper),
        "interval_width": upper - lower,
    }
