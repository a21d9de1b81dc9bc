"""Experiments: typed settings, declared columns, cells, and records of replicates."""

from __future__ import annotations

import abc
import itertools
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeVar, get_args

import numpy as np
import pandas as pd
from pydantic import BaseModel

from dpsub import sampling
from dpsub.errors import PlanError
from dpsub.reproduce import settings
from dpsub.reproduce.records import check_replicates
from dpsub.reproduce.settings import ExperimentSettings
from dpsub.streams import Streams

Stage = Literal["simulate", "train", "account"]
"""Kind of the records of an experiment: draws of samples, data or noise; models that are trained on
samples; privacy that is computed, without either."""

STAGES: tuple[Stage, ...] = get_args(Stage)

SAMPLER_KEY = "scheme"
"""Name of the sampler in the keys of random streams: the word of the first release, since another
one would draw other numbers."""


def takes_first_stage(sampler: str) -> bool:
    """Return whether a sampler, given by its name or as a chain such as "wor:500,wr:400", needs a
    size b."""
    # A chain gives the sizes of all of its stages itself.
    return ":" not in sampler and "b" in sampling.kind_of(sampler).sizes


def with_first_stages(samplers: Iterable[str], b: Sequence[int]) -> list[tuple[str, int | None]]:
    """Return every sampler with each size b of its first stage, with None where it has none."""
    pairs = list[tuple[str, int | None]]()
    for name in samplers:
        sizes = b if takes_first_stage(name) else (None,)
        pairs += [(name, size) for size in sizes]
    return pairs


AnySettings = TypeVar("AnySettings", bound=BaseModel)


def narrowed(settings: AnySettings, **to: Any) -> AnySettings:
    """Return `settings` with other values of some, which are not checked again."""
    # The names of given settings are shared: a copy of them would be half the memory of a sweep.
    return settings.model_construct(settings.model_fields_set, **{**dict(settings), **to})


@dataclass(frozen=True)
class Run:
    """The part of an experiment to compute, and its inputs.

    Attributes
    ----------
    variant : str
        One of the experiment's `variants`.
    replicates : range
        Which repetitions; the result of a repetition does not depend on which others are computed
        with it.
    streams : Streams
        Random generators by what they are for.
    data : mapping of str to Path
        Prepared data files, one for each of `data_of`.
    records : mapping of str to DataFrame
        Records of other experiments, one for each of `needs_records`.
    """

    variant: str
    replicates: range
    streams: Streams
    data: Mapping[str, Path] = field(default_factory=dict)
    records: Mapping[str, pd.DataFrame] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Cost:
    """Expected cost of a cell on one core.

    Attributes
    ----------
    setup : float
        Seconds that every job with a part of the cell spends once, such as a calibration.
    replicate : float
        Seconds a replicate.
    memory : float
        MiB that the process holds beyond what any job needs.
    """

    setup: float
    replicate: float
    memory: float

    def seconds(self, replicates: int) -> float:
        """Return the expected seconds of so many replicates in one job."""
        return self.setup + self.replicate * replicates

    def scaled(self, factor: float) -> Cost:
        """Return the cost with times `factor` as long."""
        return Cost(factor * self.setup, factor * self.replicate, self.memory)


@dataclass(frozen=True)
class StatedComparison:
    """Ranking of samplers by an experiment at one stated epsilon' a query.

    Studies at one proved privacy show this order next to theirs.

    Parameters
    ----------
    dataset
        Name of the data set.
    losses
        The losses in records of the experiment: a row for each replicate, a column for each
        sampler.
    """

    dataset: str
    losses: Callable[[pd.DataFrame], pd.DataFrame]


