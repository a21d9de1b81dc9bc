"""The total privacy cost of all releases in a ledger: upper and lower bounds of delta at --epsilon,
or of epsilon at --delta.

dpsub record FILE enters releases. JSON: releases (the entries, as in the file), and the keys of
`dpsub account`.
"""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from time import perf_counter

import dpsub
from dpsub.accounting.answer import Line, account_lines, described, near, plural
from dpsub.accounting.release import as_plain
from dpsub.cli import answers
from dpsub.cli.answers import Answer
from dpsub.cli.parsing import Parser, add_choice, number, numbers
from dpsub.cli.releases import ADJACENCIES


def add_arguments(parser: Parser) -> None:
    parser.add_argument("file", type=Path, metavar="FILE", help="the ledger")
    question = parser.add_mutually_exclusive_group(required=True)
    question.add_argument(
        "--epsilon", type=numbers, metavar="E", help="return delta at this epsilon (nats)"
    )
    question.add_argument("--delta", type=numbers, metavar="D", help="return epsilon at this delta")
    add_choice(
        parser,
        "--adjacency",
        ADJACENCIES,
        # One relation for all entries: guarantees under different relations do not add up.
        "adjacency relation (default: add_remove if all entries use it, else substitute)",
    )
    parser.add_argument(
        "--width",
        type=number,
        metavar="W",
        help="requested distance between the ends, as in dpsub account",
    )
    parser.add_time_limit()


def run(arguments: Namespace) -> Answer:
    started = perf_counter()
    ledger = dpsub.Ledger.load(arguments.file)
    names = ("epsilon", "delta", "adjacency", "width", "time_limit")
    account = ledger.account(**{name: getattr(arguments, name) for name in names})
    seconds = perf_counter() - started
    at = "epsilon" if arguments.delta is None else "delta"
    at_value = getattr(arguments, at)
    entries: list[Line] = [
        (
            f"entry {number}",
            f"{plural(entry.steps, 'release')} from "
            f"{described(entry.sampler, entry.n)}, {entry.mechanism} "
            f"noise multiplier {near(entry.noise_multiplier)}",
        )
        for number, entry in enumerate(ledger, start=1)
    ]
    values = {
        "releases": [as_plain(entry) for entry in ledger],
        **answers.account_values(account, seconds),
    }
    title = f"{account.quantity} at {at} = {near(at_value)} of all releases in {arguments.file}"
    explained = [*entries, *answers.account_lines(account, at_value, seconds)]
    return Answer(values, title, account_lines(account), explained)
