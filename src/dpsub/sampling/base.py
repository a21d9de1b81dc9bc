"""Samplers as chains of stages; each stage draws from the slots left by the previous one.

A stage maps the number of copies of one fixed record among its input slots to that among its
output slots: it is the kernel of a Markov chain on counts. Blocks of subsets are drawn by
vectorised code, at a cost that does not depend on the frame.
"""

from __future__ import annotations

import abc
import dataclasses
import inspect
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from types import FunctionType
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from dpsub import checks
from dpsub.errors import ArgumentError, UnsupportedError
from dpsub.relations import Relation
from dpsub.sampling import laws
from dpsub.sampling.calls import OfSizes
from dpsub.sampling.frame import Frame, Sample, Samples
from dpsub.sampling.laws import MultiplicityLaw

MOST_DRAWS = 10**7
"""Slots of a stage with replacement: the law of a record's copies has an entry for each number of
them."""
_MANY_TERMS, _MOST_TERMS = 10**6, 2 * 10**7
"""Of one stage's kernel: from when negligible ones are left out, and when it is refused."""
_LOG_SMALLEST = -746.0
"""exp of this, and of anything below, is 0 in doubles."""


class Stage(abc.ABC):
    """One stage of a chain, which leaves `size` slots (0: a random number); `kind` is its name in
    "wor:500,wr:400"."""

    kind: ClassVar[str]
    size: int
    rate: float  # of Poisson stages alone

    @staticmethod
    @abc.abstractmethod
    def checked(name: str, value: Any) -> Any:
        """Return the size (or rate) of a stage, called `name`, in canonical form; ArgumentError if
        it is not valid."""

    @abc.abstractmethod
    def likely(self, j: np.ndarray, n_slots: int) -> tuple[int, int, int]:
        """Largest possible number of copies after the stage, and the limits of those worth a term,
        given j before."""

    @abc.abstractmethod
    def log_kernel(self, j: np.ndarray, u: np.ndarray, n_slots: int) -> np.ndarray:
        """Log P(u copies after | j copies before), shape (len(j), len(u))."""

    @abc.abstractmethod
    def count_law(self, n_slots: int, marked: int) -> np.ndarray:
        """P(l of `marked` among `n_slots` slots are taken), l = 0, 1, ...; an end that underflows
        may be missing."""

    def _count_law(self, most: int, n_slots: int, marked: int) -> np.ndarray:
        counts = np.arange(most + 1)
        return np.exp(self.log_kernel(np.array([marked]), counts, n_slots)[0])


@dataclass(frozen=True)
class PoissonStage(Stage):
    """Keep each slot independently with probability `rate`; leaves a random number of slots."""

    rate: float
    kind: ClassVar[str] = "poisson"
    size = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "rate", self.checked("rate", self.rate))

    @staticmethod
    def checked(name: str, value: Any) -> float:
        return checks.rate(name, value)

    def likely(self, j: np.ndarray, n_slots: int) -> tuple[int, int, int]:
        return int(j.max()), 0, int(j.max())

    def log_kernel(self, j: np.ndarray, u: np.ndarray, n_slots: int) -> np.ndarray:
        return laws.log_binomial(u, j[:, None], self.rate)

    def count_law(self, n_slots: int, marked: int) -> np.ndarray:
        return self._count_law(marked, n_slots, marked)


@dataclass(frozen=True)
class _OfSize(Stage):
    size: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", self.checked("size", self.size))


class WithoutReplacement(_OfSize):
    """Take `size` different slots, all subsets equally likely."""

    kind: ClassVar[str] = "wor"

    @staticmethod
    def checked(name: str, value: Any) -> int:
        return checks.integer(name, value, at_least=1)

    def likely(self, j: np.ndarray, n_slots: int) -> tuple[int, int, int]:
        most = min(int(j.max()), self.size)
        return most, 0, most

    def log_kernel(self, j: np.ndarray, u: np.ndarray, n_slots: int) -> np.ndarray:
        return laws.log_hypergeometric(u, n_slots, j[:, None], self.size)

    def count_law(self, n_slots: int, marked: int) -> np.ndarray:
        if marked == 1:
            # quotients of integers are exact up to rounding, so that n_slots has no limit
            return np.array([(n_slots - self.size) / n_slots, self.size / n_slots])
        return self._count_law(min(marked, self.size), n_slots, marked)


