"""How many distinct records a subset has: draws next to the exact law (MUST, Table 9)."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pandas as pd

from dpsub import sampling
from dpsub.papers.must.settings import Draws
from dpsub.reproduce.experiment import SAMPLER_KEY, Experiment, Run
from dpsub.reproduce.settings import (
    ExperimentSettings,
)
from dpsub.sampling.frame import Frame

SIDE = 0.001
"""Probability left out on each side of the interval of an extreme: 99.8 % in the middle."""


def extreme_intervals(law: np.ndarray, draws: int, side: float = SIDE) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return central intervals of the smallest and of the largest of independent draws, from their exact laws.

    With F the distribution function, P(min <= x) = 1 - (1 - F(x))^draws and P(max <= x) = F(x)^draws. The interval
    holds all x for which neither tail, x included, has a probability below `side`.

    Parameters
    ----------
    law : ndarray, shape (d_max + 1,)
        Probabilities of 0..d_max.
    draws : int
        Number of draws, at least 1.
    side : float
        Probability of each tail, in (0, 1/2).

    Returns
    -------
    (min_lower, min_upper), (max_lower, max_upper) : tuples of int
    """
    at_most = np.minimum(np.cumsum(law), 1.0)
    at_least = np.minimum(np.cumsum(law[::-1])[::-1], 1.0)
    with np.errstate(divide="ignore"):
        # each tail from its own small side, so that 1 - F keeps its digits
        all_above = draws * np.log(at_least)
        all_below = draws * np.log(at_most)
        none_below = draws * np.log1p(-at_most)
        none_above = draws * np.log1p(-at_least)
    smallest = (-np.expm1(none_below) >= side) & (np.exp(all_above) >= side)
    largest = (np.exp(all_below) >= side) & (-np.expm1(none_above) >= side)
    return _ends(smallest), _ends(largest)


def _ends(inside: np.ndarray) -> tuple[int, int]:
    places = np.flatnonzero(inside)
    return int(places[0]), int(places[-1])


class DistinctCounts(Experiment):
    """Smallest, mean and largest number of distinct records over many subsets, with what the exact law expects."""

    name: ClassVar[str] = "distinct_counts"
    columns: ClassVar[dict[str, str]] = {
        "replicate": "int64", "experiment": "int64", "n": "int64", "b": "int64", "m": "int64", "sampler": "str",
        "draws": "int64", "distinct_min": "int64", "distinct_mean": "float64", "distinct_max": "int64", "sd": "float64",
        "law_mean": "float64", "min_lower": "int64", "min_upper": "int64", "max_lower": "int64", "max_upper": "int64",
    }  # fmt: skip
    variants: ClassVar[tuple[str, ...]] = ("stated",)

    class Settings(ExperimentSettings, Draws):
        pass

    def records(self, settings: Settings, run: Run) -> pd.DataFrame:
        rows = []
        draws = settings.draws
        for replicate in run.replicates:
            for experiment, sizes in enumerate(settings.settings, start=1):
                n, b, m = sizes.n, sizes.b, sizes.m
                for name in settings.samplers:
                    sampler = sampling.of_sizes(name, n=n, m=m, b=b)
                    cell = {SAMPLER_KEY: name, "n": n, "b": b, "m": m, "draws": draws}
                    rng = run.streams.sample(cell, replicate)
                    distinct = sampler.draw_block(Frame(n), draws, rng).distinct
                    minimum, maximum = extreme_intervals(sampler.distinct_law(n), draws)
                    rows.append((
                        replicate, experiment, n, b, m, name, draws, distinct.min(), distinct.mean(), distinct.max(),
                        distinct.std(ddof=1), sampler.expected_distinct(n), *minimum, *maximum,
                    ))  # fmt: skip
        return self.frame(pd.DataFrame(rows, columns=list(self.columns)))
