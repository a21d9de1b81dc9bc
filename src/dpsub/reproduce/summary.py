"""Summary of a sweep, one row for each cell: means and spreads of its measures, and paired
differences from Poisson sampling.

The rows of a sweep are read in portions of whole cells, chosen by the digests in which they stand,
so that the memory does not grow with the sweep; within a portion they are sorted first, so that the
result does not depend on how cells were split into jobs.
"""

from __future__ import annotations

import contextlib
import math
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from scipy import special

from dpsub.errors import DataError

ROWS_AT_ONCE = 1 << 19
AT_MOST = 512
"""Largest number of portions. Each has an open file for a while: systems allow about a thousand."""
REFERENCE = "poisson"
LEVEL = 0.95
_NAMES = ("pair", "cell", "data", "replicate")
_DIGITS = 6  # hexadecimal digits of a digest that choose the portion


def portions(paths: list[Path], rows_at_once: int, folder: Path) -> Iterator[pd.DataFrame]:
    """Yield the rows of record files, about `rows_at_once` at a time, sorted, a cell and its
    partner always together.

    More than one portion is kept below `folder` until it is given.

    A replicate that stands in two files, as when a job outlives the run that started it, is given
    once.
    """
    if not paths:
        return
    rows = ds.dataset([str(path) for path in paths], format="parquet")
    count = min(math.ceil(rows.count_rows() / rows_at_once), AT_MOST)
    if count == 1:
        yield _sorted(rows.to_table())
    if count <= 1:
        return
    # Every record file is read once, whatever the number of portions.
    with tempfile.TemporaryDirectory(dir=folder, prefix=".portions-") as name:
        for path in _distributed(rows, count, rows_at_once, Path(name)):
            with pa.ipc.open_stream(path) as stream:
                yield _sorted(stream.read_all())
            path.unlink()


def _distributed(rows: ds.Dataset, count: int, rows_at_once: int, folder: Path) -> list[Path]:
    """Write the rows to `count` files by the first digits of their pairs, and return those files
    that have rows."""
    # a cell and its Poisson partner have one pair digest, hence stand in one portion
    bounds = [f"{16**_DIGITS * number // count:0{_DIGITS}x}" for number in range(1, count)]
    paths = [folder / f"{number}.arrow" for number in range(count)]
    used = set[int]()
    with contextlib.ExitStack() as opened:
        written = [opened.enter_context(pa.ipc.new_stream(path, rows.schema)) for path in paths]
        for table in _gathered(rows, rows_at_once):
            of_row = np.searchsorted(bounds, table["pair"].to_numpy().astype(str), side="right")
            for number in np.unique(of_row).tolist():
                written[number].write_table(table.take(np.flatnonzero(of_row == number)))
                used.add(number)
    return [paths[number] for number in sorted(used)]


def _gathered(rows: ds.Dataset, rows_at_once: int) -> Iterator[pa.Table]:
    """Yield all rows, those of many small files together."""
    waiting, length = list[pa.RecordBatch](), 0
    for batch in rows.to_batches(batch_size=rows_at_once):
        waiting.append(batch)
        length += batch.num_rows
        if length >= rows_at_once:
            yield pa.Table.from_batches(waiting, rows.schema)
            waiting, length = [], 0
    if waiting:
        yield pa.Table.from_batches(waiting, rows.schema)


def _sorted(table: pa.Table) -> pd.DataFrame:
    """Return rows in an order that does not depend on the files in which they stood, each once."""
    portion = table.to_pandas()
    keys = [
        name
        for name in portion
        if name not in _NAMES and not pd.api.types.is_float_dtype(portion[name])
    ]
    # By names and text alone: sorting by measured floats would make the order depend on the last
    # digit.
    portion = portion.sort_values([*_NAMES, *keys], kind="stable", ignore_index=True)
    # A replicate that was computed twice has equal rows.
    return portion.drop_duplicates(ignore_index=True)


