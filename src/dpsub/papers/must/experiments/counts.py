"""Number of distinct records in a subset, and time of drawing one (MUST, Tables 9 and 10)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from time import perf_counter_ns
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from dpsub import sampling
from dpsub.papers.must.settings import Draws
from dpsub.reproduce.experiment import SAMPLER_KEY, Experiment, Run
from dpsub.reproduce.settings import ExperimentSettings
from dpsub.sampling.frame import Frame

SIDE = 0.001
"""Probability left out on each side of the interval of an extreme: 99.8 % in the middle."""

BLOCK = 100
"""Subsets drawn at once, as the utility experiments do; every sampler is timed in the same
blocks."""

# First calls fill caches, which no later draw does.
WARM_UP_BLOCKS = 3


def extreme_intervals(
    law: np.ndarray, draws: int, side: float = SIDE
) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return central intervals of the smallest and of the largest of independent draws from a law
    of 0..d_max, exact.

    With F the distribution function, P(min <= x) = 1 - (1 - F(x))^draws and P(max <= x) =
    F(x)^draws. The interval holds all x for which neither tail, x included, has a probability below
    `side`.
    """
    at_most = np.minimum(np.cumsum(law), 1.0)
    at_least = np.minimum(np.cumsum(law[::-1])[::-1], 1.0)
    with np.errstate(divide="ignore"):
        # each tail from its own small side, so that 1 - F keeps its digits
        all_above, all_below = draws * np.log(at_least), draws * np.log(at_most)
        none_below, none_above = draws * np.log1p(-at_most), draws * np.log1p(-at_least)
    smallest = np.flatnonzero((-np.expm1(none_below) >= side) & (np.exp(all_above) >= side))
    largest = np.flatnonzero((np.exp(all_below) >= side) & (-np.expm1(none_above) >= side))
    return (int(smallest[0]), int(smallest[-1])), (int(largest[0]), int(largest[-1]))


class DrawsExperiment(Experiment):
    """Repeated draws in the sizes of each experiment of the paper."""

    stage = "simulate"
    variants: ClassVar[tuple[str, ...]] = ("stated",)

    class Settings(ExperimentSettings, Draws):
        pass

    def sizes(
        self, settings: Settings, run: Run
    ) -> Iterator[tuple[dict[str, Any], dict[str, int]]]:
        """Yield replicate and number of the experiment, as in a record, and its n, b and m."""
        for replicate in run.replicates:
            for experiment, sizes in enumerate(settings.settings, start=1):
                yield {"replicate": replicate, "experiment": experiment}, dict(sizes)


class DistinctCounts(DrawsExperiment):
    """Smallest, mean and largest number of distinct records over many subsets, with the
    expectations from the exact law."""

    name: ClassVar[str] = "distinct_counts"
    columns: ClassVar[dict[str, str]] = {
        "replicate": "int64",
        "experiment": "int64",
        "n": "int64",
        "b": "int64",
        "m": "int64",
        "sampler": "str",
        "draws": "int64",
        "distinct_min": "int64",
        "distinct_mean": "float64",
        "distinct_max": "int64",
        "sd": "float64",
        "law_mean": "float64",
        "min_lower": "int64",
        "min_upper": "int64",
        "max_lower": "int64",
        "max_upper": "int64",
    }
    axes: ClassVar[tuple[str, ...]] = ("samplers",)
    keys: ClassVar[tuple[str, ...]] = ("experiment", "sampler")

    def records(self, settings: DrawsExperiment.Settings, run: Run) -> pd.DataFrame:
        rows, draws = [], settings.draws
        for fields, sizes in self.sizes(settings, run):
            for name in settings.samplers:
                sampler, n = sampling.of_sizes(name, **sizes), sizes["n"]
                rng = run.streams.sample(
                    {SAMPLER_KEY: name, **sizes, "draws": draws}, fields["replicate"]
                )
                # Distinct records, not slots: MUST.WW may draw one record in several slots of its
                # first stage.
                distinct = sampler.draw_block(Frame(n), draws, rng).distinct
                # The printed extremes are of one run of draws: they are judged by the exact law of
                # an extreme.
                smallest, largest = extreme_intervals(sampler.distinct_law(n), draws)
                rows.append(
                    {
                        **fields,
                        **sizes,
                        "sampler": name,
                        "draws": draws,
                        "distinct_min": distinct.min(),
                        "distinct_mean": distinct.mean(),
                        "distinct_max": distinct.max(),
                        "sd": distinct.std(ddof=1),
                        "law_mean": sampler.expected_distinct(n),
                        "min_lower": smallest[0],
                        "min_upper": smallest[1],
                        "max_lower": largest[0],
                        "max_upper": largest[1],
                    }
                )
        return self.frame(rows)


def bernoulli_trials(
    n: int, rate: float, n_subsets: int, rng: np.random.Generator
) -> list[np.ndarray]:
    """Draw Poisson subsets by n trials each, as they were timed for Table 10."""
    return [np.flatnonzero(rng.random(n) < rate) for _ in range(n_subsets)]


class SamplingTime(DrawsExperiment):
    """Median time of one subset over blocks of 100, the samplers taking turns block by block.

    Poisson is timed twice: by the sparse draw that the package uses (naive = 0) and by n Bernoulli
    trials (naive = 1), which is what the printed column compares. Since the samplers take turns, a
    sweep does not take them apart.
    """

    name: ClassVar[str] = "sampling_time"
    columns: ClassVar[dict[str, str]] = {
        "replicate": "int64",
        "experiment": "int64",
        "n": "int64",
        "b": "int64",
        "m": "int64",
        "sampler": "str",
        "seconds": "float64",
        "naive": "int64",
    }
    keys: ClassVar[tuple[str, ...]] = ("experiment", "sampler", "naive")
    timed: ClassVar[bool] = True

    def records(self, settings: DrawsExperiment.Settings, run: Run) -> pd.DataFrame:
        rows = []
        block = min(BLOCK, settings.draws)
        n_blocks = -(-settings.draws // block)
        for fields, sizes in self.sizes(settings, run):
            n, rate = sizes["n"], sizes["m"] / sizes["n"]
            draws: dict[tuple[str, int], Callable[..., object]] = {
                ("poisson", 1): partial(bernoulli_trials, n, rate)
            }
            for name in settings.samplers:
                draws[name, 0] = partial(sampling.of_sizes(name, **sizes).draw_block, Frame(n))
            seconds = {key: np.empty(n_blocks) for key in draws}
            rngs = {
                (name, naive): run.streams.sample(
                    {**sizes, SAMPLER_KEY: name, "naive": naive}, fields["replicate"]
                )
                for name, naive in draws
            }
            # The samplers take turns, so that changes in the load of the machine affect all alike.
            for turn in range(-WARM_UP_BLOCKS, n_blocks):
                for key, draw in draws.items():
                    start = perf_counter_ns()
                    draw(block, rngs[key])
                    elapsed = perf_counter_ns() - start
                    if turn >= 0:
                        seconds[key][turn] = elapsed / 1e9 / block
            # The median: a pause of the machine during one block does not move it.
            rows += [
                {**fields, **sizes, "sampler": name, "seconds": np.median(times), "naive": naive}
                for (name, naive), times in seconds.items()
            ]
        return self.frame(rows)
