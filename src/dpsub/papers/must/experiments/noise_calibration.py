"""Scales of the noise and delta' of one query in the utility experiments (MUST, Tables 4, 6 and 8)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import pandas as pd
from pydantic import Field

from dpsub import sampling
from dpsub.learning import subsets
from dpsub.learning.subsets import plan_noise
from dpsub.noise.gaussian import CLASSICAL_BELOW
from dpsub.papers.must import settings as shared
from dpsub.papers.must.settings import FIVE, SIX, Experiment1, Experiment2, Experiment3
from dpsub.reproduce.experiment import Experiment, Run, with_first_stages
from dpsub.reproduce.settings import (
    Closed,
    ExperimentSettings,
    FrameSize,
    Samplers,
)
from dpsub.sampling import Sampler

STATISTICS_TABLE = "table4"
REPORTED_WITH_CLIP_NORM = "table6"
"""The table whose delta' was made with the ratio C / sigma, sigma being scaled for C / n (erratum E3)."""


@dataclass(frozen=True)
class CalibratedQuery:
    """One released statistic of one sampler at one target epsilon'."""

    table: str
    sampler: str
    n: int
    m: int
    b: int
    drawn: Sampler
    epsilon_amplified: float
    statistic: str
    sensitivity: float
    group_sensitivity: float | None


class Table4(Experiment1):
    """Noise of experiment 1."""

    samplers: Samplers = FIVE


class Table6(Experiment2):
    """Noise of experiment 2."""

    samplers: Samplers = SIX


class Table8(Experiment3):
    """Noise of experiment 3."""

    n: FrameSize = shared.Table8().n
    samplers: Samplers = SIX


def _several(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


class Tables(Closed):
    """One grid a table; null leaves one out."""

    table4: Table4 | None = Field(Table4(), description="Statistics with range [lower, upper].")
    table6: Table6 | None = Field(Table6(), description="Mean clipped gradients.")
    table8: Table8 | None = Field(Table8(), description="Mean clipped gradients.")


def sensitivities(table: str, settings: Any, sampler: str, variant: str) -> dict[str, float]:
    """Return the L2 sensitivity of each statistic of a table."""
    sizes = {"n": settings.n, "m": settings.m, "variant": variant}
    if table == STATISTICS_TABLE:
        return subsets.of_statistics(sampler, lower=settings.lower, upper=settings.upper, **sizes)
    return {"gradient": subsets.of_gradient(sampler, clip=settings.clip, **sizes)}


class NoiseCalibration(Experiment):
    """Base epsilon from epsilon', the Gaussian scale for (epsilon, 1/n), and delta'.

    Variants: `stated` takes the classical scale, reports the nominal (m/n)/n for Poisson and WOR and the exact profile
    at sensitivity / sigma for the others (erratum E5); `as_done` differs for Table 6 only, where delta' was made with C
    in place of C / n (erratum E3), and has no other table; `consistent` takes one calibration (analytic) and one delta
    (of the exact profile) for all, at the sensitivities of what is released.
    """

    name: ClassVar[str] = "noise_calibration"
    columns: ClassVar[dict[str, str]] = {
        "replicate": "int64", "table": "str", "sampler": "str", "m": "int64", "b": "int64",
        "epsilon_amplified": "float64", "statistic": "str", "eta": "float64", "epsilon": "float64",
        "delta": "float64", "sensitivity": "float64", "sigma": "float64", "delta_amplified": "float64",
        "epsilon_valid": "int64",
    }  # fmt: skip
    variants: ClassVar[tuple[str, ...]] = ("stated", "as_done", "consistent")

    class Settings(ExperimentSettings):
        tables: Tables = Field(Tables(), description="One grid a table.")

        def check(self) -> None:
            for variant in NoiseCalibration.variants:
                list(NoiseCalibration.queries(self, variant))

    @staticmethod
    def queries(settings: Settings, variant: str) -> Iterator[CalibratedQuery]:
        """Yield the queries in the order of the tables."""
        for table, sizes in settings.tables:
            if sizes is None or (variant == "as_done" and table != REPORTED_WITH_CLIP_NORM):
                continue
            for target in _several(sizes.epsilon_amplified):
                for sampler, b in with_first_stages(sizes.samplers, _several(sizes.b)):
                    drawn = sampling.of_sizes(sampler, n=sizes.n, m=sizes.m, b=b or None)
                    group = sizes.clip if variant == "as_done" else None
                    for statistic, size in sensitivities(table, sizes, sampler, variant).items():
                        yield CalibratedQuery(
                            table, sampler, sizes.n, sizes.m, b, drawn, target, statistic, size, group
                        )

    def records(self, settings: Settings, run: Run) -> pd.DataFrame:
        consistent = run.variant == "consistent"
        rows = []
        for query in self.queries(settings, run.variant):
            plan = plan_noise(
                query.drawn.multiplicity_law(query.n),
                epsilon_amplified=query.epsilon_amplified,
                delta=1 / query.n,
                sensitivity=query.sensitivity,
                calibration="analytic" if consistent else "classical",
                group_sensitivity=query.group_sensitivity,
                nominal_delta=not consistent and query.sampler in ("poisson", "wor"),
            )
            rows.append((
                0, query.table, query.sampler, query.m, query.b, query.epsilon_amplified, query.statistic, plan.eta,
                plan.epsilon, plan.delta, plan.sensitivity, plan.sigma, plan.delta_amplified,
                int(plan.epsilon < CLASSICAL_BELOW),
            ))  # fmt: skip
        return self.frame(pd.DataFrame(rows, columns=list(self.columns)))
