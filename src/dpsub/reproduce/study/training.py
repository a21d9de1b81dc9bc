"""Trainings of a study: runs of one sampler on one task that share their batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from dpsub.learning import descent
from dpsub.reproduce.study.tasks import LearningRecords, Split, Task
from dpsub.sampling.frame import Frame, Samples
from dpsub.sampling.schemes import Plan
from dpsub.streams import Streams

DRAWS_AT_ONCE = 5 * 10**6
"""Bounds the memory of the batches of the seeds that are trained at once; has no influence on
results."""


class Fit(NamedTuple):
    """Settings of one run of training."""

    noise_multiplier: float
    clip: float
    learning_rate: float


@dataclass(frozen=True, eq=False)
class Batches:
    """Batches of a training: their sampler or schedule, and the keys of its random numbers.

    Attributes
    ----------
    dataset : str
        The task, by which standard normal numbers are paired over samplers.
    plan : Sampler or Schedule
    n, m, steps : int
        Number of records, divisor of the sum of gradients, and number of batches.
    key : mapping
        What names the batches in streams besides data set and steps: the sampler and its sizes.
        Targets and relations are not in it, so that they share batches.
    chances : ndarray, optional
        By which the batches are thinned, shape (N,), a chance for every record of the task.
    """

    dataset: str
    plan: Plan
    n: int
    m: int
    steps: int
    key: Mapping[str, Any]
    chances: np.ndarray | None = None

    @property
    def paired(self) -> dict[str, Any]:
        """Key of the random numbers that all samplers share."""
        return {"dataset": self.dataset, "steps": self.steps}

    def drawn(self, seed: int, streams: Streams) -> Samples:
        """Return the batches of one seed; indices count the records of its training part."""
        rng = streams.sample({**self.paired, **self.key}, seed)
        return self.plan.draw_block(Frame(self.n), self.steps, rng)

    def of_rows(self, seed: int, split: Split, streams: Streams) -> Samples:
        """Return the batches of one seed as rows of all records, thinned if there are `chances`."""
        batches = self.drawn(seed, streams)
        # samplers count from 0 in every seed; rows of the training part may be anywhere
        batches = replace(batches, indices=split.training[batches.indices])
        if self.chances is None:
            return batches
        # numbers of its own, so that thinned batches are parts of those that are whole
        rng = streams.sample({**self.paired, **self.key, "thinned": 1}, seed)
        return batches.thinned(self.chances, rng)


def train(
    task: Task,
    batches: Batches,
    records: LearningRecords,
    split_of: Callable[[int], Split],
    fits: Sequence[Fit],
    seeds: Sequence[int],
    streams: Streams,
) -> Iterator[tuple[np.ndarray, Split, Samples]]:
    """Train every fit on every seed; yield for each seed the parameters, shape (fits, p), its split
    and its batches.

    A seed fixes the initial values and the standard normal numbers of the noise, the same for all
    samplers: paired differences are then as sharp as they can be. Batches are each sampler's own,
    the same for all fits.

    Parameters
    ----------
    split_of : callable
        Split of a seed; its training part may be records that no other seed has.
    """
    multipliers, clips, rates = map(np.array, zip(*fits, strict=True))
    # Batches of all steps are drawn before the first one: seeds are limited by their draws.
    at_once = max(1, DRAWS_AT_ONCE // (batches.steps * batches.m))
    for start in range(0, len(seeds), at_once):
        some = seeds[start : start + at_once]
        splits = [split_of(seed) for seed in some]
        blocks = [
            batches.of_rows(seed, split, streams) for seed, split in zip(some, splits, strict=True)
        ]
        starts = [task.model.initial(streams.initial({"dataset": task.name}, s)) for s in some]
        # without privacy no numbers are drawn: 0 times a normal number costs the same time
        private = multipliers.any()
        noise = [streams.noise(batches.paired, seed) for seed in some] if private else None
        # a run with too long steps may leave all bounds
        with np.errstate(over="ignore", invalid="ignore"):
            parameters = descent.train(
                task.model,
                records.x,
                records.y,
                blocks,
                # All fits of a seed start from the same values.
                initial=np.repeat(np.stack(starts), len(fits), axis=0),
                learning_rate=np.tile(rates, len(some)),
                clip=np.tile(clips, len(some)),
                # m for every sampler, whatever was drawn: the accountant's fixed denominator
                divisor=float(batches.m),
                noise_multiplier=np.tile(multipliers, len(some)),
                rngs=noise,
                chances=batches.chances,
            )
        yield from zip(parameters.reshape(len(some), len(fits), -1), splits, blocks, strict=True)
