"""Recycled noise on whole numbers, for counts: sampled without rounding, and accounted for by finite sums.

Continuous noise in floating point leaks through which outputs can occur, and so does a hard bound next to value +
bound.  Here value, bounds and sensitivity are whole numbers, the rate and the kernel's parameter fractions, and every
draw is exact.  What the sums leave out in the tails is charged as infinite loss.

The largest rational rate of a discrete kernel that keeps a budget.

Exact draws of discrete Gaussian and Laplace noise: whole numbers and fractions only, no rounding anywhere.

References
----------
Canonne, Kamath and Steinke, The discrete Gaussian for differential privacy (2020), Algorithms 1 to 3.

Renyi divergences of recycled Gaussian noise in closed form, and the concentrated privacy that follows.

With f the released density and the intervals of `dpsub.recycling.law`, k(n)^a k(n - D)^(1 - a) is
e^{a (a - 1) D^2 / (2 sigma^2)} times the normal density around (1 - a) D, so that

    E_a = c e^{a (a - 1) D^2 / (2 sigma^2)} sum of g(n)^a g(n - D)^(1 - a) P(left < N + (1 - a) D <= right),

and the divergence of order a is log(E_a) / (a - 1).
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
from scipy.special import log_ndtr, logsumexp

from dpsub import checks
from dpsub.errors import ArgumentError, UnsupportedError
from dpsub.recycling.budget import budget
from dpsub.recycling.divergence import HockeyStickPieces, ends, intervals
from dpsub.recycling.kernels import EPS, GaussianKernel
from dpsub.recycling.law import Recycled


def below(limit: int, rng: np.random.Generator) -> int:
    """A whole number, uniform on 0 .. limit - 1."""
    bits = (limit - 1).bit_length()
    size = (bits + 7) // 8
    while True:
        found = int.from_bytes(rng.bytes(size), "big") >> (8 * size - bits) if bits else 0
        if found < limit:
            return found


def bernoulli(probability: Fraction, rng: np.random.Generator) -> bool:
    """True with the given probability."""
    return below(probability.denominator, rng) < probability.numerator


def bernoulli_exp(exponent: Fraction, rng: np.random.Generator) -> bool:
    """True with probability e^-exponent, exponent >= 0."""
    while exponent > 1:
        if not bernoulli_exp(Fraction(1), rng):
            return False
        exponent -= 1
    count = 1
    while bernoulli(exponent / count, rng):
        count += 1
    return count % 2 == 1


def laplace(scale: Fraction, rng: np.random.Generator) -> int:
    """A whole number n with probability proportional to e^(-|n| / scale)."""
    period, steps = scale.numerator, scale.denominator
    while True:
        rest = below(period, rng)
        if not bernoulli_exp(Fraction(rest, period), rng):
            continue
        rounds = 0
        while bernoulli_exp(Fraction(1), rng):
            rounds += 1
        size = (rest + period * rounds) // steps
        negative = bernoulli(Fraction(1, 2), rng)
        if not (negative and size == 0):
            return -size if negative else size


def gaussian(variance: Fraction, rng: np.random.Generator) -> int:
    """A whole number n with probability proportional to e^(-n^2 / (2 variance))."""
    scale = _root(variance) + 1
    while True:
        found = laplace(Fraction(scale), rng)
        if bernoulli_exp((abs(found) - variance / scale) ** 2 / (2 * variance), rng):
            return found


def _root(value: Fraction) -> int:
    """The largest whole number whose square is at most `value`."""
    return math.isqrt(value.numerator // value.denominator)


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
        return gaussian(self.parameter, rng)

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
        return laplace(self.parameter, rng)

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
            if self.lower <= found <= self.upper or not bernoulli(self.rate, rng):
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

    def stick(self, epsilon: ArrayLike) -> HockeyStickPieces:
        """Divergences of the output from the one on a value larger by the sensitivity: sums over losses > epsilon."""
        order = np.asarray(epsilon, dtype=float)
        loss, first, second = self._sorted
        count = np.searchsorted(-loss, -order, side="left")
        gain = np.append(0.0, first)[count]
        growth = np.exp(np.minimum(order, 700.0))
        price = growth * np.append(0.0, second)[count]
        # logarithms of up to 1e2 lose as many roundings, sums one a term
        rounding = EPS * (400 + 4 * loss.size)
        return HockeyStickPieces(
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


_DENOMINATOR = 2**16
_SCAN = np.unique(np.round(_DENOMINATOR * -np.expm1(-np.linspace(0, 11, 64))).astype(int))


def largest_rate(
    kernel: DiscreteKernel, epsilon: float, delta: float, lower: int, upper: int, sensitivity: int
) -> DiscreteRecycled:
    """The recycler with the largest rate, a multiple of 2^-16, whose delta(epsilon), rounded up, is at most `delta`.

    Delta may fall before it rises with the rate, so that the whole range is looked at.

    Raises
    ------
    ArgumentError
        If none of the rates looked at will do: the budget is too small for the kernel.
    """
    order, target = budget(epsilon, delta)

    def law(numerator: int) -> DiscreteRecycled:
        return DiscreteRecycled(kernel, Fraction(numerator, _DENOMINATOR), lower, upper, sensitivity)

    def keeps(numerator: int) -> bool:
        return float(law(numerator).bounds(order)[1]) <= target

    if keeps(_DENOMINATOR):
        return law(_DENOMINATOR)
    kept = [int(numerator) for numerator in _SCAN if keeps(int(numerator))]
    if not kept:
        raise ArgumentError(
            f"the budget must allow for the kernel, got delta = {target:g} at epsilon = {order:g} which every rate of "
            "the discrete kernel exceeds; take a larger parameter or budget"
        )
    low = kept[-1]
    high = int(_SCAN[low < _SCAN].min(initial=_DENOMINATOR))
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if keeps(middle) else (low, middle)
    return law(low)


_ORDERS = 1 + np.geomspace(1e-6, 1e5, 40_001)


def divergence(law: Recycled, order: ArrayLike) -> np.ndarray:
    """The Renyi divergence of order a > 1, the larger one of both directions; infinite at q = 1.

    Raises
    ------
    UnsupportedError
        If the kernel is not Gaussian.
    ArgumentError
        If an order is not above 1.
    """
    if not isinstance(law.kernel, GaussianKernel):
        raise UnsupportedError(
            f"Renyi divergences are known for Gaussian kernels, got {law.kernel.name!r}; compose its exact profile"
        )
    orders = checks.finite_array("order", order)
    checks.real("order", orders.min(), above=1)
    directions = [law] if law.symmetric else [law, law.mirrored]
    return np.asarray(np.max([_one(each, orders) for each in directions], axis=0))[()]


def _one(law: Recycled, orders: np.ndarray) -> np.ndarray:
    if law.rate == 1:
        return np.full(orders.shape, np.inf)
    sigma, shift = law.kernel.scale, (orders - 1) * law.sensitivity
    log_keep = math.log1p(-law.rate)
    terms = []
    for piece in intervals(law.lower, law.upper, law.sensitivity):
        factor = np.zeros(orders.shape) if piece.inside else orders * log_keep
        factor = factor + (0.0 if piece.shifted_inside else (1 - orders) * log_keep)
        terms.append(factor + _log_mass((piece.low + shift) / sigma, (piece.high + shift) / sigma))
    kernel = orders * (orders - 1) * (law.sensitivity / sigma) ** 2 / 2
    return np.asarray((math.log(law.normaliser) + kernel + logsumexp(terms, axis=0)) / (orders - 1))


def _log_mass(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """log P(low < N(0, 1) <= high), from the tails on the side where they are small."""
    right = low > 0
    far, near = np.where(right, -high, low), np.where(right, -low, high)
    largest = log_ndtr(near)
    with np.errstate(divide="ignore"):
        return np.asarray(largest + np.log(-np.expm1(np.minimum(log_ndtr(far) - largest, 0.0))))


def concentrated(law: Recycled) -> float:
    """An upper bound of rho = sup over a > 1 of divergence(a) / a, sharp to a few parts in a thousand.

    Divergences grow with the order: between two orders a < b of a grid, divergence(b) / a is enough; beyond the last
    one it is at most a D^2 / (2 sigma^2) + L + log(c) / (a - 1).
    """
    values = divergence(law, _ORDERS)
    if not np.isfinite(values[0]):
        return math.inf
    starts = np.append(1.0, _ORDERS[:-1])
    last = float(_ORDERS[-1])
    rest = -math.log1p(-law.rate) + math.log(law.normaliser) / (last - 1)
    beyond = (law.sensitivity / law.kernel.scale) ** 2 / 2 + rest / last
    return max(float((values / starts).max()), beyond) * (1 + 1e-9)
