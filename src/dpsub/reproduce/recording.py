"""Answers of other programs: how studies that ask them record and judge what they say."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Mapping, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from pathlib import Path

from dpsub.accounting.questions.check import verdict_of
from dpsub.files import replace_file
from dpsub.reproduce.published import FIELDS, key_text

# Far finer than an accountant's own accuracy, so that rounding decides no verdict.
DIGITS = 7


def rounded(answer: float, *, is_lower: bool) -> str:
    """Return a bound with seven digits, rounded so that it claims no more than before."""
    # In the accountant's favour: an answer that is refuted is not refuted by its seventh digit.
    rounding = ROUND_FLOOR if is_lower else ROUND_CEILING
    return str(float(Context(prec=DIGITS, rounding=rounding).create_decimal(Decimal(answer))))


def row(
    keys: Sequence[str], question: Mapping[str, object], answer: str, **more: str
) -> dict[str, str]:
    """Return the row of one answer; `more` are its accountant, note and other keys."""
    return {
        **dict.fromkeys((*keys, *FIELDS), ""),
        **{name: key_text(value) for name, value in question.items()},
        "column": "holds",
        "printed": answer,
        "kind": "privacy",
        "status": "as_printed",
        **more,
    }


def write(path: Path, keys: Sequence[str], answers: Iterable[Mapping[str, str]]) -> None:
    """Write all answers, and print their number."""
    answers, text = list(answers), io.StringIO()
    writer = csv.DictWriter(text, (*keys, *FIELDS), lineterminator="\n")
    writer.writeheader()
    writer.writerows(answers)
    replace_file(path, text.getvalue().encode())
    print(f"{len(answers)} answers in {path}")


def judged(claimed: float, lower: float, upper: float, *, below: bool = True) -> float:
    """Return 1 where epsilon in [lower, upper] is at most (`below`), or at least, the claimed one,
    0 where it is not, NaN where this is open."""
    if not below:
        claimed, lower, upper = -claimed, -upper, -lower
    return {"proved": 1.0, "refuted": 0.0, "open": math.nan}[verdict_of(claimed, lower, upper)]
