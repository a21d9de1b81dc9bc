"""Cells of a sweep, what one costs, and what an experiment must say of itself to be swept."""

from __future__ import annotations

import abc
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd

KEYS = {
    "sampler": "str",
    "n": "int64",
    "m": "int64",
    "b": "int64",
    "steps": "int64",
    "target_epsilon": "float64",
    "target_delta": "float64",
    "dataset": "str",
    "convention": "str",
}
"""All fields that a cell may have, with their types in records; b is null where a sampler has no first stage."""

AXES = {
    "steps": ("steps",),
    "targets": ("target_epsilon", "target_delta"),
    "datasets": ("dataset",),
    "conventions": ("convention",),
}
"""Axes of a grid that an experiment may have besides samplers and sizes, with the fields that each sets."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What a cell is expected to cost on one core.

    Attributes
    ----------
    setup : float
        Seconds that every job with a part of the cell spends once, such as a calibration.
    replicate : float
        Seconds a replicate.
    memory : float
        MiB that the process holds at most.
    """

    setup: float
    replicate: float
    memory: float

    def seconds(self, replicates: int) -> float:
        """Expected seconds of so many replicates in one job."""
        return self.setup + self.replicate * replicates


@dataclass(frozen=True, slots=True)
class Cell:
    """One point of a grid.

    Attributes
    ----------
    experiment : str
    fields : mapping
        In canonical form: plain whole numbers and floats.
    digest : str
        128 bits of the SHA-256 sum of the canonical JSON of experiment and fields: the cell's name in the store.
    """

    experiment: str
    fields: Mapping[str, Any]
    digest: str

    @classmethod
    def of(cls, experiment: str, fields: Mapping[str, Any]) -> Cell:
        """Return the cell with these canonical fields."""
        text = json.dumps([experiment, fields], sort_keys=True, separators=(",", ":"))
        return cls(experiment, fields, hashlib.sha256(text.encode()).hexdigest()[:32])

    def __str__(self) -> str:
        shown = ", ".join(f"{name} = {value}" for name, value in self.fields.items() if value is not None)
        return f"{self.experiment} with {shown}"


class CellExperiment(abc.ABC):
    """An experiment that is computed cell by cell.

    Class attributes
    ----------------
    name : identifier in sweeps and partition of the store.
    axes : those of `AXES` that its cells have.
    columns : what is measured, column -> "int64", "float64" or "str"; the key is added by the store.
    """

    name: ClassVar[str]
    axes: ClassVar[tuple[str, ...]]
    columns: ClassVar[dict[str, str]]

    @classmethod
    def key_fields(cls) -> tuple[str, ...]:
        """Fields of a cell, in order."""
        chosen = {field for axis in cls.axes for field in AXES[axis]}
        return tuple(field for field in KEYS if field in ("sampler", "n", "m", "b") or field in chosen)

    def size_of(self, dataset: str) -> int | None:
        """Return the number of records of a data set; None if the grid says it.

        Raises
        ------
        ArgumentError
            If there is no such data set.
        """
        return None

    @abc.abstractmethod
    def check(self, fields: Mapping[str, Any]) -> None:
        """Raise ArgumentError or UnsupportedError if the cell cannot be computed.

        Called for every cell before the first job, 10^5 times, so what few fields decide is to be remembered.
        """

    @abc.abstractmethod
    def cost(self, fields: Mapping[str, Any]) -> Cost:
        """Return the expected cost of a cell that `check` lets pass; cheap, too."""

    def data_sets(self, fields: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the prepared data files that the cell reads."""
        return ()

    @abc.abstractmethod
    def run(self, fields: Mapping[str, Any], replicates: range, *, root: int, data: Mapping[str, Path]) -> pd.DataFrame:
        """Compute replicates of one cell.

        Parameters
        ----------
        fields : mapping
            The cell.
        replicates : range
            Which; the result of one does not depend on which others are computed with it.
        root : int
            The sweep's seed.
        data : mapping of str to Path
            Prepared files of `data_sets`.

        Returns
        -------
        pandas.DataFrame
            Columns `replicate`, `data` (label of the data, "" for simulated data) and those declared, one row a
            replicate, in order.
        """
