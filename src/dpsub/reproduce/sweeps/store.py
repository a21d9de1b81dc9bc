"""The store of a sweep: one Parquet data set, partitioned by experiment, with the full key of its cell in each row.

    <results>/records/experiment=<name>/part-<part>.parquet     read the folder with any reader of Parquet data sets

Which cells are finished is read from the metadata of these files, never from a plan: nothing is computed twice,
whatever has been planned, killed or added since.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from dpsub.errors import PlanError
from dpsub.reproduce import records
from dpsub.reproduce.sweeps.bundles import Work
from dpsub.reproduce.sweeps.cells import KEYS, CellExperiment

SCHEMA = "dpsub-sweep-2"


def part_file(results: Path, experiment: str, part: str) -> Path:
    """Return the record file of one job."""
    return results / "records" / f"experiment={experiment}" / f"part-{part}.parquet"


def schema(experiment: CellExperiment | type[CellExperiment]) -> pa.Schema:
    """Return the columns of an experiment's records: key, name of the cell, label of the data, replicate, measures."""
    columns = {name: KEYS[name] for name in experiment.key_fields()}
    columns |= {"cell": "str", "data": "str", "replicate": "int64", **experiment.columns}
    return pa.schema([pa.field(name, records.TYPES[kind], nullable=name == "b") for name, kind in columns.items()])


def table(experiment: CellExperiment, found: list[tuple[Work, pd.DataFrame]]) -> pa.Table:
    """Return the rows of a job: for each work its measures, with the key in front.

    Raises
    ------
    PlanError
        If an experiment returned other columns, types or replicates than declared.
    """
    columns = schema(experiment)
    parts = []
    for work, frame in found:
        name = experiment.name
        if odd := ", ".join(sorted(set(frame.columns) ^ {"replicate", "data", *experiment.columns})):
            raise PlanError(f"records of {name} must have the declared columns, got a difference in {odd}")
        if list(frame["replicate"]) != list(range(work.first, work.stop)):
            raise PlanError(f"records of {name} must hold the replicates {work.first} to {work.stop - 1}, got others")
        key = {**work.cell.fields, "cell": work.cell.digest}
        try:
            arrays = [
                pa.array([key[item.name]] * len(frame), item.type)
                if item.name in key
                else pa.array(frame[item.name].to_numpy(), item.type, from_pandas=False)
                for item in columns
            ]
        except (ValueError, TypeError, pa.ArrowException) as problem:
            raise PlanError(f"records of {name} must be of the declared types, got others ({problem})") from None
        parts.append(pa.Table.from_arrays(arrays, schema=columns))
    return pa.concat_tables(parts)


def write(path: Path, rows: pa.Table, work: list[Work], facts: Mapping[str, Any]) -> None:
    """Write one job's rows, with `facts` and the cells and replicates that are now finished in the metadata."""
    finished = [f"{item.cell.digest} {item.first}:{item.stop}" for item in work]
    records.write_table(path, rows, {"schema": SCHEMA, **facts, "finished": finished})


@dataclass
class Index:
    """What a store holds.

    Attributes
    ----------
    finished : mapping
        Cell -> the ranges of replicates that are there, in no order.
    parts : dict of Path to facts
        Record files with what their metadata say, without the list of cells.
    """

    finished: dict[str, list[range]] = field(default_factory=dict)
    parts: dict[Path, dict[str, Any]] = field(default_factory=dict)


def gaps(done: Iterable[range], replicates: int) -> list[range]:
    """Return the ranges of 0, ..., `replicates` - 1 that no range of `done` covers."""
    found, start = [], 0
    for span in sorted(done, key=lambda item: item.start):
        found.append(range(start, min(span.start, replicates)))
        start = max(start, span.stop)
    found.append(range(start, replicates))
    return [gap for gap in found if gap]


def read_index(results: Path) -> Index:
    """Read the metadata of the record files of a store.

    Raises
    ------
    DataError
        If a record file was cut short: it must be looked at, as it cannot come from a job that was killed.
    """
    index = Index()
    for path in part_files(results):
        facts = records.read_facts(path, schema=SCHEMA)
        for text in facts.pop("finished"):
            cell, _, span = text.partition(" ")
            first, _, stop = span.partition(":")
            index.finished.setdefault(cell, []).append(range(int(first), int(stop)))
        index.parts[path] = facts
    return index


def part_files(results: Path, experiment: str = "*") -> list[Path]:
    """Return the record files of a store, sorted."""
    return sorted((results / "records").glob(f"experiment={experiment}/part-*.parquet"))


def batches(
    results: Path, experiment: str, *, columns: list[str] | None = None, rows: int = 1 << 16
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of an experiment, at most `rows` at a time; one file is in memory.

    Raises
    ------
    DataError
        If a file is not to the last byte what was written.
    """
    for path in part_files(results, experiment):
        content, _ = records.read_checked(path, schema=SCHEMA)
        with pq.ParquetFile(pa.BufferReader(content)) as opened:
            yield from opened.iter_batches(batch_size=rows, columns=columns)
