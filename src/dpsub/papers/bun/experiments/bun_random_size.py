"""Privacy of samples whose size is a truncated Gaussian, over its standard deviation (Bun et al., Figure 2)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from dpsub import checks
from dpsub.amplification.survey import sizes
from dpsub.reproduce.experiment import Experiment
from dpsub.sampling.allocation import log_normal_sizes


def sigmas_of(settings: Mapping[str, Any]) -> np.ndarray:
    """Return the standard deviations: `points` in equal ratios, as many in equal steps, and those that are named.

    Raises
    ------
    ArgumentError
        If the ends are not above 0 or reversed, or fewer than two points are asked for.
    """
    low = checks.real("sigma_min", settings["sigma_min"], above=0)
    high = checks.real("sigma_max", settings["sigma_max"], at_least=low)
    points = checks.integer("points", settings["points"], at_least=2)
    named = [checks.real("sigma", sigma, at_least=low, at_most=high) for sigma in settings["named"]]
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

    def check(self, settings: Mapping[str, Any]) -> None:
        checks.integer("n", settings["n"], at_least=2)
        checks.real("epsilon", settings["epsilon"], above=0)
        checks.real("mean_share", settings["mean_share"], above=0, below=1)
        sigmas_of(settings)

    def run(
        self, *, settings: Mapping[str, Any], variant: str, replicates: range, root: int, data: Mapping[str, Path]
    ) -> pd.DataFrame:
        n, epsilon = int(settings["n"]), float(settings["epsilon"])
        mean, rows = settings["mean_share"] * n, []
        for sigma in sigmas_of(settings).tolist():
            law = log_normal_sizes(n, mean, sigma)
            if variant == "rigorous":
                lower = upper = sizes.random_size_exact(law, epsilon)
            else:
                factor = 1 if variant == "stated" else 2
                lower = sizes.random_size_lower(law, epsilon, factor=factor)
                upper = sizes.random_size_upper(law, epsilon, factor=factor)
            found = float(np.arange(n + 1) @ np.exp(law))
            rows.append((0, n, epsilon, sigma, found, sizes.tilted_mean(law, epsilon) / n, lower, upper))
        return self.frame(pd.DataFrame(rows, columns=list(self.columns)))
