"""The privacy curve of many releases: upper and lower bounds on delta at many epsilons, and on the
error rates of every test.

A test decides from all releases which of two neighbouring data sets was used. A test with
false-positive rate x has at least the false-negative rate shown; the lowest possible one lies
between the two bounds. Membership inference at this rate has a true-positive rate of at most 1 less
the lower bound. --prior: a secret value of a record, which the best guess without the releases gets
right with this probability, is guessed from them at most as often as the upper bound says; the
attack guesses one of two values, or more where the prior is below 1/2. Advantage: the largest
difference between the probabilities of an event on the two data sets.  mu: the parameter of
Gaussian differential privacy, for all epsilons (sampling does not lower this one) and for the
epsilons shown.

JSON: quantity (delta), epsilon, lower, upper, false_positive, false_negative_lower,
false_negative_upper, true_positive_lower, true_positive_upper (lists), with --prior also prior,
right_lower, right_upper (lists), advantage, mu, mu_within (pairs of bounds), kind, guarantee, pair,
adjacency, sensitivity, conditions. Infinite numbers are the string "Infinity".  --csv writes
epsilon, lower and upper, --plot a picture (needs matplotlib).
"""

from __future__ import annotations

import csv
import io
from argparse import Namespace
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

import dpsub
from dpsub import files
from dpsub.accounting.questions.words import Line, down, guesses_text, near, up
from dpsub.cli import answers
from dpsub.cli.answers import Answer
from dpsub.cli.parsing import Parser, add_choice, new_file, numbers
from dpsub.cli.releases import (
    add_plot,
    add_releases,
    add_width,
    question_of,
    releases_text,
    steps_of,
)
from dpsub.cli.samplers import add_sampler, sampler_of

if TYPE_CHECKING:
    from dpsub.accounting.questions.curve import Curve

TAKES_SEVERAL = ("epsilon", "false_positive", "prior")
# Usual levels of tests.
_RATES = (0.001, 0.01, 0.05, 0.1, 0.5)
_SHOWN = 6


def add_arguments(parser: Parser) -> None:
    add_sampler(parser)
    add_releases(parser)
    parser.add_argument(
        "--epsilon",
        type=numbers,
        metavar="E,...",
        help="points of the curve (nats; default: 500, up to a delta of 1e-9)",
    )
    rates = f"false-positive rates of the tests (default: {','.join(map(near, _RATES))})"
    parser.add_argument(
        "--false-positive", type=numbers, default=_RATES, metavar="X,...", help=rates
    )
    prior = (
        "also say how often a secret value of a record is guessed that has this probability "
        "without the releases"
    )
    parser.add_argument("--prior", type=numbers, metavar="P,...", help=prior)
    denominators = (
        "divisor of the sum: a fixed number or the realised size of the sample (default: fixed)"
    )
    add_choice(parser, "--denominator", ("fixed", "realised"), denominators, "fixed")
    add_width(parser)
    parser.add_argument(
        "--csv", type=new_file, metavar="FILE", help="write the columns epsilon, lower, upper"
    )
    add_plot(parser, "both curves")


def run(arguments: Namespace) -> Answer:
    sampler = sampler_of(arguments)
    question = question_of(arguments)
    curve = dpsub.curve(sampler, steps=steps_of(arguments, sampler), **question)
    # From the same curve, not from further accounts: the trade-off function is its convex
    # conjugate.
    rates = np.atleast_1d(arguments.false_positive)
    tests, success = curve.trade_off(rates), curve.membership(rates)
    priors = np.atleast_1d([] if arguments.prior is None else arguments.prior)
    guesses = curve.reconstruction(priors)
    if arguments.csv is not None:
        files.save_file(arguments.csv, _table(curve).encode())
    if arguments.plot is not None:
        curve.plot(arguments.plot)
    account_values = answers.account_values(curve.account)
    values = {
        "quantity": account_values.pop("quantity"),
        "epsilon": curve.epsilon,
        "lower": account_values.pop("lower"),
        "upper": account_values.pop("upper"),
        "false_positive": rates,
        "false_negative_lower": tests.lower,
        "false_negative_upper": tests.upper,
        "true_positive_lower": success.lower,
        "true_positive_upper": success.upper,
        **(
            {"prior": priors, "right_lower": guesses.lower, "right_upper": guesses.upper}
            if len(priors)
            else {}
        ),
        "advantage": curve.advantage,
        "mu": curve.mu,
        "mu_within": curve.mu_within,
        **account_values,
    }
    positions = np.unique(
        np.linspace(0, curve.epsilon.size - 1, _SHOWN).round().astype(int)
    ).tolist()
    deltas = [
        (float(curve.epsilon[i]), float(curve.delta.lower[i]), float(curve.delta.upper[i]))
        for i in positions
    ]
    misses = zip(rates.tolist(), tests.lower.tolist(), tests.upper.tolist(), strict=True)
    right = [*zip(*(each.tolist() for each in (priors, *guesses)), strict=True)]
    # The promise is worded at the largest epsilon shown, the point with the smallest delta.
    last, worst = deltas[-1], replace(curve.account, lower=deltas[-1][1], upper=deltas[-1][2])
    rows: list[Line] = [
        *(
            (f"epsilon {near(x)}", f"delta, upper {up(high)}, lower {down(low)}")
            # Upper first: it is what is guaranteed.
            for x, low, high in deltas
        ),
        *(
            (f"false positive {near(x)}", f"false negative, upper {up(high)}, lower {down(low)}")
            for x, low, high in misses
        ),
        *(
            (f"prior {near(x)}", f"right guesses, upper {up(high)}, lower {down(low)}")
            for x, low, high in right
        ),
        ("advantage", _between(curve.advantage)),
        ("mu", _between(curve.mu)),
        (f"mu up to epsilon {near(last[0])}", _between(curve.mu_within)),
    ]
    facts = answers.account_facts(worst, answers.promise(worst, last[0]))
    title = f"the privacy curve of {releases_text(arguments, sampler)}"
    short = curve.short_lines()
    if right:
        short.append(("guesses", guesses_text(priors.tolist(), (guesses.lower, guesses.upper))))
    return Answer(values, title, short, [*rows, *facts])


def _between(ends: tuple[float, float]) -> str:
    return f"upper {up(ends[1])}, lower {down(ends[0])}"


def _table(curve: Curve) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["epsilon", "lower", "upper"])
    writer.writerows(
        zip(curve.epsilon.tolist(), *(end.tolist() for end in curve.delta), strict=True)
    )
    return out.getvalue()
