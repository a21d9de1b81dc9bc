"""What a job of the workflow has around it: its log, in which an error ends as one sentence."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path

from dpsub.errors import DataError, DpsubError


@contextlib.contextmanager
def logged(path: str) -> Iterator[None]:
    """Send what is printed to the log at `path`; end with exit status 1 on an error that the user can act on."""
    with (
        open(path, "w", encoding="utf-8", buffering=1) as log,
        contextlib.redirect_stdout(log),
        contextlib.redirect_stderr(log),
    ):
        try:
            yield
        except DpsubError as problem:
            sentence = str(problem)
        except MemoryError:
            sentence = "there must be enough memory for this job, got too little; lower the sizes or raise parts"
        except OSError as problem:
            place, reason = problem.filename or "the results folder", problem.strerror or problem
            sentence = f"{place} must be usable, got: {reason}; free space, or correct permissions or paths"
        else:
            return
        print(f"error: {sentence}")
        sys.exit(1)


def label_of(prepared: Path) -> str:
    """Return the label of a prepared data set ("real", "synthetic", ...), which its description has."""
    try:
        return str(json.loads(prepared.with_suffix(".json").read_text(encoding="utf-8"))["label"])
    except (OSError, ValueError, KeyError):
        raise DataError(
            f"the prepared data {prepared} must have their description next to them; prepare them again"
        ) from None
