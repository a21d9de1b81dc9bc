"""Print the rows of the table in docs/guarantees.md of questions whose two bounds stay apart,
because no closer proof or attack is known.

Run as ``python benchmarks/theory_gaps.py``.
"""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from typing import Any

import dpsub
from dpsub.accounting.release import described

DELTA = 1e-5
DIGITS = 3

QUESTIONS: tuple[tuple[str, Any, int | None, dict[str, Any]], ...] = (
    (
        "shuffled epochs, little noise",
        dpsub.Shuffle(60),
        60_000,
        {"noise_multiplier": 0.85, "epochs": 30, "adjacency": "zero_out"},
    ),
    (
        "shuffled epochs, a record replaced",
        dpsub.Shuffle(600),
        60_000,
        {"noise_multiplier": 2.0, "epochs": 10, "adjacency": "substitute"},
    ),
    (
        "samples cut at their expected size, B = n q",
        dpsub.TruncatedPoisson(0.05, 50),
        1000,
        {"noise_multiplier": 4.0, "steps": 10},
    ),
    (
        "several of t steps, a record replaced",
        dpsub.RandomAllocation(20, 5),
        None,
        {"noise_multiplier": 1.0, "epochs": 1, "adjacency": "substitute"},
    ),
)
"""Questions, with Gaussian noise."""


def main() -> None:
    for kind, plan, n, asked in QUESTIONS:
        found = dpsub.account(plan, n, delta=DELTA, **asked)
        if not found.width_reason.startswith("theory"):
            raise SystemExit(f"{kind}: {found.width_reason or 'the width is met'}; drop the row")
        sizes = ", ".join(f"{name} = {value}" for name, value in asked.items())
        print(
            f"| {kind} | `{described(plan, n)}`, {sizes} | {shown(found.lower, ROUND_FLOOR)} | "
            f"{shown(found.upper, ROUND_CEILING)} |"
        )


def shown(end: float, rounding: str) -> str:
    """Return an end with few digits, rounded to the side on which it stays true."""
    return f"{Context(prec=DIGITS, rounding=rounding).create_decimal(repr(float(end))):f}"


if __name__ == "__main__":
    main()
