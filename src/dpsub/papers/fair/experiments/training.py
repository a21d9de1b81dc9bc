"""Training of one cell of the fair comparison on several seeds at once, and its measures."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dpsub.learning.descent import Descent, area_under_curve, batch_width, binary_metrics, cross_entropy, descend
from dpsub.learning.subsets import mean_interval, noise_of_average
from dpsub.papers.fair.experiments.cells import Cell
from dpsub.papers.fair.experiments.tasks import BETA, MEASURES, TaskData
from dpsub.sampling.frame import Frame, Samples
from dpsub.streams import Streams

LEVEL = 0.95
"""Of the bootstrap's intervals."""


def batches_of(cell: Cell, replicates: Sequence[int], streams: Streams) -> list[Samples]:
    """Draw every seed's batches; the key holds the sampler, its sizes and the data set, so targets share batches."""
    key = {"dataset": cell.dataset, "sampler": cell.batches, "m": cell.m, "b": cell.b, "steps": cell.steps}
    rngs = (streams.sample(key, r) for r in replicates)
    return [cell.drawn.draw_block(Frame(cell.task.n), cell.steps, rng) for rng in rngs]


def noise_of(cell: Cell, noise_multiplier: float, replicates: Sequence[int], streams: Streams) -> np.ndarray:
    """Return every seed's noise on sum / m, shape (R, steps, p).

    The key holds what is paired (data set and steps), so that at one seed all samplers add the same standard normal
    numbers times a scale of their own: paired differences are then as sharp as they can be.
    """
    key = {"dataset": cell.dataset, "steps": cell.steps}
    rngs = [streams.noise(key, r) for r in replicates]
    task = cell.task
    return noise_of_average(noise_multiplier, task.clip, cell.m, cell.steps, task.n_parameters, rngs)


def train(
    cell: Cell, data: TaskData, noise_multiplier: float, replicates: Sequence[int], streams: Streams
) -> list[dict[str, Any]]:
    """Return the measures of each seed, with the observed mean number of distinct records in a batch.

    Parameters
    ----------
    cell : Cell
    data : TaskData
        Of the same seeds.
    noise_multiplier : float
        Without meaning where the cell is not private, which is clipped all the same, and gets no noise.
    replicates : sequence of int
    streams : Streams

    Returns
    -------
    list of dict
        One a seed: `MEASURES` (NaN where a task has no such measure) and `gradients`.
    """
    blocks = batches_of(cell, replicates, streams)
    noise = noise_of(cell, noise_multiplier, replicates, streams) if cell.private else None
    if cell.task.kind == "mean":
        found = [_mean(cell, data.targets[i], blocks[i], None if noise is None else noise[i, :, 0],
                       noise_multiplier) for i in range(len(blocks))]  # fmt: skip
    else:
        beta = _descended(cell, data, blocks, noise)
        found = [_measured(cell, data, i, beta[i]) for i in range(len(blocks))]
    empty = dict.fromkeys(MEASURES, float("nan"))
    return [
        {**empty, **measures, "gradients": float(block.distinct.mean())}
        for measures, block in zip(found, blocks, strict=True)
    ]


def _descended(cell: Cell, data: TaskData, blocks: Sequence[Samples], noise: np.ndarray | None) -> np.ndarray:
    task, train = cell.task, data.train
    if train is not None:
        blocks = [replace(block, indices=rows[block.indices]) for block, rows in zip(blocks, train, strict=True)]
    # the divisor is m for every sampler, whatever was drawn: the accountant's condition of a fixed denominator
    steps = Descent(task.residual, task.learning_rate, clip=task.clip, divisor=float(cell.m))
    path = descend(
        data.features, data.targets, blocks, noise, np.zeros(task.n_parameters), steps,
        width=batch_width(cell.drawn, task.n),
    )  # fmt: skip
    return deque(path, maxlen=1)[0]


def _measured(cell: Cell, data: TaskData, i: int, beta: np.ndarray) -> dict[str, float]:
    if cell.task.kind == "linear":
        return {"coefficient_error": float(np.linalg.norm(beta - np.array(BETA)))}
    assert data.test is not None  # every classification task has a split
    z, y = data.features[data.test[i]] @ beta, data.targets[data.test[i]]
    return {
        "accuracy": binary_metrics(z > 0, y)["accuracy"], "auc": area_under_curve(z, y), "log_loss": cross_entropy(z, y)
    }  # fmt: skip


def _mean(
    cell: Cell, x: np.ndarray, block: Samples, noise: np.ndarray | None, noise_multiplier: float
) -> dict[str, float]:
    """The subsampling bootstrap of MUST's experiment 1 with a fixed denominator: N(0, 1) data, so the truth is 0."""
    n, m = cell.task.n, cell.m
    releases = block.totals(block.counts * x[block.indices]) / m + (0.0 if noise is None else noise)
    scale = noise_multiplier * cell.task.clip / m
    centre, lower, upper = mean_interval(releases, cell.drawn.multiplicity_law(n), n, m, scale, LEVEL)
    return {
        "estimate_error": abs(centre), "covered": float(lower <= 0 <= upper), "interval_width": upper - lower,
    }  # fmt: skip
