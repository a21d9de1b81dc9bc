"""Enter releases into a ledger, a JSON file that is created if missing; with a budget, only if they
stay within it.

dpsub ledger FILE gives the total privacy cost.  --name names this entry: a second one of that name
is refused, so that a command which runs twice does not count twice.  --sample names the sample that
these releases use. A second entry from the same one is refused, because releases from one sample
are not independent.

JSON: ledger (the file), releases (its number of entries now), entered (false if the budget does not
allow it); with a budget proved_epsilon (with these releases) and, if they are refused, steps_left.
Exit status 3 if the budget does not allow them.

Several commands may enter into one ledger at once: each waits for the one before it, by a lock on
.NAME.lock next to the file, which stays there.
"""

from __future__ import annotations

from argparse import Namespace
from typing import Any

import dpsub
from dpsub.accounting.questions.words import Line, near, plural, up
from dpsub.cli.answers import Answer
from dpsub.cli.parsing import Parser, add_choice, new_file, number
from dpsub.cli.releases import add_releases, question_of, releases_text, steps_of
from dpsub.cli.samplers import add_sampler, sampler_of
from dpsub.errors import ArgumentError
from dpsub.sampling import Sampler, Schedule

EXIT_REFUSED = 3
"""Exit status if the budget does not allow the releases."""


def add_arguments(parser: Parser) -> None:
    parser.add_argument("file", type=new_file, metavar="FILE", help="the ledger")
    add_sampler(parser)
    add_releases(parser)
    denominators = (
        "divisor of the sum: a fixed number or the realised size of the sample (default: fixed)"
    )
    add_choice(parser, "--denominator", ("fixed", "realised"), denominators, "fixed")
    parser.add_argument("--name", metavar="NAME", help="name of this entry, as kept in the ledger")
    parser.add_argument(
        "--sample", metavar="NAME", help="name of the sample, as kept in the ledger"
    )
    parser.add_argument(
        "--epsilon", type=number, metavar="E", help="budget: largest epsilon (nats), at --delta"
    )
    parser.add_argument("--delta", type=number, metavar="D", help="budget: delta of --epsilon")
    parser.add_effort()


def run(arguments: Namespace) -> Answer:
    if (arguments.epsilon is None) != (arguments.delta is None):
        raise ArgumentError(
            "a budget needs --epsilon and --delta, got only one; give both or neither"
        )
    sampler = sampler_of(arguments)
    question = question_of(arguments) | {"steps": steps_of(arguments, sampler)}
    # Another `dpsub record` waits meanwhile: what it enters could exceed the budget with this one.
    with dpsub.Ledger.open(arguments.file) as ledger:
        return _entered(arguments, ledger, sampler, question)


def _entered(
    arguments: Namespace,
    ledger: dpsub.Ledger,
    sampler: Sampler | Schedule,
    question: dict[str, Any],
) -> Answer:
    """Enter the releases, if the budget allows them."""
    budget = {
        name: question.pop(name)
        for name in ("epsilon", "delta", "adjacency", "effort", "time_limit")
    }
    n = question.pop("n")
    values: dict[str, Any] = {"ledger": str(arguments.file)}
    budget_lines: list[Line] = []
    exceeds = False
    # Asked before anything is written: a release beyond the budget leaves no trace in the ledger.
    if arguments.epsilon is not None:
        proved = ledger.epsilon_with(sampler, n, **question, **budget)
        exceeds = proved > arguments.epsilon
        values["proved_epsilon"] = proved
        within = f"epsilon {near(arguments.epsilon)} at delta {near(arguments.delta)}"
        # By the proved upper bound: what is open counts as exceeding.
        outcome = f"not proved to stay within {within}" if exceeds else f"proved: within {within}"
        budget_lines = [("budget", outcome), ("with these", f"epsilon {up(proved)} is proved")]
    if exceeds:
        one = {name: value for name, value in question.items() if name != "steps"}
        values["steps_left"] = left = ledger.steps_left(sampler, n, **one, **budget)
        budget_lines.append(("left", f"{plural(left, 'such release')}"))
    else:
        before = ledger.adjacency
        ledger.record(sampler, n, **question, sample=arguments.sample, name=arguments.name)
        *earlier, entered = ledger
        if arguments.name is None and entered in earlier:
            # a second run of the same command may be meant, or not
            arguments.remarks.append(
                f"entry {earlier.index(entered) + 1} has the same releases, and both count; --name "
                "refuses a command that runs twice"
            )
        if before not in (None, ledger.adjacency):
            arguments.remarks.append(
                f"with this entry the total is under {ledger.adjacency}; until now it was under "
                f"{before}, and numbers under different relations do not compare"
            )
    values |= {"releases": len(ledger), "entered": not exceeds}
    outcome = "NOT entered" if exceeds else "entered"
    title = f"{outcome} into {arguments.file}: {releases_text(arguments, sampler)}"
    status = EXIT_REFUSED if exceeds else 0
    return Answer(values, title, [("entries", str(len(ledger))), *budget_lines], status=status)
