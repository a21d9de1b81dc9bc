"""Where each raw file comes from and what it must be: the table ``data/SOURCES.csv``."""

from __future__ import annotations

import csv
import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dpsub import checks
from dpsub.errors import DataError

COLUMNS = ("dataset", "file", "urls", "licence", "sha256", "bytes", "note")
LABELS = ("real", "synthetic", "subsample", "partial", "subset")
"""What data may be: the published file, a generated stand-in, or a named part of the published file."""

_PLAIN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclass(frozen=True)
class Source:
    """One raw file.

    Parameters
    ----------
    dataset, file : str
        Name of the data set and of the file: the file lives at ``<folder>/<dataset>/<file>``.
    urls : tuple of str
        Addresses (http or https) in the order in which they are tried.
    licence : str
        Licence as its publisher states it.
    sha256 : str
        SHA-256 sum, 64 lower-case hexadecimal digits.
    bytes : int
        Size of the file in bytes.
    note : str
        What a reader should know about the file.

    Raises
    ------
    DataError
        If a field cannot be what it says.
    """

    dataset: str
    file: str
    urls: tuple[str, ...]
    licence: str
    sha256: str
    bytes: int
    note: str = ""

    def __post_init__(self) -> None:
        for field, name in (("dataset", self.dataset), ("file", self.file)):
            if not _PLAIN_NAME.fullmatch(name):
                raise DataError(f"a source's {field} must be a plain file name, got {name!r}; correct the table")
        if not re.fullmatch(r"[0-9a-f]{64}", self.sha256):
            raise DataError(f"sha256 of {self.file} must be 64 lower-case hexadecimal digits, got {self.sha256!r}")
        if self.bytes <= 0:
            raise DataError(f"bytes of {self.file} must be positive, got {self.bytes}")
        for url in self.urls:
            if not url.startswith(("http://", "https://")):
                raise DataError(f"an address of {self.file} must start with http:// or https://, got {url!r}")


def checksum(path: Path) -> str:
    """Return the SHA-256 sum of the file at `path` as 64 lower-case hexadecimal digits."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read(path: Path) -> tuple[Source, ...]:
    """Return all sources of the table at `path`, in its order.

    The table is a CSV file with the header ``dataset,file,urls,licence,sha256,bytes,note``; several addresses in
    ``urls`` are separated by spaces.

    Raises
    ------
    DataError
        If the table is missing, has other columns, names a file twice, or holds an impossible value.
    """
    try:
        with Path(path).open(encoding="utf-8", newline="") as table:
            reader = csv.DictReader(table)
            header, rows = tuple(reader.fieldnames or ()), list(reader)
    except OSError as problem:
        raise DataError(f"the table of sources {path} must be readable, got: {problem.strerror}") from None
    if header != COLUMNS:
        raise DataError(f"{path} must have the columns {','.join(COLUMNS)}, got {','.join(header)}; correct its header")
    found: dict[tuple[str, str], Source] = {}
    for line, row in enumerate(rows, start=2):
        if None in row or None in row.values():
            raise DataError(f"line {line} of {path} must have {len(COLUMNS)} fields; quote fields that hold commas")
        if not row["bytes"].isdecimal():
            raise DataError(f"bytes in line {line} of {path} must be a whole number, got {row['bytes']!r}")
        source = Source(
            dataset=row["dataset"], file=row["file"], urls=tuple(row["urls"].split()), licence=row["licence"],
            sha256=row["sha256"], bytes=int(row["bytes"]), note=row["note"],
        )  # fmt: skip
        key = (source.dataset, source.file)
        if key in found:
            raise DataError(f"{path} must name every file once, got {'/'.join(key)} twice; remove one line")
        found[key] = source
    return tuple(found.values())


def of(dataset: str, path: Path, *, files: Sequence[str] | None = None) -> tuple[Source, ...]:
    """Return the sources of `dataset` in the table at `path`; of the named `files` only, if given.

    Raises
    ------
    ArgumentError
        If the table does not know the data set or a file of it.
    DataError
        As :func:`read`.
    """
    table = read(path)
    checks.one_of("data set", dataset, {source.dataset for source in table})
    known = {source.file: source for source in table if source.dataset == dataset}
    if files is None:
        return tuple(known.values())
    return tuple(known[checks.one_of(f"file of {dataset}", name, known)] for name in files)
