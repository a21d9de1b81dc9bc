"""Records: one row for each replicate (or grid point) as Parquet; each file states its own origin.

The origin of the rows stands in the metadata of the file, under the key ``dpsub`` as JSON, with a
SHA-256 sum of the whole file: one that was cut short, altered or made from another configuration is
refused and never averaged in. Runs and sweeps write the same kind of file, with an `Origin` of
their own. A file is written under a temporary name, brought to the disk, and renamed. Clock time
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
from typing import Any, BinaryIO, ClassVar, Self, TypeVar

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from dpsub.errors import DataError, PlanError
from dpsub.files import replace_file

TYPES = {"int64": pa.int64(), "float64": pa.float64(), "str": pa.string()}
NO_FIRST_STAGE = 0
"""Entry of the column `b` of records, the size of a sampler's first stage, if there is none: a
column of whole numbers has no missing value. Everywhere in Python it is None."""
_AGAIN = "delete it and run again"
_UNSEALED = b"#" * 64  # stands for the sum while the sum is taken
_SEAL = re.compile(rb'\{"sha256": "([0-9a-f]{64})"')
AnyOrigin = TypeVar("AnyOrigin", bound="Origin")
_PART = re.compile(r"([1-9][0-9]*)-of-([1-9][0-9]*)")


def recorded_first_stage(b: int | None) -> int:
    """Return the entry of the column `b` for a first stage of this size, or none."""
    return NO_FIRST_STAGE if b is None else b


def first_stage_of(recorded: int) -> int | None:
    """Return the size of a first stage, or None, from an entry of the column `b`."""
    return None if recorded == NO_FIRST_STAGE else recorded


@dataclass(frozen=True)
class Origin:
    """Origin of a record file: the fields of a subclass are the entries of its metadata."""

    schema: ClassVar[str]
    """Names the form of the metadata; a file of another form is refused."""

    def facts(self) -> dict[str, Any]:
        """Return the schema and all fields in plain types, in their order."""
        return {"schema": self.schema, **dataclasses.asdict(self)}

    @classmethod
    def of_facts(cls, facts: Mapping[str, Any]) -> Self:
        """Return the origin with these `facts`; unknown facts are left out."""
        return cls(**{field.name: facts[field.name] for field in dataclasses.fields(cls)})


@dataclass(frozen=True)
class RunOrigin(Origin):
    """Origin of the records of one part of an experiment in a run.

    The replicates first, ..., stop - 1 of `experiment` in all its variants, the share `part`
    ("1-of-2") of all, from the root seed `seed` and the experiment's `settings`; the digests of
    both (`config_digest`) and of the code (`code_digest`); the SHA-256 sums of the files read
    (`inputs`), the label of the data ("real", "synthetic", "" for simulated data), and the versions
    of Python and of the packages that numbers pass through.
    """

    schema: ClassVar[str] = "dpsub-record-3"
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
        name = _PART.fullmatch(self.part)
        if not name or int(name[1]) > int(name[2]):
            raise DataError(
                f"a part must be named like 1-of-2, got {self.part!r}; delete that "
                "record and run again"
            )
        return int(name[1]), int(name[2])


def write(
    path: Path, frame: pd.DataFrame, *, columns: Mapping[str, str], origin: RunOrigin
) -> None:
    """Write the records `frame` of one part, with their origin, to `path`.

    `columns` are the declared ones with their types ("int64", "float64", "str"), to which `variant`
    is added; rows stand in order of variants, then cells, then replicates. Raises PlanError if
    columns, types or replicates are not those that were declared.
    """
    write_table(path, _table(frame, columns, origin), origin)


def write_table(path: Path, table: pa.Table, origin: Origin) -> None:
    """Write `table` to `path`, and in its metadata the origin with a SHA-256 sum of the file,
    itself left out."""
    # In the file's own metadata, not beside it: rows and what made them cannot be separated. The
    # sum has its place already, as it must not change the length of the file.
    described = {"sha256": _UNSEALED.decode(), **origin.facts(), "rows": table.num_rows}
    text = json.dumps(described, ensure_ascii=False, allow_nan=False)
    buffer = pa.BufferOutputStream()
    # Without the schema of Arrow, whose form differs between versions: the same rows give the same
    # bytes.
    with pq.ParquetWriter(buffer, table.schema, compression="zstd", store_schema=False) as out:
        out.write_table(table)
        out.add_key_value_metadata({"dpsub": text})
    content = buffer.getvalue().to_pybytes()
    seal = hashlib.sha256(content).hexdigest().encode()
    # Under a temporary name first: a job that is killed leaves nothing that looks finished.
    replace_file(path, content.replace(_UNSEALED, seal))


def check_replicates(experiment: str, frame: pd.DataFrame, first: int, stop: int) -> None:
    """Refuse records that are not of the replicates first, ..., stop - 1."""
    if set(frame["replicate"]) != set(range(first, stop)):
        raise PlanError(
            f"records of {experiment} must hold the replicates {first} to {stop - 1}, got others"
        )


def _table(frame: pd.DataFrame, columns: Mapping[str, str], origin: RunOrigin) -> pa.Table:
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
        # A cast would cut the fraction off without a word.
        if kind == "int64" and not (np.asarray(values, dtype="float64") % 1 == 0).all():
            raise PlanError(
                f"column {column} of {name} must hold whole numbers; declare it "
                "float64 or correct it"
            )
        try:
            # NumPy's types, not those that pandas or Arrow guess from the first values.
            plain = values.to_numpy(object if kind == "str" else kind)
            arrays.append(pa.array(plain, type=TYPES[kind], from_pandas=False))
        except (ValueError, TypeError, pa.ArrowException) as problem:
            reason = str(problem).splitlines()[0]
            raise PlanError(
                f"column {column} of {name} must be of type {kind}, got other values ({reason})"
            ) from None
    check_replicates(name, frame, origin.first, origin.stop)
    return pa.table(arrays, names=list(columns))


def read(path: Path) -> tuple[pd.DataFrame, RunOrigin]:
    """Return the records of one part and their origin; DataError as :func:`read_checked`."""
    content, origin = read_checked(path, RunOrigin)
    return pq.read_table(pa.BufferReader(content)).to_pandas(), origin


def read_checked(path: Path, kind: type[AnyOrigin]) -> tuple[bytes, AnyOrigin]:
    """Return the content of a record file and its origin, of the class `kind`.

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
    return content, _origin(path, pa.BufferReader(content), kind)


