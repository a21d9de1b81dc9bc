"""Acceptance against epsilon (Jiang et al., Figure 4), and the most that any noise can accept."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from dpsub import checks
from dpsub.papers.brdp.experiments.brdp_cells.methods import COLUMNS, Budget, ceiling_row
from dpsub.reproduce.experiment import Experiment


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

    def check(self, settings: Mapping[str, Any]) -> None:
        for sensitivity in settings["sensitivities"]:
            Budget.of(settings, sensitivity=sensitivity, epsilon=settings["epsilon_min"])
        checks.real("epsilon_max", settings["epsilon_max"], above=settings["epsilon_min"])
        for name in ("points", "exact_points"):
            checks.integer(name, settings[name], at_least=2)

    def run(
        self, *, settings: Mapping[str, Any], variant: str, replicates: range, root: int, data: Mapping[str, Path]
    ) -> pd.DataFrame:
        return self.frame(pd.DataFrame(list(self._rows(settings, variant))).assign(replicate=0))

    def _rows(self, settings: Mapping[str, Any], variant: str) -> Iterator[dict[str, Any]]:
        points = settings["points" if variant == "stated" else "exact_points"]
        for sensitivity in settings["sensitivities"]:
            for epsilon in np.linspace(settings["epsilon_min"], settings["epsilon_max"], points).tolist():
                cell = Budget.of(settings, sensitivity=sensitivity, epsilon=epsilon)
                yield from cell.rows(variant)
                if variant == "rigorous":
                    yield ceiling_row(cell)
