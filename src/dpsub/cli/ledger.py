"""The total privacy cost of all releases in a ledger: upper and lower bounds on delta at --epsilon,
or on epsilon at --delta.

dpsub record FILE enters releases.  --left 'poisson --rate 0.01 --noise-multiplier 1' says how many
more releases of this kind a budget of --epsilon and --delta allows.

JSON: releases (the entries, as in the file), and the keys of `dpsub account`; with --left instead
of these steps_left.
"""

from __future__ import annotations

import shlex
from argparse import Namespace
from pathlib import Path

import dpsub
from dpsub.accounting.questions.words import Line, account_lines, near, plural
from dpsub.accounting.release import described
from dpsub.cli import answers, own_files
from dpsub.cli.answers import Answer
from dpsub.cli.parsing import Parser, add_choice, numbers
from dpsub.cli.releases import (
    ADJACENCIES,
    DEFAULT_RELATION,
    add_denominator,
    add_plot,
    add_releases,
    add_statement,
    add_width,
    question_of,
    stated,
)
from dpsub.cli.samplers import add_sampler, sampler_of
from dpsub.errors import ArgumentError


def add_arguments(parser: Parser) -> None:
    parser.add_argument("file", type=Path, metavar="FILE", help="the ledger")
    parser.add_argument(
        "--epsilon",
        type=numbers,
        metavar="E",
        help="return delta at this epsilon (nats); with --left the budget",
    )
    parser.add_argument(
        "--delta",
        type=numbers,
        metavar="D",
        help="return epsilon at this delta; with --left the budget",
    )
    own_files.add_option(parser)
    parser.add_argument(
        "--left",
        metavar="'SAMPLER ...'",
        help="sampler and noise, as for dpsub record: return how many steps the budget allows",
    )
    add_choice(
        parser,
        "--adjacency",
        ADJACENCIES,
        # One relation for all entries: guarantees under different relations do not add up.
        f"{DEFAULT_RELATION.removesuffix(')')}; one for all entries)",
    )
    add_width(parser)
    add_plot(parser, "both bounds after each entry")
    add_statement(parser)


def run(arguments: Namespace) -> Answer:
    ledger = dpsub.Ledger.load(arguments.file)
    if arguments.left is not None:
        return _left(arguments, ledger)
    if (arguments.epsilon is None) == (arguments.delta is None):
        got = "neither" if arguments.epsilon is None else "both"
        raise ArgumentError(
            f"exactly one of --epsilon and --delta is needed, got {got}; give one, or --left with "
            "both"
        )
    names = ("epsilon", "delta", "adjacency", "width", "effort", "time_limit", "quick")
    account = ledger.account(**{name: getattr(arguments, name) for name in names})
    if arguments.plot is not None:
        account.plot(arguments.plot)
    at = "epsilon" if arguments.delta is None else "delta"
    at_value = getattr(arguments, at)
    entries = _entries(ledger)
    values = {
        "releases": ledger.as_plain(),
        **answers.account_values(account),
    }
    title = f"{account.quantity} at {at} = {near(at_value)} of all releases in {arguments.file}"
    explained = [*entries, *answers.account_lines(account, at_value)]
    return stated(Answer(values, title, account_lines(account), explained), account, arguments)


def _entries(ledger: dpsub.Ledger) -> list[Line]:
    lines: list[Line] = []
    for place, (entry, name) in enumerate(zip(ledger, ledger.names, strict=True), start=1):
        called = "" if name is None else f"{name}: "
        lines.append((f"entry {place}", f"{called}{entry}"))
    return lines


def _left(arguments: Namespace, ledger: dpsub.Ledger) -> Answer:
    """Largest number of steps of one kind that the budget allows after all entries."""
    if arguments.epsilon is None or arguments.delta is None:
        raise ArgumentError(
            "--left needs a budget, got none or half of one; give --epsilon and --delta"
        )
    # a number of steps is no answer with two bounds
    for name in ("statement", "clip", "prior", "plot", "width", "quick"):
        if getattr(arguments, name) not in (None, False):
            raise ArgumentError(f"--left returns a number of steps and takes no --{name}; drop it")
    parser = Parser(prog="dpsub ledger --left", description=None, renamed={})
    add_sampler(parser)
    add_releases(parser)
    add_denominator(parser)
    try:
        words = shlex.split(arguments.left)
    except ValueError as error:
        raise ArgumentError(
            f"--left needs a sampler and its noise, got {arguments.left!r} ({error}); close the "
            "quotes"
        ) from None
    releases = parser.parse_args(words)
    releases.remarks = arguments.remarks
    for name in ("steps", "epochs"):
        if getattr(releases, name) is not None:
            raise ArgumentError(f"--left returns the steps and cannot take --{name}; drop it")
    sampler = sampler_of(releases)
    question = question_of(releases)
    budget = {
        name: getattr(arguments, name) for name in ("epsilon", "delta", "effort", "time_limit")
    }
    if arguments.adjacency is not None:
        question["adjacency"] = arguments.adjacency
    left = ledger.steps_left(sampler, **question, **budget)
    within = f"epsilon {near(arguments.epsilon)} at delta {near(arguments.delta)}"
    noise = f"{releases.mechanism} noise multiplier {near(releases.noise_multiplier)}"
    source = described(sampler, releases.n)
    title = f"{plural(left, 'step')} left within {within}: from {source}, {noise}"
    values = {"steps_left": left, "releases": ledger.as_plain()}
    return Answer(values, title, [*_entries(ledger), ("left", f"{left} (proved)")])
