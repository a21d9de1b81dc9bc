"""Surroundings of a script of the workflow: a log, and one sentence about an error that the user
can mend."""

from __future__ import annotations

import contextlib
import json
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path

from dpsub.errors import DataError, DpsubError


@contextlib.contextmanager
def in_one_sentence() -> Iterator[None]:
    """End the program with one sentence on an error that the user can mend."""
    try:
        yield
    except DpsubError as problem:
        sys.exit(f"error: {problem}")
    # An error that the user can mend ends in a sentence; every other one is a fault and keeps its
    # traceback.
    except MemoryError:
        sys.exit(
            "error: there must be enough memory for this job, got too little; lower the sizes "
            "or raise parts"
        )
    except OSError as problem:
        place, reason = problem.filename or "the results folder", problem.strerror or problem
        sys.exit(
            f"error: {place} must be usable, got: {reason}; free space, or correct "
            "permissions or paths"
        )


# Snakemake shows a failed job's log file, not what it printed: everything must stand there.
@contextlib.contextmanager
def logged(path: str) -> Iterator[None]:
    """Send the output and the errors of the program to the log at `path`."""
    with (
        # Line by line: the log of a job that is killed ends where the job did.
        open(path, "w", encoding="utf-8", buffering=1) as log,
        contextlib.redirect_stdout(log),
        contextlib.redirect_stderr(log),
    ):
        try:
            with in_one_sentence():
                yield
        except SystemExit as end:
            print(end.code)
            sys.exit(1)
        except Exception:
            traceback.print_exc()
            sys.exit(1)


def label_of(prepared: Path) -> str:
    """Return the label of a prepared data set ("real", "synthetic", ...), which its description
    has."""
    try:
        return str(json.loads(prepared.with_suffix(".json").read_text(encoding="utf-8"))["label"])
    except (OSError, ValueError, KeyError):
        raise DataError(
            f"{prepared} must have its description next to it, in JSON; prepare the data again"
        ) from None


def failures(results: Path, since: float) -> str:
    """Return the errors in the logs of jobs that have failed since a time: the sentence, or the end
    of a traceback."""
    ends = []
    for path in sorted((results / "logs").rglob("*.log")):
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
        # A sentence for the user begins with "error: "; a traceback is a fault of the program.
        failed = any(line.startswith(("error: ", "Traceback")) for line in lines)
        # logs of earlier runs stay in the folder
        if failed and path.stat().st_mtime >= since:
            ends += [*lines[-3:], f"(log: {path})"]
    return "\n".join(ends)
