"""Recycling rates against the kernel's share of the budget (Jiang et al., Figure 3)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar

import numpy as np
import pandas as pd
from pydantic import Field

from dpsub.papers.brdp.experiments.brdp_cells.methods import Budget
from dpsub.papers.brdp.settings import Amount
from dpsub.recycling import GaussianKernel, Recycled, RecycledProfile, choice, paper
from dpsub.reproduce.experiment import Experiment, Run
from dpsub.reproduce.settings import Delta, ExperimentSettings, Several

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

    class Settings(ExperimentSettings):
        sensitivity: Amount = 1
        bound: Amount = 1
        epsilon: Amount = 3
        deltas: Several[Delta] = (0.001, 1e-5, 1e-10)
        y: float = Field(10, description="The answer, on which nothing depends.")
        points: Annotated[int, Field(ge=2, le=10_000_000)] = Field(30, description="Points of the grid.")

        def check(self) -> None:
            for delta in self.deltas:
                Budget.of(self, delta=delta)

    def records(self, settings: Settings, run: Run) -> pd.DataFrame:
        rows = [row for delta in settings.deltas for row in self._rows(settings, run.variant, float(delta))]
        return self.frame(pd.DataFrame(rows).assign(replicate=0, y=float(settings.y)))

    def _rows(self, settings: Settings, variant: str, delta: float) -> Iterator[dict[str, Any]]:
        cell = Budget.of(settings, delta=delta)
        last, theta = cell.epsilon, cell.bound
        grid = np.linspace(last / settings.points, last, settings.points)
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
