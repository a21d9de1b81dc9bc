"""Bounds of sampling designs, printed and corrected, each with the exact worst loss (Bun et al., Sections 2 to 7)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar

import pandas as pd
from pydantic import Field

from dpsub import checks
from dpsub.papers.bun.experiments import design_cases, size_cases
from dpsub.papers.bun.experiments.laws import Case
from dpsub.papers.bun.settings import RandomLaws
from dpsub.reproduce.experiment import Experiment, Run
from dpsub.reproduce.settings import ExperimentSettings, Listed, Positive


class BunBounds(Experiment):
    """Each statement on a grid: what its formula gives in the variant, and what is true.

    `side` says what the formula claims: "upper" (at least the exact value), "lower" (at most), "equal", or "number" (a
    printed number; then `exact` is the true one). Variants: stated is the printed formula, consistent the corrected
    one, rigorous the exact value. Exact values come from the linear programme over all epsilon-DP mechanisms, or from
    a programme over sequences that the tests hold against it.
    """

    name: ClassVar[str] = "bun_bounds"
    columns: ClassVar[dict[str, str]] = {
        "replicate": "int64", "statement": "str", "case": "str", "side": "str", "epsilon": "float64",
        "bound": "float64", "exact": "float64",
    }  # fmt: skip
    keys: ClassVar[tuple[str, ...]] = ("statement", "case", "epsilon")
    variants: ClassVar[tuple[str, ...]] = ("stated", "consistent", "rigorous")

    class Settings(ExperimentSettings):
        epsilons: Listed[Positive] = Field((0.1, 0.5, 1), description="Base epsilons, in nats.")
        random_laws: RandomLaws = 12
        largest_order: Annotated[int, Field(ge=4, le=24)] = Field(
            12, description="Longest order of systematic samples."
        )

        def check(self) -> None:
            for epsilon in self.epsilons:
                checks.real("epsilon", epsilon, at_most=5)

    def records(self, settings: Settings, run: Run) -> pd.DataFrame:
        rows = [(0, *case[:4], case.bound(run.variant), case.exact) for case in self._cases(settings, run)]
        return self.frame(pd.DataFrame(rows, columns=list(self.columns)))

    def _cases(self, settings: Settings, run: Run) -> Iterator[Case]:
        for epsilon in settings.epsilons:
            yield from size_cases.sizes_of_samples(epsilon, settings.random_laws, run.streams)
        for epsilon in settings.epsilons:
            yield from design_cases.designs(epsilon, settings.largest_order)
        yield from design_cases.same_as_simple()
        for epsilon in settings.epsilons:
            yield from size_cases.lemmas(epsilon, settings.random_laws, run.streams)
        yield from size_cases.printed_numbers()
