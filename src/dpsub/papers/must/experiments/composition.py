"""Privacy of many compositions by the Fourier accountant (MUST, delta_c of Table 8 and Figure S2)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from pydantic import Field

from dpsub import checks, sampling
from dpsub.accounting.algorithm1 import LossGrid, cell_mass_bounds, check_size, compose
from dpsub.accounting.pairs import GaussianPair, MixturePair, PoissonPair, WorPair
from dpsub.learning import subsets
from dpsub.learning.subsets import plan_noise
from dpsub.papers.must.settings import FigureS2, GridSize, HalfWidth, Table8
from dpsub.reproduce.experiment import Experiment, Run
from dpsub.reproduce.settings import (
    ExperimentSettings,
)

METHODS = {"stated": "printed", "as_done": "as_done", "consistent": "cell_mass"}
MAX_DOUBLINGS = 4

CHARGED_SHARE = 0.01
"""Largest share of delta that a bracket may be widened by for losses outside the grid, before the grid is doubled."""

CONSISTENT_NOISE = "table8_consistent_noise"
NOISES = {
    "stated": [("table8", "stated", "classical")],
    "as_done": [("table8", "stated", "classical")],
    "consistent": [("table8", "stated", "classical"), (CONSISTENT_NOISE, "consistent", "analytic")],
}
"""Which noise each variant composes: name in the records, variant of the sensitivity, calibration."""


@dataclass(frozen=True, eq=False)
class Task:
    """One pair, composed up to several numbers of times."""

    table: str
    sampler: str
    pair: GaussianPair
    n_compositions: list[int]
    epsilon: float
    half_width: float
    grid_size: int


def pair_of(sampler: str, sizes: Any, scale: float, rate_digits: int | None = None) -> GaussianPair:
    """Return the paper's pair of a sampler at the sizes n, b, m.

    Parameters
    ----------
    sampler : str
        Identifier of the sampler.
    sizes
        With n, b, m.
    scale : float
        s, in units of the shift by one occurrence.
    rate_digits : int, optional
        Decimals to which q = m/n is rounded for Poisson and WOR (erratum E2); None: exact.

    Raises
    ------
    ArgumentError
        If the sampler is unknown, or sizes or scale are out of range.
    """
    n, m = sizes.n, sizes.m
    drawn = sampling.of_sizes(sampler, n=n, m=m, b=sizes.b)
    if sampler not in ("poisson", "wor"):
        return MixturePair(drawn.multiplicity_law(n), scale)
    rate = m / n if rate_digits is None else round(m / n, rate_digits)
    return PoissonPair(rate, scale) if sampler == "poisson" else WorPair(rate, scale)


def noise_of_sum(sampler: str, table: Table8, variant: str, calibration: str) -> float:
    """Return m sigma of Table 8: the scale of the noise on the sum of a subset's clipped gradients.

    Parameters
    ----------
    sampler : str
        Identifier of the sampler.
    table : Table8
    variant, calibration : str
        Variant of the sensitivity, and rule for the scale.

    Raises
    ------
    ArgumentError
        If a setting is out of range.
    """
    n, m, clip, target = table.n, table.m, table.clip, table.epsilon_amplified
    law = sampling.of_sizes(sampler, n=n, m=m, b=table.b).multiplicity_law(n)
    size = subsets.of_gradient(sampler, n=n, m=m, clip=clip, variant=variant)
    plan = plan_noise(law, epsilon_amplified=target, delta=1 / n, sensitivity=size, calibration=calibration)
    return m * plan.sigma


class ComposedTable8(Table8):
    """Table 8, with the accountant's grid."""

    half_width: HalfWidth = 6
    grid_size: GridSize = 300_000
    grid_size_wr: GridSize = Field(200_000, description="Points of the grid for WR.")


class ComposedFigureS2(FigureS2):
    """Figure S2, with the accountant's grid."""

    half_width: HalfWidth = 10
    grid_size: GridSize = 500_000


