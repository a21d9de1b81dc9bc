"""Job scripts end in one sentence when something is wrong, and with the process that started them."""

from __future__ import annotations

import ctypes
import signal
import sys
from collections.abc import Callable

from dpsub.errors import DpsubError

_PR_SET_PDEATHSIG = 1


def die_with_parent() -> None:
    """Ask the kernel to kill this process when its parent dies, so that a killed run leaves no job behind (Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def run(main: Callable[[], None]) -> None:
    """Call `main`; turn an error that the user can do something about into one line and the exit status 1."""
    die_with_parent()
    try:
        main()
    except DpsubError as problem:
        sys.exit(f"error: {problem}")
    except MemoryError:
        sys.exit("error: there must be enough memory for this job, got too little; lower the sizes or raise parts")
    except OSError as problem:
        place = problem.filename or "the results folder"
        sys.exit(f"error: {place} must be usable, got: {problem.strerror}; free space, or correct permissions or paths")
