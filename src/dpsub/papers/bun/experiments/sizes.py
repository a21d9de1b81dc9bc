"""Random sizes of samples: the loss over their spread (Bun et al., Figure 2), and the privacy that
a visible size costs (Section 4.1)."""

from __future__ import annotations

import itertools
import math
from typing import Annotated, ClassVar

import numpy as np
import pandas as pd
from pydantic import Field

from dpsub import checks
from dpsub.amplification.survey import sizes as of_sizes
from dpsub.reproduce.experiment import Experiment, Run
from dpsub.reproduce.settings import Epsilon, ExperimentSettings, FrameSize, Listed, Positive, Share
from dpsub.sampling.allocation import log_normal_sizes

RandomLaws = Annotated[int, Field(ge=1, le=1_000, description="Random laws of sizes to try.")]


class BunRandomSize(Experiment):
    """Upper and lower bound of Theorem 3.1 and the exact loss, for a truncated Gaussian size, over
    its deviation.

    Variants: stated holds for mechanisms that are epsilon-DP under add_remove and under substitute
    alike (printed without the second); consistent is what holds for epsilon-DP under add_remove
    alone; rigorous is the exact loss for the latter, as both of its columns.
    """

    name: ClassVar[str] = "bun_random_size"
    stage = "account"
    columns: ClassVar[dict[str, str]] = {
        "replicate": "int64",
        "n": "int64",
        "epsilon": "float64",
        "sigma": "float64",
        "mean": "float64",
        "tilted_share": "float64",
        "lower": "float64",
        "upper": "float64",
    }
    keys: ClassVar[tuple[str, ...]] = ("sigma",)
    variants: ClassVar[tuple[str, ...]] = ("stated", "consistent", "rigorous")

    class Settings(ExperimentSettings):
        n: FrameSize = 10000
        epsilon: Epsilon = 0.01
        mean_share: Share = Field(0.5, description="Mean size over n.")
        sigma_min: Positive = Field(1, description="First standard deviation of the size.")
        sigma_max: Positive = Field(1000, description="Last standard deviation of the size.")
        points: Annotated[int, Field(ge=2, le=100_000)] = Field(
            41, description="Points of each of the two grids between them."
        )
        named: Listed[Positive] = Field(
            (1, 100, 400, 600, 800, 1000),
            description="Standard deviations that the claims name.",
        )

        def check(self) -> None:
            high = checks.real("sigma_max", self.sigma_max, at_least=self.sigma_min)
            for sigma in self.named:
                checks.real("sigma", sigma, at_least=self.sigma_min, at_most=high)

        @property
        def sigmas(self) -> list[float]:
            """Standard deviations: `points` in equal ratios, as many in equal steps, and those that
            are named."""
            grids = [
                space(self.sigma_min, self.sigma_max, self.points)
                for space in (np.geomspace, np.linspace)
            ]
            return [
                float(sigma)
                for sigma in np.unique(np.round([*grids[0], *grids[1], *self.named], 6))
            ]

    def records(self, settings: Settings, run: Run) -> pd.DataFrame:
        n, epsilon, rows = settings.n, settings.epsilon, []
        for sigma in settings.sigmas:
            law = log_normal_sizes(n, settings.mean_share * n, sigma)
            if run.variant == "rigorous":
                lower = upper = of_sizes.random_size_exact(law, epsilon)
            else:
                factor = 1 if run.variant == "stated" else 2
                lower = of_sizes.random_size_lower(law, epsilon, factor=factor)
                upper = of_sizes.random_size_upper(law, epsilon, factor=factor)
            mean = float(np.arange(n + 1) @ np.exp(law))
            rows.append(
                (0, n, epsilon, sigma, mean, of_sizes.tilted_mean(law, epsilon) / n, lower, upper)
            )
        return self.frame(pd.DataFrame(rows, columns=list(self.columns)))


class BunSizeTests(Experiment):
    """Best advantage of a test of the size, that of a noisy count, and the limit that epsilon'
    sets.

    Topics: "jump", two sizes a number apart; "laws", random laws of sizes (difference = 0).
    epsilon' is the exact loss of all mechanisms that see the size. Variants: stated has the limit
    e^epsilon' - 1, consistent tanh(epsilon'/2), rigorous the advantage itself.
    """

    name: ClassVar[str] = "bun_size_tests"
    stage = "account"
    columns: ClassVar[dict[str, str]] = {
        "replicate": "int64",
        "topic": "str",
        "case": "int64",
        "difference": "int64",
        "epsilon": "float64",
        "epsilon_amplified": "float64",
        "advantage": "float64",
        "laplace_count": "float64",
        "limit": "float64",
    }
    axes: ClassVar[tuple[str, ...]] = ("epsilons",)
    keys: ClassVar[tuple[str, ...]] = ("topic", "case", "difference", "epsilon")
    variants: ClassVar[tuple[str, ...]] = ("stated", "consistent", "rigorous")

    class Settings(ExperimentSettings):
        differences: Listed[Annotated[int, Field(ge=1, le=250)]] = Field(
            (1, 2, 5, 10, 19, 50), description="Differences of two sizes."
        )
        epsilons: Listed[Positive] = Field(
            (0.01, 0.05, 0.1, 0.5, 1), description="Base epsilons, in nats."
        )
        random_laws: RandomLaws = 10

    def records(self, settings: Settings, run: Run) -> pd.DataFrame:
        drawn = run.streams.data({}, 0).dirichlet(np.ones(6), (settings.random_laws, 2)).tolist()
        laws = [
            ("laws", number, dict(enumerate(one)), dict(enumerate(other)), 0)
            for number, (one, other) in enumerate(drawn, start=1)
        ]
        jumps = [
            ("jump", 0, {0: 1.0}, {difference: 1.0}, difference)
            for difference in settings.differences
        ]
        rows = []
        for epsilon, (topic, case, one, other, difference) in itertools.product(
            settings.epsilons, [*jumps, *laws]
        ):
            loss, exact = (
                of_sizes.size_loss(one, other, epsilon),
                of_sizes.advantage(one, other, epsilon),
            )
            limits = {
                "stated": math.expm1(min(loss, 700.0)),
                "consistent": math.tanh(loss / 2),
                "rigorous": exact,
            }
            # of a threshold on the size plus Lap(1/epsilon)
            count = -math.expm1(-difference * epsilon / 2)
            rows.append(
                (0, topic, case, difference, epsilon, loss, exact, count, limits[run.variant])
            )
        return self.frame(pd.DataFrame(rows, columns=list(self.columns)))
