"""Whether a claimed epsilon (at --delta) or delta (at --epsilon) of many releases holds: proved,
refuted or open.

proved: the upper bound is at most the claim.  refuted: an attack on the data sets named attains
more. open: the claim lies between the two bounds. With --strict the exit status is 0, 1 or 2 for
these.

--event takes an event of dp-accounting in place of the releases: FILE.json with a class_name and
the attributes of each event, or MODULE:NAME, a DpEvent of that name. Its noise multiplier is the
noise scale divided by the norm bound C of one record, as dp-accounting documents it.

JSON: verdict, claimed, and the keys of dpsub account for the claimed quantity.
"""

from __future__ import annotations

import importlib
import sys
from argparse import Namespace
from typing import Any

import dpsub
from dpsub.accounting.questions.check import VERDICTS, Check
from dpsub.accounting.questions.events import UNITS, ledger_of
from dpsub.accounting.questions.words import Line, account_lines, down, near, up
from dpsub.cli import answers
from dpsub.cli.answers import Answer
from dpsub.cli.parsing import Parser, number
from dpsub.cli.releases import (
    add_denominator,
    add_releases,
    add_statement,
    add_width,
    question_of,
    releases_text,
    stated,
    steps_of,
)
from dpsub.cli.samplers import add_sampler, sampler_of
from dpsub.errors import ArgumentError, DataError
from dpsub.files import read_json

OF_EVENTS = ("sampler", "noise_multiplier", "steps", "epochs")


def add_arguments(parser: Parser) -> None:
    add_sampler(parser, required=False)
    add_releases(parser, required=False)
    add_denominator(parser)
    parser.add_argument(
        "--event",
        metavar="EVENT",
        help="an event of dp-accounting in place of the releases: FILE.json or MODULE:NAME",
    )
    parser.add_argument(
        "--claimed-epsilon", type=number, metavar="E", help="claimed epsilon (nats), at --delta"
    )
    parser.add_argument(
        "--claimed-delta", type=number, metavar="D", help="claimed delta, at --epsilon"
    )
    parser.add_argument("--delta", type=number, metavar="D", help="delta of a claimed epsilon")
    text = "epsilon of a claimed delta (nats); next to --delta alone, the claimed epsilon"
    parser.add_argument("--epsilon", type=number, metavar="E", help=text)
    # For scripts: a claim that is open must not pass, and is told from a refuted one.
    status = "exit with status 0 if the claim is proved, 1 if refuted, 2 if open"
    parser.add_argument("--strict", action="store_true", help=status)
    add_width(parser, default="as close as the verdict takes")
    add_statement(parser)


def run(arguments: Namespace) -> Answer:
    claim = {"claimed_epsilon": arguments.claimed_epsilon, "claimed_delta": arguments.claimed_delta}
    if arguments.event is not None:
        check, source = _of_event(arguments, claim)
    else:
        # Optional for the parser, since an event replaces them.
        for name in ("sampler", "noise_multiplier"):
            if getattr(arguments, name) is None:
                raise ArgumentError(
                    f"{_option(name)} or an --event is needed, got neither; give one"
                )
        sampler = sampler_of(arguments)
        check = dpsub.check(
            sampler, steps=steps_of(arguments, sampler), **question_of(arguments), **claim
        )
        source = releases_text(arguments, sampler)
    account = check.account
    at = "delta" if account.quantity == "epsilon" else "epsilon"
    at_value = getattr(arguments, at)
    title = (
        f"{check.verdict}: {account.quantity} <= {near(check.claimed)} at {at} = "
        f"{near(at_value)} of {source}"
    )
    values = {
        "verdict": check.verdict,
        "claimed": check.claimed,
        **answers.account_values(account),
    }
    explained: list[Line] = [
        ("because", _because(check)),
        *answers.account_lines(account, at_value),
    ]
    status = VERDICTS.index(check.verdict) if arguments.strict else 0
    answer = Answer(values, title, account_lines(account), explained, status)
    return stated(answer, check, arguments)


def _because(check: Check) -> str:
    """The reason for the verdict, in words."""
    account, name = check.account, check.account.quantity
    if check.verdict == "proved":
        return f"{name} is at most {up(account.upper)}; proof: {account.pair}"
    if check.verdict == "refuted":
        return f"an attack attains {name} = {down(account.lower)}: {account.lower_pair}"
    return (
        f"{name} is at least {down(account.lower)} and at most {up(account.upper)}; the "
        "claim lies in between"
    )


def _of_event(arguments: Namespace, claim: dict[str, Any]) -> tuple[Check, str]:
    """The answer for an event, and its releases in words."""
    # An event and an option could contradict each other: neither would win.
    of_samples = ("records_per_user", "strategy", "bands")
    others = [
        name
        for name in (*OF_EVENTS, *arguments.sampler_options, *of_samples)
        if getattr(arguments, name) is not None
    ]
    others += [
        name
        for name, default in (
            ("mechanism", "gaussian"),
            ("denominator", "fixed"),
            ("group", 1),
            ("releases_per_sample", 1),
        )
        if getattr(arguments, name) != default
    ]
    if others:
        raise ArgumentError(
            f"an event already describes the releases, got {_option(others[0])} as "
            "well; drop one of them"
        )
    # The answer states the unit: noise over C and noise over 2 C are easily taken for each other
    # (erratum P1 of the study of accountants).
    ledger = ledger_of(_event(arguments.event))
    arguments.remarks.append(UNITS)
    question = {
        name: getattr(arguments, name)
        for name in ("delta", "epsilon", "adjacency", "width", "effort", "time_limit", "quick")
    }
    return dpsub.check(ledger, **question, **claim), "; ".join(map(str, ledger))


def _event(text: str) -> object:
    """The event that a file of JSON holds, or that a module has under a name."""
    if text.endswith(".json"):
        try:
            return read_json(text)
        except OSError as error:
            raise DataError(
                f"--event {text} cannot be read ({error.strerror}); name another file"
            ) from None
        except (ValueError, RecursionError) as error:
            raise DataError(
                f"--event {text} must be JSON of an event, got {type(error).__name__}; correct it"
            ) from None
    module, colon, name = text.partition(":")
    if not (module and colon and name):
        raise ArgumentError(f"--event must be FILE.json or MODULE:NAME, got {text!r}")
    sys.path.insert(0, "")  # a module of the folder in which the command is given
    try:
        return getattr(importlib.import_module(module), name)
    except ImportError as error:
        raise DataError(
            f"--event {text} cannot be imported ({error}); run in the folder of {module}"
        ) from None
    except AttributeError:
        raise DataError(f"--event {text} does not exist: {module} has no {name}") from None
    finally:
        sys.path.remove("")


def _option(name: str) -> str:
    return "SAMPLER" if name == "sampler" else f"--{name.replace('_', '-')}"
