"""Recycled noise on whole numbers, for counts: sampled without rounding, and accounted for by finite sums.

Continuous noise in floating point leaks through which outputs can occur, and so does a hard bound next to value +
bound.  Here value, bounds and sensitivity are whole numbers, the rate and the kernel's parameter fractions, and every
draw is exact.  What the sums leave out in the tails is charged as infinite loss.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from dpsub import checks
from dpsub.errors import ArgumentError
from dpsub.recycling import discrete_samplers
from dpsub.recycling.divergence import Stick, ends
from dpsub.recycling.kernels import EPS

_LOG_CUT = -60.0
"""Kernel probabilities below e^-60 of the largest one are cut off, and charged."""


def fraction(name: str, value: Fraction | float | str) -> Fraction:
    """`value` as a fraction.

    Raises
    ------
    ArgumentError
        If it is not a finite number.
    """
    try:
        return Fraction(value)
    except (TypeError, ValueError, OverflowError, ZeroDivisionError):
        raise ArgumentError(f"{name} must be a fraction, got {name} = {value!r}") from None


@dataclass(frozen=True)
class DiscreteKernel(ABC):
    """Noise on the whole numbers, symmetric and log-concave, with one rational parameter above 0.

    Parameters
    ----------
    parameter : Fraction
        Variance-like parameter sigma^2, or the scale b.
    """

    parameter: Fraction

    name: ClassVar[str]

    def __post_init__(self) -> None:
        object.__setattr__(self, "parameter", fraction("parameter", self.parameter))
        checks.real("parameter", self.parameter, above=0)

    @abstractmethod
    def log_weights(self, n: np.ndarray) -> np.ndarray:
        """log of the probabilities of n, up to a constant; 0 at n = 0."""

    @property
    @abstractmethod
    def reach(self) -> int:
        """Where `log_weights` has fallen below e^-60."""

    @abstractmethod
    def draw(self, rng: np.random.Generator) -> int:
        """An exact draw."""

    @abstractmethod
    def loss_unit(self, sensitivity: int) -> float:
        """A number of which all losses of the kernel alone are multiples."""

    @cached_property
    def tail(self) -> float:
        """Weight beyond `reach` on both sides, rounded up: log-concave, it lies below a geometric series."""
        ends = self.log_weights(np.array([self.reach, self.reach + 1]))
        ratio = math.exp(float(ends[1] - ends[0]))
        return 2 * math.exp(float(ends[1])) / (1 - ratio) * (1 + 1e-9)


class DiscreteGaussian(DiscreteKernel):
    """P(n) proportional to exp(-n^2 / (2 sigma^2)); the parameter is sigma^2."""

    name: ClassVar[str] = "discrete gaussian"

    def log_weights(self, n: np.ndarray) -> np.ndarray:
        return -(np.asarray(n, dtype=float) ** 2) / (2 * float(self.parameter))

    @property
    def reach(self) -> int:
        return math.isqrt(math.ceil(-2 * _LOG_CUT * self.parameter)) + 2

    def draw(self, rng: np.random.Generator) -> int:
        return discrete_samplers.gaussian(self.parameter, rng)

    def loss_unit(self, sensitivity: int) -> float:
        return sensitivity / (2 * float(self.parameter))


class DiscreteLaplace(DiscreteKernel):
    """P(n) proportional to exp(-|n| / b); the parameter is b."""

    name: ClassVar[str] = "discrete laplace"

    def log_weights(self, n: np.ndarray) -> np.ndarray:
        return -np.abs(np.asarray(n, dtype=float)) / float(self.parameter)

    @property
    def reach(self) -> int:
        return math.ceil(-_LOG_CUT * self.parameter) + 2

    def draw(self, rng: np.random.Generator) -> int:
        return discrete_samplers.laplace(self.parameter, rng)

    def loss_unit(self, sensitivity: int) -> float:
        return 1 / float(self.parameter)


@dataclass(frozen=True)
class DiscreteRecycled:
    """A recycler around a discrete kernel.

    Parameters
    ----------
    kernel : DiscreteKernel
    rate : Fraction
        q in [0, 1].
    lower, upper : int
        lower < 0 < upper; both count as inside.
    sensitivity : int
        D >= 1.

    Raises
    ------
    ArgumentError
        If an argument is out of range.
    """

    kernel: DiscreteKernel
    rate: Fraction
    lower: int
    upper: int
    sensitivity: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "rate", fraction("rate", self.rate))
        checks.real("rate", self.rate, at_least=0, at_most=1)
        object.__setattr__(self, "lower", checks.integer("lower", self.lower, at_most=-1))
        object.__setattr__(self, "upper", checks.integer("upper", self.upper, at_least=1))
        object.__setattr__(self, "sensitivity", checks.integer("sensitivity", self.sensitivity, at_least=1))

    @property
    def symmetric(self) -> bool:
        """Whether the noise is."""
        return self.rate == 0 or self.lower == -self.upper

    @property
    def mirrored(self) -> DiscreteRecycled:
        """The recycler with bounds (-upper, -lower)."""
        return replace(self, lower=-self.upper, upper=-self.lower)

    @cached_property
    def support(self) -> np.ndarray:
        """The whole numbers that the sums run over: those that the kernel reaches, and their shifts."""
        reach = max(self.kernel.reach, self.upper, -self.lower) + self.sensitivity
        return np.arange(-reach, reach + 1)

    @cached_property
    def log_pmf(self) -> np.ndarray:
        """log of the released noise's probabilities on `support`; -inf outside of the bounds at q = 1."""
        return self._log_weights(self.support) - math.log(self._total)

    @property
    def pmf(self) -> np.ndarray:
        """Probabilities on `support`."""
        return np.exp(self.log_pmf)

    @property
    def acceptance(self) -> float:
        """P(released noise in [lower, upper])."""
        inside = (self.support >= self.lower) & (self.support <= self.upper)
        return float(self.pmf[inside].sum())

    @property
    def variance(self) -> float:
        """Variance of the released noise."""
        mean = float(self.pmf @ self.support)
        return float(self.pmf @ (self.support - mean) ** 2)

    @property
    def lost(self) -> float:
        """Probability outside of `support`, rounded up."""
        return self.kernel.tail * (1 - float(self.rate)) / self._total

    def release(self, value: ArrayLike, rng: np.random.Generator) -> np.ndarray:
        """Release whole numbers by the loop, drawn exactly.

        Raises
        ------
        ArgumentError
            If an entry is not a whole number.
        """
        exact = np.asarray(value)
        if not np.issubdtype(exact.dtype, np.integer):
            raise ArgumentError(f"value must be whole numbers, got dtype {exact.dtype}; round it before")
        noise = np.array([self._draw(rng) for _ in range(exact.size)], dtype=np.int64)
        return (exact + noise.reshape(exact.shape))[()]

    def _draw(self, rng: np.random.Generator) -> int:
        while True:
            found = self.kernel.draw(rng)
            if self.lower <= found <= self.upper or not discrete_samplers.bernoulli(self.rate, rng):
                return found

    def _log_weights(self, n: np.ndarray) -> np.ndarray:
        inside = (n >= self.lower) & (n <= self.upper)
        log_keep = math.log1p(-float(self.rate)) if self.rate < 1 else -math.inf
        return self.kernel.log_weights(n) + np.where(inside, 0.0, log_keep)

    @cached_property
    def _total(self) -> float:
        return math.fsum(np.exp(self._log_weights(self.support)))

    @cached_property
    def _sorted(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Losses, falling, and the running masses under both laws of all losses down to each."""
        first = self.log_pmf
        second = self._log_weights(self.support - self.sensitivity) - math.log(self._total)
        occurs = first > -np.inf
        loss = first[occurs] - second[occurs]
        order = np.argsort(-loss, kind="stable")
        return loss[order], np.cumsum(np.exp(first[occurs][order])), np.cumsum(np.exp(second[occurs][order]))

    def stick(self, epsilon: ArrayLike) -> Stick:
        """Divergences of the output from the one on a value larger by the sensitivity: sums over losses > epsilon."""
        order = np.asarray(epsilon, dtype=float)
        loss, first, second = self._sorted
        count = np.searchsorted(-loss, -order, side="left")
        gain = np.append(0.0, first)[count]
        growth = np.exp(np.minimum(order, 700.0))
        price = growth * np.append(0.0, second)[count]
        # logarithms of up to 1e2 lose as many roundings, sums one a term
        rounding = EPS * (400 + 4 * loss.size)
        return Stick(
            np.zeros(order.shape), np.maximum(gain - price, 0.0), price, rounding * (gain + price) + self.lost
        )

    def bounds(self, epsilon: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
        """Certified ends of delta(epsilon), epsilon >= 0, the larger one of both directions."""
        order = checks.finite_array("epsilon", epsilon)
        return ends([law.stick(order) for law in ([self] if self.symmetric else [self, self.mirrored])])

    @property
    def infinite_mass(self) -> float:
        """Probability of infinite loss: 0 unless q = 1."""
        if self.rate < 1:
            return 0.0
        only_first = (self.support >= self.lower) & (self.support < min(self.upper + 1, self.lower + self.sensitivity))
        return float(self.pmf[only_first].sum())
