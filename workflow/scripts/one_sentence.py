"""Job scripts end in one sentence when something is wrong, and together with the process that started them.

Scripts import this module before anything that takes time: from then on a killed run takes its jobs along. A script
that is run by hand, outside the workflow, is not tied to anything.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable

from start_job import die_with_parent

from dpsub import provenance
from dpsub.errors import DpsubError

if os.environ.get("DPSUB_JOB"):  # set in the Snakefile
    die_with_parent()


def run(main: Callable[[], None]) -> None:
    """Call `main`; turn an error that the user can do something about into one line and the exit status 1."""
    try:
        main()
        if os.environ.get("DPSUB_JOB"):
            print(f"{time.process_time():.2f} s of processor time, at most {provenance.peak_memory()} MiB of memory")
    except DpsubError as problem:
        sys.exit(f"error: {problem}")
    except MemoryError:
        sys.exit("error: there must be enough memory for this job, got too little; lower the sizes or raise parts")
    except OSError as problem:
        place = problem.filename or "the results folder"
        sys.exit(f"error: {place} must be usable, got: {problem.strerror}; free space, or correct permissions or paths")
