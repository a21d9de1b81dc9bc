"""Poisson samples with a minimum separation: a record that was drawn waits before it may be drawn
again ("b-min-sep")."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Self

import numpy as np

from dpsub import checks
from dpsub.relations import Relation
from dpsub.sampling.laws import log_binomial
from dpsub.sampling.schedules import Plan, Schedule


@dataclass(frozen=True)
class MinSeparation(Schedule):
    """In each of t steps an available record is drawn with probability `rate`, independently of the
    others; once drawn it is available again `separation` steps later.

    At the start all records are available; with `warm_start` each is in a state of the stationary
    law: available with probability 1 / (1 + (separation - 1) rate), otherwise drawn 1 to separation
    - 1 steps before, all alike.

    References
    ----------
    Dong and Ganesh, arXiv 2602.09338, with noise that is correlated over steps; here the noise of
    all steps is independent.
    """

    rate: float
    separation: int
    t: int
    warm_start: bool = False

    name = "min_separation"
    label, colour, marker = "min separation", "#AA4499", "d"
    line_style = (0, (5, 1, 1, 1, 1, 1))
    relation = Relation.ADD_REMOVE
    sizes: ClassVar = {
        "separation": "least distance of two steps of a record",
        "t": "steps per epoch",
        "m": "expected batch size",
    }
    options: ClassVar = {
        "rate": "inclusion probability of each available record",
        "separation": "least distance of two steps of a record",
        "t": "steps per epoch",
        "warm_start": "the records' states at the start are those of a long run",
    }

    def __post_init__(self) -> None:
        object.__setattr__(self, "rate", checks.rate("rate", self.rate))
        for name in ("separation", "t"):
            object.__setattr__(self, name, checks.integer(name, getattr(self, name), at_least=1))
        checks.boolean("warm_start", self.warm_start)

    @classmethod
    def _of_sizes(cls, n: int, sizes: dict[str, int]) -> Self:
        """Return the schedule, with a warm start, of this expected size in every step."""
        b, m = sizes["separation"], sizes["m"]
        checks.integer("m", m, at_most=n // b, at_most_name="n / separation")
        return cls(m / (n - m * (b - 1)), b, sizes["t"], warm_start=True)

    @classmethod
    def examples(cls) -> list[tuple[Schedule, int]]:
        return [
            (cls(0.4, 2, 3), 2),
            (cls(0.3, 3, 4), 2),
            (cls(0.4, 2, 3, warm_start=True), 2),
            (cls(0.5, 1, 2), 3),
            (cls(1.0, 2, 3), 2),
        ]

    def steps_per_epoch(self, n: int | None) -> int:
        return self.t

    @property
    def waiting(self) -> np.ndarray:
        """Probabilities that a record waits 0, 1, ... steps at the start."""
        if not self.warm_start:
            return np.ones(1)
        weights = np.append(1.0, np.full(self.separation - 1, self.rate))
        return weights / (1 + (self.separation - 1) * self.rate)

    @cached_property
    def chances(self) -> np.ndarray:
        """Probabilities that one record is in each step of an epoch, shape (t,)."""
        # that it is available, step by step
        available = np.zeros(self.t + self.separation)
        starts = self.waiting[: self.t]
        available[: starts.size] = starts
        for step in range(self.t):
            chance = available[step]
            available[step + 1] += (1 - self.rate) * chance
            available[step + self.separation] += self.rate * chance
        return self.rate * available[: self.t]

    @property
    def occurrences(self) -> float:
        return float(self.chances.sum())

    @property
    def most_occurrences(self) -> int:
        """Largest number of steps of an epoch that contain one record."""
        return -(-self.t // self.separation)

    def log_distinct_law(self, n: int) -> np.ndarray:
        return log_binomial(np.arange(n + 1), n, self.rate * float(self.waiting[0]))

    def largest_size(self, n: int) -> int:
        return n

    def law(self, n: int) -> Iterator[tuple[Plan, float]]:
        paths = list(self._paths())
        for chosen in itertools.product(paths, repeat=n):
            yield tuple(steps for steps, _ in chosen), math.prod(chance for _, chance in chosen)

    def _paths(self) -> Iterator[tuple[tuple[int, ...], float]]:
        """Steps of one record, and their probabilities."""
        for wait, chance in enumerate(self.waiting.tolist()):
            for drawn in itertools.product((False, True), repeat=self.t):
                free, weight = wait, chance
                for step, is_drawn in enumerate(drawn):
                    if step >= free:
                        weight *= self.rate if is_drawn else 1 - self.rate
                        free = step + self.separation if is_drawn else free
                    elif is_drawn:
                        weight = 0.0
                if weight:
                    yield tuple(step for step, one in enumerate(drawn) if one), weight

    def _drawn(self, n: int, steps: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        samples = []
        free = np.zeros(n, dtype=np.int64)
        for step in range(steps):
            if not step % self.t:
                waiting = self.waiting
                free = step + rng.choice(waiting.size, size=n, p=waiting)
            taken = np.flatnonzero((free <= step) & (rng.random(n) < self.rate))
            free[taken] = step + self.separation
            samples.append(taken)
        return np.concatenate(samples), np.array([taken.size for taken in samples])
