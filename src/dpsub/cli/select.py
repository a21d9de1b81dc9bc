"""Hyperparameter tuning: upper and lower bounds on delta at --epsilon, or on epsilon at --delta, of
the best of a random number of runs.

The options describe one run. The number of runs has the mean --runs-mean and the law
--distribution; it and the runs that are not selected stay secret. With fixed, all runs may be
released as far as their composition is the smaller bound.

JSON: runs (distribution, mean, shape, gamma), and the keys of dpsub account.
"""

from __future__ import annotations

import math
from argparse import Namespace

import dpsub
from dpsub.accounting.questions.selection import DISTRIBUTIONS
from dpsub.cli import answers
from dpsub.cli.answers import Answer
from dpsub.cli.parsing import Parser, add_choice, number, numbers
from dpsub.cli.releases import (
    add_denominator,
    add_releases,
    add_statement,
    question_of,
    stated,
    steps_of,
)
from dpsub.cli.samplers import add_sampler, sampler_of


def add_arguments(parser: Parser) -> None:
    add_sampler(parser)
    add_releases(parser)
    question = parser.add_mutually_exclusive_group(required=True)
    question.add_argument(
        "--epsilon", type=numbers, metavar="E", help="return delta at this epsilon (nats)"
    )
    question.add_argument("--delta", type=numbers, metavar="D", help="return epsilon at this delta")
    parser.add_argument(
        "--runs-mean", type=numbers, required=True, metavar="R", help="mean of the number of runs"
    )
    laws = "law of the number of runs (default: geometric)"
    add_choice(parser, "--distribution", DISTRIBUTIONS, laws, "geometric")
    parser.add_argument(
        "--shape", type=number, metavar="ETA", help="of negative_binomial, above -1"
    )
    add_denominator(parser)
    add_statement(parser)
    parser.add_argument(
        "--quick", action="store_true", help="a coarser grid, whose bounds are farther apart"
    )
    parser.add_effort()


def run(arguments: Namespace) -> Answer:
    sampler = sampler_of(arguments)
    account = dpsub.select(
        sampler,
        steps=steps_of(arguments, sampler),
        runs_mean=arguments.runs_mean,
        distribution=arguments.distribution,
        shape=arguments.shape,
        **question_of(arguments),
    )
    at_value, runs = account.at, account.runs
    law = {
        "distribution": runs.distribution,
        "mean": runs.mean,
        "shape": runs.shape,
        "gamma": None if math.isnan(runs.gamma) else runs.gamma,
    }
    text = account.text()
    values = {"runs": law, **answers.account_values(account)}
    explained = answers.account_lines(account, at_value)
    return stated(Answer(values, text.title, text.lines, explained), account, arguments)
