"""Bounds of sampling designs, printed and corrected, each with the exact worst loss (Bun et al., Sections 2 to 7)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar

import pandas as pd
from pydantic import Field

from dpsub import checks
from dpsub.papers.bun.experiments.bun_cases import design_cases, lemma_cases, number_cases, size_cases
from dpsub.papers.bun.experiments.bun_cases.cases import Case
from dpsub.papers.bun.settings import RandomLaws
from dpsub.reproduce.experiment import Experiment, Run
from dpsub.reproduce.settings import ExperimentSettings, Listed, Positive
from dpsub.streams import Streams


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
    variants: ClassVar[tuple[str, ...]] = ("stated", "consistent", "rigorous")

    class Settings(ExperimentSettings):
        epsilons: Listed[Positive] = Field((0.1, 0.5, 1), description="Base epsilons, in nats.")
        random_laws: RandomLaws = 12
        largest_order: Annotated[int, Field(ge=4, le=24)] = Field(12, description="Longest order of systematic samples.")

        def check(self) -> None:
            for epsilon in self.epsilons:
                checks.real("epsilon", epsilon, at_most=5)

    def records(self, settings: Settings, run: Run) -> pd.DataFrame:
        rows = []
        for case in self._cases(settings, run.streams):
            bound = {"stated": case.stated, "consistent": case.corrected, "rigorous": case.exact}[run.variant]
            rows.append((0, case.statement, case.case, case.side, case.epsilon, bound, case.exact))
        return self.frame(pd.DataFrame(rows, columns=list(self.columns)))

    def _cases(self, settings: Settings, streams: Streams) -> Iterator[Case]:
        epsilons = [float(epsilon) for epsilon in settings.epsilons]
        yield from size_cases.cases(epsilons, int(settings.random_laws), streams)
        yield from design_cases.cases(epsilons, int(settings.largest_order))
        yield from lemma_cases.cases(epsilons, int(settings.random_laws), streams)
        yield from number_cases.cases()
