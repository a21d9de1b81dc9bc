"""Scales of the noise as the paper calibrates one query, and privacy of many compositions by the
paper's pair (MUST, Tables 4, 6 and 8, Figure S2)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, ClassVar

import numpy as np
import pandas as pd
from pydantic import Field

from dpsub import checks, sampling
from dpsub.accounting.engine.pairs import MIN_SCALE, GaussianPair, MixturePair, PoissonPair, WorPair
from dpsub.noise.gaussian import CLASSICAL_BELOW
from dpsub.papers.must import settings as shared
from dpsub.papers.must.algorithm1 import CompositionGrid, cell_mass_bounds, check_size, compose
from dpsub.papers.must.settings import Experiment1, Experiment2, Experiment3
from dpsub.papers.must.subsets import NoisePlan, of_gradient, of_statistics, plan_noise
from dpsub.reproduce import settings as s
from dpsub.reproduce.experiment import Experiment, Run, with_first_stages
from dpsub.reproduce.records import recorded_first_stage
from dpsub.sampling import Sampler

# Algorithm 1 as printed, with the additions behind the published bounds, and a bracket of the same
# pair's value.
METHODS = {"stated": "printed", "as_done": "as_done", "consistent": "cell_mass"}
MAX_DOUBLINGS = 4

CHARGED_SHARE = 0.01
"""Largest share of delta that a bracket may be widened by for losses outside the grid, before the
grid is doubled."""

HalfWidth = Annotated[
    float, Field(gt=0, description="Half width L of the accountant's grid, in nats.")
]
GridSize = Annotated[
    int, Field(ge=2, le=100_000_000, description="Points r of the accountant's grid, even.")
]
Bounds = tuple[float, float, float]
"""Lower bound, value and upper bound on delta."""


def noise_plans(
    sampler: str,
    drawn: Sampler,
    n: int,
    sizes: Experiment1 | Experiment2 | Experiment3,
    target: float,
    variant: str,
) -> dict[str, Callable[[], NoisePlan]]:
    """Return statistic -> function that plans the noise of a query on `drawn` samples for the
    target epsilon'.

    `stated` and `as_done` scale it to range / n and C / n (Algorithm 2, step 2) by the classical
    rule, and report the nominal delta' = (m/n)/n for Poisson and WOR, the exact profile for the
    others (erratum E5), which `as_done` takes at C / sigma (E3). `consistent` scales it
    analytically to what one copy of a substituted record moves, range / m and 2C / m, for Poisson C
    / m under add_remove with the fixed divisor m (E4), and takes the exact profile for all.
    """
    paper, group = variant != "consistent", None
    if isinstance(sizes, Experiment1):
        sensitivities = of_statistics(
            sampler, n=n, m=sizes.m, lower=sizes.lower, upper=sizes.upper, variant=variant
        )
    else:
        sensitivities = {
            "gradient": of_gradient(sampler, n=n, m=sizes.m, clip=sizes.clip, variant=variant)
        }
        # C where sigma was scaled for C / n: what made the printed delta' of Table 6 (erratum E3).
        group = sizes.clip if variant == "as_done" else None

    def plan(sensitivity: float) -> NoisePlan:
        return plan_noise(
            drawn.multiplicity_law(n),
            epsilon_amplified=target,
            # The paper's delta for every query.
            delta=1 / n,
            sensitivity=sensitivity,
            calibration="classical" if paper else "analytic",
            group_sensitivity=group,
            # The paper has two conventions in one table (erratum E5); the consistent variant has
            # one.
            nominal_delta=paper and sampler in ("poisson", "wor"),
        )

    return {statistic: partial(plan, size) for statistic, size in sensitivities.items()}


class NoiseOfTable4(Experiment1):
    """Noise of experiment 1."""

    samplers: s.Samplers = shared.FIVE


class NoiseOfTable6(Experiment2):
    """Noise of experiment 2."""

    # MUST.WO is simulated in experiment 2, since its law may explain a misprinted cell (erratum
    # E8).
    samplers: s.Samplers = shared.SIX


class NoiseOfTable8(Experiment3):
    """Noise of experiment 3."""

    n: s.FrameSize = shared.Table8().n
    samplers: s.Samplers = shared.SIX

    @classmethod
    def key(cls) -> str:
        # One entry of the configuration sets the sizes of Table 8 here and where it is composed.
        return shared.Table8.key()


class NoiseTables(s.Closed):
    """One grid a table; null leaves one out."""

    table4: NoiseOfTable4 | None = Field(
        NoiseOfTable4(), description="Statistics with range [lower, upper]."
    )
    table6: NoiseOfTable6 | None = Field(NoiseOfTable6(), description="Mean clipped gradients.")
    table8: NoiseOfTable8 | None = Field(NoiseOfTable8(), description="Mean clipped gradients.")


class NoiseCalibration(Experiment):
    """Base epsilon from epsilon', the Gaussian scale for (epsilon, 1/n), and delta', in the
    variants of `noise_plans`.

    `as_done` differs for Table 6 only, and has no other table.
    """

    name: ClassVar[str] = "noise_calibration"
    stage = "account"
    columns: ClassVar[dict[str, str]] = {
        "replicate": "int64",
        "table": "str",
        "sampler": "str",
        "m": "int64",
        "b": "int64",
        "epsilon_amplified": "float64",
        "statistic": "str",
        "eta": "float64",
        "epsilon": "float64",
        "delta": "float64",
        "sensitivity": "float64",
        "sigma": "float64",
        "delta_amplified": "float64",
        "epsilon_valid": "int64",
    }
    variants: ClassVar[tuple[str, ...]] = ("stated", "as_done", "consistent")
    keys: ClassVar[tuple[str, ...]] = ("table", "sampler", "b", "epsilon_amplified", "statistic")

    class Settings(s.ExperimentSettings):
        tables: NoiseTables = Field(NoiseTables(), description="One grid a table.")

        def check(self) -> None:
            for variant in NoiseCalibration.variants:
                list(NoiseCalibration.queries(self, variant))

    @staticmethod
    def queries(
        settings: Settings, variant: str
    ) -> Iterator[tuple[dict[str, Any], Callable[[], NoisePlan]]]:
        """Yield the keys of each record and the function that plans its noise, in the order of the
        tables."""
        for table, sizes in settings.tables:
            # Tables 4 and 8 come out as stated.
            if sizes is None or (variant == "as_done" and table != "table6"):
                continue
            targets, first = (
                x if isinstance(x, tuple) else (x,) for x in (sizes.epsilon_amplified, sizes.b)
            )
            for target in targets:
                for sampler, b in with_first_stages(sizes.samplers, first):
                    drawn = sampling.of_sizes(sampler, n=sizes.n, m=sizes.m, b=b)
                    key = {
                        "table": table,
                        "sampler": sampler,
                        "m": sizes.m,
                        "b": recorded_first_stage(b),
                        "epsilon_amplified": target,
                    }
                    for statistic, plan in noise_plans(
                        sampler, drawn, sizes.n, sizes, target, variant
                    ).items():
                        yield {**key, "statistic": statistic}, plan

    def records(self, settings: Settings, run: Run) -> pd.DataFrame:
        planned = [(key, plan()) for key, plan in self.queries(settings, run.variant)]
        return self.frame(
            [
                {
                    "replicate": 0,
                    **key,
                    **vars(plan),
                    # Equation 9 needs epsilon < 1, by the paper's own footnote 4 (erratum E5).
                    "epsilon_valid": int(plan.epsilon < CLASSICAL_BELOW),
                }
                for key, plan in planned
            ]
        )


@dataclass(frozen=True, eq=False)
class CompositionTask:
    """One pair, composed up to several numbers of times."""

    table: str
    sampler: str
    pair: GaussianPair
    n_compositions: list[int]
    epsilon: float
    grid: CompositionGrid


def pair_of(sampler: str, sizes: Any, scale: float, rate_digits: int | None = None) -> GaussianPair:
    """Return the paper's pair at the sizes n, b, m and a scale in units of the shift by one
    occurrence.

    For Poisson and WOR q = m/n is rounded to `rate_digits` decimals, if given (erratum E2).
    """
    n, m = sizes.n, sizes.m
    scale = checks.real("scale", scale, at_least=MIN_SCALE)
    drawn = sampling.of_sizes(sampler, n=n, m=m, b=sizes.b)
    # Several copies of the record: a mixture over the multiplicity law, with its components at u =
    # 0..m.
    if sampler not in ("poisson", "wor"):
        return MixturePair(drawn.multiplicity_law(n), scale)
    rate = m / n if rate_digits is None else round(m / n, rate_digits)
    return PoissonPair(rate, scale) if sampler == "poisson" else WorPair(rate, scale)


def noise_of_sum(sampler: str, table: shared.Table8, variant: str) -> float:
    """Return m sigma of Table 8: the scale of the noise on the sum of a subset's clipped
    gradients."""
    drawn = sampling.of_sizes(sampler, n=table.n, m=table.m, b=table.b)
    return (
        table.m
        * noise_plans(sampler, drawn, table.n, table, table.epsilon_amplified, variant)[
            "gradient"
        ]().sigma
    )


class ComposedTable8(shared.Table8):
    """Table 8, with the accountant's grid."""

    # L and r of Table 8; the coarser grid for WR is the paper's, and explains most of its
    # difference from WOR (erratum E16).
    half_width: HalfWidth = 6
    grid_size: GridSize = 300_000
    grid_size_wr: GridSize = Field(200_000, description="Points of the grid for WR.")


