"""One run at a time in a results folder: a lock of the operating system, which a killed run cannot leave behind."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dpsub.errors import PlanError


@contextmanager
def hold(folder: Path) -> Iterator[int]:
    """Hold the lock of the results folder `folder`, which is made if missing; yields the lock's file descriptor.

    A process that inherits the descriptor holds the lock, too: as long as any of them works in the folder, it is taken.

    Raises
    ------
    PlanError
        If another run holds the lock, or the folder cannot be written.
    """
    path = folder / ".lock"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as problem:
        raise PlanError(
            f"the results folder {folder} must be writable ({problem.strerror}); change its permissions or results_dir"
        ) from None
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = os.pread(descriptor, 32, 0).decode(errors="replace").strip() or "unknown"
            raise PlanError(
                f"one run at a time may use the results folder {folder}, and process {owner} is running in it; "
                "wait for it, or set another results_dir"
            ) from None
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        yield descriptor
    finally:
        os.close(descriptor)
