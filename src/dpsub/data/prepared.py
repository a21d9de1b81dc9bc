"""Prepared tables on disk: a Parquet file with a JSON description that holds its checksum."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from dpsub.data.sources import checksum
from dpsub.errors import DataError


def sidecar(path: Path) -> Path:
    """Return the name of the JSON file that belongs to the Parquet file `path`."""
    return Path(path).with_suffix(".json")


def write(table: pd.DataFrame, path: Path, description: Mapping[str, Any]) -> None:
    """Write `table` to `path` (Parquet) and `description` next to it (JSON), as :func:`write_pair` does.

    The same table gives the same bytes.
    """
    write_pair(Path(path), [table.to_parquet(None, index=False, compression="zstd")], description)


def write_pair(path: Path, pieces: Iterable[bytes | memoryview], description: Mapping[str, Any]) -> None:
    """Write `pieces`, one after the other, to `path`, and `description`, with their checksum, next to it (JSON).

    Both files get their names only when they are complete, so that no interruption leaves a pair that :func:`read`
    accepts; what cannot be completed is removed, as on a full disk.
    """
    beside = sidecar(path)
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


def read(path: Path, **facts: type) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Return the table at `path` and the named facts of its description, as the types given.

    Raises
    ------
    DataError
        If the file or its description is missing, or the two do not belong together.
    """
    known = description(path, **facts)
    return pd.read_parquet(path), known


def description(path: Path, **facts: type) -> dict[str, Any]:
    """Return the named facts of the description of the prepared file at `path`, which must be the file described.

    Raises
    ------
    DataError
        As :func:`read`.
    """
    path = Path(path)
    try:
        told: dict[str, Any] = json.loads(sidecar(path).read_text(encoding="utf-8"))
        known = {name: kind(told[name]) for name, kind in facts.items()}
        expected, found = str(told["sha256"]), checksum(path)
    except OSError as problem:
        rule = f"{path} and its description must be readable"
        raise DataError(f"{rule}, got: {problem.strerror}; prepare the data again") from None
    except (ValueError, KeyError, TypeError):
        rule = f"{sidecar(path)} must describe {path.name}"
        raise DataError(f"{rule}, got something else; prepare the data again") from None
    if found != expected:
        raise DataError(f"{path} must have the SHA-256 sum {expected}, got {found}; prepare the data again")
    return known
