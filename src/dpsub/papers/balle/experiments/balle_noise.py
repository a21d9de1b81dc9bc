"""What sampling saves in privacy and costs in noise, for an estimated total."""

from __future__ import annotations

import math
from typing import Annotated, ClassVar

import numpy as np
import pandas as pd
from pydantic import Field

from dpsub.amplification import base_epsilon
from dpsub.reproduce.experiment import Experiment, Run
from dpsub.reproduce.settings import (
    ExperimentSettings,
    FrameSize,
    Listed,
    Positive,
    Share,
)


class BalleNoise(Experiment):
    """Efficiency gamma lambda / epsilon of Poisson sampling, and the error of a total of n values in [0, 1].

    A total of the sample, scaled by 1 / gamma, moves by 1 / gamma with one record, and the base mechanism may use
    lambda = log(1 + (exp(epsilon) - 1) / gamma), so that Laplace noise has scale 1 / (gamma lambda) where the total of
    all records would have 1 / epsilon. The values are (i - 1/2) / n; errors are standard deviations.

    References
    ----------
    balle, Theorem 8; the accounting is ours.
    """

    name: ClassVar[str] = "balle_noise"
    columns: ClassVar[dict[str, str]] = {
        "replicate": "int64", "n": "int64", "epsilon": "float64", "rate": "float64", "base_epsilon": "float64",
        "efficiency": "float64", "noise_error": "float64", "sampling_error": "float64", "total_error": "float64",
    }  # fmt: skip
    variants: ClassVar[tuple[str, ...]] = ("rigorous",)

    class Settings(ExperimentSettings):
        n: FrameSize = 200
        epsilons: Listed[Positive] = Field((0.1, 1, 3), description="epsilon of the release, in nats.")
        smallest_rate: Share = Field(0.001, description="Left end of the curves.")
        points: Annotated[int, Field(ge=2, le=100_000)] = Field(241, description="Rates a curve.")

    def records(self, settings: Settings, run: Run) -> pd.DataFrame:
        rates = np.geomspace(settings.smallest_rate, 1.0, settings.points)
        n = settings.n
        squares = float((((np.arange(n) + 0.5) / n) ** 2).sum())
        parts = []
        for epsilon in settings.epsilons:
            base = np.array([float(base_epsilon(epsilon, float(rate))) for rate in rates])
            noise = math.sqrt(2) / (rates * base)
            sampling = np.sqrt((1 - rates) / rates * squares)
            parts.append(pd.DataFrame({
                "replicate": 0, "n": n, "epsilon": float(epsilon), "rate": rates, "base_epsilon": base,
                "efficiency": rates * base / epsilon, "noise_error": noise, "sampling_error": sampling,
                "total_error": np.hypot(noise, sampling),
            }))  # fmt: skip
        return self.frame(pd.concat(parts, ignore_index=True))
