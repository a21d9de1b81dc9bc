"""Rows of a store brought together by cell, in memory that does not grow with the number of cells.

The rows are first dealt into buckets on disk by the digest of their cell, as many as it takes for one to fit into
memory; then one bucket at a time is sorted and summarised. Sorting makes the result independent of how cells were split
into jobs.
"""

from __future__ import annotations

import json
import math
import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from dpsub.errors import DataError
from dpsub.reproduce import provenance
from dpsub.reproduce.records import read_facts, replace_file
from dpsub.reproduce.sweeps import store
from dpsub.reproduce.sweeps.cells import CellExperiment

ROWS_AT_ONCE = 1 << 17
_MOST_BUCKETS = 512
_PREFIX = 6  # hexadecimal digits of a digest that choose the bucket


def summary_file(results: Path, experiment: str) -> Path:
    """Return the file of an experiment's summary, one row a cell."""
    return results / "summary" / f"experiment={experiment}.parquet"


def differences_file(results: Path, experiment: str) -> Path:
    """Return the file of an experiment's differences from Poisson sampling, one row a cell that has a partner."""
    return results / "summary" / f"differences={experiment}.parquet"


def is_current(results: Path, experiment: str) -> bool:
    """Return whether both files are there, and made from the record files that are there now."""
    try:
        stamp = json.loads(_stamp_file(results, experiment).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    there = all(file(results, experiment).exists() for file in (summary_file, differences_file))
    return there and bool(stamp == _stamp(results, experiment))


def _stamp_file(results: Path, experiment: str) -> Path:
    return summary_file(results, experiment).with_name(f"_experiment={experiment}.json")


def _stamp(results: Path, experiment: str) -> dict[str, str]:
    parts = [path.stem for path in store.part_files(results, experiment)]
    code = provenance.digest(__name__, "dpsub.reproduce.sweeps.differences")
    return {"parts": provenance.settings_digest({"parts": parts}), "code": code}


def tables(
    results: Path, experiment: str, *, together: tuple[str, ...] = (), rows_at_once: int = ROWS_AT_ONCE
) -> Iterator[pa.Table]:
    """Yield all rows of an experiment, sorted by cell, data label and replicate, never a cell in two tables.

    A replicate that stands in two files, which a job makes that was thought dead, is given once.

    Parameters
    ----------
    results : Path
        Folder of the sweep.
    experiment : str
    together : tuple of str
        Fields of the key: cells that agree in all of them come in one table.
    rows_at_once : int
        About how many rows a table holds.

    Raises
    ------
    DataError
        If a file is damaged, or two files differ about one replicate.
    """
    files = store.part_files(results, experiment)
    total = sum(int(read_facts(path, schema=store.SCHEMA)["rows"]) for path in files)
    if not total:
        return
    buckets = min(_MOST_BUCKETS, math.ceil(total / rows_at_once))
    with tempfile.TemporaryDirectory(dir=results, prefix=".by_cell-") as folder:
        paths = [Path(folder) / f"{number}.arrow" for number in range(buckets)]
        _deal(results, experiment, paths, together)
        for path in paths:
            with pa.OSFile(str(path)) as source, pa.ipc.open_stream(source) as stream:
                found = stream.read_all()
            path.unlink()
            if found.num_rows:
                yield _once(found.sort_by([(key, "ascending") for key in ("cell", "data", "replicate")]))


def _deal(results: Path, experiment: str, paths: list[Path], together: tuple[str, ...]) -> None:
    with ExitStack() as opened:
        writers: list[pa.RecordBatchStreamWriter] = []
        for batch in store.batches(results, experiment):
            if not writers:
                writers += [opened.enter_context(pa.ipc.new_stream(str(path), batch.schema)) for path in paths]
            prefixes = np.array([int(name[:_PREFIX], 16) for name in _digests(batch, together)], dtype=np.int64)
            chosen = prefixes * len(paths) >> 4 * _PREFIX
            for number in np.unique(chosen):
                writers[number].write_batch(batch.take(pa.array(np.flatnonzero(chosen == number))))


def _digests(batch: pa.RecordBatch, together: tuple[str, ...]) -> list[str]:
    """Return for each row the digest of what keeps it together with others: its cell, or the fields `together`."""
    if not together:
        return list(batch["cell"].to_pylist())
    coded = batch["cell"].dictionary_encode().indices.to_numpy()
    _, heads = np.unique(coded, return_index=True)
    fields = batch.select(list(together)).take(pa.array(heads)).to_pylist()
    names = [provenance.settings_digest(item) for item in fields]
    return [names[code] for code in coded]


def _once(rows: pa.Table) -> pa.Table:
    """Drop replicates that come again; they must agree."""
    cells = rows["cell"].combine_chunks().dictionary_encode().indices.to_numpy()
    labels = rows["data"].combine_chunks().dictionary_encode().indices.to_numpy()
    replicates = rows["replicate"].to_numpy()
    again = np.zeros(rows.num_rows, dtype=bool)
    again[1:] = (np.diff(cells) == 0) & (np.diff(labels) == 0) & (np.diff(replicates) == 0)
    if not again.any():
        return rows
    places = np.flatnonzero(again)
    first, second = (rows.take(pa.array(at)).to_pandas() for at in (places - 1, places))
    if not first.equals(second):
        cell = rows["cell"][int(places[0])]
        raise DataError(
            f"a replicate must have one result, got two that differ of cell {cell}; delete the files of one of them"
        )
    return rows.filter(pa.array(~again))


def summarise(results: Path, experiment: CellExperiment, *, rows_at_once: int = ROWS_AT_ONCE) -> Path:
    """Write one row a cell: its key, the number of replicates, mean and standard deviation of each number measured.

    The standard deviation has the divisor replicates - 1, and is NaN for one replicate.

    Raises
    ------
    DataError
        As :func:`tables`.
    """
    path = summary_file(results, experiment.name)
    path.parent.mkdir(parents=True, exist_ok=True)
    stamp = _stamp(results, experiment.name)
    key = [*experiment.key_fields(), "cell", "data"]
    measured = [name for name, kind in experiment.columns.items() if kind != "str"]
    columns = store.schema(experiment)
    shape = pa.schema(
        [
            *(columns.field(name) for name in key),
            pa.field("replicates", pa.int64(), nullable=False),
            *(pa.field(f"{name}_{what}", pa.float64(), nullable=False) for name in measured for what in ("mean", "sd")),
        ]
    )
    temporary = path.with_name(f".{path.name}.tmp")
    with pq.ParquetWriter(temporary, shape, compression="zstd") as out:
        for rows in tables(results, experiment.name, rows_at_once=rows_at_once):
            out.write_table(_summary(rows, key, measured, shape))
    with temporary.open("rb") as written:
        os.fsync(written.fileno())
    os.replace(temporary, path)
    replace_file(_stamp_file(results, experiment.name), f"{json.dumps(stamp)}\n".encode())
    return path


def _summary(rows: pa.Table, key: list[str], measured: list[str], shape: pa.Schema) -> pa.Table:
    """Summarise sorted rows: each cell is a run of them."""
    cells = rows["cell"].combine_chunks().dictionary_encode().indices.to_numpy()
    labels = rows["data"].combine_chunks().dictionary_encode().indices.to_numpy()
    changes = (np.diff(cells) != 0) | (np.diff(labels) != 0)
    starts = np.concatenate([[0], np.flatnonzero(changes) + 1])
    counts = np.diff(np.concatenate([starts, [rows.num_rows]]))
    heads = rows.select(key).take(pa.array(starts))
    columns = [heads[name].combine_chunks() for name in key] + [pa.array(counts)]
    for name in measured:
        values = rows[name].to_numpy().astype(float)
        mean = np.add.reduceat(values, starts) / counts
        squares = np.add.reduceat((values - np.repeat(mean, counts)) ** 2, starts)
        with np.errstate(invalid="ignore"):
            sd = np.sqrt(squares / np.where(counts > 1, counts - 1, np.nan))
        columns += [pa.array(mean, from_pandas=False), pa.array(sd, from_pandas=False)]
    return pa.Table.from_arrays(columns, schema=shape)
