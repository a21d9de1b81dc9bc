"""A parser whose complaints are single sentences, and the types of its values."""

from __future__ import annotations

import argparse
import sys
import textwrap
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from dpsub.errors import ArgumentError


class Parser(argparse.ArgumentParser):
    """argparse with errors as `ArgumentError`, no abbreviations, and proposals for misspelt options."""

    def __init__(self, prog: str, description: str | None) -> None:
        super().__init__(
            prog=prog,
            description=textwrap.dedent(description or ""),
            allow_abbrev=False,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )

    def error(self, message: str) -> NoReturn:
        way_out = "" if message.endswith("?") else f"; {self.prog} --help lists the options"
        raise ArgumentError(f"{message.removeprefix('argument ')}{way_out}")

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Refuse unknown options before anything else: a misspelt one must not be reported as a missing one."""
        words = list(sys.argv[1:] if args is None else args)
        known = [option for option in self._option_string_actions if option.startswith("--")]
        for word in words:
            name = word.partition("=")[0]
            if name.startswith("--") and name != "--" and name not in known:
                raise ArgumentError(f"unknown option {name!r}; {nearest(name, known)}")
        return super().parse_known_args(words, namespace)


def nearest(name: str, known: list[str]) -> str:
    """Propose the known name next to `name`, or list all."""
    from dpsub import checks  # here, as it takes NumPy with it

    return checks.nearest(name, known)


def whole(text: str) -> int:
    """A whole number, also as 1e6 or 10_000."""
    try:
        return int(text)
    except ValueError:
        pass
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not value.is_integer():
        raise argparse.ArgumentTypeError(f"must be a whole number, got {text!r}")
    return int(value)


def number(text: str) -> float:
    """A finite number."""
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if value - value != 0:
        raise argparse.ArgumentTypeError(f"must be a finite number, got {text!r}")
    return value


def choice(name: str, *choices: str) -> Callable[[str], str]:
    """One of several words."""

    def parse(text: str) -> str:
        if text not in choices:
            raise argparse.ArgumentTypeError(f"must be a known {name}, got {text!r}; {nearest(text, list(choices))}")
        return text

    return parse


def add_choice(parser: Any, option: str, choices: tuple[str, ...], text: str, default: str | None = None) -> None:
    """Add an option that takes one of several words."""
    name = option.removeprefix("--").replace("-", " ")
    metavar = "{" + ",".join(choices) + "}"
    parser.add_argument(option, type=choice(name, *choices), default=default, metavar=metavar, help=text)
