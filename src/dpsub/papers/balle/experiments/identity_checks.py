"""Experiments whose records are pairs of numbers that a paper says are equal, or ordered."""

from __future__ import annotations

import abc
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from dpsub.reproduce.experiment import Experiment, Run

Pair = tuple[str, str, float, float]
"""Name of the check, its case, what the paper's formula gives, and what another computation gives."""


class IdentityChecks(Experiment):
    """One record a case of a check: `computed` by the paper's formula in this variant, `reference` by another one."""

    columns: ClassVar[dict[str, str]] = {
        "replicate": "int64", "check": "str", "case": "str", "computed": "float64", "reference": "float64",
    }  # fmt: skip
    variants: ClassVar[tuple[str, ...]] = ("stated", "consistent")

    @abc.abstractmethod
    def pairs(self, settings: Any, variant: str, rng: np.random.Generator) -> Iterator[Pair]:
        """Yield the cases; `rng` makes the random ones, the same in all variants."""

    def records(self, settings: Any, run: Run) -> pd.DataFrame:
        rng = run.streams.data({}, 0)
        rows = [(0, *pair) for pair in self.pairs(settings, run.variant, rng)]
        return self.frame(pd.DataFrame(rows, columns=list(self.columns)))
