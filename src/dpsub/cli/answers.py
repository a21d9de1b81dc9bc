"""Answers: a mapping for machines, aligned lines for people, numbers rounded to their safe side."""

from __future__ import annotations

import json
import math
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from typing import Any

DIGITS = 6
_WIDTH = 118

Line = tuple[str, "str | Sequence[str]"]
"""A name and its value; several values stand below each other."""


@dataclass(frozen=True)
class Answer:
    """What a command says.

    Attributes
    ----------
    values : mapping, or list of mappings
        For JSON, in the order of its keys; a list where several values were asked about.
    title : str
        First line of the text.
    lines : sequence of Line
        Aligned below it.
    """

    values: Mapping[str, Any] | Sequence[Mapping[str, Any]]
    title: str
    lines: Sequence[Line] = field(default=())

    def json(self) -> str:
        """One line of valid JSON: infinite numbers are the strings "Infinity" and "-Infinity", NaN is null."""
        return as_json(self.values)

    def text(self) -> str:
        """A title and aligned lines."""
        width = max((len(name) for name, _ in self.lines), default=0)
        rows = [self.title]
        for name, value in self.lines:
            label = name
            for item in [value] if isinstance(value, str) else value:
                for row in textwrap.wrap(item, _WIDTH - width - 4, break_on_hyphens=False) or [""]:
                    rows.append(f"  {label:<{width}}  {row}".rstrip())
                    label = ""
        return "\n".join(rows)


def as_json(value: Any) -> str:
    """One line of valid JSON."""
    return json.dumps(_plain(value), allow_nan=False, ensure_ascii=False)


def up(value: float) -> str:
    """`value` to a few digits, never below it."""
    return _rounded(value, ROUND_CEILING)


def down(value: float) -> str:
    """`value` to a few digits, never above it."""
    return _rounded(value, ROUND_FLOOR)


def near(value: float) -> str:
    """`value` to a few digits."""
    return f"{value:.{DIGITS}g}"


def plural(count: int, noun: str) -> str:
    """The count with its noun."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _rounded(value: float, rounding: str) -> str:
    if not math.isfinite(value):
        return near(value)
    exact = Context(prec=DIGITS, rounding=rounding).create_decimal(Decimal(value))
    return near(float(exact))


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, str) or value is None or isinstance(value, bool | int):
        return str(value) if isinstance(value, str) else value
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    if isinstance(value, float):
        if math.isnan(value):
            return None
        return value if math.isfinite(value) else ("Infinity" if value > 0 else "-Infinity")
    return [_plain(item) for item in value]
