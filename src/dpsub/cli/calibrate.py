"""Noise, sample size or steps for which the releases are proved (--epsilon, --delta)-private.

--solve noise (default) finds a noise multiplier; --solve size finds the largest batch size
(poisson: rate; multistage: size or rate of the last stage) for a given noise; --solve steps finds
the largest number of releases, or of epochs of a schedule, or of samples that are used several
times. The value returned is proved.

JSON: solved (noise_multiplier, size, rate, steps, samples or epochs), the answer under that name,
not_proved (the nearest value tried that is not proved; null for noise, and if the search reached
its limit), refuted (an attack exceeds the target with this noise or less, 0 if no attack is known
to; or with this size, rate or number or more, "Infinity" if no attack is"""

from __future__ import annotations

import math
from argparse import Namespace
from typing import Any

import dpsub
from dpsub.accounting.questions.search import largest_sample, largest_steps
from dpsub.accounting.questions.words import Line, down, near, plural, up
from dpsub.accounting.questions.words import account_lines as short_lines
from dpsub.accounting.release import described
from dpsub.cli.answers import Answer, account_lines, account_values
from dpsub.cli.parsing import Parser, add_choice, numbers
from dpsub.cli.releases import (
    add_deprecated_tight,
    add_plot,
    add_releases,
    add_statement,
    details_of,
    question_of,
    releases_text,
    stated,
    steps_of,
)
from dpsub.cli.samplers import add_sampler, family_of, sampler_of
from dpsub.errors import ArgumentError
from dpsub.sampling import Schedule

RENAMED = {"--target-epsilon": "--epsilon", "--target-delta": "--delta"}


def add_arguments(parser: Parser) -> None:
    add_sampler(parser)
    add_choice(
        parser, "--solve", ("noise", "size", "steps"), "what to find (default: noise)", "noise"
    )
    parser.add_argument(
        "--epsilon", type=numbers, metavar="E", help="target epsilon (nats), above 0"
    )
    parser.add_argument("--delta", type=numbers, metavar="D", help="target delta, between 0 and 1")
    parser.add_argument(
        "--advantage",
        type=numbers,
        metavar="A",
        help="instead of both: largest difference between true and false positives of membership "
        "inference",
    )
    add_releases(parser, required=False)
    parser.add_argument(
        "--quick",
        action="store_true",
        help="skip the refinement; else less noise is tried, down to 1 %% above what an "
        "attack refutes",
    )
    add_deprecated_tight(parser)
    add_plot(parser, "the noise over the batch size")
    add_statement(parser)
    parser.add_effort()


def run(arguments: Namespace) -> Answer:
    solve = arguments.solve
    # The unknown must not be given, and nothing else may be missing.
    for option, unknown in (
        ("noise_multiplier", "noise"),
        ("steps", "steps"),
        ("epochs", "steps"),
    ):
        name, is_given = f"--{option.replace('_', '-')}", getattr(arguments, option) is not None
        if is_given and solve == unknown:
            raise ArgumentError(f"--solve {solve} returns {name} and cannot take it; drop it")
        if not is_given and option == "noise_multiplier" and solve != unknown:
            raise ArgumentError(f"--solve {solve} needs {name}, got none; give it")
    _check_target(arguments)
    if arguments.quick and solve != "noise":
        raise ArgumentError(f"--quick needs --solve noise, got --solve {solve}; drop it")
    if arguments.plot is not None and solve != "noise":
        raise ArgumentError(f"--plot needs --solve noise, got --solve {solve}; drop it")
    name, solution, what = _search(arguments)
    if arguments.plot is not None:
        solution.plot(arguments.plot)
    # Sizes and numbers are whole: nothing is rounded in print.
    is_noise, is_whole = name == "noise_multiplier", name in ("size", "steps", "epochs")
    ends: list[Any] = [
        getattr(solution, end, None)
        for end in (name if is_noise else "value", "not_proved", "refuted")
    ]
    if is_whole:
        ends = [None if end is None else int(end) for end in ends]
    value, not_proved, refuted = ends
    # No attack known: no noise is refuted, and no size, rate or number is.
    none_refuted = 0.0 if is_noise else math.inf
    values = {
        "solved": name,
        name: value,
        "not_proved": not_proved,
        "refuted": none_refuted if refuted is None else refuted,
        **_target(arguments),
        "evaluations": solution.evaluations,
        **account_values(solution.account),
    }
    # The proved noise is shown rounded up, a proved rate down; what is refuted, to the other side.
    safe, unsafe = (str, str) if is_whole else (up, down) if is_noise else (down, up)
    side = "less" if is_noise else "more"
    explained: list[Line] = [(name.replace("_", " "), f"{safe(value)}  (proved)")]
    short = f"{safe(value)} proved"
    if not is_noise:
        nearest = "none: the search reached its limit" if not_proved is None else unsafe(not_proved)
        explained.append(("not proved", nearest))
        short += "" if not_proved is None else f", {unsafe(not_proved)} not"
    if refuted is not None:
        attacked = f"{unsafe(refuted)} and {side}"
        explained.append(("refuted", f"{attacked}: an attack exceeds the target"))
        short += f", {attacked} refuted by an attack"
    lines: list[Line] = [(name.replace("_", " "), short), *short_lines(solution.account)]
    if arguments.advantage is None:
        title = f"{what}, for epsilon {near(arguments.epsilon)} at delta {near(arguments.delta)}"
    else:
        title = f"{what}, for an advantage of at most {near(arguments.advantage)}"
    given = arguments.delta if arguments.advantage is None else 0.0
    explained += account_lines(solution.account, given)
    answer = Answer(values, title, lines, explained)
    return stated(answer, solution.account, arguments)