class Experiment(abc.ABC):
    """One experiment of a paper: a grid of cells, each repeated, one record for each replicate (or
    a grid point).

    Class attributes
    ----------------
    name
        Identifier in the configuration and of the record files.
    stage
        Stage of the study that it belongs to, one of `STAGES`. Its rule in the workflow is named
        after both: `train_<name>`.
    columns
        The record's schema, column -> "int64", "float64" or "str"; `replicate` comes first.
    variants
        The variants of the paper's numbers that the experiment knows (design: stated, as_done,
        consistent).
    Settings
        Model of its settings, the published values as defaults.
    needs_data
        Data sets that `records` reads, by the names under which their prepared files are passed.
    needs_records
        Experiments whose records `records` reads.
    streams_of
        Experiment whose random streams it draws from; its own by default.
    axes
        Settings that are lists, along which a sweep takes the experiment apart into cells.
    keys
        Columns of the records that name a row within a replicate; those of text by default.
    timed
        True if the records hold clock times, which are kept apart from compared results.
    compares
        Its comparison of samplers at one stated epsilon' a query; None if it makes none.
    paper
        Key of the paper in whose folder it stands.
    """

    name: ClassVar[str]
    stage: ClassVar[Stage]
    columns: ClassVar[dict[str, str]]
    variants: ClassVar[tuple[str, ...]]
    Settings: ClassVar[type[ExperimentSettings]]
    needs_data: ClassVar[tuple[str, ...]] = ()
    needs_records: ClassVar[tuple[str, ...]] = ()
    streams_of: ClassVar[str | None] = None
    axes: ClassVar[tuple[str, ...]] = ()
    keys: ClassVar[tuple[str, ...]] = ()
    timed: ClassVar[bool] = False
    compares: ClassVar[StatedComparison | None] = None
    paper: ClassVar[str] = ""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        # An experiment belongs to the paper in whose folder it stands: no class says it twice.
        _, _, inside = cls.__module__.partition("dpsub.papers.")
        cls.paper = inside.partition(".")[0]
        # Without its stage the workflow would have no rule for it.
        if "name" in cls.__dict__ and getattr(cls, "stage", None) not in STAGES:
            raise PlanError(
                f"the experiment {cls.name} must declare its stage, one of {', '.join(STAGES)}, "
                f"got {getattr(cls, 'stage', None)!r}; add it to the class"
            )
        if "columns" in cls.__dict__ and "keys" not in cls.__dict__:
            cls.keys = tuple(name for name, kind in cls.columns.items() if kind == "str")

    @classmethod
    def defaults(cls) -> dict[str, Any]:
        """Return the published settings in plain JSON types."""
        # Defaults as they stand, unchecked: what they leave open is filled by the configuration.
        published: Any = cls.Settings.model_construct
        return settings.plain(published(variants=cls.variants))

    @classmethod
    def settings(cls, over: Any) -> Any:
        """Return the published settings with `over` put over them, mappings level by level.

        Raises
        ------
        PlanError
            If they are no settings of this experiment.
        """
        merged = settings.merge(cls.defaults(), over) if isinstance(over, Mapping) else over
        return settings.conform(cls.Settings, merged, path=f"experiments.{cls.name}")

    def replicates(self, settings: Any) -> int:
        """Return the number of replicates; 1 for a deterministic grid."""
        # A grid without random draws has one replicate, and no setting for it.
        return int(getattr(settings, "replicates", 1))

    def records_a_replicate(self, settings: Any) -> int:
        """Return the number of records of each replicate of a cell, which measures the progress of
        a sweep."""
        return 1

    def cells(self, settings: Any) -> Iterator[Any]:
        """Yield `settings` narrowed to each of its cells: by default to one value of each of the
        `axes`."""
        values = [getattr(settings, name) for name in self.axes]
        for point in itertools.product(*values):
            # Lists of one value, so that a cell has settings of the same type as the whole.
            yield narrowed(settings, **{n: (v,) for n, v in zip(self.axes, point, strict=True)})

    def cost(self, settings: Any) -> Cost:
        """Return the expected cost of a cell; a sweep corrects it by the time of its finished
        jobs."""
        # A guess that lets a sweep begin; the pace of finished jobs takes its place.
        return Cost(setup=1.0, replicate=1.0, memory=300.0)

    def data_of(self, settings: Any) -> tuple[str, ...]:
        """Return the data sets that a run with these settings reads: `needs_data`, unless the
        settings name them."""
        return self.needs_data

    @abc.abstractmethod
    def records(self, settings: Any, run: Run) -> pd.DataFrame:
        """Compute the records of one run.

        Parameters
        ----------
        settings : instance of `Settings`
        run : Run

        Returns
        -------
        pandas.DataFrame
            Exactly the declared columns, in order of cells, then replicates.
        """

    def compute(
        self,
        over: Mapping[str, Any] | None = None,
        *,
        variant: str,
        replicates: range = range(1),
        seed: int = 0,
        data: Mapping[str, Path] | None = None,
        records: Mapping[str, pd.DataFrame] | None = None,
    ) -> pd.DataFrame:
        """Return the records of `replicates` with the settings `over` the published ones."""
        return self.computed(
            self.settings(over or {}),
            variant=variant,
            replicates=replicates,
            seed=seed,
            data=data,
            records=records,
        )

    def computed(
        self,
        settings: Any,
        *,
        variant: str,
        replicates: range,
        seed: int,
        data: Mapping[str, Path] | None = None,
        records: Mapping[str, pd.DataFrame] | None = None,
    ) -> pd.DataFrame:
        """Return the records of `replicates` at `settings`: each job of a run or sweep ends here.

        Raises
        ------
        PlanError
            If the records are of other replicates.
        """
        # By name: experiments that share their streams meet the same random numbers.
        streams = Streams(seed, self.streams_of or self.name)
        run = Run(variant, replicates, streams, data or {}, records or {})
        rows = self.records(settings, run)
        # A job that lost or repeated a replicate would change every mean.
        check_replicates(self.name, rows, replicates.start, replicates.stop)
        return rows

    def frame(self, rows: Any) -> pd.DataFrame:
        """Return `rows` (a mapping of columns or a list of records) as a frame with the declared
        columns and types.

        Raises
        ------
        PlanError
            If a declared column is missing or an undeclared one is there.
        """
        frame = pd.DataFrame(rows)
        if set(frame.columns) != set(self.columns):
            # Names on either side alone: too many columns are as wrong as too few.
            difference = sorted(set(frame.columns) ^ set(self.columns))
            raise PlanError(
                f"records of {self.name} must have the declared columns, got a difference in "
                f"{difference}"
            )
        return frame[list(self.columns)].astype(self.columns)


class Grid(Experiment):
    """An experiment without repetitions: its records are all of replicate 0."""

    @abc.abstractmethod
    def rows(self, settings: Any, run: Run) -> Iterator[dict[str, Any]]:
        """Yield the records, without their replicate; arrays of one length stand for as many
        records."""

    def records(self, settings: Any, run: Run) -> pd.DataFrame:
        # Grids have the column too, so that all records are read in one way.
        frame = pd.DataFrame([{"replicate": 0, **row} for row in self.rows(settings, run)])
        arrays = [name for name in frame if isinstance(frame[name].iloc[0], np.ndarray)]
        return self.frame(frame.explode(arrays, ignore_index=True) if arrays else frame)


def columns(names: str, *, text: Container[str], whole: Container[str]) -> dict[str, str]:
    """Return the columns of records, the replicate first, with their types: a real number where no
    other is said."""
    types = dict[str, str]()
    for name in ("replicate", *names.split()):
        types[name] = "float64"
        if name in text:
            types[name] = "str"
        elif name in whole:
            types[name] = "int64"
    return types
