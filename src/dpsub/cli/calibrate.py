"""Noise, sample size or steps for which the releases are proved (--target-epsilon, --target-delta)-private.

--solve noise (default) finds a noise multiplier; --solve size the largest sample (poisson: rate; multistage: size or
rate of the last stage) for a given noise; --solve steps the largest number of releases.  What is returned was proved.

JSON: solved (noise_multiplier, size, rate or steps), under that name the answer, not_proved (the nearest value tried
that is not proved; null for noise, and if the search met its limit), refuted (an attack exceeds the target with this
noise or less, 0 if no attack is known; or at this size or number of steps, null if no attack is known up to the limit),
target_epsilon, target_delta, evaluations, and the keys of dpsub account for epsilon at the target delta.
"""

from __future__ import annotations

from argparse import Namespace
from time import perf_counter
from typing import TYPE_CHECKING, Any

from dpsub.cli import accounts
from dpsub.cli.account import add_releases
from dpsub.cli.answers import Answer, Line, down, near, plural, up
from dpsub.cli.parsing import Parser, add_choice, number
from dpsub.cli.sampler_options import add_sampler, described, family_of, sampler_of
from dpsub.errors import ArgumentError

if TYPE_CHECKING:
    from dpsub.accounting.account import Account
    from dpsub.accounting.search import Found

SOLVE = ("noise", "size", "steps")


def add_arguments(parser: Parser) -> None:
    """Add the options of this command."""
    add_sampler(parser)
    add_choice(parser, "--solve", SOLVE, "what to find (default: noise)", "noise")
    parser.add_argument("--target-epsilon", type=number, required=True, metavar="E", help="nats, above 0")
    parser.add_argument("--target-delta", type=number, required=True, metavar="D", help="between 0 and 1")
    add_releases(parser, required=False)


def run(arguments: Namespace) -> Answer:
    """Calibrate."""
    asked = {"noise": "noise_multiplier", "steps": "steps", "size": ""}[arguments.solve]
    for field in ("noise_multiplier", "steps"):
        option = f"--{field.replace('_', '-')}"
        if field == asked and getattr(arguments, field) is not None:
            raise ArgumentError(f"{option} is what --solve {arguments.solve} asks for; drop it")
        if field != asked and getattr(arguments, field) is None:
            raise ArgumentError(f"--solve {arguments.solve} needs {option}, got none; give it")
    return {"noise": _noise, "size": _size, "steps": _steps}[arguments.solve](arguments)


def _noise(arguments: Namespace) -> Answer:
    from dpsub.accounting.search import calibrate

    started = perf_counter()
    sampler = sampler_of(arguments)
    found = calibrate(sampler, arguments.n, steps=arguments.steps, **_target(arguments))
    refuted = found.refuted or 0.0
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
    whole_number = family.solved == "size"
    found = largest_sample(
        family.make, arguments.n, most=family.most, whole=whole_number, noise_multiplier=arguments.noise_multiplier,
        steps=arguments.steps, **_target(arguments),
    )  # fmt: skip
    value = int(found.value) if whole_number else found.value
    values, lines = _found(family.solved, value, found)
    what = (
        f"Largest {family.solved} for {plural(arguments.steps, 'release')} from "
        f"{described(family.make(value), arguments.n)}, {_noise_text(arguments)}"
    )
    return _answer(arguments, values, what, lines, found.account, perf_counter() - started)


def _steps(arguments: Namespace) -> Answer:
    from dpsub.accounting.search import largest_steps

    started = perf_counter()
    sampler = sampler_of(arguments)
    found = largest_steps(sampler, arguments.n, noise_multiplier=arguments.noise_multiplier, **_target(arguments))
    values, lines = _found("steps", int(found.value), found)
    what = f"Largest number of releases from {described(sampler, arguments.n)}, {_noise_text(arguments)}"
    return _answer(arguments, values, what, lines, found.account, perf_counter() - started)


def _noise_text(arguments: Namespace) -> str:
    return f"{arguments.mechanism} noise multiplier {near(arguments.noise_multiplier)}"


def _target(arguments: Namespace) -> dict[str, Any]:
    target = {"epsilon": arguments.target_epsilon, "delta": arguments.target_delta}
    return {**target, "adjacency": arguments.adjacency, "mechanism": arguments.mechanism}


def _found(name: str, value: float, found: Found) -> tuple[dict[str, Any], list[Line]]:
    beyond: float | None = found.not_proved
    shown = str(value) if isinstance(value, int) else down(value)
    limit = "none: the search met its limit"
    if beyond is not None:
        beyond = int(beyond) if isinstance(value, int) else beyond
        limit = str(beyond) if isinstance(beyond, int) else up(beyond)
    values = {
        "solved": name,
        name: value,
        "not_proved": beyond,
        "refuted": int(found.refuted) if isinstance(value, int) and found.refuted else found.refuted,
        "evaluations": found.evaluations,
    }
    return values, [(name, f"{shown}  (proved)"), ("not proved", limit)]


def _answer(
    arguments: Namespace, values: dict[str, Any], what: str, lines: list[Line], account: Account, seconds: float
) -> Answer:
    evaluations = values.pop("evaluations")
    target = {"target_epsilon": arguments.target_epsilon, "target_delta": arguments.target_delta}
    merged = {**values, **target, "evaluations": evaluations, **accounts.values(account, seconds)}
    title = f"{what}, for epsilon {near(arguments.target_epsilon)} at delta {near(arguments.target_delta)}"
    return Answer(merged, title, [*lines, *accounts.lines(account, arguments.target_delta, seconds)])
