"""When recycling pays: the best release for a budget over (epsilon, bound / sensitivity, number of releases)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import pandas as pd
from pydantic import Field

from dpsub.papers.brdp.experiments.brdp_cells.methods import FAMILIES
from dpsub.papers.brdp.settings import Amount, Times
from dpsub.recycling.ceiling import ceiling
from dpsub.recycling.choice import best_recycler, checked_budget, plain_noise
from dpsub.reproduce.experiment import Experiment, Run
from dpsub.reproduce.settings import (
    Closed,
    Delta,
    ExperimentSettings,
    Listed,
    Positive,
)


class Frontier(Closed):
    """One budget, many numbers of releases."""

    epsilon: Amount
    bound: Amount
    n_compositions: Listed[Times]


class BrdpMap(Experiment):
    """Acceptance of each release when all T together keep (epsilon, delta), by proved accounting.

    Methods: "gau_dp", "lap_dp" and "gau_best", "lap_best" (kernel and rate chosen for the composed budget), and for
    T = 1 "ceiling", the most that any symmetric unimodal noise accepts. Topic "map": the grid; topic "frontier": one
    epsilon and bound, more numbers of releases. The sensitivity is 1.
    """

    name: ClassVar[str] = "brdp_map"
    columns: ClassVar[dict[str, str]] = {
        "replicate": "int64", "topic": "str", "epsilon": "float64", "delta": "float64", "bound": "float64",
        "n_compositions": "int64", "method": "str", "acceptance": "float64", "rate": "float64", "scale": "float64",
    }  # fmt: skip
    variants: ClassVar[tuple[str, ...]] = ("rigorous",)

    class Settings(ExperimentSettings):
        delta: Delta = 1e-5
        epsilons: Listed[Positive] = Field((0.1, 0.5, 1, 2, 4), description="Epsilons of the grid, in nats.")
        bounds: Listed[Positive] = Field((0.2, 0.5, 1, 2), description="Bounds over the sensitivity.")
        n_compositions: Listed[Times] = (1, 10)
        frontier: Frontier = Field(Frontier(epsilon=1, bound=1, n_compositions=(1, 3, 10, 30, 100, 300, 1000)), description="One budget, many numbers of releases.")

        def check(self) -> None:
            for epsilon in (*self.epsilons, self.frontier.epsilon):
                checked_budget(epsilon, self.delta)

    def records(self, settings: Settings, run: Run) -> pd.DataFrame:
        return self.frame(pd.DataFrame(list(self._rows(settings))).assign(replicate=0))

    def _rows(self, settings: Settings) -> Iterator[dict[str, Any]]:
        frontier = settings.frontier
        places = [
            *(("map", epsilon, bound, times) for times in settings.n_compositions for epsilon in settings.epsilons
              for bound in settings.bounds),
            *(("frontier", frontier.epsilon, frontier.bound, times) for times in frontier.n_compositions),
        ]  # fmt: skip
        delta = float(settings.delta)
        for topic, epsilon, bound, times in places:
            base = {"topic": topic, "epsilon": float(epsilon), "delta": delta, "bound": float(bound),
                    "n_compositions": times}  # fmt: skip
            for kernel, family in FAMILIES.items():
                for kind, choose in (("dp", plain_noise), ("best", best_recycler)):
                    if (kernel, kind) == ("lap", "best") and times == 1 and (bound >= 1 or epsilon <= 1):
                        # no gain there but terms of the order of delta
                        choose = plain_noise
                    law = choose(family, epsilon, delta, bound, 1.0, times).law
                    yield {**base, "method": f"{kernel}_{kind}", "acceptance": law.acceptance, "rate": law.rate,
                           "scale": law.kernel.scale}  # fmt: skip
            if times == 1:
                yield {**base, "method": "ceiling", "acceptance": ceiling(epsilon, delta, bound, 1.0).upper,
                       "rate": -1.0, "scale": -1.0}  # fmt: skip
