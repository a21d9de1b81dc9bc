"""Experiments of this paper, by what is released: once, many times, on a sample; and its statements in single cases."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any

import pandas as pd

from dpsub.reproduce.experiment import Experiment, Run


class Grid(Experiment):
    """An experiment without repetitions: its records are all of replicate 0."""

    @abstractmethod
    def rows(self, settings: Any, run: Run) -> Iterator[dict[str, Any]]:
        """Yield the records, without their replicate."""

    def records(self, settings: Any, run: Run) -> pd.DataFrame:
        return self.frame([{"replicate": 0, **row} for row in self.rows(settings, run)])
