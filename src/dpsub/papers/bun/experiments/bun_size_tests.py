"""What the size of a sample gives away (Bun et al., Section 4.1 and Proposition 4.1)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from dpsub import checks
from dpsub.amplification.survey import sizes
from dpsub.reproduce.experiment import Experiment
from dpsub.streams import stream

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

    def check(self, settings: Mapping[str, Any]) -> None:
        for difference in settings["differences"]:
            checks.integer("difference", difference, at_least=1, at_most=250)
        for epsilon in settings["epsilons"]:
            checks.real("epsilon", epsilon, above=0)
        checks.integer("random_laws", settings["random_laws"], at_least=1)

    def run(
        self, *, settings: Mapping[str, Any], variant: str, replicates: range, root: int, data: Mapping[str, Path]
    ) -> pd.DataFrame:
        rows = []
        for topic, case, one, other, difference, epsilon in self._pairs(settings, root):
            loss = sizes.size_loss(one, other, epsilon)
            found = sizes.advantage(one, other, epsilon)
            limits = {"stated": math.expm1(min(loss, 700.0)), "consistent": math.tanh(loss / 2), "rigorous": found}
            count = -math.expm1(-difference * epsilon / 2)  # of a threshold on the size plus Lap(1/epsilon)
            rows.append((0, topic, case, difference, epsilon, loss, found, count, limits[variant]))
        return self.frame(pd.DataFrame(rows, columns=list(self.columns)))

    def _pairs(
        self, settings: Mapping[str, Any], root: int
    ) -> Iterator[tuple[str, int, sizes.SizeChances, sizes.SizeChances, int, float]]:
        rng = stream(root, experiment=self.name, cell={}, role="data", replicate=0)
        drawn = rng.dirichlet(np.ones(SIZES), (settings["random_laws"], 2)).tolist()
        for epsilon in (float(value) for value in settings["epsilons"]):
            for difference in settings["differences"]:
                yield "jump", 0, {0: 1.0}, {difference: 1.0}, difference, epsilon
            for number, (one, other) in enumerate(drawn, start=1):
                yield "laws", number, dict(enumerate(one)), dict(enumerate(other)), 0, epsilon
