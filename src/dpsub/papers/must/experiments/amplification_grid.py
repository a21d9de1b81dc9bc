"""Amplified privacy parameters over a grid of base epsilon (MUST, Tables 2 and 3, Figures 4 and S3)."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pandas as pd
from pydantic import Field

from dpsub import checks, noise, sampling
from dpsub.amplification import amplify, category
from dpsub.papers.must.settings import Grid
from dpsub.reproduce.experiment import Experiment, Run
from dpsub.reproduce.settings import ExperimentSettings, Listed, Positive, Samplers
from dpsub.sampling.laws import MultiplicityLaw

MOST_POINTS = 100_000


def epsilon_grid(settings: Grid) -> np.ndarray:
    """Return the base epsilons step, 2 step, ..., epsilon_max, as the decimal numbers that they stand for.

    Raises
    ------
    ArgumentError
        If the step or the maximum is not above 0, or the maximum is below one step or beyond `MOST_POINTS` steps.
    """
    step = settings.epsilon_step
    top = checks.real("epsilon_max", settings.epsilon_max, at_least=step, at_most=MOST_POINTS * step)
    return np.round(np.arange(1, round(top / step) + 1) * step, 10)


def laws_of(settings: Any) -> dict[str, MultiplicityLaw]:
    """Return the multiplicity law of each sampler at the sizes n, b, m.

    Raises
    ------
    ArgumentError
        If a sampler is unknown or can't have these sizes.
    """
    n, b, m = settings.n, settings.b, settings.m
    return {
        sampler: sampling.of_sizes(sampler, n=n, m=m, b=b).multiplicity_law(n) for sampler in settings.samplers
    }


class AmplificationGrid(Experiment):
    """(epsilon, delta) of the base mechanism and (epsilon', delta') of the subsampled one, with the category."""

    name: ClassVar[str] = "amplification_grid"
    columns: ClassVar[dict[str, str]] = {
        "replicate": "int64", "mechanism": "str", "ratio": "float64", "sampler": "str", "epsilon": "float64",
        "delta": "float64", "epsilon_amplified": "float64", "delta_amplified": "float64", "eta": "float64",
        "category": "str",
    }  # fmt: skip
    variants: ClassVar[tuple[str, ...]] = ("stated",)

    class Settings(ExperimentSettings, Grid):
        ratios: Listed[Positive] = Field((0.25, 1), description="Sensitivity over noise scale, one grid each.")
        samplers: Samplers = ("poisson", "wor", "wr", "must_wo", "must_ow", "must_ww")

        def check(self) -> None:
            laws_of(self)
            epsilon_grid(self)
            for mechanism in self.mechanisms:
                for ratio in self.ratios:
                    noise.of(mechanism, ratio)

    def records(self, settings: Settings, run: Run) -> pd.DataFrame:
        epsilons, laws = epsilon_grid(settings), laws_of(settings)
        parts = []
        for mechanism in settings.mechanisms:
            for ratio in settings.ratios:
                profile = noise.of(mechanism, ratio)
                for sampler, law in laws.items():
                    result = amplify(law, profile, epsilons)
                    points = np.column_stack(
                        [result.epsilon, result.delta, result.epsilon_amplified, result.delta_amplified]
                    )
                    parts.append(pd.DataFrame({
                        "replicate": 0, "mechanism": mechanism, "ratio": float(ratio), "sampler": sampler,
                        "epsilon": result.epsilon, "delta": result.delta,
                        "epsilon_amplified": result.epsilon_amplified, "delta_amplified": result.delta_amplified,
                        "eta": result.eta, "category": [category(*point) for point in points.tolist()],
                    }))  # fmt: skip
        return self.frame(pd.concat(parts, ignore_index=True))