class MustComposition(Experiment):
    """delta(epsilon) after k compositions, per the paper's pair: no guarantee for the samplers.

    Variants, for the noise sigma of Algorithm 2: `stated` runs Algorithm 1 as printed with s = m sigma; `as_done` adds
    what made the published bounds (q rounded to 0.01 for Poisson and WOR, s to 3 decimals, an error term, clipping);
    `consistent` brackets the pair by exact cell masses at s = m sigma / C, the scale in units of one gradient's norm
    bound (erratum E2), on a grid as wide as that takes: once for the noise that the paper states ("table8") and once
    for the larger noise of the consistent utilities. Figure S2 fixes its scale, so only the method differs there.
    """

    name: ClassVar[str] = "composition"
    columns: ClassVar[dict[str, str]] = {
        "replicate": "int64", "table": "str", "sampler": "str", "method": "str", "n_compositions": "int64",
        "epsilon": "float64", "scale": "float64", "half_width": "float64", "grid_size": "int64",
        "delta_lower": "float64", "delta": "float64", "delta_upper": "float64",
    }  # fmt: skip
    variants: ClassVar[tuple[str, ...]] = ("stated", "as_done", "consistent")

    class Settings(ExperimentSettings):
        table8: ComposedTable8 = Field(ComposedTable8(), description="Settings of Table 8.")
        figure_s2: ComposedFigureS2 = Field(ComposedFigureS2(), description="Settings of Figure S2.")

        def check(self) -> None:
            for variant in MustComposition.variants:
                for task in MustComposition.tasks(self, variant):
                    grid = LossGrid(task.half_width, task.grid_size)
                    if METHODS[variant] == "cell_mass" and variant in self.variants:
                        check_size(grid.size)
                    checks.real("epsilon", task.epsilon, below=grid.half_width)

    @staticmethod
    def tasks(settings: Settings, variant: str) -> Iterator[Task]:
        """Yield what is to be composed, Table 8 first."""
        table = settings.table8
        clip = table.clip
        as_done = variant == "as_done"
        for sampler in table.samplers:
            for name, noise, calibration in NOISES[variant]:
                scale = noise_of_sum(sampler, table, noise, calibration) / (clip if variant == "consistent" else 1.0)
                pair = pair_of(sampler, table, round(scale, 3) if as_done else scale, 2 if as_done else None)
                grid_size = table.grid_size_wr if sampler == "wr" else table.grid_size
                k = [table.n_compositions]
                yield Task(name, sampler, pair, k, table.epsilon, table.half_width, grid_size)
        figure = settings.figure_s2
        for sampler in figure.samplers:
            pair = pair_of(sampler, figure, figure.scale)
            yield Task(
                "figure_s2", sampler, pair, list(figure.n_compositions), figure.epsilon, figure.half_width,
                figure.grid_size,
            )  # fmt: skip

    def records(self, settings: Settings, run: Run) -> pd.DataFrame:
        method = METHODS[run.variant]
        rows = []
        for task in self.tasks(settings, run.variant):
            if method == "cell_mass":
                grid, found = bracket(task)
            else:
                grid, found = LossGrid(task.half_width, task.grid_size), by_density(task, method)
            used = (task.epsilon, task.pair.scale, grid.half_width, grid.size)
            rows += [
                (0, task.table, task.sampler, method, k, *used, *bounds)
                for k, bounds in zip(task.n_compositions, found, strict=True)
            ]
        return self.frame(pd.DataFrame(rows, columns=list(self.columns)))


def by_density(task: Task, method: str) -> list[tuple[float, float, float]]:
    """Return (lower, value, upper) of delta for each k by Algorithm 1.

    Below the floor of round-off a lower bound becomes 0, an upper bound the floor.
    """
    result = compose(
        task.pair, steps=task.n_compositions, epsilon=task.epsilon, half_width=task.half_width,
        grid_size=task.grid_size, method=method,
    )  # fmt: skip
    intervals = [result.interval(i) for i in range(len(task.n_compositions))]
    return [(bounds.lower, float(value), bounds.upper) for bounds, value in zip(intervals, result.delta, strict=True)]


def bracket(task: Task) -> tuple[LossGrid, list[tuple[float, float, float]]]:
    """Return (lower, value, upper) of delta for each k from exact cell masses, and the grid that they needed.

    The grid of the settings is doubled, at the same step, until what is charged for losses that leave it no longer
    counts: at the consistent scale of MUST.OW and MUST.WW the sum of 1000 losses lies far outside [-6, 6].
    """
    k = np.array(task.n_compositions)
    for doubling in range(MAX_DOUBLINGS + 1):
        grid = LossGrid(task.half_width * 2**doubling, task.grid_size * 2**doubling)
        bounds = cell_mass_bounds(task.pair, grid, task.epsilon, k)
        charged = bounds.beyond + bounds.aliasing_lower + bounds.aliasing_upper
        if np.all(charged <= CHARGED_SHARE * bounds.middle):
            break
    return grid, list(zip(bounds.lower.tolist(), bounds.middle.tolist(), bounds.upper.tolist(), strict=True))
