"""Sampling designs compared on a frame: privacy, sample size and variance of the estimated total.

FRAME is a CSV file with the columns stratum, cluster and size, one record per line, and optionally
allocation (the wanted sample size of the record's stratum). lower, upper, exact: the epsilon' of
the population when a mechanism with --epsilon runs on the sample. base: the epsilon that the
mechanism may have on the sample if the population is to have --epsilon.

JSON: epsilon, rate, upper_limit, designs (a list with design, sampler (of dpsub.sampling),
relation, lower, upper, exact, size_mean, size_sd, sampling, noise, total, base, total_at_target,
note), left_out.
"""

from __future__ import annotations

import math
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path

from dpsub.accounting.questions.words import Line, down, near, up
from dpsub.cli.answers import Answer
from dpsub.cli.parsing import Parser, number, numbers

_HEADS = ("lower", "upper", "exact", "records", "variance", "+ noise", "base", "at base")


def add_arguments(parser: Parser) -> None:
    parser.add_argument(
        "frame", type=Path, metavar="FRAME", help="CSV file with the columns stratum, cluster, size"
    )
    parser.add_argument(
        "--epsilon",
        type=numbers,
        required=True,
        metavar="E",
        help="epsilon of the mechanism (nats)",
    )
    parser.add_argument(
        "--rate",
        required=True,
        metavar="R",
        # Kept as text: a rate of 1/10 is meant exactly, and rounding it moves sizes (Bun et al.,
        # Section 4.3).
        help="share of the records to draw, such as 0.1 or 1/10",
    )
    parser.add_argument(
        "--value", default="size", metavar="COLUMN", help="study variable (default: size)"
    )
    parser.add_argument(
        "--upper-limit",
        type=number,
        metavar="B",
        help="public upper limit of the study variable (default: its largest value)",
    )


def run(arguments: Namespace) -> Answer:
    from dpsub.amplification.survey.advisor import advise, read_frame

    table = read_frame(arguments.frame, value=arguments.value)
    designs, left_out = advise(
        table, rate=arguments.rate, epsilon=arguments.epsilon, upper_limit=arguments.upper_limit
    )
    # A limit read off confidential data is not public: the answer says that it was taken so.
    limit = float(table.values.max()) if arguments.upper_limit is None else arguments.upper_limit
    values = {
        "epsilon": arguments.epsilon,
        "rate": arguments.rate,
        "upper_limit": limit,
        "designs": [
            {
                **vars(design),
                "sampler": repr(design.sampler),
                "total": design.total,
                "total_at_target": design.total_at_target,
            }
            for design in designs
        ],
        "left_out": left_out,
    }
    lines: list[Line] = [("", _row(_HEADS))]
    for design in designs:
        size = near(round(design.size_mean, 2)) + (
            f" ± {design.size_sd:.3g}" if design.size_sd else ""
        )
        numbers = (
            # A lower bound is rounded down, an upper bound up.
            _bound(design.lower, down),
            _bound(design.upper, up),
            _bound(design.exact, up),
            size,
            f"{design.sampling:.4g}",
            f"{design.total:.4g}",
            f"{design.base:.4g}" if design.base else "none",
            f"{design.total_at_target:.4g}",
        )
        note = "; ".join(part for part in (f"under {design.relation}", design.note) if part)
        lines.append((design.design, [_row(numbers), note]))
    lines += [("left out", reason) for reason in left_out]
    limit_note = (
        "" if arguments.upper_limit is not None else " (the largest value, taken as public)"
    )
    conditions = "public weights; one release from one secret sample"
    lines.append(("assumes", f"values in [0, {near(limit)}]{limit_note}; {conditions}"))
    question = (
        f"rate {arguments.rate}, epsilon {near(arguments.epsilon)}, total of {arguments.value!r}"
    )
    return Answer(values, f"{table.frame.n} records, {question}", lines)


def _bound(value: float, rounded: Callable[[float], str]) -> str:
    # NaN: nothing is known; infinity: no guarantee exists.
    if math.isnan(value):
        return "-"
    return "none" if math.isinf(value) else rounded(value)


def _row(cells: tuple[str, ...]) -> str:
    # Every cell begins with a space, so that a full one is separated from the one before it.
    widths = (9, 9, 9, 12, 11, 10, 8, 10)
    return "".join(
        f" {cell.rjust(width - 1)}" for cell, width in zip(cells, widths, strict=True)
    ).rstrip()
