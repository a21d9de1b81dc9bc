"""Which subsampling scheme needs the least noise for a training with a target epsilon and delta,
and what each costs.

By accounting alone, in seconds: each scheme's noise multiplier is proved to meet the target, and an
attack exceeds it with what is refuted, or less.  --epochs of batches that are drawn afresh are
counted as `dpsub account` does; those of schedules are of n / (batch size) steps each, rounded up.

JSON: recommended (the scheme with the least proved noise, within 0.3 %), even (schemes for which no
attack refutes its noise), noise_on_mean (its noise multiplier over the batch size: compare batch
sizes by it), schemes (a list, the least noise first, with name, sampler, noise_multiplier, refuted
(0 if no attack is known), ratio (to the first one's), steps, gradients (expected, of the training),
largest_batch, likely_batch (exceeded by no batch of the training with probability 99.9 %),
every_epoch (whether each record is in one batch of each epoch)), left_out (reasons, by name),
reasons, adjacency, target_epsilon, target_delta, seconds, steps (of the first).
"""

from __future__ import annotations

from argparse import Namespace
from time import perf_counter

import dpsub
from dpsub.cli.answers import Answer, Line, down, near, plural, up
from dpsub.cli.parsing import Parser, add_choice, numbers, whole_number
from dpsub.cli.releases import ADJACENCIES

_HEADS = ("proved", "refuted", "ratio", "gradients", "batch up to", "likely", "each epoch")


def add_arguments(parser: Parser) -> None:
    parser.add_argument(
        "--n", type=whole_number, required=True, metavar="N", help="number of records"
    )
    parser.add_argument(
        "--batch-size",
        "--m",
        type=whole_number,
        required=True,
        metavar="M",
        help="(expected) batch size",
    )
    parser.add_argument(
        "--epochs", type=whole_number, required=True, metavar="E", help="number of epochs"
    )
    parser.add_argument(
        "--epsilon", type=numbers, required=True, metavar="E", help="target, nats, above 0"
    )
    parser.add_argument(
        "--delta", type=numbers, required=True, metavar="D", help="target, between 0 and 1"
    )
    add_choice(
        parser, "--adjacency", ADJACENCIES, "of all schemes (default: add_remove)", "add_remove"
    )
    # Accounting alone; a comparison that takes minutes would not be made before a training.
    parser.add_time_limit(10.0)


def run(arguments: Namespace) -> Answer:
    started = perf_counter()
    target = {
        "epsilon": arguments.epsilon,
        "delta": arguments.delta,
        "adjacency": arguments.adjacency,
    }
    recommendation = dpsub.recommend(
        arguments.n,
        batch_size=arguments.batch_size,
        epochs=arguments.epochs,
        **target,
        time_limit=arguments.time_limit,
    )
    seconds = perf_counter() - started
    first = recommendation.schemes[0]
    arguments.steps = first.steps
    schemes = [
        {**vars(scheme), "sampler": repr(scheme.sampler)} for scheme in recommendation.schemes
    ]
    values = {
        "recommended": first.name,
        "even": list(recommendation.even),
        "noise_on_mean": recommendation.noise_on_mean,
        "schemes": schemes,
        "left_out": recommendation.left_out,
        "reasons": list(recommendation.reasons),
        "adjacency": arguments.adjacency,
        "target_epsilon": arguments.epsilon,
        "target_delta": arguments.delta,
        "seconds": round(seconds, 3),
    }
    lines: list[Line] = [("", _row(_HEADS))]
    for scheme in recommendation.schemes:
        # Less noise than this is exceeded by an attack: the distance to the proved noise is what is
        # not known.
        refuted = down(scheme.refuted) if scheme.refuted else "-"
        met = "once" if scheme.every_epoch else "-"
        cells = (
            up(scheme.noise_multiplier),
            refuted,
            f"{scheme.ratio:.3f}",
            f"{scheme.gradients:.4g}",
            near(scheme.largest_batch),
            near(scheme.likely_batch),
            met,
        )
        lines.append((scheme.name, _row(cells)))
    # Schemes left out for one reason stand in one line.
    for reason in dict.fromkeys(recommendation.left_out.values()):
        names = ", ".join(name for name, own in recommendation.left_out.items() if own == reason)
        lines.append(("left out", f"{names}: {reason}"))
    lines.append(("because", list(recommendation.reasons)))
    mean = (
        # The noise of a training step is on the mean: a larger batch dilutes it.
        f"{near(recommendation.noise_on_mean)} C with {first.name}: noise multiplier / batch size, "
        "to compare batch sizes by"
    )
    lines += [
        ("noise on the mean", mean),
        ("adjacency", arguments.adjacency),
        ("seconds", f"{seconds:.2f}"),
    ]
    training = (
        f"{plural(arguments.epochs, 'epoch')} of batches of {arguments.batch_size} out of "
        f"{arguments.n} records"
    )
    wanted = f"epsilon {near(arguments.epsilon)} at delta {near(arguments.delta)}"
    title = f"{first.name}: the least noise for {wanted}, {training}"
    return Answer(values, title, lines)


def _row(cells: tuple[str, ...]) -> str:
    widths = (9, 9, 7, 11, 12, 8, 11)
    return "".join(
        f" {cell.rjust(width - 1)}" for cell, width in zip(cells, widths, strict=True)
    ).rstrip()
