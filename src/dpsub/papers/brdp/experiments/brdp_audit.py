"""The literal loop put to a test: lower confidence limits of delta for the paper's parameters."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from dpsub import checks
from dpsub.papers.brdp.experiments.brdp_cells.methods import FAMILIES, Budget
from dpsub.recycling import Recycled, RecycledProfile, paper
from dpsub.reproduce.experiment import Experiment
from dpsub.sampling.laws import clopper_pearson
from dpsub.streams import stream


class BrdpAudit(Experiment):
    """Draws of the loop on two neighbours, and how often they fall where the loss exceeds epsilon.

    `lower` and `upper` are limits of P(S) - e^epsilon P'(S) for the best set S, which is the exact delta; each end is
    missed with a chance of at most 1 - `confidence`. `claimed` is the delta that Algorithm 1 was asked for.
    """

    name: ClassVar[str] = "brdp_audit"
    columns: ClassVar[dict[str, str]] = {
        "replicate": "int64", "kernel": "str", "epsilon_y": "float64", "sensitivity": "float64", "bound": "float64",
        "epsilon": "float64", "claimed": "float64", "rate": "float64", "draws": "int64", "lower": "float64",
        "estimate": "float64", "upper": "float64", "exact": "float64",
    }  # fmt: skip
    variants: ClassVar[tuple[str, ...]] = ("stated",)

    def check(self, settings: Mapping[str, Any]) -> None:
        checks.integer("draws", settings["draws"], at_least=100)
        checks.real("confidence", settings["confidence"], above=0.5, below=1)
        for case in settings["cases"]:
            Budget.of(case)
            checks.one_of("kernel", case["kernel"], FAMILIES)
            checks.real("epsilon_y", case["epsilon_y"], above=0)

    def run(
        self, *, settings: Mapping[str, Any], variant: str, replicates: range, root: int, data: Mapping[str, Path]
    ) -> pd.DataFrame:
        return self.frame(pd.DataFrame(list(self._rows(settings, root))).assign(replicate=0))

    def _rows(self, settings: Mapping[str, Any], root: int) -> Iterator[dict[str, Any]]:
        draws, confidence = int(settings["draws"]), float(settings["confidence"])
        for case in settings["cases"]:
            cell, family = Budget.of(case), FAMILIES[case["kernel"]]
            theta, span = cell.bound, cell.sensitivity
            kernel = family.calibrated(float(case["epsilon_y"]), cell.delta, span)
            rate = paper.algorithm1(kernel, cell.epsilon, cell.delta, -theta, theta, span)
            law = Recycled.within(kernel, rate, theta, span)
            rng = stream(root, experiment=self.name, cell=dict(case), role="noise", replicate=0)
            hits = [self._hits(law, cell.epsilon, law.release_by_loop(np.full(draws, value), rng).released)
                    for value in (0.0, span)]  # fmt: skip
            (low, high), (low_other, high_other) = (clopper_pearson(count, draws, confidence) for count in hits)
            growth = math.exp(cell.epsilon)
            yield {
                "kernel": case["kernel"], "epsilon_y": float(case["epsilon_y"]), "sensitivity": span, "bound": theta,
                "epsilon": cell.epsilon, "claimed": cell.delta, "rate": rate, "draws": draws,
                "lower": low - growth * high_other, "estimate": (hits[0] - growth * hits[1]) / draws,
                "upper": high - growth * low_other, "exact": float(RecycledProfile(law).bounds(cell.epsilon)[1]),
            }  # fmt: skip

    def _hits(self, law: Recycled, epsilon: float, released: np.ndarray) -> int:
        """How many releases have a loss above epsilon, for the values 0 and D."""
        with np.errstate(invalid="ignore", divide="ignore"):
            loss = law.log_density(released) - law.log_density(released - law.sensitivity)
        return int(np.count_nonzero(loss > epsilon))
