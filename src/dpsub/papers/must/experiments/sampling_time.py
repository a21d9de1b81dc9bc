"""Clock time of one subset, by sampler (MUST, Table 10)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from time import perf_counter_ns
from typing import ClassVar

import numpy as np
import pandas as pd

from dpsub import sampling
from dpsub.papers.must.settings import DrawnSizes, Draws
from dpsub.reproduce.experiment import SAMPLER_KEY, Experiment, Run
from dpsub.reproduce.settings import (
    ExperimentSettings,
)
from dpsub.sampling.frame import Frame

BLOCK = 100
"""Subsets drawn at once, as the utility experiments do; every sampler is timed in the same blocks."""

WARM_UP_BLOCKS = 3


def bernoulli_trials(n: int, rate: float, n_subsets: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Draw Poisson subsets one after the other by n trials each, the way that Table 10's Poisson column was timed."""
    return [np.flatnonzero(rng.random(n) < rate) for _ in range(n_subsets)]


class SamplingTime(Experiment):
    """Median time of one subset over blocks of 100, the samplers taking turns block by block.

    Poisson is timed twice: by the sparse draw that the package uses (naive = 0) and by n Bernoulli trials (naive = 1),
    which is what the printed column compares.
    """

    name: ClassVar[str] = "sampling_time"
    columns: ClassVar[dict[str, str]] = {
        "replicate": "int64", "experiment": "int64", "n": "int64", "b": "int64", "m": "int64", "sampler": "str",
        "seconds": "float64", "naive": "int64",
    }  # fmt: skip
    variants: ClassVar[tuple[str, ...]] = ("stated",)
    timed: ClassVar[bool] = True

    class Settings(ExperimentSettings, Draws):
        pass

    def records(self, settings: Settings, run: Run) -> pd.DataFrame:
        rows = []
        block = min(BLOCK, settings.draws)
        n_blocks = -(-settings.draws // block)
        for replicate in run.replicates:
            for experiment, sizes in enumerate(settings.settings, start=1):
                draws = self._draws(sizes, settings.samplers)
                seconds = {key: np.empty(n_blocks) for key in draws}
                rngs = {
                    key: run.streams.sample({**dict(sizes), SAMPLER_KEY: key[0], "naive": key[1]}, replicate)
                    for key in draws
                }  # fmt: skip
                for turn in range(-WARM_UP_BLOCKS, n_blocks):
                    for key, draw in draws.items():
                        start = perf_counter_ns()
                        draw(block, rngs[key])
                        elapsed = perf_counter_ns() - start
                        if turn >= 0:
                            seconds[key][turn] = elapsed / 1e9 / block
                rows += [
                    (replicate, experiment, sizes.n, sizes.b, sizes.m, sampler, np.median(times), naive)
                    for (sampler, naive), times in seconds.items()
                ]
        return self.frame(pd.DataFrame(rows, columns=list(self.columns)))

    def _draws(
        self, sizes: DrawnSizes, samplers: Sequence[str]
    ) -> dict[tuple[str, int], Callable[[int, np.random.Generator], object]]:
        """Return what is timed, by (sampler, naive)."""
        n, m = sizes.n, sizes.m
        draws: dict[tuple[str, int], Callable[[int, np.random.Generator], object]] = {
            ("poisson", 1): partial(bernoulli_trials, n, m / n)
        }
        for sampler in samplers:
            draws[sampler, 0] = partial(sampling.of_sizes(sampler, n=n, m=m, b=sizes.b).draw_block, Frame(n))
        return draws
