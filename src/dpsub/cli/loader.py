"""Privacy of a training loop, described by its data loader: sampler, rate and steps, and epsilon at
--delta, or delta at --epsilon.

The options are those of the loop: of a DataLoader, of DistributedSampler, and of the accumulation
of gradients. A loop that no theorem covers is refused, with the reason.

JSON: releases (sampler, n, noise_multiplier, steps, releases_per_sample and records_per_user of
each kind), one_sided (whether only the upper bound is about this loop), notes (the decisions made),
and the keys of dpsub account.
"""

from __future__ import annotations

from argparse import ArgumentTypeError, Namespace

import dpsub
from dpsub.accounting.questions.batches import REMAINDERS
from dpsub.accounting.questions.words import account_lines, account_title
from dpsub.cli import answers
from dpsub.cli.answers import Answer
from dpsub.cli.parsing import THE_SAMPLER, Parser, add_choice, number, whole_number
from dpsub.cli.releases import ADJACENCIES, add_statement, add_width, stated
from dpsub.errors import ArgumentError

_LOOP = (
    "n",
    "batch_size",
    "noise_multiplier",
    "epochs",
    "steps",
    "poisson",
    "shuffle",
    "replacement",
    "drop_last",
    "shuffle_buffer",
    "same_order",
    "accumulation",
    "remainder",
    "ranks",
    "noise_per_rank",
    "microbatch",
    "steps_per_batch",
    "records_per_user",
)
_QUESTION = ("epsilon", "delta", "adjacency", "width", "quick", "effort", "time_limit")


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
        help="batch size of the loader, on one rank; with --poisson of all ranks together",
    )
    parser.add_argument(
        "--noise-multiplier",
        "--sigma",
        type=number,
        metavar="S",
        help="noise scale on the sum, divided by the clipping norm C",
    )
    length = parser.add_mutually_exclusive_group(required=True)
    length.add_argument("--epochs", type=_passes, metavar="E", help="passes of the loader")
    length.add_argument(
        "--steps",
        type=whole_number,
        metavar="K",
        help="optimizer steps, after accumulation, of a run that may stop within an epoch, which "
        "is accounted whole",
    )
    for option, text in {
        "--poisson": "Poisson samples, as by Opacus' make_private",
        "--shuffle": "a fresh random order of all records in every epoch",
        "--same-order": "with --shuffle: the order is drawn once and kept for all epochs",
        "--replacement": "each slot of a batch is drawn from all records",
        "--drop-last": "the last, smaller batch is left out; on several ranks by "
        "DistributedSampler, too",
    }.items():
        parser.add_argument(option, action="store_true", help=text)
    parser.add_argument(
        "--shuffle-buffer", type=whole_number, metavar="B", help="places of tf.data's shuffle"
    )
    parser.add_argument(
        "--accumulation",
        type=whole_number,
        default=1,
        metavar="A",
        help="batches whose gradients are summed for one optimizer step (default: 1)",
    )
    text = (
        "what the loop does at the end of an epoch with fewer batches than --accumulation: a step "
        "of their own, or none"
    )
    add_choice(parser, "--remainder", REMAINDERS, text)
    parser.add_argument(
        "--ranks",
        type=whole_number,
        default=1,
        metavar="R",
        help="processes that share each epoch, by DistributedSampler (default: 1)",
    )
    parser.add_argument(
        "--noise-per-rank", action="store_true", help="every rank adds noise of this multiplier"
    )
    parser.add_argument(
        "--microbatch",
        type=whole_number,
        default=1,
        metavar="B",
        help="records whose mean gradient is clipped together (default: 1; more is refused)",
    )
    parser.add_argument(
        "--steps-per-batch",
        type=whole_number,
        default=1,
        metavar="K",
        help="steps of the optimizer on each batch, before the next one comes (default: 1)",
    )
    parser.add_argument(
        "--records-per-user",
        type=whole_number,
        metavar="R",
        help="the loader has N users, at most so many records of each enter: protect one user",
    )
    question = parser.add_mutually_exclusive_group(required=True)
    question.add_argument(
        "--epsilon", type=number, metavar="E", help="return delta at this epsilon"
    )
    question.add_argument("--delta", type=number, metavar="D", help="return epsilon at this delta")
    text = "adjacency relation (default: zero_out, as rates and batches depend on the records)"
    add_choice(parser, "--adjacency", ADJACENCIES, text)
    add_width(parser)
    add_statement(parser)


def _passes(text: str) -> int:
    """A whole number of epochs."""
    try:
        return whole_number(text)
    except ArgumentTypeError as error:
        way_out = "for a run that stopped within an epoch give --steps in place of --epochs"
        raise ArgumentTypeError(f"{error}; {way_out}") from None


def run(arguments: Namespace) -> Answer:
    if arguments.noise_multiplier is None:
        raise ArgumentError(
            "the noise is needed, got no --noise-multiplier; give it, or for the noise of a target "
            f"ask dpsub calibrate, {THE_SAMPLER} at any noise"
        )
    given = vars(arguments)
    loop = dpsub.from_loader(**{name: given[name] for name in _LOOP})
    asked = {name: given[name] for name in _QUESTION}
    if asked["adjacency"] is None:
        asked["adjacency"] = loop.adjacency
    account = loop.account(**asked)
    arguments.steps = loop.steps
    values = {
        "releases": [
            {
                "sampler": repr(release.sampler),
                "n": release.n,
                "noise_multiplier": release.noise_multiplier,
                "steps": release.steps,
                "releases_per_sample": release.releases_per_sample,
                "records_per_user": release.records_per_user,
            }
            for release in loop.releases
        ],
        "one_sided": loop.one_sided,
        "notes": list(loop.notes),
        **answers.account_values(account),
    }
    at_value = arguments.epsilon if arguments.delta is None else arguments.delta
    answer = Answer(
        values,
        account_title(account),
        [*account_lines(account), ("loop", loop.notes)],
        # the conditions hold the notes
        answers.account_lines(account, at_value),
    )
    return stated(answer, account, arguments)
