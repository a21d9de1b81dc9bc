"""Privacy of many releases from samples: delta at --epsilon, or epsilon at --delta, from both sides.

JSON: quantity (epsilon or delta), lower, upper, kind (exact, bounds or pair), guarantee (true or false), pair,
adjacency, sensitivity, conditions, seconds.  Infinite numbers are the string "Infinity".
"""

from __future__ import annotations

from argparse import Namespace
from time import perf_counter
from typing import TYPE_CHECKING

from dpsub.cli import accounts
from dpsub.cli.answers import Answer, near, plural
from dpsub.cli.parsing import Parser, add_choice, number, whole
from dpsub.cli.sampler_options import add_sampler, described, sampler_of

if TYPE_CHECKING:
    from dpsub.accounting.account import Account
    from dpsub.sampling import Sampler

ADJACENCIES = ("add_remove", "substitute")
CONVENTIONS = ("rigorous", "paper")
DENOMINATORS = ("fixed", "realised")
MECHANISMS = ("gaussian", "laplace")


def add_arguments(parser: Parser) -> None:
    """Add the options of this command."""
    add_sampler(parser)
    add_releases(parser)
    question = parser.add_mutually_exclusive_group(required=True)
    question.add_argument("--epsilon", type=number, metavar="E", help="ask for delta at this epsilon, nats")
    question.add_argument("--delta", type=number, metavar="D", help="ask for epsilon at this delta")
    conventions = "proof and attack, or the papers' pair, which is NOT a guarantee (default: rigorous)"
    add_choice(parser, "--convention", CONVENTIONS, conventions, "rigorous")
    denominators = "what the sum is divided by: a fixed number or the realised size (default: fixed)"
    add_choice(parser, "--denominator", DENOMINATORS, denominators, "fixed")
    width = "numerical accuracy: absolute for epsilon, relative for delta (default: 0.001; 0.005 where kind is bounds)"
    parser.add_argument("--width", type=number, metavar="W", help=width)


def add_releases(parser: Parser, *, required: bool = True, mechanism: bool = True) -> None:
    """Add the options that say what is released."""
    noise = "noise scale on the sum over the norm bound C of one record"
    parser.add_argument("--noise-multiplier", type=number, required=required, metavar="S", help=noise)
    parser.add_argument("--steps", type=whole, required=required, metavar="K", help="number of releases")
    add_choice(parser, "--adjacency", ADJACENCIES, "default: add_remove for poisson, substitute for the rest")
    if mechanism:
        add_choice(parser, "--mechanism", MECHANISMS, "noise (default: gaussian)", "gaussian")


def run(arguments: Namespace) -> Answer:
    """Account."""
    started = perf_counter()
    sampler = sampler_of(arguments)
    account = _account(arguments, sampler)
    seconds = perf_counter() - started
    given = arguments.epsilon if arguments.delta is None else arguments.delta
    at = "epsilon" if arguments.delta is None else "delta"
    title = (
        f"{account.quantity} at {at} = {near(given)} of {plural(arguments.steps, 'release')} from "
        f"{described(sampler, arguments.n)}, {arguments.mechanism} noise multiplier {near(arguments.noise_multiplier)}"
    )
    if not accounts.guaranteed(account):
        title = f"NOT A GUARANTEE: {title}, by the papers' pair"
    return Answer(accounts.values(account, seconds), title, accounts.lines(account, given, seconds))


def _account(arguments: Namespace, sampler: Sampler) -> Account:
    from dpsub.accounting.account import account

    return account(
        sampler,
        arguments.n,
        noise_multiplier=arguments.noise_multiplier,
        steps=arguments.steps,
        epsilon=arguments.epsilon,
        delta=arguments.delta,
        adjacency=arguments.adjacency,
        mechanism=arguments.mechanism,
        denominator=arguments.denominator,
        variant=arguments.convention,
        width=arguments.width,
    )
