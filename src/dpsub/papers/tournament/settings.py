"""The grids of the tournament: schemes, sizes, targets, and bounds on the noise of their cells."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cache
from typing import Annotated, Any, Literal, get_args

from pydantic import Field

from dpsub.accounting.questions.proof import Proof
from dpsub.accounting.release import Release
from dpsub.errors import UnsupportedError
from dpsub.reproduce import settings as kinds
from dpsub.reproduce.settings import Name, Varied, known
from dpsub.reproduce.study import noise
from dpsub.reproduce.study.cells import NONPRIVATE, Cell, Targets, check_targets
from dpsub.reproduce.study.noise import Needed
from dpsub.sampling.schemes import SCHEMES, misfit, scheme, steps_of

IMPORTANCE = "importance"
"""The scheme of trainings on Poisson batches that are thinned by the norms of records, with
Poisson's noise."""
TIGHT = ("wor", "wr")
"""Schemes whose noise the tight bound proves under substitute, within some percent of what an
attack refutes."""
_UNSIZED = ("poisson", "random_allocation", "k_of_t", "cyclic_poisson", "deterministic")
"""Schemes under which a record's steps have nothing to do with other records: a removed one
might as well be zeroed out, so that add_remove, where it is covered, has the ends of zero_out, and
n and m count by n / m alone."""
_BY_RATIO = (*_UNSIZED, "wor", "shuffle")
"""Schemes whose ends under zero_out and substitute depend on n and m by n / m alone: by the chance
to be in a step, or the number of steps. Under add_remove a sample of fixed size has a record more
to choose from, n + 1."""

_NOT_SEARCHED = {
    "zero_out": ("wr", "must_ow", "must_ww", "three_stage"),
}
"""Schemes with a proof whose noise is not searched, by relation: Theorem 47 compares three lists of
records for each count of occurrences, which takes ten seconds or more a target."""

Scheme = Annotated[
    str, known("scheme", lambda: SCHEMES), Field(description="A scheme of `SCHEMES`.")
]
Trained = Annotated[
    str,
    known("scheme", lambda: (NONPRIVATE, IMPORTANCE, *SCHEMES)),
    Field(
        description="A scheme of `SCHEMES`, importance (for tasks whose records differ in norm), "
        "or nonprivate."
    ),
]
Adjacency = Literal["add_remove", "zero_out", "substitute"]
RELATIONS: tuple[str, ...] = get_args(Adjacency)
# From strong to weak privacy, each twice the one before.
EPSILONS = (0.5, 1.0, 2.0, 4.0, 8.0)


class NoiseEntry(Targets):
    """Noise of all combinations of its values; each setting is one value or a list."""

    adjacency: Varied[Adjacency] = Field(
        ("add_remove", "zero_out", "substitute"), description="How neighbours differ."
    )
    samplers: Varied[Scheme] = Field(tuple(SCHEMES), description="Schemes.")
    n: Varied[kinds.Count] = Field(description="Numbers of records.")
    epochs: Varied[kinds.Count] = Field(description="Epochs, each of n / m steps.")
    target_epsilon: Varied[kinds.Positive] = Field(
        EPSILONS, description="Targets for all steps together, in nats."
    )
    tight: bool = Field(
        False, description="Proved by the tight bound: wor and wr under substitute."
    )


class TrainingEntry(Targets):
    """Trainings of all combinations of its values; the number of records is that of the task's
    training part."""

    datasets: Varied[Name] = Field(description="Tasks.")
    adjacency: Varied[Adjacency] = Field(
        "zero_out", description="How neighbours differ.", validate_default=True
    )
    samplers: Varied[Trained] = Field(
        (NONPRIVATE, *SCHEMES, IMPORTANCE),
        description="Schemes; nonprivate has no target and is trained once for all of them.",
    )
    epochs: Varied[kinds.Count] = Field(description="Epochs, each of n / m steps.")

    def check(self) -> None:
        check_targets(self.samplers, self.target_epsilon)


def cell_of(
    adjacency: str,
    sampler: str,
    n: int,
    m: int,
    epochs: int,
    target_epsilon: float,
    target_delta: float,
    tight: bool = False,
) -> Cell:
    """Return the cell of a scheme over so many epochs, for any model."""
    return Cell(
        adjacency=adjacency,
        sampler=sampler,
        n=n,
        m=m,
        epochs=epochs,
        steps=steps_of(n, m, epochs),
        target_epsilon=float(target_epsilon),
        target_delta=float(target_delta),
        tight=tight,
    )


