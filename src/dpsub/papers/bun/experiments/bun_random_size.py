"""Privacy of samples whose size is a truncated Gaussian, over its standard deviation (Bun et al., Figure 2)."""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np
import pandas as pd
from pydantic import Field

from dpsub import checks
from dpsub.amplification.survey import sizes
from dpsub.reproduce.experiment import Experiment, Run
from dpsub.reproduce.settings import (
    Epsilon,
    ExperimentSettings,
    FrameSize,
    Listed,
    Positive,
    Share,
)
from dpsub.sampling.allocation import log_normal_sizes


def sigmas_of(settings: BunRandomSize.Settings) -> np.ndarray:
    """Return the standard deviations: `points` in equal ratios, as many in equal steps, and those that are named.

    Raises
    ------
    ArgumentError
        If the ends are not above 0 or reversed, or fewer than two points are asked for.
    """
    low = checks.real("sigma_min", settings.sigma_min, above=0)
    high = checks.real("sigma_max", settings.sigma_max, at_least=low)
    points = checks.integer("points", settings.points, at_least=2)
    named = [checks.real("sigma", sigma, at_least=low, at_most=high) for sigma in settings.named]
    return np.unique(np.round([*np.geomspace(low, high, points), *np.linspace(low, high, points), *named], 6))


class BunRandomSize(Experiment):
    """Upper and lower bound of Theorem 3.1 and the exact loss.

    Variants: stated holds for mechanisms that are epsilon-DP under add_remove and under substitute alike (printed
    without the second); consistent is what holds for epsilon-DP under add_remove alone; rigorous is the exact loss for
    the latter, as both of its columns.
    """

    name: ClassVar[str] = "bun_random_size"
    columns: ClassVar[dict[str, str]] = {
        "replicate": "int64", "n": "int64", "epsilon": "float64", "sigma": "float64", "mean": "float64",
        "tilted_share": "float64", "lower": "float64", "upper": "float64",
    }  # fmt: skip
    variants: ClassVar[tuple[str, ...]] = ("stated", "consistent", "rigorous")

    class Settings(ExperimentSettings):
        n: FrameSize = 10000
        epsilon: Epsilon = 0.01
        mean_share: Share = Field(0.5, description="Mean size over n.")
        sigma_min: Positive = Field(1, description="First standard deviation of the size.")
        sigma_max: Positive = Field(1000, description="Last standard deviation of the size.")
        points: Annotated[int, Field(ge=2, le=100_000)] = Field(41, description="Points of each of the two grids between them.")
        named: Listed[Positive] = Field((1, 100, 400, 600, 800, 1000), description="Standard deviations of which the claims speak.")

        def check(self) -> None:
            sigmas_of(self)

    def records(self, settings: Settings, run: Run) -> pd.DataFrame:
        n, epsilon = int(settings.n), float(settings.epsilon)
        mean, rows = settings.mean_share * n, []
        for sigma in sigmas_of(settings).tolist():
            law = log_normal_sizes(n, mean, sigma)
            if run.variant == "rigorous":
                lower = upper = sizes.random_size_exact(law, epsilon)
            else:
                factor = 1 if run.variant == "stated" else 2
                lower = sizes.random_size_lower(law, epsilon, factor=factor)
                upper = sizes.random_size_upper(law, epsilon, factor=factor)
            found = float(np.arange(n + 1) @ np.exp(law))
            rows.append((0, n, epsilon, sigma, found, sizes.tilted_mean(law, epsilon) / n, lower, upper))
        return self.frame(pd.DataFrame(rows, columns=list(self.columns)))
