"""Writing of files that are never incomplete."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from dpsub.errors import DataError


def replace_file(path: Path, content: bytes) -> None:
    """Write `content` to `path`, which only ever names a complete file that is on the disk."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as out:
            out.write(content)
            out.flush()
            os.fsync(out.fileno())
        os.chmod(temporary, 0o644)
        # Atomic: a process that is killed leaves the old file or the new one.
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    # The new name is in the folder, which has to reach the disk as well.
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def save_file(path: str | Path, content: bytes) -> None:
    """Write what a user asked for, as `replace_file`, into a folder that exists; DataError where
    it does not, or where the file cannot be written."""
    file = writable(path)
    try:
        replace_file(file, content)
    except OSError as error:
        raise DataError(
            f"the file {file} cannot be written: {error.strerror}; name another one"
        ) from None


def writable(path: str | Path) -> Path:
    """A path that a file can have: DataError where its folder does not exist, or where it is a
    folder itself."""
    file = Path(path)
    if file.is_dir():
        raise DataError(f"a file is needed, got the folder {file}; name a file in it")
    if not file.parent.is_dir():
        raise DataError(
            f"files are written into folders that exist, got {file}; make {file.parent} first, "
            "or check the path"
        )
    return file