class ComposedFigureS2(shared.FigureS2):
    """Figure S2, with the accountant's grid."""

    # L and r of Figure S2, for MUST.OW and MUST.WW alike.
    half_width: HalfWidth = 10
    grid_size: GridSize = 500_000


class MustComposition(Experiment):
    """delta(epsilon) after k compositions, per the paper's pair: no guarantee for the samplers.

    Variants, for the noise sigma of Algorithm 2: `stated` runs Algorithm 1 as printed with s = m
    sigma; `as_done` adds what made the published bounds (q rounded to 0.01 for Poisson and WOR, s
    to 3 decimals, an error term, clipping); `consistent` brackets the pair by exact cell masses at
    s = m sigma / C, the scale in units of one gradient's norm bound (erratum E2), on a grid as wide
    as that takes: once for the noise that the paper states ("table8") and once for the larger noise
    of the consistent utilities. Figure S2 fixes its scale, so only the method differs there.
    """

    name: ClassVar[str] = "composition"
    stage = "account"
    columns: ClassVar[dict[str, str]] = {
        "replicate": "int64",
        "table": "str",
        "sampler": "str",
        "method": "str",
        "n_compositions": "int64",
        "epsilon": "float64",
        "scale": "float64",
        "half_width": "float64",
        "grid_size": "int64",
        "delta_lower": "float64",
        "delta": "float64",
        "delta_upper": "float64",
    }
    variants: ClassVar[tuple[str, ...]] = ("stated", "as_done", "consistent")
    keys: ClassVar[tuple[str, ...]] = ("table", "sampler", "method", "n_compositions")

    class Settings(s.ExperimentSettings):
        table8: ComposedTable8 = Field(ComposedTable8(), description="Settings of Table 8.")
        figure_s2: ComposedFigureS2 = Field(
            ComposedFigureS2(), description="Settings of Figure S2."
        )

        def check(self) -> None:
            for variant in MustComposition.variants:
                for task in MustComposition.tasks(self, variant):
                    if METHODS[variant] == "cell_mass" and variant in self.variants:
                        check_size(task.grid.size)
                    checks.real("epsilon", task.epsilon, below=task.grid.half_width)

    @staticmethod
    def tasks(settings: Settings, variant: str) -> Iterator[CompositionTask]:
        """Yield the pairs to be composed, those of Table 8 first."""
        table, figure, as_done = settings.table8, settings.figure_s2, variant == "as_done"
        unit, noises = 1.0, {"table8": "stated"}
        # The paper's scale m sigma is not in units of the clipping bound (erratum E2).
        if variant == "consistent":
            unit, noises = table.clip, {"table8": "stated", shared.CONSISTENT_NOISE: "consistent"}
        for sampler in table.samplers:
            grid = CompositionGrid(
                table.half_width, table.grid_size_wr if sampler == "wr" else table.grid_size
            )
            for name, noise in noises.items():
                scale = noise_of_sum(sampler, table, noise) / unit
                # The published bounds were computed with rounded parameters (erratum E2).
                if as_done:
                    pair = pair_of(sampler, table, round(scale, 3), rate_digits=2)
                else:
                    pair = pair_of(sampler, table, scale)
                yield CompositionTask(
                    name, sampler, pair, [table.n_compositions], table.epsilon, grid
                )
        # Its scale s = 4 is given in units of one occurrence's shift: nothing to correct.
        grid = CompositionGrid(figure.half_width, figure.grid_size)
        for sampler in figure.samplers:
            pair = pair_of(sampler, figure, figure.scale)
            yield CompositionTask(
                "figure_s2", sampler, pair, list(figure.n_compositions), figure.epsilon, grid
            )

    def records(self, settings: Settings, run: Run) -> pd.DataFrame:
        method = METHODS[run.variant]
        rows = []
        for task in self.tasks(settings, run.variant):
            if method == "cell_mass":
                grid, ends = bracket(task)
            else:
                grid, ends = task.grid, by_density(task, method)
            used = (task.epsilon, task.pair.deviation, grid.half_width, grid.size)
            rows += [
                (0, task.table, task.sampler, method, k, *used, *bounds)
                for k, bounds in zip(task.n_compositions, ends, strict=True)
            ]
        return self.frame(pd.DataFrame(rows, columns=list(self.columns)))


