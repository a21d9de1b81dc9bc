"""What each sampling design gives on a frame: privacy, sample size, variance of the estimated
total.

FRAME is a CSV file with the columns stratum, cluster and size, one record a line, and optionally
allocation (the wanted sample size of the record's stratum). lower, upper, exact: epsilon' that the
population is promised when a mechanism with --epsilon runs on the sample. base: the epsilon that
the sample's mechanism may have if the promise is to be --epsilon.

JSON: epsilon, rate, upper_limit, designs (a list with design, sampler (what draws it, of
dpsub.sampling), relation, lower, upper, exact, size_mean, size_sd, sampling, noise, total, base,
total_at_target, note), left_out.
"""

from __future__ import annotations

import math
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path

from dpsub.cli.answers import Answer, Line, down, near, up
from dpsub.cli.parsing import Parser, number, numbers

_HEADS = ("lower", "upper", "exact", "records", "variance", "+ noise", "base", "at base")


def add_arguments(parser: Parser) -> None:
    parser.add_argument(
        "frame", type=Path, metavar="FRAME", help="CSV file with the columns stratum, cluster, size"
    )
    parser.add_argument(
        "--epsilon", type=numbers, required=True, metavar="E", help="epsilon of the mechanism, nats"
    )
    parser.add_argument(
        "--rate",
        required=True,
        metavar="R",
        help="share of the records to draw, such as 0.1 or 1/10",
    )
    parser.add_argument(
        "--value", default="size", metavar="COLUMN", help="study variable (default: size)"
    )
    parser.add_argument(
        "--upper-limit",
        type=number,
        metavar="B",
        help="its public limit (default: the largest value)",
    )


def run(arguments: Namespace) -> Answer:
    from dpsub.amplification.survey.advisor import advise, read_frame

    table = read_frame(arguments.frame, value=arguments.value)
    found, left_out = advise(
        table, rate=arguments.rate, epsilon=arguments.epsilon, upper_limit=arguments.upper_limit
    )
    limit = float(table.values.max()) if arguments.upper_limit is None else arguments.upper_limit
    values = {
        "epsilon": arguments.epsilon,
        "rate": arguments.rate,
        "upper_limit": limit,
        "designs": [
            {
                **vars(one),
                "sampler": repr(one.sampler),
                "total": one.total,
                "total_at_target": one.total_at_target,
            }
            for one in found
        ],
        "left_out": left_out,
    }
    lines: list[Line] = [("", _row(_HEADS))]
    for one in found:
        size = near(round(one.size_mean, 2)) + (f" ± {one.size_sd:.3g}" if one.size_sd else "")
        numbers = (
            _bound(one.lower, down),
            _bound(one.upper, up),
            _bound(one.exact, up),
            size,
            f"{one.sampling:.4g}",
            f"{one.total:.4g}",
            f"{one.base:.4g}" if one.base else "none",
            f"{one.total_at_target:.4g}",
        )
        note = "; ".join(part for part in (f"under {one.relation}", one.note) if part)
        lines.append((one.design, [_row(numbers), note]))
    lines += [("left out", reason) for reason in left_out]
    given = "" if arguments.upper_limit is not None else " (the largest value, taken as public)"
    conditions = "public weights; one release from one secret sample"
    lines.append(("assumes", f"values in [0, {near(limit)}]{given}; {conditions}"))
    given_for = (
        f"rate {arguments.rate}, epsilon {near(arguments.epsilon)}, total of {arguments.value!r}"
    )
    return Answer(values, f"{table.frame.n} records, {given_for}", lines)


def _bound(value: float, rounded: Callable[[float], str]) -> str:
    return "-" if math.isnan(value) else "none" if math.isinf(value) else rounded(value)


def _row(cells: tuple[str, ...]) -> str:
    # a cell that fills its column still stands apart from the one before it
    widths = (9, 9, 9, 12, 11, 10, 8, 10)
    return "".join(
        f" {cell.rjust(width - 1)}" for cell, width in zip(cells, widths, strict=True)
    ).rstrip()
