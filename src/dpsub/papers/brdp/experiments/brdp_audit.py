"""The literal loop put to a test: lower confidence limits of delta for the paper's parameters."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import pandas as pd
from pydantic import Field

from dpsub import checks
from dpsub.papers.brdp.experiments.brdp_cells.methods import FAMILIES, Budget
from dpsub.papers.brdp.settings import Amount
from dpsub.recycling import Recycled, RecycledProfile, paper
from dpsub.reproduce.experiment import Experiment, Run
from dpsub.reproduce.settings import Closed, Delta, ExperimentSettings, Several, Share
from dpsub.sampling.laws import clopper_pearson
from dpsub.streams import Streams


class Cases(Closed):
    """One kernel."""

    kernel: Literal["gau", "lap"] = Field(description="Gaussian or Laplace kernel.")
    epsilon_y: Amount
    sensitivity: Amount
    bound: Amount
    epsilon: Amount
    delta: Delta


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

    class Settings(ExperimentSettings):
        draws: Annotated[int, Field(ge=100, le=10_000_000)] = Field(2000000, description="Draws on each side.")
        confidence: Share = Field(0.999, description="Of each interval.")
        cases: Several[Cases] = Field((Cases(kernel="lap", epsilon_y=0.5, sensitivity=1, bound=1, epsilon=1, delta=0.01), Cases(kernel="lap", epsilon_y=0.9, sensitivity=1, bound=1, epsilon=1, delta=0.01), Cases(kernel="gau", epsilon_y=0.5, sensitivity=1, bound=10, epsilon=1, delta=0.01), Cases(kernel="gau", epsilon_y=0.9, sensitivity=1, bound=1, epsilon=1, delta=0.01)), description="Kernels and budgets.")

        def check(self) -> None:
            checks.real("confidence", self.confidence, above=0.5, below=1)
            for case in self.cases:
                Budget.of(case)

    def records(self, settings: Settings, run: Run) -> pd.DataFrame:
        return self.frame(pd.DataFrame(list(self._rows(settings, run.streams))).assign(replicate=0))

    def _rows(self, settings: Settings, streams: Streams) -> Iterator[dict[str, Any]]:
        draws, confidence = int(settings.draws), float(settings.confidence)
        for case in settings.cases:
            cell, family = Budget.of(case), FAMILIES[case.kernel]
            theta, span = cell.bound, cell.sensitivity
            kernel = family.calibrated(float(case.epsilon_y), cell.delta, span)
            rate = paper.algorithm1(kernel, cell.epsilon, cell.delta, -theta, theta, span)
            law = Recycled.within(kernel, rate, theta, span)
            rng = streams.noise(dict(case), 0)
            hits = [self._hits(law, cell.epsilon, law.release_by_loop(np.full(draws, value), rng).released)
                    for value in (0.0, span)]  # fmt: skip
            (low, high), (low_other, high_other) = (clopper_pearson(count, draws, confidence) for count in hits)
            growth = math.exp(cell.epsilon)
            yield {
                "kernel": case.kernel, "epsilon_y": float(case.epsilon_y), "sensitivity": span, "bound": theta,
                "epsilon": cell.epsilon, "claimed": cell.delta, "rate": rate, "draws": draws,
                "lower": low - growth * high_other, "estimate": (hits[0] - growth * hits[1]) / draws,
                "upper": high - growth * low_other, "exact": float(RecycledProfile(law).bounds(cell.epsilon)[1]),
            }  # fmt: skip

    def _hits(self, law: Recycled, epsilon: float, released: np.ndarray) -> int:
        """How many releases have a loss above epsilon, for the values 0 and D."""
        with np.errstate(invalid="ignore", divide="ignore"):
            loss = law.log_density(released) - law.log_density(released - law.sensitivity)
        return int(np.count_nonzero(loss > epsilon))
