"""Neyman allocation of establishments by size class and of a neighbour (Bun et al., Section 7.2 and
Appendix E.1)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Annotated, ClassVar, Literal

import numpy as np
import pandas as pd
from pydantic import Field

from dpsub.errors import ArgumentError
from dpsub.reproduce.experiment import Experiment, Run
from dpsub.reproduce.settings import Count, Epsilon, ExperimentSettings, SampleSize, Sizes
from dpsub.sampling import allocation

ClassNumbers = Annotated[
    tuple[Count, ...], Field(min_length=2, strict=False, description="One number for each class.")
]
FILLINGS = ("vertex", "uniform", "log_uniform", "piled")
# share at the upper limit; with it the top class has the standard deviation that the vectors imply
PILED = 0.024


def class_moments(low: int, high: int, filling: str) -> tuple[float, float]:
    """Return mean and variance (divisor N) of the sizes within a class of establishments.

    uniform: all integers alike; log_uniform: chances proportional to 1/size; vertex: both limits
    only, with the mean of log_uniform, which is what an extreme solution of the tabulated sums
    looks like; piled: both limits, with a share of PILED at the upper one.
    """
    if filling == "piled":
        return low + PILED * (high - low), PILED * (1 - PILED) * (high - low) ** 2
    sizes = np.arange(low, high + 1, dtype=float)
    p = (
        np.full(len(sizes), 1 / len(sizes))
        if filling == "uniform"
        else (1 / sizes) / (1 / sizes).sum()
    )
    mean = float(p @ sizes)
    return mean, (mean - low) * (high - mean) if filling == "vertex" else float(
        p @ (sizes - mean) ** 2
    )


def with_one_more(
    count: int, mean: float, variance: float, value: float, step: int
) -> tuple[int, float, float]:
    """Return count, mean and variance (divisor N) after one record of this value is added (1) or
    removed (-1)."""
    new = count + step
    if new < 1:
        raise ArgumentError(f"a stratum must keep at least one record, got {new}")
    total, square = (
        count * mean + step * value,
        count * (variance + mean * mean) + step * value * value,
    )
    return new, total / new, max(0.0, square / new - (total / new) ** 2)


def allocated(
    weights: Sequence[float], sizes: Sequence[int], m: int, variant: str
) -> tuple[int, ...]:
    """Return the allocation in proportion to `weights`: rounded class by class (stated), or summing
    to m."""
    if variant == "stated":
        total = math.fsum(weights)
        return tuple(
            min(n, math.floor(m * w / total + 0.5)) for w, n in zip(weights, sizes, strict=True)
        )
    return allocation.allocate(sizes, np.array(weights), m)


class BunNeyman(Experiment):
    """Allocations before and after the smallest establishment is raised to the top code, class by
    class.

    Topics: "printed", the two vectors of the paper; "replay", the first vector as weights and one
    growth factor for the last class; and a synthetic population for each filling of the classes.
    Variants: stated rounds every class on its own, half up, so that sums may miss m; consistent
    allocates integers that sum to m.
    """

    name: ClassVar[str] = "bun_neyman"
    stage = "account"
    columns: ClassVar[dict[str, str]] = {
        "replicate": "int64",
        "topic": "str",
        "stratum": "int64",
        "low": "int64",
        "high": "int64",
        "count": "int64",
        "weight_before": "float64",
        "weight_after": "float64",
        "before": "int64",
        "after": "int64",
        "m": "int64",
        "epsilon": "float64",
    }
    keys: ClassVar[tuple[str, ...]] = ("topic", "stratum")
    variants: ClassVar[tuple[str, ...]] = ("stated", "consistent")

    class Settings(ExperimentSettings):
        m: SampleSize = 10000
        top_code: Annotated[int, Field(ge=2)] = Field(
            10000, description="Largest size of an establishment."
        )
        lower_limits: Sizes = Field(
            (1, 5, 10, 20, 50, 100, 250, 500, 1000, 1500, 2500, 5000),
            description="Lower limits of the size classes.",
        )
        counts: ClassNumbers = Field(
            (4200000, 1400000, 950000, 650000, 220000, 125000, 32000, 11500, 3500, 2200, 1200, 600),
            description="Made-up numbers of establishments by class.",
        )
        before: ClassNumbers = Field(
            (1261, 621, 517, 1969, 833, 1947, 1058, 762, 257, 248, 306, 225),
            description="Printed allocation of the population.",
        )
        after: ClassNumbers = Field(
            (1259, 620, 516, 1965, 831, 1943, 1056, 761, 257, 247, 306, 244),
            description="Printed allocation of its neighbour.",
        )
        deviation: Literal["population", "sample"] = Field(
            "sample", description="Divisor N or N - 1 in standard deviations."
        )
        epsilon: Epsilon = 0.1

        def check(self) -> None:
            lows = list(self.lower_limits)
            if lows != sorted(lows) or lows[-1] >= self.top_code:
                raise ArgumentError(
                    f"class limits must increase and stay below top_code, got {lows}"
                )
            for name in ("counts", "before", "after"):
                if (given := len(getattr(self, name))) != len(lows):
                    raise ArgumentError(
                        f"{name} must be given for all {len(lows)} classes, got {given}"
                    )
            if sum(self.counts) < self.m:
                raise ArgumentError(
                    f"m must be at most the population of {sum(self.counts)}, got {self.m}"
                )

        @property
        def highs(self) -> list[int]:
            """Upper limits of the size classes."""
            return [*(low - 1 for low in self.lower_limits[1:]), self.top_code]

    def records(self, settings: Settings, run: Run) -> pd.DataFrame:
        m, k, parts = settings.m, len(settings.counts), []
        for topic, *weights in self._weights(settings):
            # the most that can be drawn from each class; of the vectors only m is known
            sizes = list(settings.counts) if topic in FILLINGS else [m] * k
            changed = [sizes[0] - 1, *sizes[1:-1], sizes[-1] + 1]
            losses = (
                [settings.before, settings.after]
                if topic == "printed"
                else [
                    allocated(w, n, m, run.variant)
                    for w, n in zip(weights, (sizes, changed), strict=True)
                ]
            )
            parts.append(
                pd.DataFrame(
                    {
                        "replicate": 0,
                        "topic": topic,
                        "stratum": range(1, k + 1),
                        "low": settings.lower_limits,
                        "high": settings.highs,
                        "count": settings.counts if topic in FILLINGS else 0,
                        "weight_before": weights[0],
                        "weight_after": weights[1],
                        "before": losses[0],
                        "after": losses[1],
                        "m": m,
                        "epsilon": settings.epsilon,
                    }
                )
            )
        return self.frame(pd.concat(parts, ignore_index=True))

    def _weights(self, settings: Settings) -> Iterator[tuple[str, list[float], list[float]]]:
        """Yield N_i sigma_i before and after, by topic."""
        before, after = list(map(float, settings.before)), list(map(float, settings.after))
        yield "printed", before, after
        # the growth of the last class's share of the total that takes the first vector to the
        # second
        factor = (after[-1] / sum(after[:-1])) / (before[-1] / sum(before[:-1]))
        yield "replay", before, [*before[:-1], before[-1] * factor]
        classes = list(zip(settings.counts, settings.lower_limits, settings.highs, strict=True))
        for filling in FILLINGS:
            moments = [(n, *class_moments(low, high, filling)) for n, low, high in classes]
            first = with_one_more(*moments[0], settings.lower_limits[0], -1)
            changed = [first, *moments[1:-1], with_one_more(*moments[-1], settings.top_code, 1)]
            sample = settings.deviation == "sample"
            weights = [
                [
                    n * math.sqrt(variance * (n / (n - 1) if sample and n > 1 else 1))
                    for n, _, variance in every
                ]
                for every in (moments, changed)
            ]
            yield filling, weights[0], weights[1]
