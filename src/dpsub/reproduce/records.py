"""Records: one row a replicate (or grid point) as Parquet; the file itself says what made it.

Its own metadata hold, under the key ``dpsub``, what made it as JSON, with a SHA-256 sum of the
whole file: one that was cut short, altered or made from another configuration is refused and never
averaged in. A file is written under a temporary name, brought to the disk, and renamed. Clock time
and platform are in logs, so that the same run gives the same bytes.
"""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import json
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from dpsub.errors import DataError, PlanError
from dpsub.files import replace_file

SCHEMA = "dpsub-record-3"
TYPES = {"int64": pa.int64(), "float64": pa.float64(), "str": pa.string()}
NO_FIRST_STAGE = 0
"""What the column `b` of records, the size of a sampler's first stage, holds if there is none: a
column of whole numbers has no missing value. Everywhere in Python it is None."""
_AGAIN = "delete it and run again"
_UNSEALED = b"#" * 64  # stands for the sum while the sum is taken
_SEAL = re.compile(rb'\{"sha256": "([0-9a-f]{64})"')
_PART = re.compile(r"([1-9][0-9]*)-of-([1-9][0-9]*)")


def recorded_first_stage(b: int | None) -> int:
    """Return the entry of the column `b` for a first stage of this size, or none."""
    return NO_FIRST_STAGE if b is None else b


def first_stage_of(recorded: int) -> int | None:
    """Return the size of a first stage, or None, from an entry of the column `b`."""
    return None if recorded == NO_FIRST_STAGE else recorded


@dataclass(frozen=True)
class Origin:
    """What made a record file.

    The replicates first, ..., stop - 1 of `experiment` in all its variants, the share `part`
    ("1-of-2") of all, from the root seed `seed` and the experiment's `settings`; the digests of
    both (`config_digest`) and of the code (`code_digest`); the SHA-256 sums of the files read
    (`inputs`), the label of the data ("real", "synthetic", "" for simulated data), and the versions
    of Python and of the packages that numbers pass through.
    """

    experiment: str
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

    @property
    def position(self) -> tuple[int, int]:
        """The number of the part, from 1, and the number of parts; DataError if `part` is not of
        the form "1-of-2"."""
        found = _PART.fullmatch(self.part)
        if not found or int(found[1]) > int(found[2]):
            raise DataError(
                f"a part must be named like 1-of-2, got {self.part!r}; delete that "
                "record and run again"
            )
        return int(found[1]), int(found[2])


def write(path: Path, frame: pd.DataFrame, *, columns: Mapping[str, str], origin: Origin) -> None:
    """Write the records `frame` of one part, with their origin, to `path`.

    `columns` are the declared ones with their types ("int64", "float64", "str"), to which `variant`
    is added; rows stand in order of variants, then cells, then replicates. Raises PlanError if
    columns, types or replicates are not those that were declared.
    """
    write_table(
        path, _table(frame, columns, origin), {"schema": SCHEMA, **dataclasses.asdict(origin)}
    )


def write_table(path: Path, table: pa.Table, facts: Mapping[str, Any]) -> None:
    """Write `table` to `path`, and in its metadata `facts` with a SHA-256 sum of the file, itself
    left out."""
    described = {"sha256": _UNSEALED.decode(), **facts, "rows": table.num_rows}
    text = json.dumps(described, ensure_ascii=False, allow_nan=False)
    buffer = pa.BufferOutputStream()
    with pq.ParquetWriter(buffer, table.schema, compression="zstd", store_schema=False) as out:
        out.write_table(table)
        out.add_key_value_metadata({"dpsub": text})
    content = buffer.getvalue().to_pybytes()
    replace_file(path, content.replace(_UNSEALED, hashlib.sha256(content).hexdigest().encode()))


def _table(frame: pd.DataFrame, columns: Mapping[str, str], origin: Origin) -> pa.Table:
    name, columns = origin.experiment, {"variant": "str", **columns}
    if set(frame.columns) != set(columns):
        odd = ", ".join(sorted(set(frame.columns) ^ set(columns)))
        raise PlanError(
            f"records of {name} must have the declared columns, got a difference in {odd}"
        )
    arrays = []
    for column, kind in columns.items():
        values = frame[column]
        if kind != "float64" and values.isna().any():
            raise PlanError(
                f"column {column} of {name} must have no missing value, got "
                f"{int(values.isna().sum())}"
            )
        if kind == "int64" and not (np.asarray(values, dtype="float64") % 1 == 0).all():
            raise PlanError(
                f"column {column} of {name} must hold whole numbers; declare it "
                "float64 or correct it"
            )
        try:
            plain = values.to_numpy(object if kind == "str" else kind)
            arrays.append(pa.array(plain, type=TYPES[kind], from_pandas=False))
        except (ValueError, TypeError, pa.ArrowException) as problem:
            reason = str(problem).splitlines()[0]
            raise PlanError(
                f"column {column} of {name} must be of type {kind}, got other values ({reason})"
            ) from None
    if set(frame["replicate"]) != set(range(origin.first, origin.stop)):
        raise PlanError(
            f"records of {name} must hold the replicates {origin.first} to "
            f"{origin.stop - 1}, got others"
        )
    return pa.table(arrays, names=list(columns))


