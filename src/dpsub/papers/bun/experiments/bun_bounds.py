"""Bounds of sampling designs, printed and corrected, each with the exact worst loss (Bun et al., Sections 2 to 7)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd

from dpsub import checks
from dpsub.papers.bun.experiments.bun_cases import design_cases, lemma_cases, number_cases, size_cases
from dpsub.papers.bun.experiments.bun_cases.cases import Case
from dpsub.reproduce.experiment import Experiment


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

    def check(self, settings: Mapping[str, Any]) -> None:
        for epsilon in settings["epsilons"]:
            checks.real("epsilon", epsilon, above=0, at_most=5)
        checks.integer("random_laws", settings["random_laws"], at_least=1)
        checks.integer("largest_order", settings["largest_order"], at_least=4)

    def run(
        self, *, settings: Mapping[str, Any], variant: str, replicates: range, root: int, data: Mapping[str, Path]
    ) -> pd.DataFrame:
        rows = []
        for case in self._cases(settings, root):
            bound = {"stated": case.stated, "consistent": case.corrected, "rigorous": case.exact}[variant]
            rows.append((0, case.statement, case.case, case.side, case.epsilon, bound, case.exact))
        return self.frame(pd.DataFrame(rows, columns=list(self.columns)))

    def _cases(self, settings: Mapping[str, Any], root: int) -> Iterator[Case]:
        epsilons = [float(epsilon) for epsilon in settings["epsilons"]]
        yield from size_cases.cases(epsilons, int(settings["random_laws"]), root)
        yield from design_cases.cases(epsilons, int(settings["largest_order"]))
        yield from lemma_cases.cases(epsilons, int(settings["random_laws"]), root)
        yield from number_cases.cases()
