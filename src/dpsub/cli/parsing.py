"""Parsing of the command line: options with errors of one sentence, and numbers as people write
them."""

from __future__ import annotations

import argparse
import contextlib
import errno
import math
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from dpsub.errors import ArgumentError, DataError

OF_LOOPS = {
    **{
        option: option
        for option in (
            "--poisson",
            "--shuffle",
            "--replacement",
            "--drop-last",
            "--shuffle-buffer",
            "--accumulation",
            "--remainder",
            "--ranks",
            "--noise-per-rank",
            "--microbatch",
            "--steps-per-batch",
        )
    },
    **dict.fromkeys(
        ("--accumulation-steps", "--gradient-accumulation-steps", "--accumulate-grad-batches"),
        "--accumulation",
    ),
    **dict.fromkeys(("--world-size", "--num-replicas", "--workers", "--gpus"), "--ranks"),
    **dict.fromkeys(("--microbatches", "--microbatch-size", "--num-microbatches"), "--microbatch"),
    **dict.fromkeys(("--buffer-size",), "--shuffle-buffer"),
}
"""Options of training loops, and what `dpsub loader` calls them."""
OF_CLAIMS = ("--claimed-epsilon", "--claimed-delta")
THE_SAMPLER = "with the sampler that dpsub loader names in the first line of its answer"
"""How a question about a training loop goes on in another command."""


