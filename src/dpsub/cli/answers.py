"""Answers: a mapping for machines, aligned lines for people, numbers rounded conservatively."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from dpsub.accounting.questions.words import (
    Line,
    Text,
    down,
    near,
    reason_text,
    relation_first,
    relation_line,
    theorem_text,
    up,
    without_attack,
)

if TYPE_CHECKING:
    from dpsub.accounting.questions.account import Account

_MEANING = {
    "exact": "Exact up to numerical error.",
    "bounds": "Bounds. The upper bound is proved. A known attack achieves the lower one; no "
    "smaller {quantity} can be claimed.",
    "upper": "Upper bound. The upper bound is proved. The lower bound is trivial: {attack}.",
    "lower": "Lower bound. A known attack achieves the lower bound; no smaller {quantity} can be "
    "claimed. No upper bound was computed.",
    "paper": "The papers' computation: the value of the papers' pair of densities lies between "
    "the two bounds.",
}


@dataclass(frozen=True)
class Answer:
    """The answer of a command.

    `values` are for JSON, a list if there were several questions; the title and the lines are for
    people, those of `explained` with --explain; `status` is the exit status. What takes longer than
    the answer is done by `later`, when that is printed, and says what it did.
    """

    values: Mapping[str, Any] | Sequence[Mapping[str, Any]]
    title: str
    lines: Sequence[Line] = ()
    explained: Sequence[Line] = ()
    status: int = 0
    later: Callable[[], str] | None = None

    def with_remarks(self, remarks: Sequence[str]) -> Answer:
        """The answer with the remarks about its question; a short answer joins them in one line."""
        if not remarks:
            return self
        notes = [str(value) for name, value in self.lines if name == "note"]
        lines = [line for line in self.lines if line[0] != "note"]
        explained = [*(self.explained or self.lines), *(("remark", text) for text in remarks)]
        note = ("note", "; ".join([*notes, *remarks]))
        return replace(self, lines=[*lines, note], explained=explained)

    def spelt(self, options: Collection[str]) -> Answer:
        """The answer whose remarks name the options of a command."""

        def of(lines: Sequence[Line]) -> list[Line]:
            return [
                (name, on_the_line(value, options))
                if name in _SAID and isinstance(value, str)
                else (name, value)
                for name, value in lines
            ]

        return replace(self, lines=of(self.lines), explained=of(self.explained))

    def text(self, explain: bool = False) -> str:
        """A title and aligned lines: the few that suffice, or all."""
        lines = self.explained if explain and self.explained else self.lines
        return str(Text(self.title, relation_first(lines)))


_VERBS = "give|drop|raise|add|without|need|needs|and|or"
"""Words before the name of an argument in the way out of a sentence."""
_SAID = ("note", "wider", "remark", "loop")  # lines that name arguments


def on_the_line(sentence: str, options: Collection[str]) -> str:
    """The sentence with the names of arguments, as Python has them, written as options.

    `options` are their names in Python. A name of several words is told by itself, one of a single
    word where it is asked for: "raise effort", but "the effort of an answer".
    """
    several = "|".join(sorted(name for name in options if "_" in name)) or "(?!)"
    single = "|".join(sorted(name for name in options if "_" not in name)) or "(?!)"
    sentence = re.sub(
        rf"(?<![\w'-])({several})(?!\w)", lambda name: f"--{name[1].replace('_', '-')}", sentence
    )
    return re.sub(rf"\b({_VERBS}) ({single})(?!\w| =)", r"\1 --\2", sentence)


def as_json(value: Any) -> str:
    """One line of valid JSON.

    Infinite numbers are the strings "Infinity" and "-Infinity", and NaN is null.
    """
    # JSON has no infinity; a number or a string that says so is valid for every reader.
    return json.dumps(_plain(value), allow_nan=False, ensure_ascii=False)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, str):
        # The value of an enumeration, not its representation.
        return str(value)
    # Before numbers: bool is an int in Python, and stays true or false.
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        if math.isfinite(value):
            return value
        if math.isnan(value):
            return None
        return "Infinity" if value > 0 else "-Infinity"
    return _plain(value.tolist()) if hasattr(value, "tolist") else [_plain(item) for item in value]


def grouped(count: float) -> str:
    """A count, rounded to a whole number, with its thousands separated: 20,000."""
    return f"{round(count):,}"


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows of a table, its heads first: columns flush right, numbers aligned at their points."""
    columns = []
    for head, *cells in zip(*rows, strict=True):
        digits = [len(cell.partition(".")[2]) for cell in cells]
        padded = [cell + " " * (max(digits) - own) for cell, own in zip(cells, digits, strict=True)]
        width = max(map(len, [head, *padded]))
        columns.append([cell.rjust(width) for cell in (head, *padded)])
    return ["  ".join(row).rstrip() for row in zip(*columns, strict=True)]


