"""Private mean and variance by subsampling bootstrap: experiment 1 (MUST, Section 4.2.1, Table 5)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
import pandas as pd
from pydantic import Field

from dpsub import sampling
from dpsub.data.simulated import normal_datasets
from dpsub.errors import ArgumentError
from dpsub.learning.subsets import of_statistics, plan_noise, release, subset_statistics
from dpsub.papers.must.settings import CALIBRATIONS, FIVE, Experiment1
from dpsub.reproduce.experiment import SAMPLER_KEY, Experiment, Run, with_first_stages
from dpsub.reproduce.settings import ExperimentSettings, Parts, Replicates, Samplers
from dpsub.sampling.base import StagedSampler, WithReplacement
from dpsub.sampling.frame import Frame


@dataclass(frozen=True)
class Cell:
    """One sampler at one first-stage size (b = 0: none), with its noise."""

    sampler: str
    b: int
    drawn: StagedSampler
    sigma_mean: float
    sigma_variance: float


def expected_variance(sampler: StagedSampler, n: int) -> float:
    """Return what the variance of a subset's slots is expected to be where that of the data is 1.

    It is the probability that two slots of a subset hold different records: a stage with replacement from N slots
    multiplies it by 1 - 1/N, any other stage leaves it.
    """
    slots = zip(sampler.slots(n), sampler.stages, strict=True)
    return math.prod((1 - 1 / before for before, stage in slots if isinstance(stage, WithReplacement)), start=1.0)


class SubsetStatistics(Experiment):
    """Mean and variance of N(0, 1) data from the average of T noisy subset statistics.

    Variants: `stated` scales the noise to range / n and does not clip, as the paper says; `consistent` clips the data
    to [lower, upper], scales to the sensitivity of a subset's statistic (range / m) and calibrates analytically;
    Poisson then divides by the fixed m and is calibrated under add_remove (erratum E4).
    All samplers of a replicate see the same data set.
    """

    name: ClassVar[str] = "subset_statistics"
    columns: ClassVar[dict[str, str]] = {
        "replicate": "int64", "sampler": "str", "b": "int64", "sigma_mean": "float64", "sigma_variance": "float64",
        "mean": "float64", "variance": "float64", "expected_variance": "float64", "distinct": "float64",
    }  # fmt: skip
    variants: ClassVar[tuple[str, ...]] = ("stated", "consistent")
    axes: ClassVar[tuple[str, ...]] = ("b", "samplers")
    keys: ClassVar[tuple[str, ...]] = ("sampler", "b")

    class Settings(ExperimentSettings, Experiment1):
        parts: Parts = 2
        replicates: Replicates = 200
        subsets: Annotated[int, Field(ge=1, le=10_000_000, description="Bootstrap subsets T per data set.")] = 500
        samplers: Samplers = FIVE

        def check(self) -> None:
            super().check()
            for variant in SubsetStatistics.variants:
                list(SubsetStatistics.runs(self, variant))

    @staticmethod
    def runs(settings: Settings, variant: str) -> Iterator[Cell]:
        """Yield what is run, in the order of Table 5: without privacy, then each sampler."""
        n, m, lower, upper = settings.n, settings.m, settings.lower, settings.upper
        for sampler, b in [("nonprivate", 0), *with_first_stages(settings.samplers, settings.b)]:
            drawn = sampling.of_sizes("poisson" if sampler == "nonprivate" else sampler, n=n, m=m, b=b or None)
            if not isinstance(drawn, StagedSampler):
                raise ArgumentError(f"the samplers of Table 5 must be chains of stages, got {sampler}; name another")
            sigmas = [0.0, 0.0]
            if sampler != "nonprivate":
                law, target, rule = drawn.multiplicity_law(n), settings.epsilon_amplified, CALIBRATIONS[variant]
                sizes = of_statistics(sampler, n=n, m=m, lower=lower, upper=upper, variant=variant).values()
                sigmas = [
                    plan_noise(law, epsilon_amplified=target, delta=1 / n, sensitivity=size, calibration=rule).sigma
                    for size in sizes
                ]
            yield Cell(sampler, b, drawn, *sigmas)

    def records(self, settings: Settings, run: Run) -> pd.DataFrame:
        n, m, subsets = settings.n, settings.m, settings.subsets
        sets = normal_datasets(n, [run.streams.data({"n": n}, replicate) for replicate in run.replicates])
        if run.variant == "consistent":
            sets = np.clip(sets, settings.lower, settings.upper)
        rows = []
        for cell in self.runs(settings, run.variant):
            key = {SAMPLER_KEY: cell.sampler, "b": cell.b, "n": n, "m": m, "subsets": subsets}
            fixed = m if run.variant == "consistent" and cell.sampler == "poisson" else None
            for x, replicate in zip(sets, run.replicates, strict=True):
                samples = cell.drawn.draw_block(Frame(n), subsets, run.streams.sample(key, replicate))
                mean, variance = subset_statistics(x, samples, fixed)
                noise = run.streams.noise(key, replicate)
                rows.append((
                    replicate, cell.sampler, cell.b, cell.sigma_mean, cell.sigma_variance,
                    release(mean, cell.sigma_mean, noise), release(variance, cell.sigma_variance, noise),
                    expected_variance(cell.drawn, n), float(samples.distinct.mean()),
                ))  # fmt: skip
        return self.frame(pd.DataFrame(rows, columns=list(self.columns)))
