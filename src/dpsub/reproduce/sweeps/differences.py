"""Paired differences against Poisson sampling, cell by cell, from the rows of a store.

A cell's partner is the Poisson cell with the same fields but for the first stage's size, which Poisson sampling does
not have. Replicates are paired by number: they share data and whatever else an experiment draws for all samplers.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from scipy import special

from dpsub.reproduce.sweeps import by_cell, store
from dpsub.reproduce.sweeps.cells import CellExperiment

REFERENCE = "poisson"
LEVEL = 0.95


def write(results: Path, experiment: CellExperiment, *, rows_at_once: int = by_cell.ROWS_AT_ONCE) -> Path:
    """Write one row a cell with a partner: its key, the number of pairs, mean difference and interval of each measure.

    ``<measure>_difference`` is the mean over replicates of cell minus partner; ``_low`` and ``_high`` bound it by
    Student's 95 % interval, NaN for a single pair. Cells of other samplers than Poisson without a partner have no row.

    Raises
    ------
    DataError
        As :func:`dpsub.reproduce.sweeps.by_cell.tables`.
    """
    path = by_cell.differences_file(results, experiment.name)
    path.parent.mkdir(parents=True, exist_ok=True)
    key = [*experiment.key_fields(), "cell", "data"]
    measured = [name for name, kind in experiment.columns.items() if kind != "str"]
    columns = store.schema(experiment)
    shape = pa.schema(
        [
            *(columns.field(name) for name in key),
            pa.field("replicates", pa.int64(), nullable=False),
            *(
                pa.field(f"{name}_{what}", pa.float64(), nullable=False)
                for name in measured
                for what in ("difference", "low", "high")
            ),
        ]
    )
    together = tuple(name for name in experiment.key_fields() if name not in ("sampler", "b"))
    temporary = path.with_name(f".{path.name}.tmp")
    with pq.ParquetWriter(temporary, shape, compression="zstd") as out:
        for rows in by_cell.tables(results, experiment.name, together=together, rows_at_once=rows_at_once):
            out.write_table(_differences(rows.to_pandas(), key, measured, [*together, "data", "replicate"], shape))
    with temporary.open("rb") as written:
        os.fsync(written.fileno())
    os.replace(temporary, path)
    return path


def _differences(rows: pd.DataFrame, key: list[str], measured: list[str], on: list[str], shape: pa.Schema) -> pa.Table:
    partners = rows.loc[rows["sampler"] == REFERENCE, [*on, *measured]]
    pairs = rows[rows["sampler"] != REFERENCE].merge(partners, on=on, suffixes=("", "_partner"), validate="m:1")
    found = pairs[["cell", "data"]].copy()
    for name in measured:
        found[name] = pairs[name].astype(float) - pairs[f"{name}_partner"].astype(float)
    grouped = found.groupby(["cell", "data"], sort=True)
    count = grouped.size()
    mean, sd = grouped.mean(), grouped.std(ddof=1)
    heads = pairs.drop_duplicates(["cell", "data"]).set_index(["cell", "data"]).loc[count.index].reset_index()
    reach = special.stdtrit(np.maximum(count - 1, 1), (1 + LEVEL) / 2) / np.sqrt(count)
    columns = [pa.array(heads[name], shape.field(name).type, from_pandas=True) for name in key] + [pa.array(count)]
    for name in measured:
        half = (reach * sd[name]).to_numpy(dtype=float)
        middle = mean[name].to_numpy(dtype=float)
        columns += [pa.array(values, from_pandas=False) for values in (middle, middle - half, middle + half)]
    return pa.Table.from_arrays(columns, schema=shape)
