"""Noise, sample size or steps for which the releases are proved (--epsilon, --delta)-private.

--solve noise (default) finds a noise multiplier; --solve size the largest sample (poisson: rate; multistage: size or
rate of the last stage) for a given noise; --solve steps the largest number of releases.  What is returned was proved.

JSON: solved (noise_multiplier, size, rate or steps), under that name the answer, not_proved (the nearest value tried
that is not proved; null for noise, and if the search met its limit), refuted (an attack exceeds the target with this
noise or less, 0 if none is known to; with this size, rate or number of steps, "Infinity" if it is not known to),
target_epsilon, target_delta, evaluations, and the keys of dpsub account for epsilon at the target delta.
"""

from __future__ import annotations

import math
from argparse import Namespace
from time import perf_counter
from typing import TYPE_CHECKING, Any

from dpsub.cli import accounts
from dpsub.cli.answers import Answer, Line, down, near, plural, up
from dpsub.cli.parsing import Parser, add_choice, numbers
from dpsub.cli.releases import add_releases, asked, steps_of
from dpsub.cli.samplers import add_sampler, described, family_of, sampler_of
from dpsub.errors import ArgumentError

if TYPE_CHECKING:
    from dpsub.accounting.account import Account
    from dpsub.accounting.search import Found
    from dpsub.sampling import Sampler

SOLVE = ("noise", "size", "steps")
RENAMED = {"--target-epsilon": "--epsilon", "--target-delta": "--delta"}


def add_arguments(parser: Parser) -> None:
    """Add the options of this command."""
    add_sampler(parser)
    add_choice(parser, "--solve", SOLVE, "what to find (default: noise)", "noise")
    parser.add_argument("--epsilon", type=numbers, required=True, metavar="E", help="target, nats, above 0")
    parser.add_argument("--delta", type=numbers, required=True, metavar="D", help="target, between 0 and 1")
    add_releases(parser, required=False)
    parser.add_time_limit()


def run(arguments: Namespace) -> Answer:
    """Calibrate."""
    for option, solve in (("noise_multiplier", "noise"), ("steps", "steps"), ("epochs", "steps")):
        name = f"--{option.replace('_', '-')}"
        if getattr(arguments, option) is not None and arguments.solve == solve:
            raise ArgumentError(f"{name} is what --solve {solve} asks for; drop it")
        if getattr(arguments, option) is None and option == "noise_multiplier" and arguments.solve != solve:
            raise ArgumentError(f"--solve {arguments.solve} needs {name}, got none; give it")
    return {"noise": _noise, "size": _size, "steps": _steps}[arguments.solve](arguments)


def _noise(arguments: Namespace) -> Answer:
    import dpsub

    started = perf_counter()
    sampler = sampler_of(arguments)
    found = dpsub.calibrate(sampler, time_limit=arguments.time_limit, **_given(arguments, sampler))
    refuted = 0.0 if found.refuted is None else found.refuted
    values = {
        "solved": "noise_multiplier",
        "noise_multiplier": found.noise_multiplier,
        "not_proved": None,
        "refuted": refuted,
        "evaluations": found.evaluations,
    }
    lines: list[Line] = [("noise multiplier", f"{up(found.noise_multiplier)}  (proved)")]
    if refuted > 0:
        lines.append(("refuted", f"{down(refuted)} and less: an attack exceeds the target"))
    noise = f"{arguments.mechanism.capitalize()} noise multiplier"
    what = f"{noise} for {plural(arguments.steps, 'release')} from {described(sampler, arguments.n)}"
    return _answer(arguments, values, what, lines, found.account, perf_counter() - started)


def _size(arguments: Namespace) -> Answer:
    from dpsub.accounting.search import largest_sample

    started = perf_counter()
    family = family_of(arguments)
    found = largest_sample(family.make, most=family.most, whole=family.solved == "size", **_given(arguments))
    many = plural(arguments.steps, "release")
    what = f"Largest {family.solved} for {many} from {described(family.make(found.value), arguments.n)}"
    return _largest(arguments, family.solved, found, what, started)


def _steps(arguments: Namespace) -> Answer:
    from dpsub.accounting.search import largest_steps

    started = perf_counter()
    sampler = sampler_of(arguments)
    found = largest_steps(sampler, **_given(arguments))
    what = f"Largest number of releases from {described(sampler, arguments.n)}"
    return _largest(arguments, "steps", found, what, started)


def _given(arguments: Namespace, sampler: Sampler | None = None) -> dict[str, Any]:
    """What a search is given: all but what it looks for."""
    known = asked(arguments)
    if arguments.solve == "noise":
        del known["noise_multiplier"]
    return known if arguments.solve == "steps" else known | {"steps": steps_of(arguments, sampler)}


def _largest(arguments: Namespace, name: str, found: Found, what: str, started: float) -> Answer:
    whole = name != "rate"
    value, beyond, refuted = (
        int(number) if whole and number is not None else number
        for number in (found.value, found.not_proved, found.refuted)
    )
    values = {
        "solved": name,
        name: value,
        "not_proved": beyond,
        "refuted": math.inf if refuted is None else refuted,
        "evaluations": found.evaluations,
    }
    below, above = (str, str) if whole else (down, up)
    limit = "none: the search met its limit" if beyond is None else above(beyond)
    lines: list[Line] = [(name, f"{below(value)}  (proved)"), ("not proved", limit)]
    if refuted is not None:
        lines.append(("refuted", f"{above(refuted)} and more: an attack exceeds the target"))
    what = f"{what}, {arguments.mechanism} noise multiplier {near(arguments.noise_multiplier)}"
    return _answer(arguments, values, what, lines, found.account, perf_counter() - started)


def _answer(
    arguments: Namespace, values: dict[str, Any], what: str, lines: list[Line], account: Account, seconds: float
) -> Answer:
    evaluations = values.pop("evaluations")
    target = {"target_epsilon": arguments.epsilon, "target_delta": arguments.delta}
    merged = {**values, **target, "evaluations": evaluations, **accounts.values(account, seconds)}
    title = f"{what}, for epsilon {near(arguments.epsilon)} at delta {near(arguments.delta)}"
    return Answer(merged, title, [*lines, *accounts.lines(account, arguments.delta, seconds)])
