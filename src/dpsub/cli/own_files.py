"""Samplers, schedules and schemes from a file that the user has written: --load FILE.py."""

from __future__ import annotations

import importlib.util
import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import Path

from dpsub.errors import ArgumentError, DataError, PlanError

OPTION = "--load"


def add_option(parser: ArgumentParser) -> None:
    """Add the option, so that it is known; files are loaded before the line is parsed."""
    parser.add_argument(
        OPTION,
        action="append",
        metavar="FILE.py",
        help="run this Python file, which defines a sampler or schedule of your own",
    )


def named(words: Sequence[str]) -> list[str]:
    """The files that a command line names."""
    files = []
    for place, word in enumerate(words):
        name, equals, value = word.partition("=")
        if name == OPTION:
            files += [value] if equals else list(words[place + 1 : place + 2])
    return files


def load(file: str) -> None:
    """Run a file and enter the samplers and schedules that it defines under their names; schemes
    enter themselves.

    Raises
    ------
    DataError
        If the file cannot be read or fails.
    ArgumentError
        If it defines no sampler or schedule, or one of a name that is known.
    """
    # Imported here: most commands load no file.
    from dpsub.sampling import REGISTRY, SCHEDULES

    path = Path(file)
    if not path.is_file() or path.suffix != ".py":
        raise DataError(f"{OPTION} needs a Python file, got {file}; check the path")
    name = f"dpsub_own_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None  # of a file that ends in .py
    # Dataclasses look their module up.
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        reason = " ".join(str(error).split())
        raise DataError(
            f"the file {file} cannot be loaded: {type(error).__name__}: {reason}; correct it"
        ) from None
    try:
        taken = [*REGISTRY.take(module), *SCHEDULES.take(module)]
    except PlanError as error:
        raise ArgumentError(str(error)) from None
    if not taken:
        raise ArgumentError(
            f"{OPTION} needs a file that defines a sampler or a schedule with a name, got {file}; "
            "docs/adding.md shows one"
        )
