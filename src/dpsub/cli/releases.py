"""Options of the command line for releases, and the question about them for the library."""

from __future__ import annotations

import math
from argparse import SUPPRESS, ArgumentTypeError, Namespace
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import dpsub
from dpsub.accounting.questions.words import near, plural
from dpsub.accounting.release import DENOMINATORS, MECHANISMS, described, details_text
from dpsub.cli.answers import Answer
from dpsub.cli.parsing import Parser, add_choice, new_file, number, whole_number
from dpsub.errors import ArgumentError, DpsubError
from dpsub.noise.banded import BandedStrategy
from dpsub.relations import Relation
from dpsub.sampling import Poisson, Sampler, Schedule
from dpsub.sampling.schemes import fresh_steps

ADJACENCIES = tuple(relation.value for relation in Relation)
DEFAULT_RELATION = (
    "adjacency relation (default: add_remove, or where no theorem covers it zero_out, or else "
    "substitute)"
)
# Names of options are those of the library's arguments, so that a question is passed on as it is.
_QUESTION = {
    "n",
    "noise_multiplier",
    "adjacency",
    "mechanism",
    "epsilon",
    "delta",
    "denominator",
    "group",
    "releases_per_sample",
    "records_per_user",
    "width",
    "quick",
    "effort",
    "time_limit",
}


def add_releases(parser: Parser, *, required: bool = True, mechanism: bool = True) -> None:
    """Add the options that describe the releases."""
    # The unit of DP-SGD libraries under every relation, although a replacement moves the sum by up
    # to 2 C.
    noise = "noise scale on the sum, divided by the norm bound C of one record"
    parser.add_argument(
        "--noise-multiplier", "--sigma", type=number, required=required, metavar="S", help=noise
    )
    parser.add_argument("--steps", type=whole_number, metavar="K", help="number of releases")
    epochs = "number of epochs, instead of --steps; for a sampler converted to E n / m steps"
    parser.add_argument("--epochs", type=number, metavar="E", help=epochs)
    add_group(parser)
    add_samples(parser)
    add_strategy(parser)
    add_choice(parser, "--adjacency", ADJACENCIES, DEFAULT_RELATION)
    if mechanism:
        add_mechanism(parser, MECHANISMS)


def add_group(parser: Parser) -> None:
    """Add the number of records that change together."""
    text = (
        "protect a person who contributes up to so many records; add_remove also takes "
        "ADDED:REMOVED (default: 1)"
    )
    parser.add_argument("--group", type=group_of, default=1, metavar="G", help=text)


def add_samples(parser: Parser) -> None:
    """Add what is drawn, and how often it is used."""
    parser.add_argument(
        "--releases-per-sample",
        type=whole_number,
        default=1,
        metavar="K",
        help="releases that are made of each sample before the next one is drawn (default: 1)",
    )
    text = (
        "users are drawn in place of records, and at most so many records of a user who is drawn "
        "enter: protect one user (default: records are drawn)"
    )
    parser.add_argument("--records-per-user", type=whole_number, metavar="R", help=text)


def add_strategy(parser: Parser) -> None:
    """Add how noise is correlated over steps."""
    parser.add_argument(
        "--bands",
        type=whole_number,
        metavar="B",
        help=(
            "noise correlated over steps by a strategy matrix of B bands, whose columns have norm "
            "1; for cyclic_poisson and deterministic"
        ),
    )
    text = "the strategy matrix (.npy, or text), or with --bands the norms of its columns"
    parser.add_argument("--strategy", type=_array, metavar="FILE", help=text)


def _array(name: str) -> np.ndarray:
    """The numbers in a file of NumPy, or of text."""
    try:
        file = Path(name)
        if file.suffix == ".npy":
            found = np.load(file, allow_pickle=False)
        else:
            text = file.read_text(encoding="utf-8").replace(",", " ")
            found = np.loadtxt(text.splitlines(), ndmin=2)
            found = found.ravel() if 1 in found.shape else found
        return np.asarray(found, dtype=float)
    except (OSError, ValueError) as error:
        raise ArgumentTypeError(f"must be a file with numbers, got {name} ({error})") from None


def group_of(text: str) -> int | tuple[int, ...]:
    """A number of records, or how many are added and how many removed, separated by a colon."""
    sizes = tuple(whole_number(part) for part in text.split(":"))
    return sizes if len(sizes) > 1 else sizes[0]


def add_mechanism(parser: Parser, names: Sequence[str]) -> None:
    """Add the kind of noise."""
    add_choice(parser, "--mechanism", names, "noise distribution (default: gaussian)", "gaussian")


def add_width(parser: Parser, default: str = "half a percent of epsilon, 5 %% of delta") -> None:
    """Add the options for the distance of the two bounds, and for the work that it may take."""
    parser.add_argument(
        "--width",
        type=number,
        metavar="W",
        help=(
            "requested distance between the bounds: absolute for epsilon, relative for delta "
            f"(default: {default})"
        ),
    )
    parser.add_argument("--quick", action="store_true", help="skip the refinement of bounds")
    add_deprecated_tight(parser)
    parser.add_effort()


def add_deprecated_tight(parser: Parser) -> None:
    """Accept --tight for one more release: it asks for the default."""
    parser.add_argument("--tight", action="store_true", help=SUPPRESS)


def add_denominator(parser: Parser) -> None:
    """Add the option for the denominator of the mean."""
    text = "divisor of the sum: a fixed number or the realised size of the sample (default: fixed)"
    add_choice(parser, "--denominator", DENOMINATORS, text, "fixed")