def law_of(cell: Cell) -> tuple[Any, ...]:
    """Return a key that is the same for cells whose bounds are the same at the same noise, with
    their delta."""
    unsized = cell.sampler in _UNSIZED
    # a record that is removed leaves the others' steps as they are, like one that is put to 0
    relation = "zero_out" if unsized and cell.adjacency == "add_remove" else cell.adjacency
    sizes: tuple[Any, ...] = (cell.n, cell.m)
    if cell.sampler == "deterministic":  # a record is in one known step of each epoch
        sizes = ()
    elif unsized or (cell.sampler in _BY_RATIO and cell.adjacency != "add_remove"):
        sizes = (Fraction(cell.n, cell.m),)
    return relation, cell.sampler, cell.epochs, cell.target_delta, cell.tight, *sizes


def entry_of(cell: Cell) -> NoiseEntry:
    """Return the entry of a grid that stands for this cell alone."""
    fields = {**vars(cell), "samplers": cell.sampler}
    lists = {name: (fields[name],) for name in NoiseEntry.model_fields if name != "tight"}
    fixed: dict[str, Any] = {**lists, "tight": cell.tight}
    return NoiseEntry.model_construct(**fixed)


# A dictionary, not a cache on the function: the key is the law, which many cells share.
_KNOWN: dict[tuple[Any, ...], Needed] = {}


def needed(cell: Cell) -> Needed:
    """Return the noise that a cell needs, computed once a process for all cells of its law and
    target.

    Raises
    ------
    UnsupportedError
        If no bound covers the cell, or no noise multiplier up to 1e4 meets the target.
    """
    key = (*law_of(cell), cell.target_epsilon)
    if key not in _KNOWN:
        # Fast bounds serve recommendations; where the tight bound was asked for, the full ones do.
        _KNOWN[key] = noise.calibrated(cell) if cell.tight else noise.needed(cell)
    return _KNOWN[key]


@cache
def proof_missing(adjacency: str, sampler: str, tight: bool = False, divides: bool = True) -> str:
    """Return the reason why no bound is used, "" if one is; of the sizes it depends only on whether
    m divides n."""
    # Sizes that stand for all: whether there is a bound depends on the scheme and on divisibility.
    n, m = (1000, 10) if divides else (999, 10)
    plan, steps = scheme(sampler, n, m, 1)
    try:
        Proof.of([Release(plan, n, 1.0, steps)], adjacency)
    except UnsupportedError as problem:
        return f"{sampler} under {adjacency}: {problem}"
    if sampler in _NOT_SEARCHED.get(adjacency, ()):
        return (
            f"{sampler} under {adjacency}: there is a bound, and its search is too slow for a grid "
            "of this size; use dpsub calibrate"
        )
    # The tight bound is proved for replacement and for these two schemes only.
    if tight and (adjacency != "substitute" or sampler not in TIGHT):
        return (
            f"{sampler} under {adjacency}: the tight bound proves noise under substitute, of "
            f"{' and '.join(TIGHT)}"
        )
    return ""


def why_not(cell: Cell) -> str:
    """Return the reason why a cell is impossible, in a sentence; "" if it is possible."""
    divides = cell.n % cell.m == 0
    if missing := proof_missing(cell.adjacency, cell.sampler, cell.tight, divides):
        return missing
    return misfit(cell.sampler, cell.n, cell.m, cell.epochs or 1)


def _product(grid: Sequence[NoiseEntry]) -> Iterator[Cell]:
    for entry in grid:
        combinations = itertools.product(
            entry.adjacency,
            entry.samplers,
            entry.n,
            entry.m,
            entry.epochs,
            entry.target_epsilon,
            entry.target_delta,
        )
        for values in combinations:
            yield cell_of(*values, entry.tight)


def expanded(grid: Sequence[NoiseEntry]) -> Iterator[Cell]:
    """Yield the possible cells of a grid: of each entry every combination of its values."""
    return (cell for cell in _product(grid) if not why_not(cell))


def left_out(grid: Sequence[NoiseEntry]) -> Counter[str]:
    """Return the reasons why combinations of a grid are left out, a sentence each, with the number
    of cells that each leaves out."""
    return Counter(reason for reason in map(why_not, _product(grid)) if reason)


