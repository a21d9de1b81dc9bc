"""Records: one row a replicate (or grid point) as Parquet, with a JSON sidecar that says what made them.

A record file is written under a temporary name, brought to the disk, and renamed; the sidecar holds its size and
SHA-256 sum, so that a file cut short, exchanged or made from another configuration is refused and never averaged in.
Clock time and platform stand apart under "volatile": everything else is the same whenever the same run is repeated.
"""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import json
import os
import re
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from dpsub.errors import DataError, PlanError

SCHEMA = "dpsub-record-1"
_TYPES = {"int64": pa.int64(), "float64": pa.float64(), "str": pa.string()}
_AGAIN = "delete it and run again"
_PART = re.compile(r"([1-9][0-9]*)-of-([1-9][0-9]*)")


@dataclass(frozen=True)
class Origin:
    """What made a record file.

    Parameters
    ----------
    experiment, variant : str
        What was computed, in which variant.
    part : str
        Which share of the replicates, "1-of-2".
    first, stop : int
        The replicates first, ..., stop - 1.
    seed : int
        Root seed.
    settings : mapping
        The experiment's settings.
    config_digest : str
        Digest of settings and seed.
    code_digest : str
        Digest of the code that ran.
    inputs : mapping
        SHA-256 sums of the data files read, by data set.
    data : str
        Label of the data ("real", "synthetic"), "" for simulated data.
    versions : mapping
        Versions of Python and of the numerical packages.
    volatile : mapping
        Clock time and platform; never compared.
    """

    experiment: str
    variant: str
    part: str
    first: int
    stop: int
    seed: int
    settings: Mapping[str, Any]
    config_digest: str
    code_digest: str
    inputs: Mapping[str, str] = field(default_factory=dict)
    data: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)
    volatile: Mapping[str, Any] = field(default_factory=dict)

    @property
    def position(self) -> tuple[int, int]:
        """The number of the part, from 1, and the number of parts.

        Raises
        ------
        DataError
            If `part` is not of the form "1-of-2".
        """
        found = _PART.fullmatch(self.part)
        if not found or int(found[1]) > int(found[2]):
            raise DataError(f"a part must be named like 1-of-2, got {self.part!r}; delete that record and run again")
        return int(found[1]), int(found[2])