def add_plot(parser: Parser, what: str) -> None:
    """Add the option for a picture, whose file is refused before anything is computed."""

    def picture(name: str) -> Path:
        # it knows the bounds, which are loaded for a picture only
        from dpsub.accounting.questions.plot import check_can_plot, load_fonts

        try:
            check_can_plot(name)
            file = new_file(name)
            load_fonts()
        except DpsubError as error:
            raise ArgumentTypeError(str(error)) from None
        return file

    parser.add_argument(
        "--plot", type=picture, metavar="FILE", help=f"draw {what} (.png, .pdf, .svg)"
    )


def add_statement(parser: Parser) -> None:
    """Add the options for the sentence and the table to publish."""
    parser.add_argument(
        "--statement",
        action="store_true",
        help="print the sentence and the table for a paper, a model card or a registry",
    )
    parser.add_argument(
        "--clip", type=number, metavar="C", help="clipping norm, for --statement (default: C)"
    )
    prior = (
        "also state how often a secret value is guessed that has this probability without the "
        "releases, for --statement"
    )
    parser.add_argument("--prior", type=number, metavar="P", help=prior)


def stated(answer: Answer, found: Any, arguments: Namespace) -> Answer:
    """The answer; with --statement a sentence and a table to publish in its place."""
    if not arguments.statement:
        return answer
    clip = "C" if arguments.clip is None else arguments.clip
    statement = found.statement(clip, arguments.prior)
    # values of JSON stay next to the statement
    assert isinstance(answer.values, Mapping)  # of one question
    values = {**answer.values, "statement": statement.sentence, **statement.fields}
    return replace(answer, values=values, title=str(statement), lines=(), explained=())


def question_of(arguments: Namespace) -> dict[str, Any]:
    """The keyword arguments of the library's functions, without the sampler and the steps."""
    question = {name: value for name, value in vars(arguments).items() if name in _QUESTION}
    return question | {"strategy": strategy_of(arguments)}


def steps_of(arguments: Namespace, sampler: Sampler | Schedule | None) -> int:
    """The number of releases, from --steps, or from --epochs and the sampler."""
    if (arguments.steps is None) == (arguments.epochs is None):
        got = "neither" if arguments.steps is None else "both"
        raise ArgumentError(
            "exactly one of --steps (number of releases) and --epochs is needed, got "
            f"{got}; give one"
        )
    if arguments.epochs is None:
        return int(arguments.steps)
    if not arguments.epochs > 0:
        raise ArgumentError(f"--epochs must be above 0, got {arguments.epochs:g}")
    # Solving for the size: the number of steps would change with the unknown.
    if sampler is None:
        raise ArgumentError(
            "--epochs cannot be converted to steps while the size is unknown; give --steps"
        )
    if isinstance(sampler, Schedule):
        if arguments.epochs % 1:
            raise ArgumentError(
                f"--epochs of a schedule must be a whole number, got {arguments.epochs:g}"
            )
        samples = int(arguments.epochs) * sampler.steps_per_epoch(arguments.n)
        arguments.steps = samples * arguments.releases_per_sample
        return int(arguments.steps)
    # Expected share of the records that one step reads, repeats counted.
    n = arguments.n
    share = dpsub.law(sampler, n).mean if n is None else sampler.expected_share(n)
    wanted = arguments.epochs / share if share > 0 else math.inf
    # Also where the share underflows to 0.
    if not wanted < 2**53:
        raise ArgumentError(
            f"--epochs {near(arguments.epochs)} is too many at {near(share)} of the "
            "records per step"
        )
    steps = fresh_steps(share, arguments.epochs) * arguments.releases_per_sample
    arguments.steps = steps
    # Steps are what is accounted for: a rounded number of them must be seen.
    arguments.remarks.append(
        f"{near(arguments.epochs)} {'epoch' if arguments.epochs == 1 else 'epochs'} "
        f"at {near(share)} of the records per step: {steps} steps"
    )
    # where the batch size divides n both rates are the same
    size = getattr(arguments, "m", None)
    if isinstance(sampler, Poisson) and size is not None and arguments.n % size:
        arguments.remarks.append(
            "Opacus samples at 1/len(loader), not at batch size / n: for its loop ask dpsub loader"
        )
    return steps


def releases_text(arguments: Namespace, sampler: Sampler | Schedule) -> str:
    """The releases in words."""
    noise = (
        f"{getattr(arguments, 'mechanism', 'gaussian')} noise multiplier "
        f"{near(arguments.noise_multiplier)}"
    )
    releases = (
        f"{plural(arguments.steps, 'release')} from {described(sampler, arguments.n)}, {noise}"
    )
    return f"{releases}{details_of(arguments)}"


def details_of(arguments: Namespace) -> str:
    """The unit of privacy, the use of samples and correlations of noise in words."""
    each, users = arguments.releases_per_sample, arguments.records_per_user
    return details_text(arguments.group, each, users, strategy_of(arguments))


def strategy_of(arguments: Namespace) -> BandedStrategy | None:
    """The strategy matrix, by its file or by its bands."""
    matrix, bands = arguments.strategy, arguments.bands
    if matrix is None:
        return None if bands is None else BandedStrategy(bands)
    if matrix.ndim == 2:
        if bands is not None:
            raise ArgumentError(
                f"--strategy says the bands of a matrix itself, got --bands {bands} as well; drop "
                "it, or give a file with the norms of the columns alone"
            )
        return BandedStrategy.of_matrix(matrix)
    if bands is None:
        raise ArgumentError(
            "--strategy with the norms of the columns alone needs --bands, got none; give it, or "
            "a file with the matrix"
        )
    return BandedStrategy(bands, tuple(matrix.ravel().tolist()))
