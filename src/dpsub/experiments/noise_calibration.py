"""Scales of the noise and delta' of one query in the utility experiments (MUST, Tables 4, 6 and 8)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd

from dpsub import checks, sampling
from dpsub.experiments.base import Experiment
from dpsub.learning import subsets
from dpsub.learning.subsets import plan_noise
from dpsub.noise.gaussian import CLASSICAL_BELOW
from dpsub.sampling import Sampler

ONE_STAGE = ("poisson", "wor", "wr")
TWO_STAGE = ("must_wo", "must_ow", "must_ww")
STATISTICS_TABLE = "table4"
REPORTED_WITH_CLIP_NORM = "table6"
"""The table whose delta' was made with the ratio C / sigma, sigma being scaled for C / n (erratum E3)."""


@dataclass(frozen=True)
class Query:
    """One released statistic of one scheme at one target epsilon'."""

    table: str
    scheme: str
    b: int
    sampler: Sampler
    epsilon_amplified: float
    statistic: str
    sensitivity: float
    group_sensitivity: float | None


def sensitivities(table: str, settings: Mapping[str, Any], scheme: str, variant: str) -> dict[str, float]:
    """Return the L2 sensitivity of each statistic of a table."""
    sizes = {"n": settings["n"], "m": settings["m"], "variant": variant}
    if table == STATISTICS_TABLE:
        return subsets.of_statistics(scheme, lower=settings["lower"], upper=settings["upper"], **sizes)
    return {"gradient": subsets.of_gradient(scheme, clip=settings["clip"], **sizes)}


class NoiseCalibration(Experiment):
    """Base epsilon from epsilon', the Gaussian scale for (epsilon, 1/n), and delta'.

    Variants: `stated` takes the classical scale, reports the nominal (m/n)/n for Poisson and WOR and the exact profile
    at sensitivity / sigma for the others (erratum E5); `as_done` differs for Table 6 only, where delta' was made with C
    in place of C / n (erratum E3), and has no other table; `consistent` takes one calibration (analytic) and one delta
    convention (the exact profile) for all, at the sensitivities of what is released.
    """

    name: ClassVar[str] = "noise_calibration"
    columns: ClassVar[dict[str, str]] = {
        "replicate": "int64", "table": "str", "scheme": "str", "m": "int64", "b": "int64",
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

    def queries(self, settings: Mapping[str, Any], variant: str) -> Iterator[Query]:
        """Yield the queries in the order of the tables; MUST.WO (noise as of WR) for gradients, where b >= m."""
        for table, sizes in settings["tables"].items():
            if variant == "as_done" and table != REPORTED_WITH_CLIP_NORM:
                continue
            schemes = [(scheme, 0) for scheme in ONE_STAGE] + [
                (scheme, b)
                for scheme in TWO_STAGE
                for b in sizes["b"]
                if scheme != "must_wo" or (table != STATISTICS_TABLE and b >= sizes["m"])
            ]
            for target in sizes["epsilon_amplified"]:
                for scheme, b in schemes:
                    sampler = sampling.of_sizes(scheme, n=sizes["n"], m=sizes["m"], b=b or None)
                    group = float(sizes["clip"]) if variant == "as_done" else None
                    for statistic, size in sensitivities(table, sizes, scheme, variant).items():
                        yield Query(table, scheme, b, sampler, float(target), statistic, size, group)

    def run(
        self, *, settings: Mapping[str, Any], variant: str, replicates: range, root: int, data: Mapping[str, Path]
    ) -> pd.DataFrame:
        consistent = variant == "consistent"
        rows = []
        for query in self.queries(settings, variant):
            n, m = settings["tables"][query.table]["n"], settings["tables"][query.table]["m"]
            plan = plan_noise(
                query.sampler.multiplicity_law(n),
                epsilon_amplified=query.epsilon_amplified,
                delta=1 / n,
                sensitivity=query.sensitivity,
                calibration="analytic" if consistent else "classical",
                group_sensitivity=query.group_sensitivity,
                nominal_delta=not consistent and query.scheme in ("poisson", "wor"),
            )
            rows.append((
                0, query.table, query.scheme, m, query.b, query.epsilon_amplified, query.statistic, plan.eta,
                plan.epsilon, plan.delta, plan.sensitivity, plan.sigma, plan.delta_amplified,
                int(plan.epsilon < CLASSICAL_BELOW),
            ))  # fmt: skip
        return self.frame(pd.DataFrame(rows, columns=list(self.columns)))
