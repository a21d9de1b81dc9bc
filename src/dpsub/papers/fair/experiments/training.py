"""What the fair comparison trains: the data of a task, training of one cell on several seeds at
once, its measures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from dpsub.data import adult, bundled, ijcnn1
from dpsub.data.simulated import linear_datasets, normal_datasets
from dpsub.learning import descent, metrics, models
from dpsub.learning.subsets import mean_interval, noise_of_average
from dpsub.papers.fair.experiments.cells import Cell
from dpsub.papers.fair.settings import Task
from dpsub.sampling import Sampler
from dpsub.sampling.frame import Frame, Samples
from dpsub.streams import Streams

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
"""Of the bootstrap's intervals."""


@dataclass(frozen=True, eq=False)
class TaskData:
    """Data of one task for several seeds, which share the records and have splits, or have a data
    set each."""

    # shape (N, p), or (R, n, p) with a data set a seed; a leading column of ones
    features: np.ndarray
    targets: np.ndarray  # shape (N,) or (R, n)
    label: str  # "real", "synthetic" or "simulated"
    train: np.ndarray | None = None  # rows of the training part of each split, shape (R, n)
    test: np.ndarray | None = None  # shape (R, N - n)


def load(
    task: Task, replicates: Sequence[int], streams: Streams, data: Mapping[str, Path]
) -> TaskData:
    """Return the data of `task` for each seed: the same for all samplers, targets and variants.

    A seed decides the data set, or the split into training and test part (a permutation of all
    records: the splits that papers use are not kept).
    """
    rngs = [streams.data({"dataset": task.name}, r) for r in replicates]
    if task.kind == "linear":
        return TaskData(*linear_datasets(task.n, BETA, rngs), "simulated")
    if task.kind == "mean":
        return TaskData(
            np.empty((0, 0)),
            np.clip(normal_datasets(task.n, rngs), -task.clip, task.clip),
            "simulated",
        )
    label = "real"
    if task.name == "ijcnn1":
        features, targets, label = ijcnn1.load(data[task.name])
    elif task.name == "adult":
        table = adult.load(data[task.name])
        features, label = np.concatenate([table.X_train, table.X_test]), table.label
        targets = np.concatenate([table.y_train, table.y_test]).astype(float)
    else:
        features, targets = bundled.load(task.name)
    rows = np.hstack([np.ones((len(features), 1)), bundled.clipped_rows(features, 1.0)])
    orders = np.stack([rng.permutation(len(rows)) for rng in rngs])
    return TaskData(rows, targets, label, orders[:, : task.n], orders[:, task.n :])


def batches_of(cell: Cell, replicates: Sequence[int], streams: Streams) -> list[Samples]:
    """Draw every seed's batches; the key holds the sampler, its sizes and the data set, so targets
    share batches."""
    key = {
        "dataset": cell.dataset,
        "sampler": cell.batches,
        "m": cell.m,
        "b": cell.b,
        "steps": cell.steps,
    }
    rngs = (streams.sample(key, r) for r in replicates)
    return [cell.drawn.draw_block(Frame(cell.task.n), cell.steps, rng) for rng in rngs]


def noise_rngs(
    cell: Cell, replicates: Sequence[int], streams: Streams
) -> list[np.random.Generator]:
    """Return every seed's generator of noise.

    The key holds what is paired (data set and steps), so that at one seed all samplers add the same
    standard normal numbers times a scale of their own: paired differences are then as sharp as they
    can be.
    """
    key = {"dataset": cell.dataset, "steps": cell.steps}
    return [streams.noise(key, replicate) for replicate in replicates]


def noise_of(
    cell: Cell, noise_multiplier: float, replicates: Sequence[int], streams: Streams
) -> np.ndarray | list[float]:
    """Return every seed's noise on sum / m, shape (R, steps); 0 without privacy."""
    if not cell.private:
        return [0.0] * len(replicates)
    rngs = noise_rngs(cell, replicates, streams)
    noise = noise_of_average(noise_multiplier, cell.task.clip, cell.m, cell.steps, 1, rngs)
    return noise[:, :, 0]


