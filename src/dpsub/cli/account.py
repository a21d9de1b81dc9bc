"""Privacy of many releases from samples: upper and lower bounds on delta at --epsilon, or on
epsilon at --delta.

Several values separated by commas, as in --delta 1e-5,1e-6, cost little more than one.

JSON: quantity (epsilon or delta), lower, upper, kind (exact, bounds, upper, lower or paper),
guarantee (true or false), pair, adjacency, sensitivity, theorem and lower_theorem (of the proof and
of the attack), width ((upper - lower) / upper), width_reason, conditions; for several
values a list of these, each with its epsilon or delta. Infinite numbers are the string "Infinity".

--certificate writes a file from which a second program proves the answer again: python verifier
FILE.
"""

from __future__ import annotations

import hashlib
import json
from argparse import Namespace
from dataclasses import replace
from typing import Any

import dpsub
from dpsub import files
from dpsub.accounting.questions.words import Line, account_lines, marked, near
from dpsub.cli import answers
from dpsub.cli.answers import Answer
from dpsub.cli.parsing import Parser, Several, add_choice, new_file, numbers
from dpsub.cli.releases import (
    add_denominator,
    add_plot,
    add_releases,
    add_statement,
    add_width,
    question_of,
    releases_text,
    stated,
    steps_of,
)
from dpsub.cli.samplers import add_sampler, sampler_of
from dpsub.errors import ArgumentError

RENAMED = {"--convention": "--variant"}
TAKES_SEVERAL = ("epsilon", "delta")


def add_arguments(parser: Parser) -> None:
    add_sampler(parser)
    add_releases(parser)
    # One point of the privacy curve: epsilon given or delta given, never both.
    question = parser.add_mutually_exclusive_group(required=True)
    question.add_argument(
        "--epsilon", type=numbers, metavar="E", help="return delta at this epsilon (nats)"
    )
    question.add_argument("--delta", type=numbers, metavar="D", help="return epsilon at this delta")
    # `paper` is here for comparison with print: its answer says in its title that it guarantees
    # nothing.
    variants = (
        "rigorous: a proof and an attack; paper: the papers' pair, which is NOT a "
        "guarantee (default: rigorous)"
    )
    add_choice(parser, "--variant", ("rigorous", "paper"), variants, "rigorous")
    add_denominator(parser)
    add_width(parser)
    certificate = (
        "write a certificate, from which a second program proves the answer again "
        "(docs/certificates.md)"
    )
    add_plot(parser, "both bounds over the number of steps")
    add_statement(parser)
    parser.add_argument("--certificate", type=new_file, metavar="FILE", help=certificate)


def _proved_again(certificate: dict[str, Any], account: Any) -> str:
    """The bounds that a certificate claims; not every attack can be written into one."""
    claim = certificate["claim"]
    if claim["lower"] is None and account.lower > 0:
        return "the upper bound alone"
    return "the answer" if claim["upper"] is not None else "the lower bound alone"


def run(arguments: Namespace) -> Answer:
    sampler = sampler_of(arguments)
    account = dpsub.account(
        sampler,
        steps=steps_of(arguments, sampler),
        variant=arguments.variant,
        **question_of(arguments),
    )
    values: Any
    written: list[Line] = []
    proof: dict[str, Any] = {}
    if arguments.plot is not None:
        account.plot(arguments.plot)
    if arguments.certificate is not None:
        # No NaN and no infinity: the verifier, a program of its own, reads plain JSON.
        certificate = account.certificate()
        content = f"{json.dumps(certificate, allow_nan=False)}\n".encode()
        files.save_file(arguments.certificate, content)
        # by which the verifier knows that a file is this answer's
        digest = hashlib.sha256(content).hexdigest()
        proof["certificate"] = {"file": str(arguments.certificate), "sha256": digest}
        written = [
            (
                "certificate",
                f"{arguments.certificate}; python verifier FILE proves "
                f"{_proved_again(certificate, account)} again",
            )
        ]
    at = "epsilon" if arguments.delta is None else "delta"
    at_value = getattr(arguments, at)
    several = isinstance(at_value, Several)
    shown = f"{len(at_value)} values of {at}" if several else f"{at} = {near(at_value)}"
    title = f"{account.quantity} at {shown} of {releases_text(arguments, sampler)}"
    title = marked(account, title)
    if several and arguments.statement:
        raise ArgumentError(f"--statement needs one value of --{at}, got {len(at_value)}; give one")
    if not several:
        explained = [*answers.account_lines(account, at_value), *written]
        values = answers.account_values(account) | proof
        answer = Answer(values, title, [*account_lines(account), *written], explained)
        return stated(answer, account, arguments)
    # One account holds arrays of bounds; each value is shown as an account of its own.
    ends = zip(at_value, account.lower, account.upper, strict=True)
    per_value = [
        (value, replace(account, lower=lower, upper=upper)) for value, lower, upper in ends
    ]
    rows: list[Line] = []
    for value, single in per_value:
        upper, lower = answers.account_ends(single)
        rows.append((f"{at} {near(value)}", f"{account.quantity}, upper {upper}, lower {lower}"))
    # Values may differ in what is promised: a delta of 1 is a void guarantee.
    promises = list(dict.fromkeys(answers.promise(single, value) for value, single in per_value))
    values = [{at: value, **answers.account_values(single)} for value, single in per_value]
    explained = [*rows, *answers.account_facts(account, promises)]
    return Answer(values, title, account_lines(account), explained)
