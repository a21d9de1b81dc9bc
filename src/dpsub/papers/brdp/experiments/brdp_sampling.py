"""Sampling rates and acceptance of sampled releases (Jiang et al., Figure 6 and Algorithm 4)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Literal

import numpy as np
import pandas as pd
from pydantic import Field

from dpsub import checks
from dpsub.papers.brdp.experiments.brdp_cells.methods import Budget, sampled_row
from dpsub.papers.brdp.settings import Amount, Records
from dpsub.recycling import GaussianKernel
from dpsub.recycling.choice import best_recycler
from dpsub.recycling.sampled import Average, Count, Query, Total, algorithm4, inner_budget
from dpsub.reproduce.experiment import Experiment, Run
from dpsub.reproduce.settings import (
    Closed,
    Delta,
    ExperimentSettings,
    Listed,
    Positive,
    Several,
    Share,
)

# rule -> sensitivity and objective of Algorithm 4
STATED = {"printed": ("unscaled", "printed"), "swapped": ("unscaled", "eq13"),
          "true_error": ("unscaled", "convolution")}  # fmt: skip
CONSISTENT = {"corrected": ("scaled", "convolution")}


ALIKE = 1e-9  # of acceptances: a smaller rate that gains no more is no better


def made(kind: str, n: int, clip: float, sigma_x: float, share: float) -> Query:
    """Return the query of n records with these moments."""
    if kind == Count.name:
        return Count.of_share(n, share)
    return {Total.name: Total, Average.name: Average}[kind](n, clip, sigma_x)


class Queries(Closed):
    """One query."""

    query: Literal["sum", "avg", "cnt"] = Field(description="Sum, average or count.")
    clip: Amount
    bound: Amount


class BrdpSampling(Experiment):
    """One record a query, number of records and rule.

    Rules: "printed" and "swapped" calibrate to the sensitivity at p = 1 and maximise Equation 13, as printed and with q
    and 1 - q exchanged; "true_error" maximises the true acceptance with that sensitivity (variant stated). "corrected"
    has the sensitivity D / p and the true acceptance (consistent); "exact" the same with the best release by exact
    accounting at each of a few rates (rigorous). `acceptance` is P(|E + N| <= bound), `exact_delta` what the
    release has with its true sensitivity D / p, `whole` the acceptance of the same rule without sampling.
    """

    name: ClassVar[str] = "brdp_sampling"
    columns: ClassVar[dict[str, str]] = {
        "replicate": "int64", "query": "str", "n": "int64", "rule": "str", "sigma_x": "float64", "share": "float64",
        "sensitivity": "float64", "bound": "float64", "epsilon": "float64", "delta": "float64",
        "sampling_rate": "float64", "scale": "float64", "rate": "float64", "claimed": "float64",
        "acceptance": "float64", "whole": "float64", "exact_delta": "float64",
    }  # fmt: skip
    variants: ClassVar[tuple[str, ...]] = ("stated", "consistent", "rigorous")

    class Settings(ExperimentSettings):
        sigma_x: Amount = 10
        share: Share = Field(0.1, description="Share p_c of records that are counted.")
        epsilon: Amount = 0.1
        delta: Delta = 1e-5
        sizes: Several[Records] = (100, 300, 1000, 3000, 10000, 30000, 100000)
        queries: Several[Queries] = Field((Queries(query="sum", clip=1, bound=3), Queries(query="avg", clip=22, bound=0.3), Queries(query="cnt", clip=1, bound=3)), description="Queries with clipping range and bound.")
        exact_sizes: Several[Records] = (100, 1000, 100000)
        exact_rates: Listed[Positive] = Field((0.1, 0.3, 0.6, 0.9), description="Sampling rates that are tried.")

        def check(self) -> None:
            for query in self.queries:
                Budget.of(self, sensitivity=query.clip, bound=query.bound)
            for rate in self.exact_rates:
                checks.real("exact_rates", rate, at_most=1)

    def records(self, settings: Settings, run: Run) -> pd.DataFrame:
        rows: list[dict[str, Any]] = []
        for n in settings.exact_sizes if run.variant == "rigorous" else settings.sizes:
            for chosen in settings.queries:
                query = made(chosen.query, n, float(chosen.clip), settings.sigma_x, settings.share)
                cell = Budget.of(settings, sensitivity=query.sensitivity(), bound=chosen.bound)
                found = self._exact(query, cell, settings) if run.variant == "rigorous" else self._stated(
                    query, cell, STATED if run.variant == "stated" else CONSISTENT)  # fmt: skip
                base = {"replicate": 0, "query": query.name, "n": n, "sigma_x": settings.sigma_x,
                        "share": settings.share, **cell.fields}  # fmt: skip
                rows += [{**base, **row} for row in found]
        return self.frame(pd.DataFrame(rows))

    def _stated(self, query: Query, cell: Budget, rules: Mapping[str, tuple[str, str]]) -> Iterator[dict[str, Any]]:
        whole = cell.chosen("gau_br").acceptance
        for rule, (sensitivity, objective) in rules.items():
            found = algorithm4(query, cell.epsilon, cell.delta, cell.bound, cell.sensitivity, sensitivity=sensitivity,
                               objective=objective)  # fmt: skip
            yield {"rule": rule, "claimed": found.claimed, "whole": whole,
                   **sampled_row(query, cell, found.law, found.sampling_rate)}  # fmt: skip

    def _exact(self, query: Query, cell: Budget, settings: Settings) -> Iterator[dict[str, Any]]:
        tried = []
        for rate in sorted({*map(float, settings.exact_rates), 1.0}):
            epsilon, delta = inner_budget(cell.epsilon, cell.delta, rate)
            law = best_recycler(GaussianKernel, epsilon, delta, cell.bound, query.sensitivity(rate)).law
            tried.append(sampled_row(query, cell, law, rate))
        accepted = np.array([row["acceptance"] for row in tried])
        best = int(np.flatnonzero(accepted >= accepted.max() - ALIKE)[-1])
        whole = tried[-1]["acceptance"]
        yield {"rule": "exact", "claimed": tried[best]["acceptance"], "whole": whole, **tried[best]}