class WithReplacement(_OfSize):
    """Take `size` slots independently and uniformly, with replacement."""

    kind: ClassVar[str] = "wr"

    @staticmethod
    def checked(name: str, value: Any) -> int:
        return checks.integer(name, value, at_least=1, at_most=MOST_DRAWS)

    def chance(self, marked: Any, n_slots: int) -> Any:
        """Probability that one draw takes one of `marked` slots of `n_slots`, shape of `marked`."""
        return marked / n_slots

    def likely(self, j: np.ndarray, n_slots: int) -> tuple[int, int, int]:
        if len(j) * self.size < _MANY_TERMS:
            return self.size, 0, self.size
        return self.size, *laws.binomial_range(
            self.size, self.chance(int(j.min()), n_slots), self.chance(int(j.max()), n_slots)
        )

    def log_kernel(self, j: np.ndarray, u: np.ndarray, n_slots: int) -> np.ndarray:
        p = self.chance(j, n_slots)
        if len(j) * len(u) < _MANY_TERMS:
            return laws.log_binomial(u, self.size, p[:, None])
        rows = np.full((len(j), len(u)), -np.inf)
        for row, chance in zip(rows, p.tolist(), strict=True):
            low, high = laws.binomial_range(self.size, chance, chance)
            part = slice(low - int(u[0]), high + 1 - int(u[0]))
            row[part] = laws.log_binomial(u[part], self.size, chance)
        return rows

    def count_law(self, n_slots: int, marked: int) -> np.ndarray:
        likely = _last_likely(self.size, self.chance(marked, n_slots))
        return self._count_law(likely, n_slots, marked)


@lru_cache(maxsize=4096)  # of sizes alone: every noise multiplier of a search asks again
def _last_likely(size: int, rate: float) -> int:
    """The largest count of Binomial(size, rate) whose probability is not below the smallest
    double."""
    # probabilities fall from the mean on
    likely, beyond = min(size, int(size * rate) + 1), size + 1
    while beyond - likely > 1:
        middle = (likely + beyond) // 2
        if laws.log_binomial(middle, size, rate) > _LOG_SMALLEST:
            likely = middle
        else:
            beyond = middle
    return likely


@dataclass(frozen=True)
class Chain:
    """n records through a chain of stages; only the last one may be Poisson.

    The count of a fixed record is a Markov chain along the stages.
    """

    n: int
    stages: tuple[Stage, ...]

    @property
    def kinds(self) -> tuple[str, ...]:
        """Names of the stages in `STAGES`, first one first."""
        return tuple(stage.kind for stage in self.stages)

    @property
    def slots(self) -> list[int]:
        """Number of slots that each stage draws from."""
        return [self.n, *(stage.size for stage in self.stages[:-1])]

    def normal_form(self) -> Chain:
        """The chain of the same law with as few stages as possible.

        A uniform subset of a uniform subset is one, and a uniform subset of independent draws are
        independent draws: a stage without replacement that follows another one replaces its size.
        """
        normal: list[Stage] = []
        for stage in self.stages:
            if normal and isinstance(stage, WithoutReplacement):
                normal[-1] = dataclasses.replace(normal[-1], size=stage.size)  # type: ignore[type-var]
            else:
                normal.append(stage)
        return Chain(self.n, tuple(normal))

    def multiplicity_law(self, marked: int = 1) -> MultiplicityLaw:
        """Law of the number of copies of one fixed record, or of `marked` of them together;
        ArgumentError if it has too many terms."""
        counts, log_p = np.array([marked]), np.array([0.0])
        for stage, n_slots in zip(self.stages, self.slots, strict=True):
            most, low, high = stage.likely(counts, n_slots)
            if (terms := len(counts) * (high - low + 1)) > _MOST_TERMS:
                raise ArgumentError(
                    f"the law of a record's copies may have at most {_MOST_TERMS:g} terms a stage, "
                    f"got {terms:.3g}; take smaller stages"
                )
            # one step of the Markov chain of counts, in logs as its probabilities underflow
            moved = np.full(most + 1, -np.inf)
            u = np.arange(low, high + 1)
            moved[low : high + 1] = laws.mix_rows(log_p, stage.log_kernel(counts, u, n_slots))
            counts = np.flatnonzero(moved > laws.LOG_NEGLIGIBLE)
            log_p = moved[counts]
        return MultiplicityLaw(moved)


