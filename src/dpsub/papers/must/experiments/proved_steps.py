"""epsilon against the number of steps, all samplers at equal noise."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from dpsub.papers.must.experiments.accounts import AccountsExperiment, Asked, adjacencies


class ProvedSteps(AccountsExperiment):
    """epsilon(delta) after k steps from both sides, at one noise multiplier for all samplers.

    Poisson comes under both relations: adding or removing a record, and substituting one, as the others.
    """

    name: ClassVar[str] = "proved_steps"

    def questions(self, settings: Mapping[str, Any]) -> list[Asked]:
        sizes = {name: settings[name] for name in ("n", "b", "m")}
        return [
            Asked(
                table=self.name, sampler=sampler, **sizes, noise_multiplier=settings["noise_multiplier"],
                n_compositions=k, quantity="epsilon", given=settings["delta"], adjacency=adjacency,
            )
            for k in settings["n_compositions"]
            for sampler in settings["samplers"]
            for adjacency in adjacencies(sampler)
        ]  # fmt: skip
