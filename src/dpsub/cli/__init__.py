"""The command line: `dpsub COMMAND ...`, also `python -m dpsub COMMAND ...`.

One file a command; each has `add_arguments(parser)` and `run(arguments) -> Answer`.  Only the module of the command
that is asked for is imported, and what it computes with when it runs: most answers take less time than importing all.
"""

from __future__ import annotations

import importlib
import io
import os
import re
import sys
import warnings
from collections.abc import Sequence

from dpsub import __version__
from dpsub.cli.parsing import Parser, nearest
from dpsub.errors import ArgumentError, DpsubError

COMMANDS = {
    "law": "how often one record occurs in a sample",
    "amplify": "(epsilon, delta) of one release from a sample, by the amplification theorem",
    "translate": "the bound for a sampler and two neighbouring relations, or why there is none",
    "account": "delta at an epsilon, or epsilon at a delta, of many releases",
    "calibrate": "noise, sample size or steps for a target (epsilon, delta)",
    "advise": "what each sampling design gives on a frame: privacy, sample size, variance of a total",
    "brdp": "budget recycling: noise redrawn while it is too large, and what its privacy really is",
    "plan": "cells, jobs, core-hours and memory of a sweep, before anything runs",
    "audit": "the attack on a sampler: its data sets, densities, and real draws that show it",
}
"""Commands and what they answer; each is a module of this package."""

_OPTIONS = {"noise_multiplier": "noise-multiplier"}
"""Arguments of the library that are called otherwise on the command line."""

EXIT_OK, EXIT_ERROR, EXIT_STOPPED = 0, 2, 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status: 0, or 2 after one sentence on stderr.

    Parameters
    ----------
    argv : sequence of str, optional
        Default: the arguments of the process.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a terminal that knows no ± gets \xb1, and no error
    words = list(sys.argv[1:] if argv is None else argv)
    command = words[0] if words and words[0] in COMMANDS else ""
    try:
        return _run(command, words)
    except SystemExit as stop:  # how argparse ends after --help
        return stop.code if isinstance(stop.code, int) else EXIT_ERROR
    except DpsubError as error:
        return _failed(command, str(error))
    except KeyboardInterrupt:
        _failed(command, "stopped")
        return EXIT_STOPPED
    except BrokenPipeError:
        # whoever read the answer has seen enough; the interpreter must not complain when it flushes at the end
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_OK
    except MemoryError:
        return _failed(command, "the computation needs more memory than there is; ask for fewer steps")
    except Exception as error:
        reason = " ".join(str(error).split())
        return _failed(command, f"unexpected {type(error).__name__}: {reason}; please report the command")


def _run(command: str, words: list[str]) -> int:
    if not command:
        return _without_command(words)
    module = importlib.import_module(f"dpsub.cli.{command}")
    parser = Parser(prog=f"dpsub {command}", description=module.__doc__)
    module.add_arguments(parser)
    parser.add_argument("--json", action="store_true", help="one line of JSON instead of text")
    arguments = parser.parse_args(words[1:])
    with warnings.catch_warnings(record=True) as numerical:
        warnings.simplefilter("always")
        answer = module.run(arguments)
    for message in dict.fromkeys(str(warning.message) for warning in numerical):
        print(f"dpsub {command}: a library warned of {message!r} on the way", file=sys.stderr)
    print(answer.json() if arguments.json else answer.text())
    sys.stdout.flush()
    return EXIT_OK


def _without_command(words: list[str]) -> int:
    if words and words[0] in ("--version", "-V"):
        print(f"dpsub {__version__}")
        return EXIT_OK
    if words and words[0] in ("--help", "-h", "help"):
        print(_overview())
        return EXIT_OK
    if not words:
        raise ArgumentError(f"a command is needed, got none; known: {', '.join(COMMANDS)}")
    raise ArgumentError(f"unknown command {words[0]!r}; {nearest(words[0], list(COMMANDS))}")


def _overview() -> str:
    width = max(map(len, COMMANDS))
    lines = ["usage: dpsub COMMAND [options]     (dpsub COMMAND --help lists them)", ""]
    return "\n".join(lines + [f"  {name:<{width}}  {summary}" for name, summary in COMMANDS.items()])


def _failed(command: str, sentence: str) -> int:
    for name, option in _OPTIONS.items():
        sentence = re.sub(rf"\b{name}\b", option, sentence)
    print(f"{' '.join(['dpsub', command]).strip()}: {sentence}", file=sys.stderr)
    return EXIT_ERROR
