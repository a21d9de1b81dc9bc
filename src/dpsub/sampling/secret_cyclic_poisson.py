"""Cyclic Poisson sampling with random groups, which are drawn once and kept secret."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from dpsub.sampling.base import distinct_rows
from dpsub.sampling.frame import Samples
from dpsub.sampling.laws import log_binomial
from dpsub.sampling.schedules import CyclicPoisson, Plan, Schedule, samples_of


@dataclass(frozen=True)
class SecretCyclicPoisson(CyclicPoisson):
    """Each record is put into one of `cycle` groups, chosen uniformly and independently of the
    others, once for all epochs and in secret; step i of an epoch, `cycle` steps, takes each record
    of group i with probability `rate`, independently.

    References
    ----------
    The sampler of jax_privacy with independent partitions.
    """

    name = "secret_cyclic_poisson"
    label, colour, marker = "cyclic Poisson, secret groups", "#44AA99", "2"
    line_style = (0, (2, 1.5, 2, 1.5))
    one_plan = True

    @classmethod
    def examples(cls) -> list[tuple[Schedule, int]]:
        return [(cls(0.3, 2), 3), (cls(0.6, 3), 3), (cls(1.0, 2), 3), (cls(0.5, 1), 3)]

    def steps_per_epoch(self, n: int | None) -> int:
        return self.cycle

    def log_distinct_law(self, n: int) -> np.ndarray:
        return log_binomial(np.arange(n + 1), n, self.rate / self.cycle)

    def largest_size(self, n: int) -> int:
        return n

    def law(self, n: int) -> Iterator[tuple[Plan, float]]:
        # the step of a record, or none
        chances = [self.rate / self.cycle] * self.cycle + [1 - self.rate]
        for steps in itertools.product(range(self.cycle + 1), repeat=n):
            plan = tuple((step,) if step < self.cycle else () for step in steps)
            yield plan, math.prod(chances[step] for step in steps)

    def epochs(self, n: int, rng: np.random.Generator) -> Iterator[Samples]:
        groups = self._groups(n, rng)
        while True:
            yield samples_of(*self._turns(groups, self.cycle, rng))

    def _drawn(self, n: int, steps: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        return self._turns(self._groups(n, rng), steps, rng)

    def _groups(self, n: int, rng: np.random.Generator) -> list[np.ndarray]:
        """Draw the members of each group."""
        sizes = rng.multinomial(n, np.full(self.cycle, 1 / self.cycle))
        return np.split(rng.permutation(n), np.cumsum(sizes)[:-1])

    def _turns(
        self, groups: list[np.ndarray], steps: int, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """Draw the steps, in which the groups take turns."""
        sizes = rng.binomial(np.resize([len(group) for group in groups], steps), self.rate)
        of_step = [groups[0][:0]] * steps
        for turn, group in enumerate(groups[:steps]):
            own = slice(turn, None, self.cycle)
            drawn = group[distinct_rows(rng, len(group), sizes[own])]
            of_step[own] = np.split(drawn, np.cumsum(sizes[own])[:-1])
        return np.concatenate(of_step), sizes
