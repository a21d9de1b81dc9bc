"""Experiments of this paper, by what is released: once, many times, on a sample; and its statements in single cases."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any

import pandas as pd

from dpsub.reproduce.experiment import Experiment, Run

# each name has one type in all experiments; what is neither text nor a whole number is a real number
TEXT = {"topic", "method", "quantity", "kernel", "conversion", "task", "query", "rule", "panel", "view", "statement",
        "case"}  # fmt: skip
WHOLE = {"replicate", "n", "draws", "n_samples", "n_compositions", "n_individuals", "n_subsets", "n_repeats",
         "n_records", "n_events", "n_attributes"}  # fmt: skip
BUDGET = "sensitivity bound epsilon delta"
RELEASE = "method scale epsilon_y rate acceptance sd exact_delta"
"""What a record says of a release: epsilon_y is the kernel's at the same delta, `exact_delta` what the release has."""


def schema(names: str) -> dict[str, str]:
    """Return the columns of records by name, with their types, the replicate first."""
    columns = ("replicate", *names.split())
    return {name: "str" if name in TEXT else "int64" if name in WHOLE else "float64" for name in columns}


class Grid(Experiment):
    """An experiment without repetitions: its records are all of replicate 0."""

    @abstractmethod
    def rows(self, settings: Any, run: Run) -> Iterator[dict[str, Any]]:
        """Yield the records, without their replicate."""

    def records(self, settings: Any, run: Run) -> pd.DataFrame:
        return self.frame([{"replicate": 0, **row} for row in self.rows(settings, run)])
