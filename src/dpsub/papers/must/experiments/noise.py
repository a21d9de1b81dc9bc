"""Scales of the noise: as the paper calibrates one query, and for one proved privacy of many steps (MUST, Tables 4, 6
and 8)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from pydantic import Field

from dpsub import sampling
from dpsub.accounting.account import account
from dpsub.accounting.pairs import MIN_SCALE
from dpsub.accounting.search import calibrate, safe_root
from dpsub.learning.subsets import of_gradient, of_statistics, plan_noise
from dpsub.noise.gaussian import CLASSICAL_BELOW
from dpsub.papers.must import settings as shared
from dpsub.papers.must.experiments.composition import adjacencies
from dpsub.papers.must.settings import FIVE, SIX, Experiment1, Experiment2, Experiment3, SizesOfFigureS2
from dpsub.reproduce.experiment import Experiment, Run, with_first_stages
from dpsub.reproduce.settings import (
    Closed,
    Delta,
    ExperimentSettings,
    FrameSize,
    Listed,
    Parts,
    Positive,
    Releases,
    Samplers,
    Share,
)  # fmt: skip
from dpsub.sampling import Sampler

STATISTICS_TABLE = "table4"
REPORTED_WITH_CLIP_NORM = "table6"
"""The table whose delta' was made with the ratio C / sigma, sigma being scaled for C / n (erratum E3)."""

MOST_NOISE = 1e4
_DIGITS = 4


@dataclass(frozen=True)
class CalibratedQuery:
    """One released statistic of one sampler (first stage of size b, 0: none) at one target epsilon'."""

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


class Tables(Closed):
    """One grid a table; null leaves one out."""

    table4: Table4 | None = Field(Table4(), description="Statistics with range [lower, upper].")
    table6: Table6 | None = Field(Table6(), description="Mean clipped gradients.")
    table8: Table8 | None = Field(Table8(), description="Mean clipped gradients.")


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
    keys: ClassVar[tuple[str, ...]] = ("table", "sampler", "b", "epsilon_amplified", "statistic")

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
            targets, first = (x if isinstance(x, tuple) else (x,) for x in (sizes.epsilon_amplified, sizes.b))
            for target in targets:
                for sampler, b in with_first_stages(sizes.samplers, first):
                    drawn = sampling.of_sizes(sampler, n=sizes.n, m=sizes.m, b=b or None)
                    group = sizes.clip if variant == "as_done" else None
                    if table == STATISTICS_TABLE:
                        sensitivities = of_statistics(
                            sampler, n=sizes.n, m=sizes.m, lower=sizes.lower, upper=sizes.upper, variant=variant
                        )
                    else:
                        gradient = of_gradient(sampler, n=sizes.n, m=sizes.m, clip=sizes.clip, variant=variant)
                        sensitivities = {"gradient": gradient}
                    for statistic, size in sensitivities.items():
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


class ProvedNoise(Experiment):
    """Noise multipliers that are proved, refuted, and that the paper's pair asks for, at equal (epsilon, delta).

    With `proved` or more noise (epsilon, delta) is proved under `adjacency`; with `refuted` or less explicit data sets
    exceed it; `pair` is where the paper's pair meets it, which is no guarantee (NaN where the paper has no pair).
    Rounded to four digits, `proved` up and `refuted` down, so that the digits shown are safe. A replicate is the number
    of a target, so that jobs share the list.
    """

    name: ClassVar[str] = "proved_noise"
    columns: ClassVar[dict[str, str]] = {
        "replicate": "int64", "sampler": "str", "adjacency": "str", "n_compositions": "int64", "delta": "float64",
        "target_epsilon": "float64", "proved": "float64", "refuted": "float64", "pair": "float64",
    }  # fmt: skip
    variants: ClassVar[tuple[str, ...]] = ("rigorous",)
    keys: ClassVar[tuple[str, ...]] = ("sampler", "adjacency", "target_epsilon")

    class Settings(ExperimentSettings, SizesOfFigureS2):
        parts: Parts = 6
        n_compositions: Releases = 1000
        delta: Delta = 1e-5
        target_epsilons: Listed[Positive] = Field((1, 2, 4, 8), description="Targets of epsilon, in nats.")
        accuracy: Share = Field(0.01, description="Relative accuracy of the noise.")
        samplers: Samplers = FIVE

        def check(self) -> None:
            for sampler in self.samplers:
                sampling.of_sizes(sampler, n=self.n, m=self.m, b=self.b)

    @staticmethod
    def targets(settings: Settings) -> list[tuple[float, str, str]]:
        """Return what is to be met, in order: epsilon, sampler, adjacency."""
        return [
            (epsilon, sampler, adjacency)
            for epsilon in settings.target_epsilons
            for sampler in settings.samplers
            for adjacency in adjacencies(sampler)
        ]

    def replicates(self, settings: Settings) -> int:
        return len(self.targets(settings))

    def records(self, settings: Settings, run: Run) -> pd.DataFrame:
        n, m, b, k = settings.n, settings.m, settings.b, settings.n_compositions
        delta, accuracy, targets = settings.delta, settings.accuracy, self.targets(settings)
        rows = []
        for replicate in run.replicates:
            epsilon, sampler, adjacency = targets[replicate]
            drawn, pair = sampling.of_sizes(sampler, n=n, m=m, b=b), np.nan
            found = calibrate(drawn, n, epsilon=epsilon, delta=delta, steps=k, adjacency=adjacency, accuracy=accuracy)
            if adjacency == drawn.relation:  # the one for which the paper has a pair

                def of_pair(scale: float, drawn: Any = drawn, epsilon: float = epsilon) -> float:
                    width = epsilon * accuracy
                    return account(
                        drawn, n, noise_multiplier=scale, steps=k, delta=delta, variant="paper", width=width
                    ).upper

                root = safe_root(of_pair, epsilon, "a noise multiplier", start=found.noise_multiplier, least=MIN_SCALE,
                                 most=MOST_NOISE, accuracy=accuracy)  # fmt: skip
                pair = rounded(root.safe, math.ceil)
            rows.append((
                replicate, sampler, adjacency, k, delta, epsilon, rounded(found.noise_multiplier, math.ceil),
                rounded(found.refuted or 0.0, math.floor), pair,
            ))  # fmt: skip
        return self.frame(pd.DataFrame(rows, columns=list(self.columns)))


def rounded(value: float, towards: Any) -> float:
    """Return `value` with four digits, rounded by `math.ceil` or `math.floor`.

    The quotient is taken in decimal places, so that a number of four digits stays itself.
    """
    if not value > 0:
        return value
    places = _DIGITS - 1 - math.floor(math.log10(value))
    near = round(value, places)
    return near if near == value else round(towards(value * 10**places) / 10**places, places)
