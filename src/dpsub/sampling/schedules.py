"""Schedules: plans of samples over the steps of an epoch, which may depend on each other; epochs
are independent, or follow one plan.

The order of the records is fixed and an added record comes last: if a plan depends on a record's
position, the positions of the others do not change.
"""

from __future__ import annotations

import abc
import itertools
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from dpsub import checks
from dpsub.errors import ArgumentError, UnsupportedError
from dpsub.relations import Relation
from dpsub.sampling.base import Family, Sampler, distinct_rows, uniform
from dpsub.sampling.calls import OfSizes
from dpsub.sampling.frame import Frame, Samples
from dpsub.sampling.laws import LOG_NEGLIGIBLE, MultiplicityLaw, binomial_range, log_binomial

DROP_LAST = "leave out the records of an epoch that make no whole step"
Plan = tuple[tuple[int, ...], ...]
"""Plan of an epoch: for each record the steps that contain it."""


class Schedule(metaclass=OfSizes):
    """The assignment of records to the steps of an epoch. Subclasses are frozen dataclasses whose
    fields are public."""

    name: ClassVar[str]  # identifier in configuration, records and results
    # how figures and tables show it, as the next three, which are in Matplotlib's words
    label: ClassVar[str]
    colour: ClassVar[str]
    marker: ClassVar[str]
    line_style: ClassVar[Any] = "-"
    relation: ClassVar[Relation] = Relation.SUBSTITUTE
    """Adjacency for which theorems about it are stated."""
    sizes: ClassVar[Mapping[str, str]] = {"m": "batch size"}
    """Sizes that `of_sizes` takes besides n, the size of a step last."""
    options: ClassVar[Mapping[str, str]]
    """Fields of the schedule, with their meanings."""
    one_plan: ClassVar[bool] = False
    """Whether something is drawn once for all epochs of a run, which then are one event."""

    @classmethod
    def of_sizes(cls, n: int, **sizes: int | None) -> Self:
        """Return the schedule of n records with these sizes; unused sizes are ignored."""
        missing = [
            f"{name}, the {what}" for name, what in cls.sizes.items() if sizes.get(name) is None
        ]
        if missing:
            raise ArgumentError(f"{cls.name} needs {' and '.join(missing)}, got none")
        n = checks.integer("n", n, at_least=1)
        given = {name: checks.integer(name, sizes[name], at_least=1) for name in cls.sizes}
        checks.integer("m", given["m"], at_most=n, at_most_name="n")
        return cls._of_sizes(n, given)

    @classmethod
    def _of_sizes(cls, n: int, sizes: dict[str, int]) -> Self:
        return cls(**sizes)

    @classmethod
    @abc.abstractmethod
    def examples(cls) -> list[tuple[Schedule, int]]:
        """Pairs (schedule, n) small enough to enumerate an epoch, for the conformance tests."""

    @abc.abstractmethod
    def steps_per_epoch(self, n: int | None) -> int:
        """Number of steps of one epoch on n records; ArgumentError if n is needed and not given, or
        does not fit."""

    @property
    @abc.abstractmethod
    def occurrences(self) -> float:
        """Expected number of steps of an epoch that contain one record; where records are left out,
        a record that is not."""

    @abc.abstractmethod
    def log_distinct_law(self, n: int) -> np.ndarray:
        """Log probabilities of the number of records, 0..d_max, in the first step of an epoch: none
        has more."""

    def law(self, n: int) -> Iterator[tuple[Plan, float]]:
        """Yield the plans of an epoch with their probabilities, by enumeration from the definition,
        for small n; a plan may come several times.

        The conformance tests compare draws and `log_distinct_law` with it.
        """
        raise UnsupportedError(
            f"epochs of {self.name} can be enumerated only by its own definition, got none; define "
            f"{type(self).__name__}.law"
        )

    @abc.abstractmethod
    def _drawn(self, n: int, steps: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Indices of the records in `steps` steps, one step after the other, and the number of
        records in each."""

    def distinct_law(self, n: int) -> np.ndarray:
        """Probabilities of the number of records in the first step of an epoch."""
        return np.exp(self.log_distinct_law(n))

    def expected_distinct(self, n: int) -> float:
        """Expected number of records in a step, over all steps of an epoch."""
        return n * self.occurrences / self.steps_per_epoch(n)

    def largest_size(self, n: int) -> int:
        """Largest number of records in a step."""
        return len(self.log_distinct_law(n)) - 1

    def epochs(self, n: int, rng: np.random.Generator) -> Iterator[Samples]:
        """Yield epoch by epoch the index sets of its steps, without end."""
        while True:
            yield self.draw_block(Frame(n), self.steps_per_epoch(n), rng)

    def draw_block(self, frame: Frame, n_subsets: int, rng: np.random.Generator) -> Samples:
        """Draw `n_subsets` consecutive steps of one run, from the beginning of an epoch on."""
        self.steps_per_epoch(frame.n)  # the frame must fit
        return samples_of(
            *self._drawn(frame.n, checks.integer("n_subsets", n_subsets, at_least=1), rng)
        )


def samples_of(indices: np.ndarray, sizes: np.ndarray) -> Samples:
    """Subsets of these sizes, each without repeated records."""
    return Samples(
        indices, np.ones(len(indices), dtype=np.int32), np.concatenate(([0], np.cumsum(sizes)))
    )


@dataclass(frozen=True)
class RandomAllocation(Schedule):
    """Every record takes part in k of the t steps of an epoch, chosen uniformly and independently
    of the others.

    References
    ----------
    Chua et al., arXiv 2412.16802 ("balls and bins", k = 1); Feldman and Shenfeld, arXiv 2502.08202.
    """

    t: int
    k: int = 1

    name = "random_allocation"
    label, colour, marker = "random allocation", "#332288", "h"
    line_style = (0, (6, 1.2, 1, 1.2, 1, 1.2))
    relation = Relation.ADD_REMOVE
    options: ClassVar = {
        "t": "steps per epoch",
        "k": "steps per epoch that use a given record (default: 1)",
    }

    def __post_init__(self) -> None:
        object.__setattr__(self, "t", checks.integer("t", self.t, at_least=1))
        object.__setattr__(
            self, "k", checks.integer("k", self.k, at_least=1, at_most=self.t, at_most_name="t")
        )

    @classmethod
    def _of_sizes(cls, n: int, sizes: dict[str, int]) -> Self:
        return cls(-(-n // sizes["m"]))

    @classmethod
    def examples(cls) -> list[tuple[Schedule, int]]:
        return [(cls(3), 3), (cls(3, 2), 2), (cls(1), 4), (cls(2, 2), 3)]

    def steps_per_epoch(self, n: int | None) -> int:
        return self.t

    @property
    def occurrences(self) -> float:
        return float(self.k)

    def log_distinct_law(self, n: int) -> np.ndarray:
        return log_binomial(np.arange(n + 1), n, self.k / self.t)

    def largest_size(self, n: int) -> int:
        return n

    def law(self, n: int) -> Iterator[tuple[Plan, float]]:
        choices = list(itertools.combinations(range(self.t), self.k))
        for plan in itertools.product(choices, repeat=n):
            yield plan, len(choices) ** -n

    def _drawn(self, n: int, steps: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        epochs = -(-steps // self.t)
        rows = epochs * n  # each record of each epoch
        # one step a record needs no sorting of each record's steps
        places = (
            uniform(rng, self.t, rows)
            if self.k == 1
            else distinct_rows(rng, self.t, np.full(rows, self.k))
        )
        places = places + self.t * np.repeat(np.arange(epochs), n * self.k)
        taken = np.flatnonzero(places < steps)
        order = taken[np.argsort(places[taken], kind="stable")]
        return order // self.k % n, np.bincount(places[taken], minlength=steps)


def _check_drop_last(value: Any) -> None:
    try:
        checks.boolean("drop_last", value)
    except ArgumentError as error:
        # as in Shuffle(60000, 256)
        raise ArgumentError(
            f"{error}; the number of records n is an argument of the question"
        ) from None


@dataclass(frozen=True)
class Shuffle(Schedule):
    """All records in a uniformly random order, drawn again for every epoch, cut into steps of
    m; the last step gets the rest. With `drop_last` a rest that is no whole step is left out: other
    records in every epoch."""

    m: int
    drop_last: bool = False

    name = "shuffle"
    label, colour, marker = "shuffle", "#882255", "<"
    line_style = (0, (3, 1, 1, 1))
    options: ClassVar = {"m": "batch size", "drop_last": DROP_LAST}

    def __post_init__(self) -> None:
        object.__setattr__(self, "m", checks.integer("m", self.m, at_least=1))
        _check_drop_last(self.drop_last)

    @classmethod
    def examples(cls) -> list[tuple[Schedule, int]]:
        return [(cls(2), 4), (cls(2), 5), (cls(3), 3), (cls(1), 3), (cls(2, drop_last=True), 5)]

    def steps_per_epoch(self, n: int | None) -> int:
        return _batches(self.name, n, self.m, self.drop_last)

    @property
    def occurrences(self) -> float:
        return 1.0

    def log_distinct_law(self, n: int) -> np.ndarray:
        self.steps_per_epoch(n)
        return np.append(np.full(self.m, -np.inf), 0.0)

    def law(self, n: int) -> Iterator[tuple[Plan, float]]:
        for order in itertools.permutations(range(n)):
            places = [order.index(i) for i in range(n)]
            yield _cut_into(self.steps_per_epoch(n), self.m, places), 1 / math.factorial(n)

    def _drawn(self, n: int, steps: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        if self.drop_last and n % self.m:
            return self._cut(n, steps, rng)
        sizes = _sizes(n, self.m, steps)
        total = int(sizes.sum())
        # few records of one epoch: the rest of the order is not needed
        if 2 * total <= n:
            return rng.choice(n, total, replace=False), sizes
        epochs = -(-total // n)
        return rng.permuted(np.tile(np.arange(n), (epochs, 1)), axis=1).ravel()[:total], sizes

    def _cut(self, n: int, steps: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Steps of epochs without the records behind the last whole step."""
        per_epoch = n // self.m
        orders = np.tile(np.arange(n), (-(-steps // per_epoch), 1))
        kept = rng.permuted(orders, axis=1)[:, : per_epoch * self.m]
        return kept.ravel()[: steps * self.m], np.full(steps, self.m)

    def expected_distinct(self, n: int) -> float:
        """Number of records in a step, on average over an epoch."""
        return float(self.m) if self.drop_last else super().expected_distinct(n)


@dataclass(frozen=True)
class Deterministic(Schedule):
    """m records per step (None: all of them) in a fixed order, the same in every epoch: no
    amplification. With `drop_last` the last records, which make no whole step, are never used."""

    m: int | None = None
    drop_last: bool = False

    name = "deterministic"
    label, colour, marker = "fixed order", "#661100", "8"
    line_style = (0, (1, 2))
    options: ClassVar = {"m": "batch size", "drop_last": DROP_LAST}

    def __post_init__(self) -> None:
        if self.m is not None:
            object.__setattr__(self, "m", checks.integer("m", self.m, at_least=1))
        _check_drop_last(self.drop_last)

    @classmethod
    def examples(cls) -> list[tuple[Schedule, int]]:
        return [(cls(2), 5), (cls(2), 4), (cls(), 3), (cls(2, drop_last=True), 5)]

    def steps_per_epoch(self, n: int | None) -> int:
        return 1 if self.m is None else _batches(self.name, n, self.m, self.drop_last)

    @property
    def occurrences(self) -> float:
        return 1.0

    def log_distinct_law(self, n: int) -> np.ndarray:
        self.steps_per_epoch(n)
        return np.append(np.full(self.m or n, -np.inf), 0.0)

    def law(self, n: int) -> Iterator[tuple[Plan, float]]:
        yield _cut_into(self.steps_per_epoch(n), self.m or n, range(n)), 1.0

    def _drawn(self, n: int, steps: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        m = self.m or n
        used = n - n % m if self.drop_last else n
        sizes = _sizes(used, m, steps)
        return np.arange(sizes.sum()) % used, sizes

    def expected_distinct(self, n: int) -> float:
        """Number of records in a step, on average over an epoch."""
        return float(self.m or n) if self.drop_last else super().expected_distinct(n)


@dataclass(frozen=True)
class CyclicPoisson(Schedule):
    """Records are dealt in turn to `cycle` groups; step i of an epoch, `cycle` steps, takes each
    record of group i with probability `rate`, independently.

    References
    ----------
    Choquette-Choo et al., arXiv 2306.08153, with noise that is correlated within a cycle; here
    the noise of all steps is independent.
    """

    rate: float
    cycle: int

    name = "cyclic_poisson"
    label, colour, marker = "cyclic Poisson", "#117733", ">"
    line_style = (0, (6, 1.5, 2, 1.5))
    relation = Relation.ADD_REMOVE
    sizes: ClassVar = {"cycle": "number of groups", "m": "expected batch size"}
    options: ClassVar = {
        "rate": "inclusion probability of each record of the group",
        "cycle": "number of groups",
    }

    def __post_init__(self) -> None:
        object.__setattr__(self, "rate", checks.rate("rate", self.rate))
        object.__setattr__(self, "cycle", checks.integer("cycle", self.cycle, at_least=1))

    @classmethod
    def _of_sizes(cls, n: int, sizes: dict[str, int]) -> Self:
        most = n // checks.integer("cycle", sizes["cycle"], at_most=n, at_most_name="n")
        checks.integer("m", sizes["m"], at_most=most, at_most_name="n / cycle")
        return cls(sizes["m"] * sizes["cycle"] / n, sizes["cycle"])

    @classmethod
    def examples(cls) -> list[tuple[Schedule, int]]:
        return [(cls(0.3, 2), 4), (cls(0.6, 3), 5), (cls(1.0, 2), 3), (cls(0.5, 1), 3)]

    def steps_per_epoch(self, n: int | None) -> int:
        if n is not None:
            checks.integer("cycle", self.cycle, at_most=n, at_most_name="n")
        return self.cycle

    @property
    def occurrences(self) -> float:
        return self.rate

    def log_distinct_law(self, n: int) -> np.ndarray:
        largest = self.largest_size(n)
        return log_binomial(np.arange(largest + 1), largest, self.rate)

    def largest_size(self, n: int) -> int:
        return -(-n // self.cycle)

    def law(self, n: int) -> Iterator[tuple[Plan, float]]:
        for drawn in itertools.product((0, 1), repeat=n):
            chance = math.prod(self.rate if one else 1 - self.rate for one in drawn)
            yield tuple((i % self.cycle,) if one else () for i, one in enumerate(drawn)), chance

    def _drawn(self, n: int, steps: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        # record i is in group i mod cycle, so that the first groups have one record more
        smaller, longer = divmod(n, self.cycle)
        groups = np.arange(steps) % self.cycle
        sizes = rng.binomial(smaller + (groups < longer), self.rate)
        places = np.empty(sizes.sum(), dtype=np.intp)
        for which, members in ((groups < longer, smaller + 1), (groups >= longer, smaller)):
            if which.any():
                places[np.repeat(which, sizes)] = distinct_rows(rng, members, sizes[which])
        return places * self.cycle + np.repeat(groups, sizes), sizes


@dataclass(frozen=True)
class TruncatedPoisson(Sampler):
    """Include each record independently with probability `rate`; if these are more than
    `max_batch`, keep a uniform subset of that size. Steps are independent.

    References
    ----------
    Ganesh, arXiv 2508.15089.
    """

    rate: float
    max_batch: int

    name = "truncated_poisson"
    label, colour, marker = "truncated Poisson", "#AA4499", "d"
    line_style = (0, (6, 1.5, 1, 1.5))
    relation = Relation.ADD_REMOVE
    sizes: ClassVar = {
        "max_batch": "largest batch size",
        "m": "expected batch size before truncation",
    }

    def __post_init__(self) -> None:
        object.__setattr__(self, "rate", checks.rate("rate", self.rate))
        object.__setattr__(
            self, "max_batch", checks.integer("max_batch", self.max_batch, at_least=1)
        )

    @classmethod
    def of_sizes(cls, n: int, **sizes: int | None) -> Self:
        n, given = checks.integer("n", n, at_least=1), cls._given(sizes, cls.sizes)
        return cls(
            checks.integer("m", given["m"], at_least=1, at_most=n, at_most_name="n") / n,
            given["max_batch"],
        )

    @classmethod
    def family(cls, n: int | None, **sizes: int | None) -> Family:
        largest = cls._given(sizes, ["max_batch"])["max_batch"]
        return Family(lambda rate: cls(rate, largest), 1.0, "rate")

    @classmethod
    def examples(cls) -> list[tuple[Sampler, int]]:
        return [(cls(0.3, 2), 5), (cls(0.5, 4), 9), (cls(0.2, 12), 60), (cls(0.4, 10), 6)]

    def draw_block(self, frame: Frame, n_subsets: int, rng: np.random.Generator) -> Samples:
        # a uniform subset of a uniform subset is one: the size alone tells that the batch was cut
        drawn = rng.binomial(frame.n, self.rate, checks.integer("n_subsets", n_subsets, at_least=1))
        kept = np.minimum(drawn, self.max_batch)
        return samples_of(distinct_rows(rng, frame.n, kept), kept)

    def multiplicity_law(self, n: int) -> MultiplicityLaw:
        """A record is kept with probability rate E min(1, max_batch / (1 + K)), K ~ Binomial(n - 1,
        rate)."""
        others = checks.integer("n", n, at_least=1) - 1
        low, high = binomial_range(others, self.rate, self.rate) if others else (0, 0)
        k = np.arange(low, high + 1)
        log_p = log_binomial(k, others, self.rate)
        kept = np.minimum(1.0, self.max_batch / (k + 1.0))
        return MultiplicityLaw.single(min(1.0, self.rate * float(np.exp(log_p) @ kept)))

    def largest_size(self, n: int) -> int:
        return min(n, self.max_batch)

    def log_distinct_law(self, n: int) -> np.ndarray:
        log_p = log_binomial(np.arange(n + 1), n, self.rate)
        if n > self.max_batch:
            log_p = np.append(log_p[: self.max_batch], np.logaddexp.reduce(log_p[self.max_batch :]))
        return log_p[: np.flatnonzero(log_p > LOG_NEGLIGIBLE)[-1] + 1]


def _cut_into(steps: int, m: int, places: Iterable[int]) -> Plan:
    """The steps of records at these places of an order, cut into steps of m; those behind the last
    step are in none."""
    return tuple((place // m,) if place // m < steps else () for place in places)


def _batches(name: str, n: int | None, m: int, drop_last: bool) -> int:
    if n is None:
        raise ArgumentError(
            f"the number of records n is needed for {name} in steps of m = {m}, got none; give n"
        )
    checks.integer("m", m, at_most=n, at_most_name="n")
    return n // m if drop_last else -(-n // m)


def _sizes(n: int, m: int, steps: int) -> np.ndarray:
    """Batches of m out of n records; the last one of an epoch gets the rest."""
    return np.minimum(m, n - m * (np.arange(steps) % -(-n // m)))
