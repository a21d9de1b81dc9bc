"""What all releases in a ledger have cost together: delta at --epsilon, or epsilon at --delta, from
both sides.

dpsub record FILE enters releases. JSON: releases (the entries, as the file has them), and what
`dpsub account` says.
"""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from time import perf_counter

import dpsub
from dpsub.accounting.release import as_plain
from dpsub.cli import answers
from dpsub.cli.answers import Answer, Line, near, plural
from dpsub.cli.parsing import Parser, add_choice, number, numbers
from dpsub.cli.releases import ADJACENCIES
from dpsub.cli.samplers import described


def add_arguments(parser: Parser) -> None:
    parser.add_argument("file", type=Path, metavar="FILE", help="the ledger")
    question = parser.add_mutually_exclusive_group(required=True)
    question.add_argument(
        "--epsilon", type=numbers, metavar="E", help="ask for delta at this epsilon, nats"
    )
    question.add_argument(
        "--delta", type=numbers, metavar="D", help="ask for epsilon at this delta"
    )
    add_choice(
        parser,
        "--adjacency",
        ADJACENCIES,
        # One relation for all entries: guarantees under different relations do not add up.
        "default: add_remove if that of all entries, else substitute",
    )
    parser.add_argument(
        "--width", type=number, metavar="W", help="numerical accuracy, as of account"
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
    title = f"{account.quantity} at {at} = {near(at_value)} of all in {arguments.file}"
    return Answer(values, title, [*entries, *answers.account_lines(account, at_value, seconds)])
