"""Recycling rates against the kernel's share of the budget (Jiang et al., Figure 3)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from dpsub import checks
from dpsub.papers.brdp.experiments.brdp_cells.methods import Budget
from dpsub.recycling import GaussianKernel, Recycled, RecycledProfile, choice, paper
from dpsub.reproduce.experiment import Experiment

MARKS = (1.0, 2.0)  # epsilon_y that are always among the points, for they stand in the text


class BrdpRates(Experiment):
    """Gaussian kernels that spend epsilon_y of epsilon alone, at the same delta.

    Variant stated: methods "baseline" (Theorem 2) and "algorithm1"; rigorous: "exact", the largest rate that the exact
    profile allows. `exact_delta` is what each really has at epsilon.
    """

    name: ClassVar[str] = "brdp_rates"
    columns: ClassVar[dict[str, str]] = {
        "replicate": "int64", "method": "str", "y": "float64", "sensitivity": "float64", "bound": "float64",
        "epsilon": "float64", "delta": "float64", "epsilon_y": "float64", "scale": "float64", "rate": "float64",
        "acceptance": "float64", "exact_delta": "float64",
    }  # fmt: skip
    variants: ClassVar[tuple[str, ...]] = ("stated", "rigorous")

    def check(self, settings: Mapping[str, Any]) -> None:
        for delta in settings["deltas"]:
            Budget.of(settings, delta=delta)
        checks.integer("points", settings["points"], at_least=2)
        checks.real("y", settings["y"])

    def run(
        self, *, settings: Mapping[str, Any], variant: str, replicates: range, root: int, data: Mapping[str, Path]
    ) -> pd.DataFrame:
        rows = [row for delta in settings["deltas"] for row in self._rows(settings, variant, float(delta))]
        return self.frame(pd.DataFrame(rows).assign(replicate=0, y=float(settings["y"])))

    def _rows(self, settings: Mapping[str, Any], variant: str, delta: float) -> Iterator[dict[str, Any]]:
        cell = Budget.of(settings, delta=delta)
        last, theta = cell.epsilon, cell.bound
        grid = np.linspace(last / settings["points"], last, settings["points"])
        for spent in np.unique(np.concatenate([grid, [mark for mark in MARKS if mark < last]])).tolist():
            kernel = GaussianKernel.calibrated(spent, delta, cell.sensitivity)
            if variant == "rigorous":
                found = choice.largest_rate(kernel, last, delta, -theta, theta, cell.sensitivity)
                rates = {"exact": found.law.rate}
            else:
                rates = {
                    "baseline": paper.baseline_rate(last, spent),
                    "algorithm1": paper.algorithm1(kernel, last, delta, -theta, theta, cell.sensitivity),
                }
            for method, rate in rates.items():
                law = Recycled.within(kernel, rate, theta, cell.sensitivity)
                yield {
                    **cell.fields, "method": method, "epsilon_y": spent, "scale": kernel.scale, "rate": rate,
                    "acceptance": law.acceptance, "exact_delta": float(RecycledProfile(law).bounds(last)[1]),
                }  # fmt: skip
