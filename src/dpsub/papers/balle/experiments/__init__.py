"""What the paper computed, in the variants in which it can be read."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from dpsub.reproduce.experiment import Experiment, Run

# each name has one type in all experiments; what is neither text nor a whole number is a real number
TEXT = {"check", "case", "theorem", "sampler", "base_relation", "relation", "mechanism", "groups", "kernel",
        "direction", "panel", "curve", "point"}  # fmt: skip
WHOLE = {"replicate", "n", "m", "grows"}


def schema(names: str) -> dict[str, str]:
    """Return the columns of records by name, with their types, the replicate first."""
    columns = ("replicate", *names.split())
    return {name: "str" if name in TEXT else "int64" if name in WHOLE else "float64" for name in columns}


class Grid(Experiment):
    """An experiment without repetitions: its records are all of replicate 0."""

    @abstractmethod
    def rows(self, settings: Any, run: Run) -> Iterator[dict[str, Any]]:
        """Yield the records, without their replicate; arrays of one length stand for as many records."""

    def records(self, settings: Any, run: Run) -> pd.DataFrame:
        frame = pd.DataFrame([{"replicate": 0, **row} for row in self.rows(settings, run)])
        arrays = [name for name in frame if isinstance(frame[name].iloc[0], np.ndarray)]
        return self.frame(frame.explode(arrays, ignore_index=True) if arrays else frame)