def write(
    paths: list[Path],
    keys: list[str],
    measured: list[str],
    summary: Path,
    differences: Path,
    *,
    rows_at_once: int = ROWS_AT_ONCE,
) -> None:
    """Write the summary and the differences of an experiment's cells, each under a temporary name
    first.

    The columns `keys` name a row within all cells and replicates, the columns `measured` are
    summarised: the summary has `<name>_mean` and `<name>_sd` (divisor replicates - 1; NaN for one
    replicate), the differences `<name>_difference`, the mean over replicates of a sampler's value
    minus Poisson's, of the same cell if it has any, else of the cell with the same settings, and
    `_low` and `_high`, Student's 95 % interval (NaN for a single pair).
    """
    by = ["pair", "cell", "variant", "data", *keys]
    with _Table(summary) as means, _Table(differences) as gaps:
        for rows in portions(paths, rows_at_once, summary.parent):
            # equal rows were dropped: what is left twice differs, by code or by damage
            if len(twice := rows[rows.duplicated([*by, "replicate"])]):
                raise DataError(
                    "a replicate must have one result, got two that differ of cell "
                    f"{twice['cell'].iloc[0]}; delete the files of one of them"
                )
            means.add(_summary(rows, by, measured))
            if "sampler" in keys:
                paired_by = [key for key in keys if key not in ("sampler", "b")]
                gaps.add(_differences(rows, by, paired_by, measured))


def _summary(rows: pd.DataFrame, by: list[str], measured: list[str]) -> pd.DataFrame:
    groups = rows.groupby(by, sort=True, dropna=False)
    summary = groups.size().rename("replicates").to_frame()
    for name in measured:
        # A NaN is a result that failed: the mean of the others would hide it.
        summary[f"{name}_mean"] = groups[name].mean(skipna=False)
        summary[f"{name}_sd"] = groups[name].std(ddof=1, skipna=False)
    return summary.reset_index()


def _differences(
    rows: pd.DataFrame, by: list[str], on: list[str], measured: list[str]
) -> pd.DataFrame:
    # Poisson's records stand in the cell itself if the experiment compares samplers within a cell,
    # else in the cell that differs from it in nothing but the sampler.
    # each name once: text is looked for one by one
    with_own = rows["cell"].isin(rows.loc[rows["sampler"] == REFERENCE, "cell"].unique())
    rows = rows.assign(partner=rows["cell"].where(with_own, rows["pair"]))
    poisson, others = rows[rows["sampler"] == REFERENCE], rows[rows["sampler"] != REFERENCE]
    partners = pd.concat([poisson, poisson.assign(partner=poisson["pair"])])
    on = ["partner", "data", "replicate", *on]
    partners = partners.loc[partners["partner"].isin(others["partner"].unique()), [*on, *measured]]
    pairs = others.merge(partners, on=on, suffixes=("", "_partner"), validate="m:1")
    for name in measured:
        pairs[name] = pairs[name].astype(float) - pairs.pop(f"{name}_partner").astype(float)
    groups = pairs.groupby(by, sort=True, dropna=False)
    differences = groups.size().rename("replicates").to_frame()
    count = differences["replicates"].to_numpy()
    quantile = special.stdtrit(np.maximum(count - 1, 1), (1 + LEVEL) / 2)
    for name in measured:
        middle = groups[name].mean(skipna=False)
        half = quantile / np.sqrt(count) * groups[name].std(ddof=1, skipna=False)
        differences[f"{name}_difference"] = middle
        differences[f"{name}_low"] = middle - half
        differences[f"{name}_high"] = middle + half
    return differences.reset_index()


class _Table:
    """A Parquet file that is written portion by portion under a temporary name; without portions it
    has no columns."""

    def __init__(self, path: Path) -> None:
        self.path, self.temporary = path, path.with_name(f".{path.name}.tmp")
        self.writer: pq.ParquetWriter | None = None

    def __enter__(self) -> _Table:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        return self

    def add(self, rows: pd.DataFrame) -> None:
        table = pa.Table.from_pandas(rows, preserve_index=False).replace_schema_metadata()
        if self.writer is None:
            self.writer = pq.ParquetWriter(self.temporary, table.schema, compression="zstd")
        self.writer.write_table(table.cast(self.writer.schema))

    def __exit__(self, kind: object, *_: object) -> None:
        if self.writer is None:
            pq.write_table(pa.table({}), self.temporary)
        else:
            self.writer.close()
        if kind is not None:
            self.temporary.unlink()
            return
        # On the disk before it has its name: a file of that name is complete, even after a power
        # cut.
        with self.temporary.open("rb") as written:
            os.fsync(written.fileno())
        os.replace(self.temporary, self.path)
