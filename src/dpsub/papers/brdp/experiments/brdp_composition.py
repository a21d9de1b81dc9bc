"""Many releases of one recycler: the paper's composition next to exact accounting (Jiang et al., Figure 5)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import pandas as pd

from dpsub.papers.brdp.experiments.brdp_cells.methods import FAMILIES, Budget
from dpsub.papers.brdp.settings import Amount, Conversion, Times
from dpsub.recycling import paper
from dpsub.recycling.composition import account
from dpsub.reproduce.experiment import Experiment, Run
from dpsub.reproduce.settings import Delta, ExperimentSettings, Listed


class BrdpComposition(Experiment):
    """Epsilon at delta after T releases, each calibrated for (epsilon, delta) alone.

    Variant stated: Theorem 3 for "br", for "dp" the same accountant without a recycler; `lower` and `upper` repeat the
    value. Rigorous: both ends of the exact value for the same releases, and for "best", the Gaussian recycler that
    spends all that exact accounting of one release allows.
    """

    name: ClassVar[str] = "brdp_composition"
    columns: ClassVar[dict[str, str]] = {
        "replicate": "int64", "kernel": "str", "method": "str", "n_compositions": "int64", "sensitivity": "float64",
        "bound": "float64", "epsilon": "float64", "delta": "float64", "scale": "float64", "rate": "float64",
        "composed": "float64", "lower": "float64", "upper": "float64", "exact_delta": "float64",
    }  # fmt: skip
    variants: ClassVar[tuple[str, ...]] = ("stated", "rigorous")

    class Settings(ExperimentSettings):
        sensitivity: Amount = 1
        bound: Amount = 1
        epsilon: Amount = 1
        delta: Delta = 1e-5
        conversion: Conversion = "balle2020"
        width: Amount = 0.005
        n_compositions: Listed[Times] = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)

        def check(self) -> None:
            Budget.of(self)

    def records(self, settings: Settings, run: Run) -> pd.DataFrame:
        return self.frame(pd.DataFrame(list(self._rows(settings, run.variant))).assign(replicate=0))

    def _rows(self, settings: Settings, variant: str) -> Iterator[dict[str, Any]]:
        cell = Budget.of(settings)
        for kernel in FAMILIES:
            kinds = ("dp", "br", "best") if (variant, kernel) == ("rigorous", "gau") else ("dp", "br")
            for kind in kinds:
                chosen = cell.chosen(f"{kernel}_{kind}")
                for times in settings.n_compositions:
                    if variant == "stated":
                        conversion = settings.conversion
                        value = paper.theorem3_epsilon(chosen.law, times, cell.delta, conversion=conversion)
                        ends = (value, value)
                    else:
                        found = account(chosen.law, times, delta=cell.delta, width=settings.width)
                        ends = (found.lower, found.upper)
                    yield {
                        **cell.fields, "kernel": kernel, "method": kind, "n_compositions": times,
                        "scale": chosen.law.kernel.scale, "rate": chosen.law.rate, "composed": ends[1],
                        "lower": ends[0], "upper": ends[1], "exact_delta": chosen.true_delta,
                    }  # fmt: skip
