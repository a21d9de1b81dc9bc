"""Data sets: their raw files, their labels, and the prepared file with a description next to it."""

from __future__ import annotations

import json
import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd

from dpsub import checks
from dpsub.errors import DataError
from dpsub.files import checksum
from dpsub.registry import Registry

LABELS = ("real", "synthetic", "subsample", "partial", "subset")
"""Labels of data: the published file, a generated stand-in, or a named part of the published
file."""


@dataclass(frozen=True)
class Obtained:
    """Raw files with the right checksums, or the reason why a stand-in is needed."""

    paths: dict[str, Path]  # by name; empty if the label is "synthetic"
    label: str  # one of `LABELS`: what everything made from them must be called
    sha256: dict[str, str] = field(default_factory=dict)  # by name of the file
    reason: str = ""  # why there are no files, for the user


class DataSet(ABC):
    """A data set that a job prepares; a module of this package that defines one makes it known."""

    name: ClassVar[str]  # as experiments name it
    source: ClassVar[str] = ""  # its folder and its name in data/SOURCES.csv; `name` if empty
    files: ClassVar[Mapping[str, tuple[str, ...]]]
    """The raw files by the label that they give the data: the original ones first, then their
    substitutes."""
    suffix: ClassVar[str] = ".parquet"  # of the prepared file

    @abstractmethod
    def make(self, obtained: Obtained, path: Path) -> int:
        """Write the prepared data, or the stand-in if there are no raw files, to `path`; return the
        number of rows."""


REGISTRY: Registry[DataSet] = Registry("dpsub.data", DataSet, "data set")


def write_table(table: pd.DataFrame, path: Path, description: Mapping[str, Any]) -> None:
    """Write `table` to `path` (Parquet) as :func:`write` does; the same table gives the same
    bytes."""
    write([table.to_parquet(None, index=False, compression="zstd")], path, description)


def write(pieces: Iterable[bytes | memoryview], path: Path, description: Mapping[str, Any]) -> None:
    """Write `pieces`, one after the other, to `path`, and `description`, with their checksum, next
    to it (JSON).

    Both files get their names only when they are complete, so that no interruption leaves a pair
    that :func:`describe` accepts; what cannot be completed is removed, as on a full disk.
    """
    checks.one_of("label", description["label"], LABELS)
    path, beside = Path(path), Path(path).with_suffix(".json")
    unfinished, draft = (one.with_name(f".{one.name}.unfinished") for one in (path, beside))
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with unfinished.open("wb") as out:
            for piece in pieces:
                out.write(piece)
        facts = {**description, "sha256": checksum(unfinished)}
        draft.write_text(json.dumps(facts, indent=2) + "\n", encoding="utf-8")
        os.replace(draft, beside)
        os.replace(unfinished, path)
    finally:
        draft.unlink(missing_ok=True)
        unfinished.unlink(missing_ok=True)


def read_table(path: Path, **facts: type) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Return the table at `path` and the named facts of its description, as :func:`describe`
    does."""
    known = describe(path, **facts)
    return pd.read_parquet(path), known


def describe(path: Path, **facts: type) -> dict[str, Any]:
    """Return the named facts, as the types given, of the description of the prepared file at
    `path`.

    DataError if the file or its description is missing, or the two do not belong together.
    """
    path, beside = Path(path), Path(path).with_suffix(".json")
    try:
        told: dict[str, Any] = json.loads(beside.read_text(encoding="utf-8"))
        known = {name: kind(told[name]) for name, kind in facts.items()}
        expected, sha256 = str(told["sha256"]), checksum(path)
    except OSError as problem:
        rule = f"{path} and its description must be readable"
        raise DataError(f"{rule}, got: {problem.strerror}; prepare the data again") from None
    except (ValueError, KeyError, TypeError):
        raise DataError(
            f"{beside} must describe {path.name}, got something else; prepare the data again"
        ) from None
    if sha256 != expected:
        raise DataError(
            f"{path} must have the SHA-256 sum {expected}, got {sha256}; prepare the data again"
        )
    return known