def read(path: Path) -> tuple[pd.DataFrame, Origin]:
    """Return the records of one part and their origin; DataError as :func:`read_checked`."""
    content, facts = read_checked(path, schema=SCHEMA)
    origin = Origin(**{item.name: facts[item.name] for item in dataclasses.fields(Origin)})
    return pq.read_table(pa.BufferReader(content)).to_pandas(), origin


def read_checked(path: Path, *, schema: str) -> tuple[bytes, dict[str, Any]]:
    """Return the content of a record file and what its metadata say.

    Raises
    ------
    DataError
        If the file is missing, of another schema, or not to the last byte what was written.
    """
    with _opened(path) as file:
        content = file.read()
    seal = _SEAL.search(content)
    if (
        seal is None
        or hashlib.sha256(content.replace(seal[1], _UNSEALED)).hexdigest().encode() != seal[1]
    ):
        raise _damaged(path)
    return content, _facts(path, pa.BufferReader(content), schema)


def read_facts(path: Path, *, schema: str) -> dict[str, Any]:
    """Return what the metadata of a record file say; only its end is read, so that its sum is not
    checked.

    Raises
    ------
    DataError
        If the file is missing, cut short, or of another schema.
    """
    with _opened(path) as file:
        return _facts(path, file, schema)


def _facts(path: Path, source: Any, schema: str) -> dict[str, Any]:
    try:
        facts: dict[str, Any] = json.loads((pq.read_metadata(source).metadata or {})[b"dpsub"])
        found = facts["schema"]
    except (OSError, ValueError, KeyError):  # ArrowInvalid is a ValueError
        raise _damaged(path) from None
    if found != schema:
        raise DataError(
            f"the record file {path} must have the schema {schema}, got {found}; {_AGAIN}"
        )
    return facts


def _opened(path: Path) -> BinaryIO:
    try:
        return path.open("rb")
    except FileNotFoundError:
        raise DataError(f"the record file {path} is missing; run its experiment") from None
    except OSError as problem:
        raise DataError(
            f"the record file {path} cannot be read ({problem.strerror}); {_AGAIN}"
        ) from None


def _damaged(path: Path) -> DataError:
    return DataError(
        f"the record file {path} must be complete and as it was written, got other bytes; {_AGAIN}"
    )


def gather(
    paths: Iterable[Path], *, config_digests: Mapping[str, str] | None = None
) -> dict[str, pd.DataFrame]:
    """Return the records in `paths` by experiment, all parts together.

    Rows stand in order of variants as computed, then replicates, then cells, whatever the parts;
    the columns `variant` and `data` (label of the data) come first. `config_digests` has for each
    experiment the digest of the configuration that is being run; by default that of its first
    record.

    Raises
    ------
    DataError
        As :func:`read_checked`, if a part is missing, or if a record was made from another
        configuration.
    """
    found: dict[str, list[tuple[Origin, pd.DataFrame]]] = defaultdict(list)
    expected = dict(config_digests or {})
    for path in paths:
        frame, origin = read(path)
        if config_digests is None:
            expected.setdefault(origin.experiment, origin.config_digest)
        if origin.config_digest != expected.get(origin.experiment):
            rule = (
                f"must be made from the present configuration of {origin.experiment}, got one "
                "from another"
            )
            raise DataError(f"the record file {path} {rule}; {_AGAIN}")
        found[origin.experiment].append((origin, frame))
    return {experiment: _merged(parts) for experiment, parts in found.items()}


def _merged(parts: list[tuple[Origin, pd.DataFrame]]) -> pd.DataFrame:
    """Return an experiment's rows in an order that does not depend on how replicates were split
    into parts."""
    parts = sorted(parts, key=lambda part: part[0].position)
    first = parts[0][0]
    numbers = [part[0].position for part in parts]
    if numbers != [(number + 1, len(parts)) for number in range(len(parts))] or first.first != 0:
        got = ", ".join(origin.part for origin, _ in parts)
        raise DataError(
            f"all parts of {first.experiment} are needed once, got {got}; run the others"
        )
    for (before, _), (after, _) in itertools.pairwise(parts):
        if before.stop != after.first or before.data != after.data:
            raise DataError(
                f"the parts of {first.experiment} must continue each other on the same data, "
                f"got a break between {before.part} and {after.part}; delete them and run again"
            )
    rows = pd.concat([frame.assign(data=origin.data) for origin, frame in parts], ignore_index=True)
    variants = [
        one.sort_values("replicate", kind="stable")
        for _, one in rows.groupby("variant", sort=False)
    ]
    rows = pd.concat(variants, ignore_index=True)
    return rows[
        ["variant", "data", *(column for column in rows if column not in ("variant", "data"))]
    ]
