"""Numbers of the page that take several cells of a run."""

from __future__ import annotations

from typing import Any

from dpsub.papers.feldman.settings import (
    ASKED,
    LOWER,
    PLD_ACCOUNTING,
    QUESTIONS,
    RANDOM_ALLOCATION,
    AllocationQuestion,
)
from dpsub.reproduce.published import key_text
from dpsub.reproduce.report.cells import LookUp


def keys(question: AllocationQuestion) -> dict[str, str]:
    """Return the key fields of a question."""
    return {name: key_text(getattr(question, name)) for name in ASKED}


def answer(cells: LookUp, package: str, method: str, question: AllocationQuestion) -> float:
    """Return the answer of a package."""
    where = {"package": package, "method": method, **keys(question)}
    return cells.number("answers", "holds", "printed", **where)


def ends(cells: LookUp, name: str, question: AllocationQuestion) -> tuple[float, float]:
    """Return both bounds."""
    lower, upper = (
        cells.number("bounds", f"{name}_{end}", "stated", **keys(question))
        for end in ("lower", "upper")
    )
    return lower, upper


def by_distribution(cells: LookUp, question: AllocationQuestion) -> tuple[float, float] | None:
    """Return the range that PLD_accounting answers, None if it was not asked."""
    where = {"package": PLD_ACCOUNTING, "method": LOWER, **keys(question)}
    if cells.rows("answers", "holds", **where).empty:
        return None
    lower, upper = (answer(cells, PLD_ACCOUNTING, end, question) for end in (LOWER, "upper"))
    return lower, upper


def one_of(cells: LookUp) -> list[dict[str, Any]]:
    """Return for each question about 1 of t steps the answers and our bounds."""
    return [
        {
            **keys(question),
            "decomposition": answer(cells, RANDOM_ALLOCATION, "decomposition", question),
            "direct": answer(cells, RANDOM_ALLOCATION, "direct", question),
            "range": by_distribution(cells, question),
            "allocation": ends(cells, "allocation", question),
            "poisson": ends(cells, "poisson", question),
        }
        for question in QUESTIONS
        if question.k == 1
    ]


def excess(cells: LookUp) -> float:
    """Return how far the lower bound for several of a hundred steps is above what is proved, in
    percent."""
    (question,) = (one for one in QUESTIONS if one.k > 1 and one.t == 100)
    claimed = answer(cells, PLD_ACCOUNTING, LOWER, question)
    return 100 * (claimed / ends(cells, "allocation", question)[1] - 1)
