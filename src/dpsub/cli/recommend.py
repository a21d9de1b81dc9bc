"""Which subsampling scheme needs the least noise for a training run with a target epsilon and
delta, and what each costs.

No model is trained: schemes are compared by accounting alone. The proved noise multiplier meets the
target; with the refuted one, or less, an attack exceeds it. For independent batches --epochs are
converted to steps as in `dpsub account`; an epoch of a schedule has n / (batch size) steps, rounded
up.

JSON: recommended (the scheme with the least proved noise, within 0.3 %), even (schemes for which no
attack refutes this noise), noise_on_mean (the recommended noise multiplier divided by the batch
size, comparable between batch sizes), schemes (a list, the least noise first), elsewhere (schemes
without a theorem under this relation, under the first one that covers them), left_out (reasons, by
name), reasons, adjacency, target_epsilon, target_delta, steps (of the first scheme).

Each scheme in JSON: name, sampler, noise_multiplier, refuted (0 if no attack is known), ratio (to
the noise of the first), steps, gradients (expected number in the training run), largest_batch,
likely_batch (with probability 99.9 % no batch of the run is larger), every_epoch (whether each
record is in one batch of each epoch), theorem, lower_theorem (of the attack), adjacency.
"""

from __future__ import annotations

from argparse import Namespace
from functools import partial
from pathlib import Path

import dpsub
from dpsub.accounting.questions.recommend import Recommendation
from dpsub.accounting.questions.words import Line, down, near, theorem_text, up
from dpsub.cli.answers import Answer, aligned, grouped
from dpsub.cli.parsing import Parser, add_choice, numbers, whole_number, whole_numbers
from dpsub.cli.releases import ADJACENCIES, add_group, add_plot
from dpsub.errors import ArgumentError

_HEADS = (
    "proved",
    "refuted",
    "ratio",
    "gradients",
    "largest batch",
    "likely largest",
    "each epoch",
)


def add_arguments(parser: Parser) -> None:
    parser.add_argument(
        "records", type=whole_number, nargs="?", metavar="N", help="number of records, also as --n"
    )
    parser.add_argument("--n", type=whole_number, metavar="N", help="number of records")
    parser.add_argument(
        "--batch-size",
        "--m",
        type=whole_numbers,
        required=True,
        metavar="M,...",
        help="batch size (expected, for Poisson); several, separated by commas, are compared",
    )
    parser.add_argument(
        "--epochs", type=whole_number, required=True, metavar="E", help="number of epochs"
    )
    parser.add_argument(
        "--epsilon", type=numbers, required=True, metavar="E", help="target epsilon (nats), above 0"
    )
    parser.add_argument(
        "--delta", type=numbers, required=True, metavar="D", help="target delta, between 0 and 1"
    )
    add_choice(
        parser,
        "--adjacency",
        ADJACENCIES,
        "adjacency relation of the ranking (default: add_remove)",
        "add_remove",
    )
    add_group(parser)
    what = (
        "the noise of up to five schemes over five batch sizes, after the answer is printed: each "
        "takes up to half of --effort, all a minute or two; --time-limit starts again"
    )
    add_plot(parser, what)
    # Accounting alone, of a dozen schemes; a comparison that takes minutes would not be made before
    # a training.
    parser.add_effort(4.0)
    parser.add_argument("--quick", action="store_true", help="skip the refinement of bounds")


def run(arguments: Namespace) -> Answer:
    if (arguments.records is None) == (arguments.n is None):
        got = "none" if arguments.n is None else "two"
        raise ArgumentError(f"the number of records N is needed once, got {got}; give --n N")
    n = arguments.n if arguments.records is None else arguments.records
    target = {
        "epsilon": arguments.epsilon,
        "delta": arguments.delta,
        "adjacency": arguments.adjacency,
        "group": arguments.group,
    }
    recommendation = dpsub.recommend(
        n,
        batch_size=arguments.batch_size,
        epochs=arguments.epochs,
        **target,
        effort=arguments.effort,
        time_limit=arguments.time_limit,
        quick=arguments.quick,
    )
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
        "elsewhere": [
            {**vars(other), "sampler": repr(other.sampler)} for other in recommendation.elsewhere
        ],
        "left_out": recommendation.left_out,
        "reasons": list(recommendation.reasons),
        "adjacency": arguments.adjacency,
        "target_epsilon": arguments.epsilon,
        "target_delta": arguments.delta,
    }
    rows: list[tuple[str, ...]] = [_HEADS]
    for scheme in recommendation.schemes:
        # Less noise than this is exceeded by an attack: the distance to the proved noise is what is
        # not known.
        refuted = down(scheme.refuted) if scheme.refuted else "-"
        met = "once" if scheme.every_epoch else "-"
        cells = (
            up(scheme.noise_multiplier),
            refuted,
            f"{scheme.ratio:.3f}",
            grouped(scheme.gradients),
            grouped(scheme.largest_batch),
            grouped(scheme.likely_batch),
            met,
        )
        rows.append(cells)
    labels = ["", *(scheme.name for scheme in recommendation.schemes)]
    explained: list[Line] = [*zip(labels, aligned(rows), strict=True)]
    explained += [
        (other.name, recommendation.elsewhere_text(other)) for other in recommendation.elsewhere
    ]
    explained += [("note", text) for text in recommendation.unrefined_text()]
    # Schemes left out for one reason stand in one line.
    for reason in dict.fromkeys(recommendation.left_out.values()):
        names = ", ".join(name for name, own in recommendation.left_out.items() if own == reason)
        explained.append(("left out", f"{names}: {reason}"))
    explained.append(("because", list(recommendation.reasons)))
    # likewise schemes with the same theorems
    grounds = {scheme.name: theorem_text(scheme) for scheme in recommendation.schemes}
    for text in dict.fromkeys(grounds.values()):
        names = ", ".join(name for name, own in grounds.items() if own == text)
        explained.append(("theorem", f"{names}: {text}"))
    mean = (
        # The noise of a training step is on the mean: a larger batch dilutes it.
        f"{near(recommendation.noise_on_mean)} C with {first.name}: noise multiplier / "
        "batch size, comparable between batch sizes"
    )
    explained += [
        ("noise on the mean", mean),
        ("relation", recommendation.relation_text()),
    ]
    later = None if arguments.plot is None else partial(_draw, recommendation, arguments.plot)
    return Answer(values, *recommendation.text(), explained, later=later)


def _draw(recommendation: Recommendation, file: Path) -> str:
    """Write the picture, and say which batch sizes are left out, where limits ended the proof."""
    _, left_out = recommendation.drawn(file)
    said = [f"picture: {file}"]
    for name, sizes in left_out.items():
        shown = ", ".join(map(grouped, sizes))
        said.append(f"left out, as no noise was proved: {name} at {shown}")
    return "; ".join(said)