def read_origin(path: Path, kind: type[AnyOrigin]) -> AnyOrigin:
    """Return the origin of a record file, of the class `kind`; only the end of the file is read, so
    that its sum is not checked.

    Raises
    ------
    DataError
        If the file is missing, cut short, or of another schema.
    """
    with _opened(path) as file:
        return _origin(path, file, kind)


def _origin(path: Path, source: Any, kind: type[AnyOrigin]) -> AnyOrigin:
    try:
        facts: dict[str, Any] = json.loads((pq.read_metadata(source).metadata or {})[b"dpsub"])
        schema = facts["schema"]
    except (OSError, ValueError, KeyError):  # ArrowInvalid is a ValueError
        raise _damaged(path) from None
    if schema != kind.schema:
        raise DataError(
            f"the record file {path} must have the schema {kind.schema}, got {schema}; {_AGAIN}"
        )
    try:
        return kind.of_facts(facts)
    except KeyError:
        raise _damaged(path) from None


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
    parts: dict[str, list[tuple[RunOrigin, pd.DataFrame]]] = defaultdict(list)
    expected = dict(config_digests or {})
    for path in paths:
        frame, origin = read(path)
        if config_digests is None:
            # Without a plan at hand, as in a notebook, all parts must at least agree with each
            # other.
            expected.setdefault(origin.experiment, origin.config_digest)
        if origin.config_digest != expected.get(origin.experiment):
            rule = (
                f"must be made from the present configuration of {origin.experiment}, got one "
                "from another"
            )
            raise DataError(f"the record file {path} {rule}; {_AGAIN}")
        parts[origin.experiment].append((origin, frame))
    return {experiment: _merged(of_experiment) for experiment, of_experiment in parts.items()}


def _merged(parts: list[tuple[RunOrigin, pd.DataFrame]]) -> pd.DataFrame:
    """Return an experiment's rows in an order that does not depend on how replicates were split
    into parts."""
    # By number: "10-of-12" stands before "2-of-12" among names of files.
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
        # Stable, so that the cells of a replicate keep their order.
        of_variant.sort_values("replicate", kind="stable")
        for _, of_variant in rows.groupby("variant", sort=False)
    ]
    rows = pd.concat(variants, ignore_index=True)
    first_columns = ["variant", "data"]
    others = [column for column in rows if column not in first_columns]
    return rows[[*first_columns, *others]]
