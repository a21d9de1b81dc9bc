"""Enter releases into a ledger, a JSON file that is created if missing; with a budget, only if they
stay within it.

dpsub ledger FILE gives the total privacy cost.  --sample names the sample that these releases use.
A second entry with the same name is refused, because releases from one sample are not independent.

JSON: ledger (the file), releases (its number of entries now), entered (false if the budget does not
allow it).
"""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

import dpsub
from dpsub.accounting.answer import Line, near
from dpsub.cli.answers import Answer
from dpsub.cli.parsing import Parser, add_choice, number
from dpsub.cli.releases import add_releases, question_of, releases_text, steps_of
from dpsub.cli.samplers import add_sampler, sampler_of
from dpsub.errors import ArgumentError


def add_arguments(parser: Parser) -> None:
    parser.add_argument("file", type=Path, metavar="FILE", help="the ledger")
    add_sampler(parser)
    add_releases(parser)
    denominators = (
        "divisor of the sum: a fixed number or the realised size of the sample (default: fixed)"
    )
    add_choice(parser, "--denominator", ("fixed", "realised"), denominators, "fixed")
    parser.add_argument(
        "--sample", metavar="NAME", help="name of the sample, as kept in the ledger"
    )
    parser.add_argument(
        "--epsilon", type=number, metavar="E", help="budget: largest epsilon (nats), at --delta"
    )
    parser.add_argument("--delta", type=number, metavar="D", help="budget: delta of --epsilon")
    parser.add_time_limit()


def run(arguments: Namespace) -> Answer:
    if (arguments.epsilon is None) != (arguments.delta is None):
        raise ArgumentError(
            "a budget needs --epsilon and --delta, got only one; give both or neither"
        )
    sampler = sampler_of(arguments)
    question = question_of(arguments) | {"steps": steps_of(arguments, sampler)}
    budget = {name: question.pop(name) for name in ("epsilon", "delta", "adjacency", "time_limit")}
    ledger = dpsub.Ledger.load(arguments.file) if arguments.file.exists() else dpsub.Ledger()
    n = question.pop("n")
    # Asked before anything is written: a release beyond the budget leaves no trace in the ledger.
    exceeds = arguments.epsilon is not None and ledger.would_exceed(
        sampler, n, **question, **budget
    )
    if not exceeds:
        ledger.add(sampler, n, **question, sample=arguments.sample).save(arguments.file)
    values = {"ledger": str(arguments.file), "releases": len(ledger), "entered": not exceeds}
    lines: list[Line] = [("entries", str(len(ledger)))]
    if arguments.epsilon is not None:
        within = f"epsilon {near(arguments.epsilon)} at delta {near(arguments.delta)}"
        lines.append(
            (
                "budget",
                # By the proved upper end: what is open counts as exceeding.
                f"not proved to stay within {within}" if exceeds else f"proved: within {within}",
            )
        )
    outcome = "NOT entered" if exceeds else "entered"
    return Answer(
        values, f"{outcome} into {arguments.file}: {releases_text(arguments, sampler)}", lines
    )
