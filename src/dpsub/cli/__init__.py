"""The command line: `dpsub COMMAND ...`, also `python -m dpsub COMMAND ...`.

One file for each command; each has `add_arguments(parser)`, which adds its options, and
`run(arguments) -> Answer`. Only the module of the command that is asked for is imported, with what
it needs: most answers take less time than importing all.

Exit status: 0, or what `dpsub check --strict` found, or 3 if the budget of `dpsub record` refuses;
2 after one sentence on the standard error, or, with --json, after {"error": sentence, "kind":
argument, unsupported, data, plan, numerical, memory, missing or unexpected} on the standard output;
130 if it is stopped.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import io
import itertools
import os
import re
import signal
import sys
import threading
import time
import warnings
from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TextIO

from dpsub import __version__
from dpsub.cli import own_files
from dpsub.cli.answers import Answer, as_json, on_the_line
from dpsub.cli.parsing import Parser, Several, nearest, show
from dpsub.errors import ArgumentError, DataError, DpsubError, NumericalError, how_to_install

GROUPS = {
    "one sample": {
        "law": "how often one record occurs in a sample",
        "amplify": "(epsilon, delta) of one release from a sample, by the amplification theorem",
        "translate": "the bound for a sampler and two adjacency relations, or why there is none",
    },
    "many releases": {
        "account": "delta at an epsilon, or epsilon at a delta",
        "loader": "the same for a training loop, described by its data loader",
        "check": "whether a claimed epsilon or delta is proved, refuted by an attack, or open",
        "curve": "delta at every epsilon, the error rates of every test, and a plot of both",
        "select": "the cost of choosing the best of a random number of runs",
        "audit": "the attack on a sampler: its data sets, densities and a Monte Carlo run",
    },
    "planning, and keeping within a budget": {
        "calibrate": "noise, sample size or steps for a target (epsilon, delta)",
        "recommend": "which subsampling scheme needs the least noise for a training run",
        "record": "enter releases into a ledger, if the budget allows",
        "ledger": "the total privacy cost of all releases in a ledger",
    },
    "surveys, redrawn noise and sweeps": {
        "advise": "compare survey designs on a frame: privacy, sample size, variance of a total",
        "brdp": "budget recycling, which redraws noise while it is too large, and its privacy",
        "plan": "cells, jobs, core-hours and memory of a sweep, before anything runs",
    },
}
"""Commands and what they answer, by subject; each is a module of this package."""
COMMANDS = {name: summary for group in GROUPS.values() for name, summary in group.items()}
_EXAMPLE = "dpsub account poisson --rate 0.01 --noise-multiplier 1 --steps 1000 --delta 1e-5"
EXIT_OK, EXIT_ERROR, EXIT_STOPPED = 0, 2, 130
# Options whose values several answers in JSON repeat, as nothing else in them tells them apart.
_COMPARED = ("m", "batch_size")
_OF_STATEMENTS = {"clip": "the clipping norm", "prior": "the prior of guesses"}
_FILES = ("plot", "csv", "certificate")  # options that write the file of one answer
_PATIENCE = 2.0  # seconds until progress is shown
_GRACE = 1.5  # seconds beyond the time limit, in which most computations stop by themselves


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command, of `argv` or of the process, and return its exit status."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A terminal without ± gets \xb1 instead of an error.
            stream.reconfigure(errors="backslashreplace")
    if argv is None:
        # A process that ends gives back all of its memory: looking for garbage first, among all
        # that was imported, would take a sixth of a simple answer.
        atexit.register(gc.freeze)
    # `dpsub help COMMAND` is `dpsub COMMAND --help`.
    words = list(sys.argv[1:] if argv is None else argv)
    if words[:1] == ["help"] and len(words) > 1:
        words = [words[1], "--help"]
    command = words[0] if words and words[0] in COMMANDS else ""
    try:
        return _run(command, words)
    except SystemExit as stop:
        # argparse ends like this after --help.
        return stop.code if isinstance(stop.code, int) else EXIT_ERROR
    except BrokenPipeError:
        # The reader has closed the pipe, as `head` does.
        _drop(sys.stdout)
        return EXIT_OK
    # A user of the command line sees one sentence, never a traceback.
    except (Exception, KeyboardInterrupt) as error:
        kind, sentence = _complaint(error, command)
        _report(kind, sentence, command, as_values="--json" in words)
        return EXIT_STOPPED if kind == "stopped" else EXIT_ERROR


def _report(kind: str, sentence: str, command: str, *, as_values: bool) -> None:
    """Print what went wrong: on the standard output with --json, unless that is what failed."""
    if as_values:
        with contextlib.suppress(DataError):
            show(as_json({"error": sentence, "kind": kind}))
            return
    _drop(sys.stdout)
    # on a full disk there may be no place for this either; the status tells
    with contextlib.suppress(OSError):
        print(f"{' '.join(['dpsub', command]).strip()}: {sentence}", file=sys.stderr, flush=True)
        return
    _drop(sys.stderr)


def _drop(stream: TextIO | None) -> None:
    """Throw away what a stream could not write: the interpreter would report it at the end."""
    # closed, or not the process's own
    with contextlib.suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())  # type: ignore[union-attr]


def _run(command: str, words: list[str]) -> int:
    if not command:
        return _without_command(words)
    module = importlib.import_module(f"dpsub.cli.{command}")
    # Before the options are known: those of the user's own samplers are among them.
    for file in own_files.named(words):
        own_files.load(file)
    # Parsing is outside the time limit, which it defines.
    arguments = parser_of(command).parse_args(words[1:])
    if getattr(arguments, "tight", False):
        print(
            f"dpsub {command}: --tight is the default now and goes in the next release; drop it",
            file=sys.stderr,
        )
    with _computing(command, arguments):
        # A command that takes several values of an option at once shares its work between them; the
        # others get one question each.
        asked_apart = _several(arguments, without=getattr(module, "TAKES_SEVERAL", ()))
        questions = list(_questions(arguments, asked_apart))
        _check_options(arguments, asked_apart)
        answers = [_answer(module, question) for question in questions]
    if arguments.json:
        show(as_json(_rows(answers, questions, asked_apart)))
    else:
        options = _options(command)
        show("\n\n".join(answer.spelt(options).text(arguments.explain) for answer in answers))
    for answer in answers:
        if answer.later is not None:
            with _computing(command, arguments):
                said = answer.later()
            if not arguments.json:
                show(said)
    # With --strict the worst verdict of several questions decides.
    return max(answer.status for answer in answers)


@contextlib.contextmanager
def _computing(command: str, arguments: Namespace) -> Iterator[None]:
    """Computations of a command: their progress is shown, and the time limit ends them."""
    with (
        warnings.catch_warnings(),
        _progress(command),
        _time_limit(getattr(arguments, "time_limit", None)),
    ):
        # Numerical uncertainty is part of the bounds of an answer.
        warnings.simplefilter("ignore")
        yield


def parser_of(command: str) -> Parser:
    """The parser of one command; the reference in docs/ is made from it as well."""
    module = importlib.import_module(f"dpsub.cli.{command}")
    parser = Parser(
        prog=f"dpsub {command}", description=module.__doc__, renamed=getattr(module, "RENAMED", {})
    )
    module.add_arguments(parser)
    parser.add_argument(
        "--explain", action="store_true", help="also print conditions, attacks and other details"
    )
    parser.add_argument("--json", action="store_true", help="one line of JSON instead of text")
    return parser


def _options(command: str) -> set[str]:
    """The names of a command's options, as Python has them."""
    if not command:
        return set()
    return {action.dest for action in parser_of(command)._actions if action.option_strings}


