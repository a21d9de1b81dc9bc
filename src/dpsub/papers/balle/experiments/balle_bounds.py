"""The table of bounds on a grid (Balle et al., Table 1 and Theorem 14)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import numpy as np
import pandas as pd
from pydantic import Field

from dpsub import checks, noise
from dpsub.amplification import Bound, DeclaredProfile
from dpsub.amplification.small_universes import ROWS, bound_of
from dpsub.noise import BlackBoxGroups, Profile
from dpsub.relations import Relation
from dpsub.reproduce.experiment import Experiment, Run
from dpsub.reproduce.settings import (
    Epsilons,
    ExperimentSettings,
    Listed,
    Mechanisms,
    Positive,
    Rates,
    Sizes,
)

GROUPS = ("white_box", "black_box")


class BalleBounds(Experiment):
    """delta' at each epsilon' for every row, size, mechanism, and both ways to bound groups."""

    name: ClassVar[str] = "balle_bounds"
    columns: ClassVar[dict[str, str]] = {
        "replicate": "int64", "theorem": "str", "sampler": "str", "base_relation": "str", "relation": "str",
        "n": "int64", "sampling_rate": "float64", "mechanism": "str", "ratio": "float64", "groups": "str",
        "eta": "float64", "epsilon_amplified": "float64", "epsilon": "float64", "delta_amplified": "float64",
    }  # fmt: skip
    variants: ClassVar[tuple[str, ...]] = ("stated",)

    class Settings(ExperimentSettings):
        n: Sizes = Field((1000,), description="Sizes of the data set.")
        sampling_rates: Rates = Field((0.01, 0.1), description="Rates gamma; m = gamma n.")
        ratios: Listed[Positive] = Field((1,), description="Sensitivity over noise scale.")
        mechanisms: Mechanisms = ("laplace", "gaussian")
        epsilon_amplified: Epsilons = Field((0, 0.05, 0.1, 0.2), description="epsilon' in nats.")

        def check(self) -> None:
            for n in self.n:
                for rate in self.sampling_rates:
                    checks.integer(f"sampling rate {rate:g} times n = {n}", round(rate * n, 9), at_least=1)
            for mechanism in self.mechanisms:
                for ratio in self.ratios:
                    noise.of(mechanism, ratio)

    def records(self, settings: Settings, run: Run) -> pd.DataFrame:
        rows = [
            record
            for n in settings.n
            for rate in settings.sampling_rates
            for theorem, bound in bounds_at(n, rate)
            for mechanism in settings.mechanisms
            for ratio in settings.ratios
            for record in _points(theorem, bound, noise.of(mechanism, ratio), settings, n=n, rate=rate)
        ]
        return self.frame(pd.DataFrame(rows))


def bounds_at(n: int, rate: float) -> Iterator[tuple[str, Bound]]:
    """Yield every row of the table at size n, with the rate or with m = rate n, and its name."""
    for theorem, (sampler, _, _) in ROWS.items():
        yield theorem, bound_of(theorem, n=n, size=rate if sampler == "poisson" else round(rate * n))


def _points(
    theorem: str, bound: Bound, profile: noise.AdditiveNoiseProfile, settings: BalleBounds.Settings, *, n: int,
    rate: float,
) -> Iterator[dict[str, object]]:
    targets = np.array(settings.epsilon_amplified, dtype=float)
    kinds: dict[str, Profile] = {"white_box": profile, "black_box": BlackBoxGroups(profile)}
    for groups, base in kinds.items():
        deltas = bound.delta(DeclaredProfile.of(base, *Relation), targets)
        for target, epsilon, delta in zip(targets, bound.epsilon_base(targets), deltas, strict=True):
            yield {
                "replicate": 0, "theorem": theorem, "sampler": bound.sampler,
                "base_relation": bound.base_relation.value, "relation": bound.relation.value, "n": n,
                "sampling_rate": float(rate), "mechanism": profile.name, "ratio": profile.ratio, "groups": groups,
                "eta": bound.eta, "epsilon_amplified": float(target), "epsilon": float(epsilon),
                "delta_amplified": float(delta),
            }  # fmt: skip