def replace_file(path: Path, content: bytes) -> None:
    """Write `content` to `path` so that the name only ever stands for a complete file that has reached the disk."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as out:
            out.write(content)
            out.flush()
            os.fsync(out.fileno())
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def sidecar(path: Path) -> Path:
    """Return the path of the JSON file that belongs to the record file `path`."""
    return path.with_suffix(".json")


def write(path: Path, frame: pd.DataFrame, *, columns: Mapping[str, str], origin: Origin) -> None:
    """Write the records `frame` of one part to `path`, and their origin next to it.

    Parameters
    ----------
    path : Path
        Ends in ``.parquet``.
    frame : DataFrame
        Rows in order of cells, then replicates.
    columns : mapping
        The declared columns and their types ("int64", "float64", "str").
    origin : Origin
        What made them.

    Raises
    ------
    PlanError
        If the columns or their types are not the declared ones, or the replicates are not those of the part.
    """
    table = _table(frame, columns, origin)
    facts = {"schema": SCHEMA, "columns": dict(columns), **dataclasses.asdict(origin)}
    write_table(path, table, facts, beside=sidecar(path))


def write_table(path: Path, table: pa.Table, facts: Mapping[str, Any], *, beside: Path) -> None:
    """Write `table` to `path`, and before it `facts` with its rows, bytes and SHA-256 sum to the JSON file `beside`."""
    buffer = pa.BufferOutputStream()
    pq.write_table(table, buffer, compression="zstd")
    content = buffer.getvalue().to_pybytes()
    known = {"rows": table.num_rows, "bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    text = json.dumps({**facts, **known}, indent=1, ensure_ascii=False, allow_nan=False)
    replace_file(beside, f"{text}\n".encode())
    replace_file(path, content)


def _table(frame: pd.DataFrame, columns: Mapping[str, str], origin: Origin) -> pa.Table:
    name = origin.experiment
    if set(frame.columns) != set(columns):
        odd = ", ".join(sorted(set(frame.columns) ^ set(columns)))
        raise PlanError(f"records of {name} must have the declared columns, got a difference in {odd}")
    arrays = []
    for column, kind in columns.items():
        values = frame[column]
        if kind != "float64" and values.isna().any():
            raise PlanError(f"column {column} of {name} must have no missing value, got {int(values.isna().sum())}")
        if kind == "int64" and not (np.asarray(values, dtype="float64") % 1 == 0).all():
            raise PlanError(f"column {column} of {name} must hold whole numbers; declare it float64 or correct it")
        try:
            plain = values.to_numpy(object if kind == "str" else kind)
            arrays.append(pa.array(plain, type=_TYPES[kind], from_pandas=False))
        except (ValueError, TypeError, pa.ArrowException) as problem:
            reason = str(problem).splitlines()[0]
            raise PlanError(f"column {column} of {name} must be of type {kind}, got other values ({reason})") from None
    if set(frame["replicate"]) != set(range(origin.first, origin.stop)):
        raise PlanError(f"records of {name} must hold the replicates {origin.first} to {origin.stop - 1}, got others")
    return pa.table(arrays, names=list(columns))


def read(path: Path) -> tuple[pd.DataFrame, Origin]:
    """Return the records of one part and their origin.

    Raises
    ------
    DataError
        If the file or its sidecar is missing, cut short, or not what the sidecar describes.
    """
    content, facts = read_checked(path, beside=sidecar(path), schema=SCHEMA)
    try:
        origin = Origin(**{item.name: facts[item.name] for item in dataclasses.fields(Origin)})
        columns = facts["columns"]
    except KeyError:
        raise _incomplete(sidecar(path)) from None
    frame = pq.read_table(pa.BufferReader(content)).to_pandas()
    return frame.astype(columns), origin


def read_checked(path: Path, *, beside: Path, schema: str) -> tuple[bytes, dict[str, Any]]:
    """Return the content of a record file that is the one of its sidecar `beside`, and what the sidecar says.

    Raises
    ------
    DataError
        As :func:`read`.
    """
    facts = read_facts(beside, schema=schema)
    try:
        content = path.read_bytes()
    except OSError as problem:
        raise _unreadable(problem) from None
    if len(content) != facts["bytes"]:
        raise DataError(f"the record file {path} must have {facts['bytes']} bytes, got {len(content)}; {_AGAIN}")
    if hashlib.sha256(content).hexdigest() != facts["sha256"]:
        raise DataError(f"the record file {path} must be the one of its sidecar, got another SHA-256 sum; {_AGAIN}")
    return content, facts


def read_facts(beside: Path, *, schema: str) -> dict[str, Any]:
    """Return what the sidecar `beside` of a record file says.

    Raises
    ------
    DataError
        If it is missing, not complete, or of another schema.
    """
    try:
        facts = json.loads(beside.read_bytes())
        found = facts["schema"], facts["bytes"], facts["sha256"]
    except OSError as problem:
        raise _unreadable(problem) from None
    except (ValueError, KeyError, TypeError):
        raise _incomplete(beside) from None
    if found[0] != schema:
        raise DataError(f"the record of {beside} must have the schema {schema}, got {found[0]}; {_AGAIN}")
    return dict(facts)


def _unreadable(problem: OSError) -> DataError:
    if isinstance(problem, FileNotFoundError):
        return DataError(f"the record file {problem.filename} is missing; run its experiment")
    return DataError(f"the record file {problem.filename} cannot be read ({problem.strerror}); {_AGAIN}")


def _incomplete(beside: Path) -> DataError:
    return DataError(f"the sidecar {beside} must be a complete JSON description of its record; {_AGAIN}")


def gather(paths: Iterable[Path], *, config_digests: Mapping[str, str] | None = None) -> dict[str, pd.DataFrame]:
    """Return the records in `paths` by experiment, all parts and variants together.

    The rows stand in order of variants as given, then replicates, then cells, whatever the parts; the columns
    `variant` and `data` (label of the data, "" for simulated data) come first. `attrs["settings"]` of each frame holds
    the settings that its records were made with.

    Parameters
    ----------
    paths : iterable of Path
        Every part of every variant that is wanted.
    config_digests : mapping, optional
        For each experiment the digest of the configuration that is being run; by default that of its first record.

    Raises
    ------
    DataError
        As :func:`read`, if a part is missing, or if a record was made from another configuration.
    """
    found: dict[str, dict[str, list[tuple[Origin, pd.DataFrame]]]] = defaultdict(lambda: defaultdict(list))
    expected = dict(config_digests or {})
    for path in paths:
        frame, origin = read(path)
        if config_digests is None:
            expected.setdefault(origin.experiment, origin.config_digest)
        if origin.config_digest != expected.get(origin.experiment):
            raise DataError(
                f"the record file {path} must be made from the present configuration of {origin.experiment}, "
                "got one from another; delete it and run again"
            )
        found[origin.experiment][origin.variant].append((origin, frame))
    gathered = {}
    for experiment, variants in found.items():
        gathered[experiment] = pd.concat([_merged(parts) for parts in variants.values()], ignore_index=True)
        gathered[experiment].attrs["settings"] = next(iter(variants.values()))[0][0].settings
    return gathered


def _merged(parts: list[tuple[Origin, pd.DataFrame]]) -> pd.DataFrame:
    """Return one variant's rows in an order that does not depend on how replicates were split into parts."""
    parts = sorted(parts, key=lambda part: part[0].position)
    first = parts[0][0]
    numbers = [part[0].position for part in parts]
    if numbers != [(number + 1, len(parts)) for number in range(len(parts))] or first.first != 0:
        got = ", ".join(origin.part for origin, _ in parts)
        raise DataError(f"all parts of {first.experiment} {first.variant} are needed once, got {got}; run the others")
    for (before, _), (after, _) in itertools.pairwise(parts):
        if before.stop != after.first or before.data != after.data:
            raise DataError(
                f"the parts of {first.experiment} {first.variant} must continue each other on the same data, "
                f"got a break between {before.part} and {after.part}; delete them and run again"
            )
    frames = [frame.assign(variant=origin.variant, data=origin.data) for origin, frame in parts]
    rows = pd.concat(frames, ignore_index=True).sort_values("replicate", kind="stable", ignore_index=True)
    return rows[["variant", "data", *(column for column in rows if column not in ("variant", "data"))]]
