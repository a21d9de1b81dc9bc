"""Answers of accountants in the form of the files in `published`."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from pathlib import Path

from dpsub.files import replace_file
from dpsub.papers.practice.settings import LOWER, AccountingQuestion
from dpsub.reproduce.published import FIELDS, key_text

# Far finer than an accountant's own accuracy, so that rounding decides no verdict.
DIGITS = 7


def rounded(answer: float, says: str) -> str:
    """Return an answer with seven digits, rounded so that it claims no more than before."""
    # In the accountant's favour: an answer that is refuted is not refuted by its seventh digit.
    rounding = ROUND_FLOOR if says == LOWER else ROUND_CEILING
    return str(float(Context(prec=DIGITS, rounding=rounding).create_decimal(Decimal(answer))))


def row(
    keys: Sequence[str], question: AccountingQuestion, answer: str, **more: str
) -> dict[str, str]:
    """Return the row of one answer; `more` are its accountant, note and other keys."""
    settings = question.model_dump().items()
    return {
        **dict.fromkeys((*keys, *FIELDS), ""),
        **{name: key_text(value) for name, value in settings if value != 0},
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
