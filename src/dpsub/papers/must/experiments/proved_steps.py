"""epsilon against the number of steps, all samplers at equal noise."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from dpsub.papers.must.experiments.accounts import AccountsExperiment, Asked, adjacencies
from dpsub.papers.must.settings import FIVE, SizesOfFigureS2
from dpsub.reproduce.settings import (
    Delta,
    ExperimentSettings,
    NoiseMultiplier,
    Parts,
    Samplers,
    Sizes,
)


class ProvedSteps(AccountsExperiment):
    """epsilon(delta) after k steps from both sides, at one noise multiplier for all samplers.

    Poisson comes under both relations: adding or removing a record, and substituting one, as the others.
    """

    name: ClassVar[str] = "proved_steps"

    class Settings(ExperimentSettings, SizesOfFigureS2):
        parts: Parts = 4
        noise_multiplier: NoiseMultiplier = 4
        delta: Delta = 1e-5
        n_compositions: Sizes = Field((1, 3, 10, 30, 100, 300, 1000), description="Numbers of composed releases.")
        samplers: Samplers = FIVE

        def check(self) -> None:
            ProvedSteps.questions(self)

    @staticmethod
    def questions(settings: Settings) -> list[Asked]:
        sizes = {"n": settings.n, "b": settings.b, "m": settings.m}
        return [
            Asked(
                table=ProvedSteps.name, sampler=sampler, **sizes, noise_multiplier=settings.noise_multiplier,
                n_compositions=k, quantity="epsilon", given=settings.delta, adjacency=adjacency,
            )
            for k in settings.n_compositions
            for sampler in settings.samplers
            for adjacency in adjacencies(sampler)
        ]  # fmt: skip
