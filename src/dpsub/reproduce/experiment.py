"""What an experiment is: declared columns, cells, and a run over replicates."""

from __future__ import annotations

import abc
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd

from dpsub import checks, sampling
from dpsub.errors import PlanError

SAMPLER_KEY = "scheme"
"""Name of the sampler in the keys of random streams: the word of the first release, since another one would draw other
numbers."""


def takes_first_stage(sampler: str) -> bool:
    """Return whether a sampler, given by its name or as a chain such as "wor:500,wr:400", needs a size b."""
    return ":" not in sampler and "b" in sampling.REGISTRY.get(sampler).sizes


def with_first_stages(samplers: Iterable[str], b: Sequence[int]) -> list[tuple[str, int]]:
    """Return every sampler with each size b of its first stage, with b = 0 where it has none."""
    return [(name, size) for name in samplers for size in (b if takes_first_stage(name) else (0,))]


class Experiment(abc.ABC):
    """One experiment of a paper: a grid of cells, each repeated, one record a replicate (or a grid point).

    Class attributes
    ----------------
    name : identifier in the configuration and of the record files.
    columns : the record's schema, column -> "int64", "float64" or "str"; `replicate` comes first.
    variants : the variants of the paper's numbers that the experiment knows (design: stated, as_done, consistent).
    needs_data : data sets that `run` reads, by the names under which their prepared files are passed.
    needs_records : experiments whose records `run` reads, from `self.records`.
    timed : True if the records hold clock times, which are kept apart from compared results.

    Parameters
    ----------
    records : mapping of str to DataFrame, optional
        Records of other experiments, as `dpsub.reproduce.records.gather` returns them.
    """

    name: ClassVar[str]
    columns: ClassVar[dict[str, str]]
    variants: ClassVar[tuple[str, ...]]
    needs_data: ClassVar[tuple[str, ...]] = ()
    needs_records: ClassVar[tuple[str, ...]] = ()
    timed: ClassVar[bool] = False

    def __init__(self, records: Mapping[str, pd.DataFrame] | None = None) -> None:
        self.records = records or {}

    def replicates(self, settings: Mapping[str, Any]) -> int:
        """Return the number of replicates; 1 for a deterministic grid."""
        return checks.integer("replicates", settings.get("replicates", 1), at_least=1)

    def data_of(self, settings: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the data sets that a run with these settings reads: `needs_data`, unless the settings name them."""
        return self.needs_data

    @abc.abstractmethod
    def check(self, settings: Mapping[str, Any]) -> None:
        """Raise ArgumentError or PlanError if the settings contradict each other; cheap, called before any work."""

    @abc.abstractmethod
    def run(
        self, *, settings: Mapping[str, Any], variant: str, replicates: range, root: int, data: Mapping[str, Path]
    ) -> pd.DataFrame:
        """Compute the records of `replicates`.

        Parameters
        ----------
        settings : mapping
            ``config["experiments"][name]``.
        variant : str
            One of `variants`.
        replicates : range
            Which repetitions; the result of a repetition does not depend on which others are computed with it.
        root : int
            The configuration's seed.
        data : mapping of str to Path
            Prepared data files, one for each of `needs_data`.

        Returns
        -------
        pandas.DataFrame
            Exactly the declared columns, in order of cells, then replicates.
        """

    def frame(self, rows: Any) -> pd.DataFrame:
        """Return `rows` (a mapping of columns or a list of records) as a frame with the declared columns and types.

        Raises
        ------
        PlanError
            If a declared column is missing or an undeclared one is there.
        """
        frame = pd.DataFrame(rows)
        if set(frame.columns) != set(self.columns):
            odd = sorted(set(frame.columns) ^ set(self.columns))
            raise PlanError(f"records of {self.name} must have the declared columns, got a difference in {odd}")
        return frame[list(self.columns)].astype(self.columns)