def _several(arguments: Namespace, without: Sequence[str]) -> list[str]:
    """The options that were given several values, separated by commas, but for some."""
    return [
        name
        for name, value in vars(arguments).items()
        if isinstance(value, Several) and name not in without
    ]


def _check_options(arguments: Namespace, several: Sequence[str]) -> None:
    """Refuse options that would count for nothing, and one file for the answers of several
    questions: the last would replace the others."""
    # of --left, which has no statement, the command says so
    has_statement = hasattr(arguments, "statement") and getattr(arguments, "left", None) is None
    for name, what in _OF_STATEMENTS.items() if has_statement else ():
        if getattr(arguments, name) is not None and not arguments.statement:
            raise ArgumentError(
                f"--{name} is {what} of --statement, got no --statement; add it, or drop --{name}"
            )
    for name in _FILES if several else ():
        if getattr(arguments, name, None) is not None:
            raise ArgumentError(
                f"--{name} is the file of one answer, got several values of "
                f"--{several[0].replace('_', '-')}; give one"
            )


def _questions(arguments: Namespace, several: Sequence[str]) -> Iterator[Namespace]:
    """One question for each combination of the values of these options."""
    for values in itertools.product(*(getattr(arguments, name) for name in several)):
        yield Namespace(**vars(arguments) | dict(zip(several, values, strict=True)))


def _rows(answers: Sequence[Answer], questions: Sequence[Namespace], several: Sequence[str]) -> Any:
    """The values of one answer; of several a list, each with the sizes that it is about."""
    if len(answers) == 1:
        return answers[0].values
    rows = []
    for answer, question in zip(answers, questions, strict=True):
        sizes = {name: getattr(question, name) for name in several if name in _COMPARED}
        parts = [answer.values] if isinstance(answer.values, Mapping) else answer.values
        rows += [{**sizes, **part} for part in parts]
    return rows


