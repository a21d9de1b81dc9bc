"""Scales of the noise and delta' of one query in the utility experiments (MUST, Tables 4, 6 and 8)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd

from dpsub import checks, sampling
from dpsub.learning import subsets
from dpsub.learning.subsets import plan_noise
from dpsub.noise.gaussian import CLASSICAL_BELOW
from dpsub.reproduce.experiment import Experiment, with_first_stages
from dpsub.sampling import Sampler

STATISTICS_TABLE = "table4"
REPORTED_WITH_CLIP_NORM = "table6"
"""The table whose delta' was made with the ratio C / sigma, sigma being scaled for C / n (erratum E3)."""


@dataclass(frozen=True)
class CalibratedQuery:
    """One released statistic of one sampler at one target epsilon'."""

    table: str
    sampler: str
    b: int
    drawn: Sampler
    epsilon_amplified: float
    statistic: str
    sensitivity: float
    group_sensitivity: float | None


def sensitivities(table: str, settings: Mapping[str, Any], sampler: str, variant: str) -> dict[str, float]:
    """Return the L2 sensitivity of each statistic of a table."""
    sizes = {"n": settings["n"], "m": settings["m"], "variant": variant}
    if table == STATISTICS_TABLE:
        return subsets.of_statistics(sampler, lower=settings["lower"], upper=settings["upper"], **sizes)
    return {"gradient": subsets.of_gradient(sampler, clip=settings["clip"], **sizes)}


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

    def check(self, settings: Mapping[str, Any]) -> None:
        for table in settings["tables"].values():
            checks.integer("n", table["n"], at_least=2)
            for target in table["epsilon_amplified"]:
                checks.real("epsilon_amplified", target, above=0)
        for variant in self.variants:
            list(self.queries(settings, variant))

    def queries(self, settings: Mapping[str, Any], variant: str) -> Iterator[CalibratedQuery]:
        """Yield the queries in the order of the tables."""
        for table, sizes in settings["tables"].items():
            if variant == "as_done" and table != REPORTED_WITH_CLIP_NORM:
                continue
            for target in sizes["epsilon_amplified"]:
                for sampler, b in with_first_stages(sizes["samplers"], sizes["b"]):
                    drawn = sampling.of_sizes(sampler, n=sizes["n"], m=sizes["m"], b=b or None)
                    group = float(sizes["clip"]) if variant == "as_done" else None
                    for statistic, size in sensitivities(table, sizes, sampler, variant).items():
                        yield CalibratedQuery(table, sampler, b, drawn, float(target), statistic, size, group)

    def run(
        self, *, settings: Mapping[str, Any], variant: str, replicates: range, root: int, data: Mapping[str, Path]
    ) -> pd.DataFrame:
        consistent = variant == "consistent"
        rows = []
        for query in self.queries(settings, variant):
            n, m = settings["tables"][query.table]["n"], settings["tables"][query.table]["m"]
            plan = plan_noise(
                query.drawn.multiplicity_law(n),
                epsilon_amplified=query.epsilon_amplified,
                delta=1 / n,
                sensitivity=query.sensitivity,
                calibration="analytic" if consistent else "classical",
                group_sensitivity=query.group_sensitivity,
                nominal_delta=not consistent and query.sampler in ("poisson", "wor"),
            )
            rows.append((
                0, query.table, query.sampler, m, query.b, query.epsilon_amplified, query.statistic, plan.eta,
                plan.epsilon, plan.delta, plan.sensitivity, plan.sigma, plan.delta_amplified,
                int(plan.epsilon < CLASSICAL_BELOW),
            ))  # fmt: skip
        return self.frame(pd.DataFrame(rows, columns=list(self.columns)))
