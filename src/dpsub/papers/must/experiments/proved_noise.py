"""The noise that each sampler needs for one and the same proved privacy."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from pydantic import Field

from dpsub import sampling
from dpsub.accounting.account import account
from dpsub.accounting.pairs import MIN_SCALE
from dpsub.accounting.search import calibrate, safe_root
from dpsub.papers.must.experiments.accounts import adjacencies
from dpsub.papers.must.settings import FIVE, SizesOfFigureS2
from dpsub.relations import Relation
from dpsub.reproduce.experiment import Experiment, Run
from dpsub.reproduce.settings import (
    Delta,
    ExperimentSettings,
    Listed,
    Parts,
    Positive,
    Releases,
    Samplers,
    Share,
)
from dpsub.sampling import Sampler

MOST_NOISE = 1e4
_DIGITS = 4


@dataclass(frozen=True)
class NoiseTarget:
    """What one noise multiplier must meet."""

    sampler: str
    drawn: Sampler
    adjacency: Relation
    epsilon: float


class ProvedNoise(Experiment):
    """Noise multipliers that are proved, refuted, and that the paper's pair asks for, at equal (epsilon, delta).

    With `proved` or more noise (epsilon, delta) is proved under `adjacency`; with `refuted` or less explicit data sets
    exceed it; `pair` is where the paper's pair meets it, which is no guarantee (NaN where the paper has no pair).
    Rounded to four digits, `proved` up and `refuted` down, so that the digits shown are safe.
    """

    name: ClassVar[str] = "proved_noise"
    columns: ClassVar[dict[str, str]] = {
        "replicate": "int64", "sampler": "str", "adjacency": "str", "n_compositions": "int64", "delta": "float64",
        "target_epsilon": "float64", "proved": "float64", "refuted": "float64", "pair": "float64",
    }  # fmt: skip
    variants: ClassVar[tuple[str, ...]] = ("rigorous",)

    class Settings(ExperimentSettings, SizesOfFigureS2):
        parts: Parts = 6
        n_compositions: Releases = 1000
        delta: Delta = 1e-5
        target_epsilons: Listed[Positive] = Field((1, 2, 4, 8), description="Targets of epsilon, in nats.")
        accuracy: Share = Field(0.01, description="Relative accuracy of the noise.")
        samplers: Samplers = FIVE

        def check(self) -> None:
            ProvedNoise.targets(self)

    @staticmethod
    def targets(settings: Settings) -> list[NoiseTarget]:
        """Return what is to be met, in order."""
        n, m, b = settings.n, settings.m, settings.b
        return [
            NoiseTarget(sampler, sampling.of_sizes(sampler, n=n, m=m, b=b), adjacency, epsilon)
            for epsilon in settings.target_epsilons
            for sampler in settings.samplers
            for adjacency in adjacencies(sampler)
        ]  # fmt: skip

    def replicates(self, settings: Settings) -> int:
        return len(self.targets(settings))

    def records(self, settings: Settings, run: Run) -> pd.DataFrame:
        targets = self.targets(settings)
        n, k, delta, accuracy = settings.n, settings.n_compositions, settings.delta, settings.accuracy
        rows = []
        for replicate in run.replicates:
            target = targets[replicate]
            found = calibrate(
                target.drawn, n, epsilon=target.epsilon, delta=delta, steps=k,
                adjacency=target.adjacency, accuracy=accuracy,
            )  # fmt: skip
            in_the_paper = target.adjacency == target.drawn.relation
            pair = noise_of_pair(target, n, k, delta, accuracy, found.noise_multiplier) if in_the_paper else np.nan
            rows.append((
                replicate, target.sampler, target.adjacency, k, delta, target.epsilon,
                rounded(found.noise_multiplier, math.ceil), rounded(found.refuted or 0.0, math.floor), pair,
            ))  # fmt: skip
        return self.frame(pd.DataFrame(rows, columns=list(self.columns)))


def noise_of_pair(target: NoiseTarget, n: int, k: int, delta: float, accuracy: float, start: float) -> float:
    """Return the noise multiplier, rounded up, from which on the paper's pair meets the target."""

    def upper(scale: float) -> float:
        width = target.epsilon * accuracy
        return account(
            target.drawn, n, noise_multiplier=scale, steps=k, delta=delta, variant="paper", width=width
        ).upper

    found = safe_root(
        upper, target.epsilon, "a noise multiplier", start=start, least=MIN_SCALE, most=MOST_NOISE, accuracy=accuracy
    )
    return rounded(found.safe, math.ceil)


def rounded(value: float, towards: Any) -> float:
    """Return `value` with four digits, rounded by `math.ceil` or `math.floor`.

    The quotient is taken in decimal places, so that a number of four digits stays itself.
    """
    if not value > 0:
        return value
    places = _DIGITS - 1 - math.floor(math.log10(value))
    near = round(value, places)
    return near if near == value else round(towards(value * 10**places) / 10**places, places)
