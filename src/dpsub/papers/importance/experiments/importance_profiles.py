"""When sampling lowers a loss, by how much, and what sampling once or in every round costs (Fay et al., Appendix A)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Annotated, Any, ClassVar

import numpy as np
import pandas as pd
from pydantic import Field

from dpsub.importance.losses import Power, loss_when_added, loss_when_removed
from dpsub.reproduce.experiment import Experiment, Run
from dpsub.reproduce.settings import (
    Epsilons,
    ExperimentSettings,
    Listed,
    Positive,
    Rates,
    Share,
)


class ImportanceProfiles(Experiment):
    """Losses after sampling over inclusion probabilities, on grids.

    Topics: "power", psi(q) of eps(w) = c w^exponent, `helps` says whether Proposition 16 (some q < 1 lowers the loss)
    applies, `never_helps` whether Proposition 17 does; "uniform", a profile that ignores weights: psi next to the
    approximation eps - log(1/p) and Proposition 3; "rounds", a loss A over T rounds with a sample drawn once (psi) or
    in every round (other).
    """

    name: ClassVar[str] = "importance_profiles"
    columns: ClassVar[dict[str, str]] = {
        "replicate": "int64", "topic": "str", "exponent": "float64", "scale": "float64", "q": "float64",
        "psi": "float64", "added": "float64", "unsampled": "float64", "other": "float64", "helps": "int64",
        "never_helps": "int64",
    }  # fmt: skip
    variants: ClassVar[tuple[str, ...]] = ("stated",)

    class Settings(ExperimentSettings):
        exponents: Epsilons = Field((0, 0.5, 1, 2), description="Exponents p of eps(w) = c w^p.")
        scales: Listed[Positive] = Field((0.1, 1, 3), description="Losses c without sampling, in nats.")
        smallest_rate: Share = Field(0.01, description="Left end of the curves.")
        points: Annotated[int, Field(ge=3, le=10_000)] = Field(61, description="Probabilities a curve.")
        epsilons: Listed[Positive] = Field((1.1, 2, 5, 10, 30), description="Losses of profiles that ignore weights, in nats.")
        losses: Listed[Positive] = Field((0.1, 0.5, 2, 8, 30, 100), description="Losses of all rounds without sampling, in nats.")
        rates: Rates = (0.01, 0.03, 0.1, 0.3)
        rounds: Annotated[int, Field(ge=2)] = Field(10, description="Rounds of the composed mechanism.")

    def records(self, settings: Settings, run: Run) -> pd.DataFrame:
        rows = [*self._powers(settings), *self._uniform(settings), *self._rounds(settings)]
        return self.frame(pd.DataFrame(rows).assign(replicate=0))

    def _powers(self, settings: Settings) -> Iterator[dict[str, Any]]:
        rates = np.geomspace(settings.smallest_rate, 1.0, int(settings.points))
        for exponent in settings.exponents:
            for scale in settings.scales:
                profile = Power(np.full(rates.size, float(scale)), float(exponent))
                helps, never = int(profile.sampling_helps()[0]), int(profile.sampling_never_helps())
                lost, added = profile.sampled(rates), loss_when_added(profile.loss(1 / rates), rates)
                for q, psi, other in zip(rates.tolist(), lost.tolist(), added.tolist(), strict=True):
                    yield {"topic": "power", "exponent": float(exponent), "scale": float(scale), "q": q, "psi": psi,
                           "added": other, "unsampled": float(scale), "other": math.nan, "helps": helps,
                           "never_helps": never}  # fmt: skip

    def _uniform(self, settings: Settings) -> Iterator[dict[str, Any]]:
        for epsilon in settings.epsilons:
            for p in settings.rates:
                psi = float(Power(np.array([float(epsilon)]), 0.0).sampled(p)[0])
                # Proposition 3, written out; the other computation is Theorem 6 with a profile that ignores weights
                closed = math.log1p(p * math.expm1(epsilon)) if epsilon < 700 else epsilon + math.log(p)
                yield {"topic": "uniform", "exponent": 0.0, "scale": float(epsilon), "q": float(p), "psi": psi,
                       "added": closed, "unsampled": float(epsilon), "other": epsilon + math.log(p), "helps": 1,
                       "never_helps": 0}  # fmt: skip

    def _rounds(self, settings: Settings) -> Iterator[dict[str, Any]]:
        rounds = int(settings.rounds)
        for loss in settings.losses:
            for q in settings.rates:
                once = float(loss_when_removed(loss / q, q))
                every = rounds * float(loss_when_removed(loss / (rounds * q), q))
                yield {"topic": "rounds", "exponent": 1.0, "scale": float(loss), "q": float(q), "psi": once,
                       "added": float(loss_when_added(loss / q, q)), "unsampled": float(loss), "other": every,
                       "helps": 0, "never_helps": 1}  # fmt: skip
