"""Acceptance against epsilon (Jiang et al., Figure 4), and the most that any noise can accept."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar

import numpy as np
import pandas as pd
from pydantic import Field

from dpsub import checks
from dpsub.papers.brdp.experiments.brdp_cells.methods import COLUMNS, Budget, ceiling_row
from dpsub.papers.brdp.settings import Amount
from dpsub.reproduce.experiment import Experiment, Run
from dpsub.reproduce.settings import Delta, ExperimentSettings, Listed, Positive


class BrdpAcceptance(Experiment):
    """Variant stated: plain noise and the paper's recyclers; rigorous: the best recyclers, and the ceiling.

    Method "ceiling" is the largest acceptance of any symmetric unimodal noise that is (epsilon, delta)-private, from
    above, with `exact_delta` the target.
    """

    name: ClassVar[str] = "brdp_acceptance"
    columns: ClassVar[dict[str, str]] = {
        "replicate": "int64", "sensitivity": "float64", "bound": "float64", "epsilon": "float64", "delta": "float64",
        **COLUMNS,
    }  # fmt: skip
    variants: ClassVar[tuple[str, ...]] = ("stated", "rigorous")

    class Settings(ExperimentSettings):
        sensitivities: Listed[Positive] = Field((1, 5), description="Sensitivities, one panel each.")
        bound: Amount = 1
        delta: Delta = 1e-5
        epsilon_min: Amount = 0.1
        epsilon_max: Amount = 6
        points: Annotated[int, Field(ge=2, le=10_000_000)] = Field(40, description="Points of the paper's curves.")
        exact_points: Annotated[int, Field(ge=2, le=10_000_000)] = Field(16, description="Points of the best recyclers and of the ceiling.")

        def check(self) -> None:
            for sensitivity in self.sensitivities:
                Budget.of(self, sensitivity=sensitivity, epsilon=self.epsilon_min)
            checks.real("epsilon_max", self.epsilon_max, above=self.epsilon_min)

    def records(self, settings: Settings, run: Run) -> pd.DataFrame:
        return self.frame(pd.DataFrame(list(self._rows(settings, run.variant))).assign(replicate=0))

    def _rows(self, settings: Settings, variant: str) -> Iterator[dict[str, Any]]:
        points = settings.points if variant == "stated" else settings.exact_points
        for sensitivity in settings.sensitivities:
            for epsilon in np.linspace(settings.epsilon_min, settings.epsilon_max, points).tolist():
                cell = Budget.of(settings, sensitivity=sensitivity, epsilon=epsilon)
                yield from cell.rows(variant)
                if variant == "rigorous":
                    yield ceiling_row(cell)
