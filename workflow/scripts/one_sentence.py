"""Scripts end in one sentence when something is wrong, and jobs together with the process that started them.

Scripts import this module before anything that takes time: from then on a killed run takes its jobs along, and Ctrl-C
ends a script without a traceback. A script that is run by hand, outside the workflow, is not tied to anything.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from start_job import die_with_parent

from dpsub.errors import DpsubError


def has_cache() -> bool:
    """Return whether there is the folder in which Snakemake and Matplotlib want to keep things for the next time."""
    try:
        folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError):  # no place for it, or nobody knows the user's home
        return False
    return os.access(folder, os.W_OK)


if job_of := os.environ.get("DPSUB_JOB"):  # set in the Snakefile
    die_with_parent(int(job_of))
if Path(sys.argv[0]).resolve().parent == Path(__file__).resolve().parent:  # a script, and no test that imports one
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # imports take seconds, and have nothing to tidy up
    if sys.getfilesystemencoding() != "utf-8":  # in an old locale not every name could be read or written
        os.environ["PYTHONUTF8"] = "1"
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])
    if not has_cache():
        os.environ["XDG_CACHE_HOME"] = str(Path(".snakemake/cache").resolve())
        os.environ.setdefault("MPLCONFIGDIR", str(Path(".snakemake/matplotlib").resolve()))


def run(main: Callable[[], None]) -> None:
    """Call `main`; turn an error that the user can do something about into one line and the exit status 1."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        main()
        if os.environ.get("DPSUB_JOB"):
            from dpsub.reproduce import provenance

            print(provenance.cost())
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        sys.exit(128 + signal.SIGINT)
    except DpsubError as problem:
        sys.exit(f"error: {problem}")
    except MemoryError:
        sys.exit("error: there must be enough memory for this job, got too little; lower the sizes or raise parts")
    except OSError as problem:
        place = problem.filename or "the results folder"
        reason = problem.strerror or problem
        sys.exit(f"error: {place} must be usable, got: {reason}; free space, or correct permissions or paths")
