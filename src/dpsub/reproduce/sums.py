"""Sums of what jobs have written: each job notes those of its files, so that a later change of one
is noticed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

from dpsub.errors import DataError
from dpsub.files import checksum, replace_file

FOLDER = "run/sums"
"""Folder of the notes in a folder of results."""


def write(note: Path, files: Iterable[Path], results: Path) -> None:
    """Write the SHA-256 sums of `files`, which lie in the folder `results`, to the file `note`."""
    sums = {path.relative_to(results).as_posix(): checksum(path) for path in files}
    replace_file(note, f"{json.dumps(dict(sorted(sums.items())), indent=1)}\n".encode())


def read(notes: Iterable[Path]) -> dict[str, str]:
    """Return the sums in the files `notes`: path in the folder of results -> sum."""
    found: dict[str, str] = {}
    for note in notes:
        found |= json.loads(note.read_text(encoding="utf-8"))
    return found


def altered(results: Path) -> Iterator[str]:
    """Yield the files below `results` that are there with other bytes than their job wrote."""
    for path, written in read(sorted((results / FOLDER).rglob("*.json"))).items():
        if (results / path).is_file() and checksum(results / path) != written:
            yield path


def check(results: Path) -> None:
    """Refuse results that were altered after they had been made.

    Raises
    ------
    DataError
        With the first such file.
    """
    if found := list(altered(results)):
        more = f" (and {len(found) - 1} more)" if found[1:] else ""
        raise DataError(
            f"{results / found[0]} must be as it was made, got other bytes{more}; delete it, and "
            "it is made again"
        )
