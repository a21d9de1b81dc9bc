"""Files: written whole or not at all, read up to a size, and locked while they are changed."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import secrets
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from dpsub.errors import DataError

MOST_BYTES = 2**26
"""Largest file that is read as a whole: 64 MiB, thousands of times what people write."""
_KINDS = {
    stat.S_ISDIR: "the folder",
    stat.S_ISCHR: "the device",
    stat.S_ISBLK: "the device",
    stat.S_ISFIFO: "the pipe",
    stat.S_ISSOCK: "the socket",
}


def checksum(path: Path) -> str:
    """Return the SHA-256 sum of the file at `path` as 64 lower-case hexadecimal digits."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def replace_file(path: Path, content: bytes) -> None:
    """Write `content` to `path`, which only ever names a complete file that is on the disk.

    A symbolic link stays one: what it points to is written. A file keeps its mode and its owner.

    Raises
    ------
    DataError
        If the path names a device, a folder, a pipe or a socket.
    OSError
        If it cannot be written, also where the file before it is read-only or of an owner whom a
        new one cannot have.
    """
    before = _regular(path)
    file = Path(os.path.realpath(path))
    if before is not None:
        _check_replaceable(file, before)
    file.parent.mkdir(parents=True, exist_ok=True)
    temporary = file.with_name(f".{file.name[:60]}.{secrets.token_hex(4)}.tmp")
    # A new file has the mode that the user's mask leaves, as any other. One that may be secret is
    # open to nobody until it has the mode of the file before it.
    mode = 0o666 if before is None else 0o600
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        with os.fdopen(handle, "wb") as out:
            if before is not None:
                _resemble(out.fileno(), before)
            out.write(content)
            out.flush()
            os.fsync(out.fileno())
        # Atomic: a process that is killed leaves the old file or the new one.
        os.replace(temporary, file)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    # The new name is in the folder, which has to reach the disk as well.
    folder = os.open(file.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _check_replaceable(file: Path, before: os.stat_result) -> None:
    """Raise PermissionError for a file that may not be changed in place, although its folder would
    allow to replace it, and for one of another user, to whom a new file cannot be given."""
    if not os.access(file, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(file))
    if os.geteuid() not in (0, before.st_uid):
        raise PermissionError(errno.EPERM, "it belongs to another user", str(file))


def _resemble(handle: int, before: os.stat_result) -> None:
    """Give a file the owner, the group and the mode of another."""
    now = os.fstat(handle)
    if (now.st_uid, now.st_gid) != (before.st_uid, before.st_gid):
        os.fchown(handle, before.st_uid, before.st_gid)
    # after the owner, whose change takes bits away
    os.fchmod(handle, stat.S_IMODE(before.st_mode))


def save_file(path: str | Path, content: bytes) -> None:
    """Write what a user asked for, as `replace_file`, into a folder that exists; DataError where
    it does not, or where the file cannot be written."""
    file = writable(path)
    try:
        replace_file(file, content)
    except OSError as error:
        raise _not_written(file, error) from None


def _not_written(path: str | Path, error: OSError) -> DataError:
    return DataError(f"the file {path} cannot be written: {error.strerror}; name another one")


def writable(path: str | Path) -> Path:
    """Return a path at which a file can be written: DataError where its folder does not exist, or
    where it is a folder, a device or a pipe itself."""
    file = Path(path)
    _regular(file)
    # through a link: the folder of the file that it points to
    folder = Path(os.path.realpath(file)).parent
    if not folder.is_dir():
        missing = folder if file.is_symlink() else file.parent
        raise DataError(
            f"files are written into folders that exist, got {file}; make {missing} first, "
            "or check the path"
        )
    return file


def read_file(path: str | Path, most: int = MOST_BYTES) -> bytes:
    """The content of a file of at most `most` bytes.

    Raises
    ------
    DataError
        If the path names a device, a folder, a pipe or a socket, which might never end, or a larger
        file.
    OSError
        If it cannot be read.
    """
    _regular(Path(path))
    with Path(path).open("rb") as source:
        # one more than allowed: its size may have changed, or be unknown to the system
        content = source.read(most + 1)
    if len(content) > most:
        raise DataError(
            f"a file of at most {most} bytes is needed, got {path}, which is larger; name another "
            "one"
        )
    return content


_STRINGS = re.compile(r'("(?:[^"\\]|\\.)*")(\s*:)?|[{}]')
"""Strings and braces of valid JSON; a string before a colon is a key."""


def read_json(path: str | Path) -> Any:
    """Return the value that a file of JSON holds.

    Raises
    ------
    DataError
        If an object has a key twice, where Python's reader would keep the last without a word; or
        as `read_file`.
    OSError, ValueError, RecursionError
        If the file cannot be read, or is no JSON.
    """
    text = read_file(path).decode("utf-8-sig")
    document = json.loads(text)
    # of the objects that are open
    keys: list[set[str]] = []
    for found in _STRINGS.finditer(text):
        if found[0] == "{":
            keys.append(set())
        elif found[0] == "}":
            keys.pop()
        elif found[2]:
            key = json.loads(found[1])
            if key in keys[-1]:
                line = 1 + text.count("\n", 0, found.start())
                raise DataError(
                    f"{path} must have every key once, got {key!r} again at line {line}; keep the "
                    "right one"
                )
            keys[-1].add(key)
    return document


def _regular(path: Path) -> os.stat_result | None:
    """Status of a regular file, None if there is none; DataError where the path names something
    else, or cannot name a file."""
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise DataError(f"{path} cannot be the path of a file: {reason}; check the path") from None
    for is_kind, name in _KINDS.items():
        if is_kind(found.st_mode):
            way_out = "name a file in it" if is_kind is stat.S_ISDIR else "name a file"
            raise DataError(f"a file is needed, got {name} {path}; {way_out}")
    return found


@contextmanager
def locked(path: str | Path) -> Iterator[None]:
    """Hold the lock of a file that is read, changed and written; wait where another process or
    thread holds it.

    The lock is the kernel's and ends with its process, however that ends. It is taken on
    `.NAME.lock` next to the file, and to what a symbolic link points to: the file itself is
    replaced when it is written. The lock file stays, as a lock on a name that comes and goes
    excludes nobody. Other hosts are kept out as far as the file system passes locks on.

    Raises
    ------
    DataError
        If the file may not be written; if it has several names (hard links), as the writer
        would replace one; if its file system has no locks or takes no lock file; or if this thread
        holds the lock already.
    """
    before = _regular(Path(path))
    file = Path(os.path.realpath(path))
    if before is not None and before.st_nlink > 1:
        raise DataError(
            f"a file of one name is needed, got {path} with {before.st_nlink} (hard links): "
            "one of them would change; make the others symbolic links"
        )
    if _HOLDERS.get(file) == threading.get_ident():
        raise DataError(
            f"{path} is locked by this program already; what holds it also writes it, at its end"
        )
    if before is not None:
        try:
            # first: the owner could not take a lock file from a user who may not write
            _check_replaceable(file, before)
        except PermissionError as error:
            raise _not_written(path, error) from None
    handle = _lock(file, before)
    _HOLDERS[file] = threading.get_ident()
    try:
        yield
    finally:
        del _HOLDERS[file]
        # closing alone would leave it to a process that was forked meanwhile
        _flock(handle, release=True)
        os.close(handle)


_HOLDERS: dict[Path, int] = {}
"""Files whose locks this process holds, with the threads that hold them: a thread that waited for
its own lock would wait for ever."""


def _lock(file: Path, before: os.stat_result | None) -> int:
    """The lock file, open, once its lock is held."""
    beside = file.with_name(f".{file.name}.lock")
    try:
        # for writing, without which network file systems give no exclusive lock
        handle = os.open(beside, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise DataError(
            f"{file} needs a lock file next to it, got {error.strerror} for {beside}; keep it "
            "where files can be made"
        ) from None
    try:
        if before is not None:
            # who may write the file may lock it
            with suppress(OSError):
                _resemble(handle, before)
        _flock(handle)
    except OSError as error:
        os.close(handle)
        raise DataError(
            f"{file} must be on a file system with locks, got {error.strerror}; keep it on another"
        ) from None
    except BaseException:
        os.close(handle)
        raise
    return handle


def _flock(handle: int, release: bool = False) -> None:
    # of POSIX systems only, which is not asked of those who lock nothing
    import fcntl

    fcntl.flock(handle, fcntl.LOCK_UN if release else fcntl.LOCK_EX)
