"""Stages of a multistage sampler, each applied to the slots that the stage before it left.

A stage knows how the copies of one fixed record among its input slots become copies among its output slots: the
kernel of a Markov chain on counts.
"""

from __future__ import annotations

import abc
from dataclasses import dataclass

import numpy as np

from dpsub import checks, discrete

MOST_DRAWS = 10**7
"""Slots of a stage with replacement: the law of a record's copies has an entry for each number of them."""


class Stage(abc.ABC):
    """One step of a multistage sampler."""

    @abc.abstractmethod
    def check(self, n_slots: int, name: str) -> None:
        """Raise ArgumentError if the stage can't be applied to `n_slots` slots, `name` being what they are called."""

    @abc.abstractmethod
    def log_kernel(self, j: np.ndarray, n_slots: int) -> np.ndarray:
        """Log P(u copies after | j copies before), shape (len(j), u_max + 1)."""


@dataclass(frozen=True)
class Poisson(Stage):
    """Keep each slot independently with probability `rate`; leaves a random number of slots."""

    rate: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "rate", checks.real("rate", self.rate, at_least=0.0, at_most=1.0))

    def check(self, n_slots: int, name: str) -> None:
        """Every number of slots will do."""

    def log_kernel(self, j: np.ndarray, n_slots: int) -> np.ndarray:
        return discrete.log_binomial(np.arange(j.max() + 1), j[:, None], self.rate)


@dataclass(frozen=True)
class WithoutReplacement(Stage):
    """Take `size` different slots, all subsets equally likely."""

    size: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", checks.integer("size", self.size, at_least=1))

    def check(self, n_slots: int, name: str) -> None:
        checks.integer("size", self.size, at_most=n_slots, at_most_name=name)

    def log_kernel(self, j: np.ndarray, n_slots: int) -> np.ndarray:
        u = np.arange(min(int(j.max()), self.size) + 1)
        return discrete.log_hypergeometric(u, n_slots, j[:, None], self.size)


@dataclass(frozen=True)
class WithReplacement(Stage):
    """Take `size` slots independently and uniformly, with replacement."""

    size: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", checks.integer("size", self.size, at_least=1, at_most=MOST_DRAWS))

    def check(self, n_slots: int, name: str) -> None:
        """Every number of slots will do."""

    def log_kernel(self, j: np.ndarray, n_slots: int) -> np.ndarray:
        return discrete.log_binomial(np.arange(self.size + 1), self.size, j[:, None] / n_slots)
