"""When recycling pays: the best release for a budget over (epsilon, bound / sensitivity, number of releases)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd

from dpsub import checks
from dpsub.papers.brdp.experiments.brdp_cells.methods import FAMILIES
from dpsub.recycling.ceiling import ceiling
from dpsub.recycling.choice import best_recycler, checked_budget, plain_noise
from dpsub.reproduce.experiment import Experiment


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

    def check(self, settings: Mapping[str, Any]) -> None:
        for epsilon in settings["epsilons"]:
            checked_budget(epsilon, settings["delta"])
        checked_budget(settings["frontier"]["epsilon"], settings["delta"])
        for bound in (*settings["bounds"], settings["frontier"]["bound"]):
            checks.real("bounds", bound, above=0)
        for times in (*settings["n_compositions"], *settings["frontier"]["n_compositions"]):
            checks.integer("n_compositions", times, at_least=1)

    def run(
        self, *, settings: Mapping[str, Any], variant: str, replicates: range, root: int, data: Mapping[str, Path]
    ) -> pd.DataFrame:
        return self.frame(pd.DataFrame(list(self._rows(settings))).assign(replicate=0))

    def _rows(self, settings: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        frontier = settings["frontier"]
        places = [
            *(("map", epsilon, bound, times) for times in settings["n_compositions"] for epsilon in settings["epsilons"]
              for bound in settings["bounds"]),
            *(("frontier", frontier["epsilon"], frontier["bound"], times) for times in frontier["n_compositions"]),
        ]  # fmt: skip
        delta = float(settings["delta"])
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