Kind = type[WithoutReplacement | WithReplacement | PoissonStage]
STAGES: dict[str, Kind] = {
    "wor": WithoutReplacement,
    "wr": WithReplacement,
    "poisson": PoissonStage,
}
"""Stages by the name that they have in the text of a chain."""


def uniform(rng: np.random.Generator, n: int, shape: int | tuple[int, int]) -> np.ndarray:
    """Independent uniform indices 0..n-1, in the narrowest integer type with room above n, which
    sorts faster."""
    return rng.integers(n, size=shape, dtype=np.int32 if n < 2**30 else np.int64)


def distinct_rows(rng: np.random.Generator, n: int, sizes: np.ndarray) -> np.ndarray:
    """For each row i a uniformly chosen set of `sizes[i]` different indices of 0..n-1, one row
    after the other.

    Sparse rows: draw with replacement, then redraw repeated values until none is left. The
    procedure treats all labels alike, so every set of a size is equally likely. Rows above half of
    the frame are shuffled whole instead.
    """
    width = int(sizes.max(initial=0))
    ragged = int(sizes.min(initial=width)) < width
    present = np.arange(width) < sizes[:, None]
    if 2 * width > n:
        order = rng.permuted(np.broadcast_to(np.arange(n), (len(sizes), n)), axis=1)[:, :width]
        return order[present]
    # absent entries hold n, n + 1, ...: they sort behind all indices and never repeat
    labels = uniform(rng, n, present.shape)
    if ragged:
        np.copyto(labels, n + np.arange(width, dtype=labels.dtype), where=~present)
    labels.sort(axis=1)
    rows, open_labels = np.arange(len(labels)), labels
    while True:
        repeated = open_labels[:, 1:] == open_labels[:, :-1]
        where = np.flatnonzero(repeated.any(axis=1))
        if not len(where):
            return labels[present] if ragged else labels.ravel()
        rows, open_labels, repeated = rows[where], open_labels[where], repeated[where]
        open_labels[:, 1:][repeated] = uniform(rng, n, int(repeated.sum()))
        open_labels.sort(axis=1)
        labels[rows] = open_labels


def regroup(
    rng: np.random.Generator,
    n: int,
    first: np.ndarray | None,
    shape: tuple[int, int],
    sizes: np.ndarray | None,
) -> tuple[np.ndarray, np.ndarray]:
    """Give each group of entries an independent uniform label 0..n-1 and merge the groups of a row
    that share one.

    `first` and the second result say where in each row of `shape` a group begins, its entries being
    neighbours (None: each entry is its own group); `sizes` how many entries of each row are present
    (None: all), the others at its end. The first result holds the labels, rows sorted, n for absent
    entries.
    """
    if first is None:
        labels = uniform(rng, n, shape)
    elif len(fresh := uniform(rng, n, int(np.count_nonzero(first)))):
        # rows without any group come first at most with absent entries, which are overwritten below
        labels = fresh.take(np.cumsum(first.ravel(), dtype=np.intp) - 1, mode="clip").reshape(shape)
    else:
        labels = np.zeros(shape, dtype=fresh.dtype)
    if sizes is not None:
        present = np.arange(shape[1]) < sizes[:, None]
        np.copyto(labels, n, where=~present)
    labels.sort(axis=1)
    begins = np.empty(shape, dtype=bool)
    # one pass over the flat table is faster than one over each row; the first column is set after
    # it
    flat = labels.ravel()
    np.not_equal(flat[1:], flat[:-1], out=begins.ravel()[1:])
    begins[:, :1] = True
    if sizes is not None:
        begins &= present
    return labels, begins