def by_density(task: CompositionTask, method: str) -> list[Bounds]:
    """Return the bounds for each k by Algorithm 1; below the floor of round-off 0 and the floor
    itself."""
    result = compose(
        task.pair,
        steps=task.n_compositions,
        epsilon=task.epsilon,
        half_width=task.grid.half_width,
        grid_size=task.grid.size,
        method=method,
    )
    ends = [result.interval(i) for i in range(len(task.n_compositions))]
    return [
        (end.lower, float(value), end.upper) for end, value in zip(ends, result.delta, strict=True)
    ]


def bracket(task: CompositionTask) -> tuple[CompositionGrid, list[Bounds]]:
    """Return the grid that they needed, and the bounds for each k from exact cell masses.

    The grid of the settings is doubled, at the same step, until what is charged for losses that
    leave it no longer counts: at the consistent scale of MUST.OW and MUST.WW the sum of 1000 losses
    lies far outside [-6, 6].
    """
    k = np.array(task.n_compositions)
    for doubling in range(MAX_DOUBLINGS + 1):
        # The step stays: a finer grid would be another bracket than that of the paper's r.
        grid = CompositionGrid(task.grid.half_width * 2**doubling, task.grid.size * 2**doubling)
        bounds = cell_mass_bounds(task.pair, grid, task.epsilon, k)
        charged = bounds.beyond + bounds.aliasing_lower + bounds.aliasing_upper
        if np.all(charged <= CHARGED_SHARE * bounds.middle):
            break
    return grid, list(
        zip(bounds.lower.tolist(), bounds.middle.tolist(), bounds.upper.tolist(), strict=True)
    )