def account_values(account: Account) -> dict[str, Any]:
    """The values of an account for JSON."""
    pair = account.pair
    # Attack and proof have pairs of densities of their own.
    if account.kind in ("bounds", "upper"):
        missing = "none computed" if account.attack_known else "none known"
        pair = f"upper: {account.pair}; lower: {account.lower_pair or missing}"
    return {
        "quantity": account.quantity,
        "lower": account.lower,
        "upper": account.upper,
        "kind": account.kind,
        "guarantee": guaranteed(account),
        "pair": pair,
        "adjacency": account.adjacency,
        "sensitivity": account.sensitivity,
        "theorem": account.theorem,
        "lower_theorem": account.lower_theorem,
        "width": account.relative_width,
        "width_reason": account.width_reason,
        "conditions": list(account.conditions),
    }


def guaranteed(account: Account) -> bool:
    """Whether the upper bound is proved for the sampler."""
    return account.kind not in ("paper", "lower")


def account_lines(account: Account, at_value: float) -> list[Line]:
    """The lines of an account for people; `at_value` is the epsilon or delta of the question."""
    upper, lower = account_ends(account)
    ends: list[Line] = [
        (f"{account.quantity}, upper", upper),
        (f"{account.quantity}, lower", lower),
    ]
    return [*ends, *account_facts(account, promise(account, at_value))]


def account_ends(account: Account) -> tuple[str, str]:
    """Upper and lower bound, with a note on which of them is proved or trivial."""
    proved = "  (proved)" if guaranteed(account) else ""
    if account.kind == "lower":
        proved = "  (not computed)"
    # Without an attack the lower bound is 0, which everybody knows.
    trivial = "" if account.lower_pair else "  (trivial)"
    return up(account.upper) + proved, down(account.lower) + trivial


def account_facts(account: Account, promises: str | list[str]) -> list[Line]:
    """The lines of an account that do not depend on its numbers."""
    pairs: list[Line] = [("pair", account.pair)]
    if account.kind in ("bounds", "upper"):
        pairs = [
            ("pair, upper", account.pair),
            *([("pair, lower", account.lower_pair)] if account.lower_pair else []),
        ]
    return [
        (
            "kind",
            _MEANING[account.kind].format(
                quantity=account.quantity, attack=without_attack(account)
            ),
        ),
        ("guarantee", promises),
        relation_line(account),
        ("sensitivity", account.sensitivity),
        *pairs,
        *([("theorem", theorem_text(account))] if theorem_text(account) else []),
        *([("wider", reason_text(account.width_reason))] if account.width_reason else []),
        ("conditions", account.conditions or "none: this computation proves nothing"),
    ]


def promise(account: Account, at_value: float) -> str:
    """The guarantee in words."""
    if account.kind == "lower":
        return "NO: no upper bound was computed"
    if not guaranteed(account):
        return (
            "NO: this reproduces a published computation, which covers neither the "
            "worst data sets nor adaptive ones"
        )
    asked_delta = account.quantity == "delta"
    # delta = 1 is met by releasing the data.
    if asked_delta and account.upper >= 1:
        return "yes, but empty: every mechanism satisfies it"
    first, second = (
        (near(at_value), up(account.upper)) if asked_delta else (up(account.upper), near(at_value))
    )
    return (
        f"yes: ({first}, {second})-differential privacy under {account.adjacency}, if the "
        "conditions hold"
    )