def groups(
    first: np.ndarray, sizes: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Starts and sizes of the groups that `first` marks: flat, each of shape (groups,); and row
    offsets, shape (rows + 1,)."""
    rows, width = first.shape
    starts = np.flatnonzero(first)
    offsets = np.searchsorted(starts, np.arange(rows + 1) * width)
    counts = np.empty(len(starts), dtype=np.int32)
    np.subtract(starts[1:], starts[:-1], out=counts[:-1], casting="same_kind")
    if sizes is None:
        counts[-1:] = first.size - starts[-1:]
    else:
        # the last group of a row must not run on over absent entries, or over the empty rows that
        # follow it
        occupied = np.flatnonzero(offsets[1:] > offsets[:-1])
        last = offsets[1:][occupied] - 1
        counts[last] = occupied * width + sizes[occupied] - starts[last]
    return starts, counts, offsets


class Family(NamedTuple):
    """Samplers that differ in one size or rate only: its name, its largest value of interest, and
    the sampler for each value."""

    make: Callable[[float], Sampler]
    most: float
    solved: str  # "size" or "rate"


class Sampler(metaclass=OfSizes):
    """A randomised map from a frame to a sample. Subclasses are frozen dataclasses whose fields are
    public."""

    name: ClassVar[str]  # identifier in configuration, records and results
    # how figures and tables show it, as the next three, which are in Matplotlib's words
    label: ClassVar[str]
    colour: ClassVar[str]
    marker: ClassVar[str]
    line_style: ClassVar[Any] = "-"
    # for which its amplification theorem is stated
    relation: ClassVar[Relation] = Relation.SUBSTITUTE
    sizes: ClassVar[Mapping[str, str]]
    """Sizes that `of_sizes` takes besides n, the size of the sample last: {"b": "size of the first
    stage", ...}. A field n is the number of records and not a size."""
    options: ClassVar[Mapping[str, str]] = {}
    """Fields, with their meanings, of a sampler that `of_sizes` does not make."""

    @classmethod
    def of_sizes(cls, n: int, **sizes: int | None) -> Self:
        """Return the sampler of these sizes from n records; unused sizes are ignored."""
        return cls._of({"n": checks.integer("n", n, at_least=1), **cls._given(sizes, cls.sizes)})

    @classmethod
    def family(cls, n: int | None, **sizes: int | None) -> Family:
        """Return the samplers that remain when the last of `sizes` (the rate of Poisson samples) is
        left open."""
        n = checks.integer("n", n, at_least=1)
        *others, last = cls.sizes
        given = cls._given(sizes, others)
        return Family(lambda size: cls.of_sizes(n, **{**given, last: int(size)}), n, "size")

    @classmethod
    def _of(cls, values: Mapping[str, Any]) -> Self:
        fields = dataclasses.fields(cls)  # type: ignore[arg-type]
        return cls(**{field.name: values[field.name] for field in fields if field.name in values})

    @classmethod
    def _given(cls, sizes: Mapping[str, int | None], needed: Iterable[str]) -> dict[str, int]:
        given = {name: size for name in needed if (size := sizes.get(name)) is not None}
        missing = [f"{name}, the {cls.sizes[name]}" for name in needed if name not in given]
        if missing:
            raise ArgumentError(f"{cls.name} needs {' and '.join(missing)}, got none")
        return given

    @classmethod
    @abc.abstractmethod
    def examples(cls) -> list[tuple[Sampler, int]]:
        """Pairs (sampler, n) small enough to enumerate or simulate, for the conformance tests."""

    @abc.abstractmethod
    def draw_block(self, frame: Frame, n_subsets: int, rng: np.random.Generator) -> Samples:
        """Draw `n_subsets` independent subsets."""

    def draw(self, frame: Frame, rng: np.random.Generator) -> Sample:
        """Draw one subset."""
        return self.draw_block(frame, 1, rng)[0]

    @abc.abstractmethod
    def multiplicity_law(self, n: int) -> MultiplicityLaw:
        """Law of the number of copies of one fixed record of n."""

    @abc.abstractmethod
    def log_distinct_law(self, n: int) -> np.ndarray:
        """Log probabilities of the number of distinct records, 0..d_max."""

    def distinct_law(self, n: int) -> np.ndarray:
        """Probabilities of the number of distinct records, 0..d_max."""
        return np.exp(self.log_distinct_law(n))

    def expected_distinct(self, n: int) -> float:
        """E[distinct] = n eta."""
        return n * self.multiplicity_law(n).eta

    def expected_share(self, n: int) -> float:
        """Expected size of a sample, copies counted, over the number of records."""
        return self.multiplicity_law(n).mean

    def largest_size(self, n: int) -> int:
        """Largest size of a sample, copies counted."""
        return len(self.log_distinct_law(n)) - 1

    def has_all_once(self, n: int) -> bool:
        """Whether every sample is all n records, each once."""
        return self.largest_size(n) == n and self.multiplicity_law(n).eta == 1


def redefined(kind: type, known: type, *, but: Collection[str] = ()) -> list[str]:
    """Names of the methods and properties of `known` that a class derived from it defines
    otherwise, without special methods, and without class methods, which only make samplers."""
    names = (name for name in dir(known) if not (name.startswith("__") or name in but))
    found = {name: inspect.getattr_static(known, name) for name in names}
    return [
        name
        for name, own in found.items()
        if isinstance(own, FunctionType | property | cached_property)
        and inspect.getattr_static(kind, name) is not own
    ]


_ORDINALS = ["first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth"]


class StagedSampler(Sampler):
    """A sampler that is a chain of stages. Each stage comes from one field; `kinds` maps the fields
    to stages, in order.

    The law of a fixed record's count is that of its `Chain`; the number of distinct records is a
    Markov chain along the stages in reverse. A Poisson stage can only be the last one.
    """

    kinds: ClassVar[Mapping[str, Kind]]

    def __init_subclass__(cls) -> None:
        if "kinds" in cls.__dict__:
            *before, last = cls.kinds
            sizes = {
                name: f"size of the {place} stage"
                for name, place in zip(before, _ORDINALS, strict=False)
            }
            # a Poisson stage has a rate in place of a size, which is asked for as m
            if issubclass(cls.kinds[last], PoissonStage):
                sizes["m"] = "expected batch size"
            else:
                sizes[last] = "batch size"
            # a field n is the number of records, which is no size
            cls.sizes = {name: what for name, what in sizes.items() if name != "n"}

    def __post_init__(self) -> None:
        for name, kind in self.kinds.items():
            object.__setattr__(self, name, kind.checked(name, getattr(self, name)))
        self._check_chain()

    def _check_chain(self) -> None:
        for position, stage in enumerate(self.stages[:-1], start=1):
            if isinstance(stage, PoissonStage):
                rule = (
                    "a Poisson stage leaves a random number of slots and can only be the last stage"
                )
                raise UnsupportedError(f"{rule}, got it as stage {position} of {len(self.stages)}")
            self._check_slots(position, stage.size, self.stage_names[position - 1])

    @cached_property
    def stages(self) -> tuple[Stage, ...]:
        """The stages, first one first."""
        return tuple(kind(getattr(self, name)) for name, kind in self.kinds.items())

    @property
    def stage_names(self) -> Sequence[str]:
        """Name of the size of each stage in messages."""
        return tuple(self.kinds)

    def _check_slots(self, position: int, slots: int, slots_name: str) -> None:
        stage = self.stages[position]
        if isinstance(stage, WithoutReplacement):
            checks.integer(
                self.stage_names[position], stage.size, at_most=slots, at_most_name=slots_name
            )

    def slots(self, n: int) -> list[int]:
        """Number of slots that each stage draws from, n records for the first one; ArgumentError if
        they do not fit."""
        n = checks.integer("n", n, at_least=1)
        self._check_slots(0, n, "n")
        return [n, *(stage.size for stage in self.stages[:-1])]

    @classmethod
    def of_sizes(cls, n: int, **sizes: int | None) -> Self:
        """Return the sampler of these sizes; a Poisson stage gets the rate m over the number of
        slots before it."""
        n = checks.integer("n", n, at_least=1)
        values: dict[str, Any] = {"n": n, **cls._given(sizes, cls.sizes)}
        *before, last = cls.kinds
        if cls.kinds[last] is PoissonStage:
            name = before[-1] if before else "n"
            slots = checks.integer(name, values[name], at_least=1)
            values[last] = (
                checks.integer("m", values["m"], at_least=1, at_most=slots, at_most_name=name)
                / slots
            )
        sampler = cls._of(values)
        sampler.slots(n)
        return sampler

    @classmethod
    def family(cls, n: int | None, **sizes: int | None) -> Family:
        *others, size = cls.sizes
        given, stages = cls._given(sizes, others), list(cls.kinds)
        if cls.kinds[stages[-1]] is PoissonStage:
            return Family(lambda rate: cls._of({"n": n, **given, stages[-1]: rate}), 1.0, "rate")
        n = checks.integer("n", n, at_least=1)
        place = stages.index(size)
        before = stages[place - 1] if place else "n"
        slots = checks.integer(before, {"n": n, **given}[before], at_least=1)
        most = slots if cls.kinds[size] is WithoutReplacement else max(n, slots)
        return Family(lambda value: cls.of_sizes(n, **{**given, size: int(value)}), most, "size")

    def chain_on(self, n: int) -> Chain:
        """The stages on n records; ArgumentError if they do not fit."""
        self.slots(n)
        return Chain(n, self.stages)

    def multiplicity_law(self, n: int) -> MultiplicityLaw:
        return self.chain_on(n).multiplicity_law()

    def log_distinct_law(self, n: int) -> np.ndarray:
        slots, last = self.slots(n), self.stages[-1]
        if isinstance(last, PoissonStage):
            log_p = laws.log_binomial(np.arange(slots[-1] + 1), slots[-1], last.rate)
            log_p = log_p[: np.flatnonzero(log_p > laws.LOG_NEGLIGIBLE)[-1] + 1]
        else:
            log_p = np.append(np.full(last.size, -np.inf), 0.0)
        for stage, n_slots in zip(reversed(self.stages), reversed(slots), strict=True):
            if isinstance(stage, WithReplacement):
                log_p = laws.occupancy_mixture(log_p, n_slots)
        return log_p

    def largest_size(self, n: int) -> int:
        slots, last = self.slots(n)[-1], self.stages[-1]
        return slots if isinstance(last, PoissonStage) else last.size

    def draw_block(self, frame: Frame, n_subsets: int, rng: np.random.Generator) -> Samples:
        """Draw `n_subsets` independent subsets, at a cost of the sizes drawn."""
        # Slots are followed from the last stage back to the frame, and only those that the final
        # sample needs are ever drawn: a stage without replacement hands on different slots, a stage
        # with replacement independent ones. Slots are exchangeable, so their labels matter only
        # where a collision can occur, and at the frame.
        n_subsets = checks.integer("n_subsets", n_subsets, at_least=1)
        slots, last = self.slots(frame.n), self.stages[-1]
        sizes = (
            rng.binomial(slots[-1], last.rate, n_subsets)
            if isinstance(last, PoissonStage)
            else None
        )
        width = last.size if sizes is None else int(sizes.max())
        # groups of final draws that are copies of one slot; None: every draw is its own
        first = labels = None
        for stage, n_slots in zip(reversed(self.stages), reversed(slots), strict=True):
            if isinstance(stage, WithReplacement):
                labels, first = regroup(rng, n_slots, first, (n_subsets, width), sizes)
        if first is None:
            needed = np.full(n_subsets, width) if sizes is None else sizes
            indices = distinct_rows(rng, frame.n, needed)
            offsets = np.concatenate(([0], np.cumsum(needed)))
            return Samples(indices, np.ones(len(indices), dtype=np.int32), offsets)
        starts, counts, offsets = groups(first, sizes)
        if labels is not None and isinstance(self.stages[0], WithReplacement):
            return Samples(labels.ravel().take(starts), counts, offsets)
        return Samples(distinct_rows(rng, frame.n, np.diff(offsets)), counts, offsets)