def train(
    cell: Cell, data: TaskData, noise_multiplier: float, replicates: Sequence[int], streams: Streams
) -> list[dict[str, Any]]:
    """Return for each seed its `MEASURES` (NaN where a task has no such measure) and the observed
    `gradients` a step.

    `data` are those of the same seeds. A cell without privacy is clipped all the same, and gets no
    noise.
    """
    blocks = batches_of(cell, replicates, streams)
    if cell.task.kind == "mean":
        noise = noise_of(cell, noise_multiplier, replicates, streams)
        found = [
            _mean(
                cell,
                data.targets[i],
                blocks[i],
                noise[i],
                noise_multiplier,
            )
            for i in range(len(blocks))
        ]
    else:
        rngs = noise_rngs(cell, replicates, streams) if cell.private else None
        betas = _descended(cell, data, blocks, noise_multiplier, rngs)
        found = [_measured(cell, data, i, beta) for i, beta in enumerate(betas)]
    empty = dict.fromkeys(MEASURES, float("nan"))
    return [
        {**empty, **measures, "gradients": float(block.distinct.mean())}
        for measures, block in zip(found, blocks, strict=True)
    ]


def _descended(
    cell: Cell,
    data: TaskData,
    blocks: Sequence[Samples],
    noise_multiplier: float,
    rngs: Sequence[np.random.Generator] | None,
) -> np.ndarray:
    task = cell.task
    features, targets = data.features, data.targets
    if data.train is None:
        blocks = descent.on_own_records(blocks, task.n)
        features, targets = features.reshape(-1, task.n_parameters), targets.reshape(-1)
    else:
        blocks = [
            replace(block, indices=rows[block.indices])
            for block, rows in zip(blocks, data.train, strict=True)
        ]
    predictor = models.Linear if task.kind == "linear" else models.Logistic
    # the divisor is m for every sampler, whatever was drawn: the accountant's condition of a fixed
    # denominator
    return descent.train(
        predictor(task.n_parameters),
        features,
        targets,
        blocks,
        initial=np.zeros(task.n_parameters),
        learning_rate=task.learning_rate,
        clip=task.clip,
        divisor=float(cell.m),
        noise_multiplier=0.0 if rngs is None else noise_multiplier,
        rngs=rngs,
    )


def _measured(cell: Cell, data: TaskData, i: int, beta: np.ndarray) -> dict[str, float]:
    if cell.task.kind == "linear":
        return {"coefficient_error": float(np.linalg.norm(beta - np.array(BETA)))}
    assert data.test is not None  # every classification task has a split
    z, y = data.features[data.test[i]] @ beta, data.targets[data.test[i]]
    return {
        "accuracy": metrics.binary_metrics(z > 0, y)["accuracy"],
        "auc": metrics.area_under_curve(z, y),
        "log_loss": float(np.mean(metrics.log_loss(z, y))),
    }


def _mean(
    cell: Cell, x: np.ndarray, block: Samples, noise: np.ndarray | float, noise_multiplier: float
) -> dict[str, float]:
    """The subsampling bootstrap of MUST's experiment 1 with a fixed denominator: N(0, 1) data, so
    the truth is 0."""
    n, m = cell.task.n, cell.m
    assert isinstance(cell.drawn, Sampler)  # as the cell has checked
    releases = block.totals(block.counts * x[block.indices]) / m + noise
    scale = noise_multiplier * cell.task.clip / m
    centre, lower, upper = mean_interval(
        releases, cell.drawn.multiplicity_law(n), n, m, scale, LEVEL
    )
    return {
        "estimate_error": abs(centre),
        "covered": float(lower <= 0 <= upper),
        "interval_width": upper - lower,
    }