def _answer(module: Any, arguments: Namespace) -> Answer:
    """The answer with the remarks about the question."""
    arguments.remarks = []
    answer: Answer = module.run(arguments)
    more: dict[str, Any] = {"remarks": arguments.remarks} if arguments.remarks else {}
    if getattr(arguments, "epochs", None) is not None:
        more["steps"] = arguments.steps
    # One question answers with a mapping, several with a list: each row repeats the remarks, so
    # that a row stands alone.
    if isinstance(answer.values, Mapping):
        values: Any = {**answer.values, **more}
    else:
        values = [{**row, **more} for row in answer.values]
    return replace(answer, values=values).with_remarks(arguments.remarks)


def _without_command(words: list[str]) -> int:
    if not words:
        raise ArgumentError(f"a command is needed, got none; known: {', '.join(COMMANDS)}")
    if words[0] in ("--version", "-V"):
        show(f"dpsub {__version__}")
    elif words[0] in ("--help", "-h", "help"):
        lines = ["usage: dpsub COMMAND [options]     (dpsub help COMMAND lists them)"]
        for subject, commands in GROUPS.items():
            lines += ["", f"{subject}:"]
            lines += [f"  {name:<9}  {summary}" for name, summary in commands.items()]
        show("\n".join([*lines, "", f"example: {_EXAMPLE}"]))
    else:
        hint = nearest(words[0], list(COMMANDS))
        if _is_sampler(words[0]):
            hint = f"did you mean 'dpsub account {words[0]}'?"
        raise ArgumentError(f"unknown command {words[0]!r}; {hint}")
    return EXIT_OK


def _is_sampler(word: str) -> bool:
    # Imported here: no other command line without a command needs them.
    from dpsub.sampling import REGISTRY, SCHEDULES

    return word in (*REGISTRY.names(), *SCHEDULES.names())


def _complaint(error: BaseException, command: str) -> tuple[str, str]:
    """The kind of an error, and the sentence that reports it."""
    if isinstance(error, DpsubError):
        # Arguments are spelt as options, and numbers of hundreds of digits are shortened.
        sentence = on_the_line(str(error), _options(command))
        sentence = re.sub(r"(\d{20})\d{20,}", r"\1...", sentence)
        # A word of the command may contain a line break; the sentence must stay one line.
        sentence = "".join(
            letter if letter.isprintable() else repr(letter)[1:-1] for letter in sentence
        )
        return type(error).__name__.removesuffix("Error").lower(), sentence
    if isinstance(error, KeyboardInterrupt):
        return "stopped", "stopped"
    if isinstance(error, MemoryError):
        return "memory", "the computation needs more memory than is available; ask for fewer steps"
    # A missing module of dpsub itself is a fault of ours and stays "unexpected".
    if isinstance(error, ModuleNotFoundError) and not str(error.name).startswith("dpsub"):
        return "missing", (
            f"this needs {error.name}, which is not installed; {how_to_install('papers')}"
        )
    if isinstance(error, OSError) and error.filename is not None:
        return "data", (
            f"the file {error.filename} cannot be used: {error.strerror}; check the path"
        )
    reason = " ".join(str(error).split())
    return "unexpected", f"unexpected {type(error).__name__}: {reason}; please report the command"


@contextlib.contextmanager
def _progress(command: str) -> Iterator[None]:
    """Show the elapsed time on a terminal, from two seconds on."""
    # A log or a pipe gets no progress.
    if not sys.stderr.isatty():
        yield
        return
    done, started = threading.Event(), time.monotonic()

    def tell() -> None:
        # Most answers take less than this: nothing flickers for them.
        pause = _PATIENCE
        while not done.wait(pause):
            print(
                f"\rdpsub {command}: {time.monotonic() - started:.0f} s",
                end="",
                file=sys.stderr,
                flush=True,
            )
            pause = 1.0

    teller = threading.Thread(target=tell, daemon=True)
    teller.start()
    try:
        yield
    finally:
        done.set()
        teller.join()
        if time.monotonic() - started >= _PATIENCE:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


@contextlib.contextmanager
def _time_limit(seconds: float | None) -> Iterator[None]:
    """Stop a computation that does not stop by itself at its time limit."""
    from dpsub.accounting.engine import work

    # Signals reach the main thread of a POSIX system only: elsewhere computations stop by
    # themselves.
    if (
        seconds is None
        or threading.current_thread() is not threading.main_thread()
        or not hasattr(signal, "setitimer")
    ):
        with work.timed(seconds):
            yield
        return

    def stop(*_: object) -> None:
        raise NumericalError(
            f"no answer within --time-limit {seconds:g} s; raise it, or ask for fewer steps, "
            "records or draws"
        )

    before = signal.signal(signal.SIGALRM, stop)
    # Computations that count their work return valid bounds at the limit; the alarm is for what
    # does not.
    signal.setitimer(signal.ITIMER_REAL, seconds + _GRACE)
    try:
        with work.timed(seconds):
            yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