class Parser(argparse.ArgumentParser):
    """argparse with errors as `ArgumentError`, without abbreviations, with suggestions for misspelt
    options.

    `renamed` maps the options of earlier versions to their new names; they are accepted for one
    more release.
    """

    def __init__(self, prog: str, description: str | None, renamed: Mapping[str, str]) -> None:
        self.renamed = renamed
        formatter = argparse.RawDescriptionHelpFormatter
        super().__init__(
            # An abbreviation would change its meaning when an option is added.
            prog,
            description=description,
            allow_abbrev=False,
            formatter_class=formatter,
        )

    @property
    def is_of_loops(self) -> bool:
        """Whether these are the options of `dpsub loader`."""
        return self.prog == "dpsub loader"

    def add_effort(self, value: float = 1.0) -> None:
        """Add the options for the work that an answer may take, and for the time limit."""
        self.add_argument(
            "--effort",
            type=effort,
            default=value,
            metavar="E",
            help=(
                "work that an answer may take, counted, not timed: 1 is about two seconds of one "
                f"core for the hardest questions; none: as much as it takes (default: {value:g})"
            ),
        )
        self.add_time_limit()

    def add_time_limit(self) -> None:
        """Add the time limit, for commands that may take long."""
        text = (
            "stop after this time and print the bounds so far, which are valid; another run may "
            "stop at others (default: none)"
        )
        self.add_argument("--time-limit", type=duration, metavar="SECONDS", help=text)

    def _print_message(self, message: str, file: Any = None) -> None:
        # argparse would take a help that was not printed for printed
        show(message, end="")

    def error(self, message: str) -> NoReturn:
        # Every error names the way out; a suggestion is one already.
        way_out = "" if message.endswith("?") else f"; {self.prog} --help lists the options"
        if message.startswith("unrecognized arguments: "):
            message = message.replace("unrecognized arguments: ", "values follow an option, got ")
            way_out = f" without one; write --n 60000, for example{way_out}"
        if " not allowed with argument " in message:
            both = message.removeprefix("argument ").split(": not allowed with argument ")
            message = f"{both[1]} and {both[0]} are two questions, got both"
            way_out = "; drop one"
            if set(both) == {"--epsilon", "--delta"}:
                way_out += ", or ask dpsub check whether both hold together"
                if self.is_of_loops:
                    way_out += f", {THE_SAMPLER}"
        raise ArgumentError(
            f"{message.removeprefix('argument ').removeprefix('SAMPLER: ')}{way_out}"
        )

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Parse after a check for unknown options."""
        # argparse would report a misspelt option as a missing one.
        known = self._option_string_actions
        words, used = [], dict[argparse.Action, str]()
        for place, word in enumerate(args or ()):
            name, *value = word.split("=", 1)
            if name.startswith("--") and name not in known:
                # As Python spells the argument: --noise_multiplier.
                name = name.replace("_", "-")
            name = self.renamed.get(name, name)
            if name.startswith("--") and name != "--":
                if name not in known and name in OF_LOOPS:
                    raise ArgumentError(self._of_loop(name))
                if name in OF_CLAIMS and name not in known and self.is_of_loops:
                    raise ArgumentError(
                        f"{name} is a claim, which dpsub loader does not judge; ask dpsub check, "
                        f"{THE_SAMPLER}"
                    )
                if name not in known:
                    following = value or list(args or ())[place + 1 : place + 2]
                    raise ArgumentError(f"unknown option {name!r}; {self._meant(name, following)}")
                first = used.setdefault(known[name], name)
                # --m 10 --batch-size 20: argparse would silently take the last.
                if first != name:
                    raise ArgumentError(
                        f"{first} and {name} are the same option, got both; drop one"
                    )
            words.append("=".join([name, *value]))
        return super().parse_known_args(words, namespace)

    def _meant(self, name: str, value: Sequence[str]) -> str:
        """A hint at the option that an unknown one with this value stands for."""
        # Imported here, as in `nearest`.
        from dpsub.checks import plain_word

        options = [
            option
            for option, action in self._option_string_actions.items()
            if option.startswith("--") and action.help != argparse.SUPPRESS
        ]
        if name == "--sampler" and any(action.dest == "sampler" for action in self._actions):
            return f"the sampler is the first word, as in {self.prog} poisson"
        for option in options:
            # --noise laplace: what has this value among its choices is meant
            choices = str(self._option_string_actions[option].metavar).strip("{}").split(",")
            if len(choices) > 1 and value and plain_word(value[0]) in choices:
                return f"did you mean {option!r}?"
        return nearest(name, options)

    def _of_loop(self, name: str) -> str:
        """The sentence about an option of a training loop that this command does not have."""
        meant = OF_LOOPS[name]
        if meant in self._option_string_actions:
            return f"unknown option {name!r}; did you mean {meant!r}?"
        loop = (
            f"{name} is about a training loop, which dpsub loader describes; ask dpsub loader with"
        )
        command = self.prog.removeprefix("dpsub ")
        if command not in ("check", "calibrate"):
            return f"{loop} {meant}"
        # loader has neither of their questions: only the sampler leads on
        return (
            f"{loop} {meant}, and then {self.prog} with the sampler and sizes in the first line of "
            f"its answer, as in {self.prog} shuffle --n 60000 --m 256 --epochs 3 --adjacency "
            "zero_out"
        )


def show(text: str, end: str = "\n") -> None:
    """Print to the standard output; DataError where it takes nothing, as on a full disk."""
    try:
        if sys.stdout is None:
            raise OSError(errno.EBADF, "it is closed")
        print(text, end=end, flush=True)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise DataError(
            "the command is done, but its answer cannot be written to the standard output: "
            f"{error.strerror}; free space, or send it elsewhere"
        ) from None


def nearest(name: str, known: list[str]) -> str:
    """Suggest the known name nearest to `name`, or list all of them."""
    # Imported here: it imports NumPy, which `dpsub --help` can do without.
    from dpsub import checks

    return checks.nearest(name, known)


def whole_number(text: str) -> int:
    """A whole number of at most 2^53, up to which doubles are exact; also as 1e6 or 10_000."""
    value = math.nan
    # `int` comes last: it is exact wherever it can read the text.
    for read in (float, int):
        with contextlib.suppress(ValueError):
            value = read(text)
    # Sizes enter formulas as doubles: beyond this neighbours n and n + 1 are one number.
    if abs(value) > 2**53:
        raise argparse.ArgumentTypeError(f"must be at most {2**53}, got {_short(text)}")
    if value % 1 != 0:
        raise argparse.ArgumentTypeError(
            f"must be a whole number, got {_short(text)}{_meant_number(text, whole=True)}"
        )
    return int(value)


class Several(tuple[Any, ...]):
    """Values of one option that were separated by commas: a question each. A plain tuple is one
    value of several parts, as the two numbers of --group."""


def whole_numbers(text: str) -> int | Several:
    """One whole number, or several separated by commas; each one gets an answer."""
    values = Several(whole_number(part) for part in text.split(","))
    return values if len(values) > 1 else values[0]


def number(text: str) -> float:
    """A finite number, also as 1/60000."""
    above, slash, below = text.partition("/")
    value = math.nan
    with contextlib.suppress(ValueError, ZeroDivisionError):
        # Rates are written as they are meant, 256/60000.
        value = float(above) / float(below) if slash else float(above)
    if not math.isfinite(value):
        raise argparse.ArgumentTypeError(
            f"must be a finite number, as 0.01, 1e-5 or 1/100, got {_short(text)}"
            f"{_meant_number(text)}"
        )
    return value


_FACTORS = {"%": 1e-2, "k": 1e3, "K": 1e3, "M": 1e6}


def _meant_number(text: str, *, whole: bool = False) -> str:
    """A hint at the number that a text with thousands separators, as 50,000, a percent sign or a
    letter for its size stands for."""
    value, factor = math.nan, _FACTORS.get(text[-1:], 1.0)
    with contextlib.suppress(ValueError):
        value = float(text.rstrip("".join(_FACTORS)).replace(",", "")) * factor
    if not math.isfinite(value) or (whole and value % 1):
        return ""
    return f"; did you mean {value:.15g}?"


def effort(text: str) -> float | None:
    """An effort, above 0; "none" for no limit."""
    if text == "none":
        return None
    value = number(text)
    if not 0 < value <= 1e6:
        raise argparse.ArgumentTypeError(f"must be above 0 and at most 1e6, got {_short(text)}")
    return value


def duration(text: str) -> float | None:
    """Seconds, above 0 and at most a year; "none" for no limit."""
    if text == "none":
        return None
    value = number(text)
    # The timer of the system has a longest interval.
    if not 0 < value <= 3e7:
        raise argparse.ArgumentTypeError(
            f"must be above 0 and at most 3e7 seconds, got {_short(text)}"
        )
    return value


def new_file(text: str) -> Path:
    """The path of a file to write, in a folder that exists: checked before anything is computed."""
    # Imported here, as in `nearest`.
    from dpsub import files

    try:
        return files.writable(text)
    except DataError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def numbers(text: str) -> float | Several:
    """One number, or several separated by commas; each one gets an answer."""
    values = Several(number(part) for part in text.split(","))
    return values if len(values) > 1 else values[0]


def add_choice(
    parser: Any, option: str, choices: Sequence[str], text: str, default: str | None = None
) -> None:
    """Add an option with several choices, in capitals or with hyphens too, and by the other names
    of adjacency relations."""
    name = option.removeprefix("--").replace("-", " ")

    def known(word: str) -> str:
        # Imported here, as in `nearest`.
        from dpsub import checks
        from dpsub.relations import OTHER_NAMES

        try:
            return checks.named(name, word, choices, OTHER_NAMES)
        except ArgumentError:
            raise argparse.ArgumentTypeError(
                f"must be a known {name}, got {word!r}; {nearest(word, list(choices))}"
            ) from None

    parser.add_argument(
        option, type=known, default=default, metavar="{" + ",".join(choices) + "}", help=text
    )


def _short(text: str) -> str:
    return repr(text if len(text) <= 40 else f"{text[:20]}... ({len(text)} characters)")
