"""What the size of a sample gives away (Bun et al., Section 4.1 and Proposition 4.1)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import ClassVar

import numpy as np
import pandas as pd
from pydantic import Field

from dpsub import checks
from dpsub.amplification.survey import sizes
from dpsub.papers.bun.settings import RandomLaws
from dpsub.reproduce.experiment import Experiment, Run
from dpsub.reproduce.settings import ExperimentSettings, Listed, Positive, Sizes
from dpsub.streams import Streams

SIZES = 6


class BunSizeTests(Experiment):
    """Best advantage of a test of the size, that of a noisy count, and the limit that epsilon' sets.

    Topics: "jump", two sizes a number apart; "laws", random laws of sizes (difference = 0). epsilon' is the exact loss
    of all mechanisms that see the size. Variants: stated has the limit e^epsilon' - 1, consistent tanh(epsilon'/2),
    rigorous the advantage itself.
    """

    name: ClassVar[str] = "bun_size_tests"
    columns: ClassVar[dict[str, str]] = {
        "replicate": "int64", "topic": "str", "case": "int64", "difference": "int64", "epsilon": "float64",
        "epsilon_amplified": "float64", "advantage": "float64", "laplace_count": "float64", "limit": "float64",
    }  # fmt: skip
    variants: ClassVar[tuple[str, ...]] = ("stated", "consistent", "rigorous")

    class Settings(ExperimentSettings):
        differences: Sizes = Field((1, 2, 5, 10, 19, 50), description="Differences of two sizes.")
        epsilons: Listed[Positive] = Field((0.01, 0.05, 0.1, 0.5, 1), description="Base epsilons, in nats.")
        random_laws: RandomLaws = 10

        def check(self) -> None:
            for difference in self.differences:
                checks.integer("difference", difference, at_least=1, at_most=250)

    def records(self, settings: Settings, run: Run) -> pd.DataFrame:
        rows = []
        for topic, case, one, other, difference, epsilon in self._pairs(settings, run.streams):
            loss = sizes.size_loss(one, other, epsilon)
            found = sizes.advantage(one, other, epsilon)
            limits = {"stated": math.expm1(min(loss, 700.0)), "consistent": math.tanh(loss / 2), "rigorous": found}
            count = -math.expm1(-difference * epsilon / 2)  # of a threshold on the size plus Lap(1/epsilon)
            rows.append((0, topic, case, difference, epsilon, loss, found, count, limits[run.variant]))
        return self.frame(pd.DataFrame(rows, columns=list(self.columns)))

    def _pairs(
        self, settings: Settings, streams: Streams
    ) -> Iterator[tuple[str, int, sizes.SizeChances, sizes.SizeChances, int, float]]:
        rng = streams.data({}, 0)
        drawn = rng.dirichlet(np.ones(SIZES), (settings.random_laws, 2)).tolist()
        for epsilon in (float(value) for value in settings.epsilons):
            for difference in settings.differences:
                yield "jump", 0, {0: 1.0}, {difference: 1.0}, difference, epsilon
            for number, (one, other) in enumerate(drawn, start=1):
                yield "laws", number, dict(enumerate(one)), dict(enumerate(other)), 0, epsilon