def sized(n: Sequence[int], ratios: Sequence[int], **other: Any) -> tuple[NoiseEntry, ...]:
    """Return an entry for each n, with the batch sizes n / ratio that are at least 10 records."""
    entries = []
    for records in n:
        # Batches of fewer than ten records are no setting that anybody trains in.
        batches = tuple(records // ratio for ratio in ratios if 10 * ratio <= records)
        entries.append(NoiseEntry(n=(records,), m=batches, **other))
    return tuple(entries)


# From a small study to a large one, in powers of ten.
_SIZES = (1_000, 10_000, 100_000, 1_000_000, 10_000_000)


class TournamentGrid(kinds.Group):
    """The cells whose noise is computed."""

    grid: kinds.Several[NoiseEntry] = Field(
        (
            # all schemes over epsilon, n / m and epochs
            *sized((100_000,), (10, 100, 1000), epochs=(1, 10, 100)),
            # and over n at one n / m
            *sized(
                (1_000, 10_000, 1_000_000, 10_000_000),
                (100,),
                epochs=(10,),
                target_epsilon=(1.0, 4.0),
            ),
            # and over delta
            *sized(
                (100_000,),
                (100,),
                epochs=(10,),
                target_epsilon=(1.0, 4.0),
                target_delta=(1e-5, 1e-8),
            ),
            # those whose ends depend on n / m alone
            *sized(
                _SIZES,
                (10, 20, 50, 100, 200, 500, 1000),
                samplers=_UNSIZED,
                adjacency=("add_remove", "zero_out"),
                epochs=(1, 2, 5, 10, 20, 50, 100),
                target_delta=(1e-5,),
            ),
            # little noise
            *sized(
                (100_000,),
                (100, 1000),
                samplers=(*_UNSIZED, "shuffle"),
                adjacency=("zero_out", "substitute"),
                epochs=(1, 10),
                target_epsilon=(16.0, 32.0),
            ),
            # the tight bound
            *sized(
                (100_000,),
                (100, 1000),
                samplers=TIGHT,
                adjacency=("substitute",),
                epochs=(1, 10),
                target_epsilon=(0.5, 2.0, 8.0),
                tight=True,
            ),
        ),
        description="Entries, each standing for all combinations of its values.",
    )


class Tuning(kinds.Closed):
    """The candidates among which every seed of every cell chooses: all pairs of a norm bound and a
    size of a step."""

    clips: kinds.Listed[kinds.Positive] = Field(
        (0.2, 1.0), description="Norm bounds of one record's gradient."
    )
    # From far too short to far too long a step: the best candidate should not lie at an end.
    moves: kinds.Listed[kinds.Positive] = Field(
        (0.03, 0.15, 0.7, 3, 14, 64),
        description="Step sizes times the norm bound: how far a step goes if all gradients are "
        "clipped and agree.",
    )


def _trainings(
    datasets: tuple[str, ...],
    m: int,
    epochs: tuple[int, ...],
    target_epsilon: tuple[float, ...],
    delta: float = 1e-5,
) -> TrainingEntry:
    """Return trainings of all schemes, under a relation by which each has a proof and under one
    that is weaker."""
    return TrainingEntry(
        datasets=datasets,
        adjacency=("substitute", "zero_out"),
        m=(m,),
        epochs=epochs,
        target_epsilon=target_epsilon,
        target_delta=(delta,),
    )


class TournamentTrainings(kinds.Group):
    """The cells that are trained, and how they are tuned."""

    tuning: Tuning = Tuning()
    trainings: kinds.Several[TrainingEntry] = Field(
        (
            _trainings(("digits", "digits_perceptron"), 20, (2, 5), (0.5, 2, 8)),
            _trainings(("digits", "digits_perceptron"), 20, (20,), (2,)),
            _trainings(("breast_cancer",), 20, (10,), (2, 8)),
            _trainings(("linear", "mixture"), 80, (5,), (0.5, 2, 8)),
            _trainings(("adult", "cover"), 200, (5,), (0.5, 2, 8)),
            _trainings(("cover_perceptron",), 200, (5,), (2,)),
            _trainings(("cover",), 200, (2, 20), (2,)),
            _trainings(("song",), 120, (5,), (0.5, 2, 8)),
            _trainings(("ijcnn1",), 300, (5,), (0.5, 2, 8)),
            TrainingEntry(
                datasets=("million",),
                adjacency=("zero_out",),
                m=(1000,),
                epochs=(1,),
                target_epsilon=(2,),
                samplers=(NONPRIVATE, "poisson", "wor", "random_allocation", "shuffle"),
                target_delta=(1e-7,),
            ),
        ),
        description="Entries, each standing for all combinations of its values.",
    )