def _check_target(arguments: Namespace) -> None:
    """Refuse targets that are not given once, and an advantage where it is not searched for."""
    target = {name: getattr(arguments, name) for name in ("epsilon", "delta", "advantage")}
    given = [f"--{name}" for name, value in target.items() if value is not None]
    if given not in (["--epsilon", "--delta"], ["--advantage"]):
        got = ", ".join(given) or "none of them"
        raise ArgumentError(
            f"the target must be --epsilon and --delta, or --advantage, got {got}; give one target"
        )
    if given == ["--advantage"] and arguments.solve != "noise":
        raise ArgumentError(
            f"--advantage needs --solve noise, got --solve {arguments.solve}; give --epsilon and "
            "--delta"
        )


def _target(arguments: Namespace) -> dict[str, float]:
    if arguments.advantage is None:
        return {"target_epsilon": arguments.epsilon, "target_delta": arguments.delta}
    return {"target_advantage": arguments.advantage}


def _search(arguments: Namespace) -> tuple[str, Any, str]:
    """Name of the unknown, the solution, and the question in words."""
    solution: Any
    question = question_of(arguments)
    if arguments.solve != "noise":
        del question["quick"]
    noise = f"{arguments.mechanism} noise multiplier"
    if arguments.solve == "size":
        family = family_of(arguments)
        # Epochs are no number of steps while the share of records a step is the unknown.
        question["steps"] = steps_of(arguments, None)
        solution = largest_sample(
            family.make, most=family.most, whole=family.solved == "size", **question
        )
        releases = releases_text(arguments, family.make(solution.value))
        return family.solved, solution, f"Largest {family.solved} for {releases}"
    sampler = sampler_of(arguments)
    source = described(sampler, arguments.n)
    if arguments.solve == "steps":
        solution = largest_steps(sampler, **question)
        name, what = "steps", "releases from"
        if arguments.releases_per_sample > 1:
            name, what = "samples", "samples of"
        if isinstance(sampler, Schedule):
            name, what = "epochs", "epochs of"
        return (
            name,
            solution,
            (
                f"Largest number of {what} {source}, {noise} {near(arguments.noise_multiplier)}"
                f"{details_of(arguments)}"
            ),
        )
    question["steps"] = steps_of(arguments, sampler)
    del question["noise_multiplier"]
    solution = dpsub.calibrate(sampler, advantage=arguments.advantage, **question)
    return (
        "noise_multiplier",
        solution,
        (
            f"{noise.capitalize()} for {plural(arguments.steps, 'release')} from {source}"
            f"{details_of(arguments)}"
        ),
    )
