"""Kernels of budget recycling: symmetric log-concave noise, with masses that keep their digits in both tails.

Any mechanism with a symmetric log-concave density as a kernel, by its own density and distribution function.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import erf, log_ndtr, ndtri

from dpsub import checks, noise
from dpsub.errors import ArgumentError
from dpsub.noise import Gaussian, Laplace, Mechanism

EPS = float(np.finfo(float).eps)


class LogMass(NamedTuple):
    """log P(low < N <= high) and a bound of the relative error of the probability."""

    log: np.ndarray
    error: np.ndarray


@dataclass(frozen=True)
class Kernel(ABC):
    """Noise N with a density k that is symmetric around 0 and log-concave.

    Its loss against a shift by D, z(n) = log k(n) - log k(n - D), does not increase with n.

    Parameters
    ----------
    scale : float
        Above 0, in the units of the query.
    """

    scale: float

    name: ClassVar[str]

    def __post_init__(self) -> None:
        checks.real("scale", self.scale, above=0)
        # its square is a double
        object.__setattr__(self, "scale", checks.real("scale", self.scale, at_least=1e-150, at_most=1e150))

    @property
    @abstractmethod
    def mechanism(self) -> Mechanism:
        """The mechanism whose noise this is."""

    @abstractmethod
    def log_tail(self, n: np.ndarray) -> np.ndarray:
        """log P(N > n) for n >= 0; infinite n allowed."""

    @abstractmethod
    def tail_rounding(self, n: np.ndarray) -> np.ndarray:
        """Bound of the relative error of the tail at n >= 0, the rounding of n itself included."""

    def log_half(self, n: np.ndarray) -> LogMass:
        """log P(0 < N <= n) for n >= 0: what the tail leaves, or, close to 0, n times the density, which falls."""
        place = np.asarray(n, dtype=float)
        tail = np.exp(self.log_tail(place))
        with np.errstate(divide="ignore", invalid="ignore"):
            direct = np.log(0.5 - tail)
            error = (0.5 + tail) * self.tail_rounding(place) / np.exp(direct)
            narrow = np.log(place) + self.log_density(place)
            fall = np.expm1(np.minimum(self.log_density(0.0) - self.log_density(place), 700.0)) + 8 * EPS
            nearer = ~(error <= fall)
        return LogMass(np.where(nearer, narrow, direct), np.where(nearer, fall, error))

    @abstractmethod
    def threshold(self, epsilon: np.ndarray, sensitivity: float) -> np.ndarray:
        """n* with z(n) > epsilon iff n < n*; infinite epsilon allowed."""

    @abstractmethod
    def quantile(self, probability: np.ndarray) -> np.ndarray:
        """n with P(N <= n) = `probability` in (0, 1), accurate near 0."""

    @abstractmethod
    def tail_moments(self, n: float) -> tuple[float, float]:
        """E[N; N > n] and E[N^2; N > n] for n >= 0."""

    def log_density(self, n: ArrayLike) -> np.ndarray:
        """log k(n)."""
        return self.mechanism.log_density(n)

    def cdf(self, n: ArrayLike) -> np.ndarray:
        """P(N <= n)."""
        return self.mechanism.cdf(n)

    def log_mass(self, low: float, high: ArrayLike) -> LogMass:
        """log P(low < N <= high) for high >= low; both may be infinite.

        Of the two tails the smaller one is differenced, and an interval around 0 is the sum of its halves.
        """
        ends = np.asarray(high, dtype=float)
        if low >= 0:
            inner, outer, around = np.asarray(low), ends, np.zeros(ends.shape, dtype=bool)
        else:
            inner, outer, around = np.abs(ends), np.asarray(-low), ends > 0
        log_inner, log_outer = self.log_tail(inner), self.log_tail(outer)
        with np.errstate(divide="ignore", invalid="ignore"):
            # where rounding leaves nothing of an interval, it is put at what rounding can hide, with an error above it
            drop = np.maximum(-np.expm1(np.minimum(log_outer - log_inner, 0.0)), EPS)
            beside = log_inner + np.log(drop)
            log = np.where(log_inner == -np.inf, -np.inf, beside)
        relative = self._beside(inner, outer, log)
        if around.any():
            first, second = self.log_half(inner), self.log_half(outer)
            log = np.where(around, np.logaddexp(first.log, second.log), log)
            relative = np.where(around, np.maximum(first.error, second.error), relative)
        return LogMass(log, np.where(np.isfinite(log), relative + 4 * EPS * (1 + np.abs(log)), 0.0))

    def _beside(self, inner: np.ndarray, outer: np.ndarray, log: np.ndarray) -> np.ndarray:
        """Relative error of a difference of tails."""
        # relative to the tails where both underflow
        log = np.where(np.isfinite(log), log, 0.0)
        first = np.exp(np.minimum(self.log_tail(inner) - log, 700.0)) * self.tail_rounding(inner)
        return first + np.exp(np.minimum(self.log_tail(outer) - log, 700.0)) * self.tail_rounding(outer)

    def mass(self, low: float, high: float) -> float:
        """P(low < N <= high)."""
        return float(np.exp(self.log_mass(low, high).log)) if high > low else 0.0

    def delta(self, epsilon: ArrayLike, sensitivity: float) -> np.ndarray:
        """delta_Z(epsilon), at any real or infinite epsilon, from the half-line where the loss exceeds it."""
        order = np.asarray(epsilon, dtype=float)
        end = self.threshold(order, sensitivity)
        first = np.exp(self.log_mass(-math.inf, end).log)
        with np.errstate(invalid="ignore"):
            second = np.exp(order + self.log_mass(-math.inf, end - sensitivity).log)
        return np.where(np.isinf(order), np.where(order < 0, 1.0, 0.0), np.maximum(first - second, 0.0))[()]

    def profile(self, sensitivity: float) -> noise.AdditiveNoiseProfile:
        """delta_Z: the profile of the kernel alone.

        Raises
        ------
        ArgumentError
            If no profile is registered under the kernel's name.
        """
        return noise.of(self.name, sensitivity / self.scale)


@dataclass(frozen=True)
class GaussianKernel(Kernel):
    """N(0, scale^2).

    References
    ----------
    brdp, Sections 3 and 5; balle, Theorem 4 (the profile).
    """

    name: ClassVar[str] = "gaussian"

    @classmethod
    def for_budget(cls, epsilon: float, delta: float, sensitivity: float) -> GaussianKernel:
        """The smallest scale that is (epsilon, delta)-private without a recycler."""
        return cls(Gaussian.calibrated(epsilon, delta, sensitivity).scale)

    @property
    def mechanism(self) -> Mechanism:
        return Gaussian(self.scale)

    def log_tail(self, n: np.ndarray) -> np.ndarray:
        return np.asarray(log_ndtr(-np.asarray(n) / self.scale))

    def tail_rounding(self, n: np.ndarray) -> np.ndarray:
        # an error of z enters as z dz; beyond 1e3 deviations nothing is left to be off
        z = np.minimum(np.asarray(n) / self.scale, 1e3)
        return EPS * (8 + 4 * z * z)

    def log_half(self, n: np.ndarray) -> LogMass:
        with np.errstate(divide="ignore"):
            log = np.log(0.5 * erf(np.asarray(n) / (self.scale * math.sqrt(2))))
        return LogMass(log, np.full(log.shape, 16 * EPS))

    def threshold(self, epsilon: np.ndarray, sensitivity: float) -> np.ndarray:
        """D / 2 - epsilon sigma^2 / D."""
        return np.asarray(sensitivity / 2 - np.asarray(epsilon) * (self.scale / sensitivity) * self.scale)

    def quantile(self, probability: np.ndarray) -> np.ndarray:
        return np.asarray(self.scale * ndtri(probability))

    def tail_moments(self, n: float) -> tuple[float, float]:
        density = math.exp(float(self.log_density(n))) if math.isfinite(n) else 0.0
        first = self.scale**2 * density
        beyond = self.scale**2 * math.exp(float(self.log_tail(np.asarray(n))))
        return first, beyond + (n * first if first > 0 else 0.0)


@dataclass(frozen=True)
class LaplaceKernel(Kernel):
    """Laplace noise of scale b.

    References
    ----------
    brdp, Sections 3 and 5; balle, Theorem 3 (the profile).
    """

    name: ClassVar[str] = "laplace"

    @classmethod
    def for_budget(cls, epsilon: float, delta: float, sensitivity: float) -> LaplaceKernel:
        """b = D / (epsilon - 2 log(1 - delta)), which has exactly this delta without a recycler.

        Raises
        ------
        ArgumentError
            If delta lies outside [0, 1), or epsilon is negative, or both are 0.
        """
        return cls(Laplace.calibrated(epsilon, delta, sensitivity).scale)

    @property
    def mechanism(self) -> Mechanism:
        return Laplace(self.scale)

    def log_tail(self, n: np.ndarray) -> np.ndarray:
        return np.asarray(-np.asarray(n) / self.scale - math.log(2))

    def tail_rounding(self, n: np.ndarray) -> np.ndarray:
        return EPS * (4 + 4 * np.minimum(np.asarray(n) / self.scale, 1e6))

    def log_half(self, n: np.ndarray) -> LogMass:
        with np.errstate(divide="ignore"):
            log = np.log(-0.5 * np.expm1(-np.asarray(n) / self.scale))
        return LogMass(log, np.full(log.shape, 16 * EPS))

    def threshold(self, epsilon: np.ndarray, sensitivity: float) -> np.ndarray:
        """(D - b epsilon) / 2 between -D / b and D / b, infinite beyond."""
        order, span = np.asarray(epsilon, dtype=float), sensitivity / self.scale
        inside = (sensitivity - self.scale * np.clip(order, -span, span)) / 2
        return np.where(order >= span, -np.inf, np.where(order < -span, np.inf, inside))

    def quantile(self, probability: np.ndarray) -> np.ndarray:
        p = np.asarray(probability)
        smaller = np.minimum(p, 1 - p)
        with np.errstate(divide="ignore"):
            return np.asarray(np.copysign(self.scale * np.log(2 * smaller), p - 0.5))

    def tail_moments(self, n: float) -> tuple[float, float]:
        if not math.isfinite(n):
            return 0.0, 0.0
        b, half = self.scale, 0.5 * math.exp(-n / self.scale)
        return (n + b) * half, (n * n + 2 * b * n + 2 * b * b) * half


Family = type[GaussianKernel] | type[LaplaceKernel]
"""A kernel that can be calibrated."""

NAMED: dict[str, Family] = {"gaussian": GaussianKernel, "laplace": LaplaceKernel}


def named(name: str) -> Family:
    """The kernel class called `name`.

    Raises
    ------
    ArgumentError
        If there is none; the message proposes the nearest name.
    """
    return NAMED[checks.one_of("kernel", name, NAMED)]


def of(mechanism: Mechanism) -> Kernel:
    """The kernel with the noise of any mechanism that has a symmetric log-concave density.

    Raises
    ------
    ArgumentError
        If its density is neither.
    """
    if mechanism.name in NAMED:
        return NAMED[mechanism.name](mechanism.scale)

    return DensityKernel(mechanism.scale, mechanism)


_GRID = np.concatenate([[0.0], np.geomspace(1e-3, 20.0, 60)])
_SYMMETRY = 1e-9
_REACH = 400.0
_HALVINGS = 200
_TAIL_ACCURACY = 1e-13
"""Relative accuracy that is expected of a mechanism's distribution function in its left tail."""


@dataclass(frozen=True)
class DensityKernel(Kernel):
    """The noise of `mechanism`.

    Parameters
    ----------
    scale : float
        That of the mechanism.
    mechanism : Mechanism

    Raises
    ------
    ArgumentError
        If the density is not symmetric or not log-concave.
    """

    noise: Mechanism

    def __post_init__(self) -> None:
        super().__post_init__()
        n = self.scale * _GRID
        right, left = np.asarray(self.noise.log_density(n)), np.asarray(self.noise.log_density(-n))
        if not np.allclose(right, left, rtol=_SYMMETRY, atol=_SYMMETRY):
            raise ArgumentError(
                f"a kernel needs a density symmetric around 0, got {self.name!r} with another one; "
                "take gaussian or laplace noise"
            )
        slopes = np.diff(right) / np.diff(n)
        rises = np.diff(slopes) > _SYMMETRY * (1 + np.abs(slopes[1:]))
        if rises.any() or slopes[0] > _SYMMETRY:
            raise ArgumentError(
                f"a kernel needs a log-concave density, got {self.name!r} with another one; take gaussian or laplace "
                "noise"
            )

    @property
    def mechanism(self) -> Mechanism:
        return self.noise

    @property
    def name(self) -> str:  # type: ignore[override]
        return self.noise.name

    def log_tail(self, n: np.ndarray) -> np.ndarray:
        with np.errstate(divide="ignore"):
            return np.log(self.noise.cdf(-np.asarray(n, dtype=float)))

    def tail_rounding(self, n: np.ndarray) -> np.ndarray:
        return _TAIL_ACCURACY + 8 * EPS * np.minimum(np.abs(np.asarray(n)) / self.scale, 1e3) ** 2

    def threshold(self, epsilon: np.ndarray, sensitivity: float) -> np.ndarray:
        """By bisection of the loss, which does not increase."""

        def exceeds(n: np.ndarray) -> np.ndarray:
            return self.log_density(n) - self.log_density(n - sensitivity) > epsilon

        order = np.asarray(epsilon, dtype=float)
        reach = _REACH * self.scale + sensitivity
        found = _bisected(exceeds, np.full(order.shape, -reach), np.full(order.shape, reach))
        return np.where(found >= reach, np.inf, np.where(found <= -reach, -np.inf, found))

    def quantile(self, probability: np.ndarray) -> np.ndarray:
        p = np.asarray(probability, dtype=float)
        smaller = np.minimum(p, 1 - p)
        reach = _REACH * self.scale
        place = _bisected(lambda n: self.noise.cdf(n) < smaller, np.full(p.shape, -reach), np.zeros(p.shape))
        return np.where(p <= 0.5, place, -place)

    def tail_moments(self, n: float) -> tuple[float, float]:
        # k = F', integrated by parts: E[N; N > n] = n T(n) + int T, E[N^2; N > n] = n^2 T(n) + 2 int t T(t) dt
        t = n + self._nodes[0] * self.scale
        tail = np.exp(self.log_tail(t))
        at = float(np.exp(self.log_tail(np.asarray(n))))
        weights = self._nodes[1] * self.scale
        return n * at + float(weights @ tail), n * n * at + 2 * float(weights @ (t * tail))

    @cached_property
    def _nodes(self) -> tuple[np.ndarray, np.ndarray]:
        """Gauss-Legendre nodes and weights on [0, 60], panel by panel."""
        x, w = np.polynomial.legendre.leggauss(20)
        edges = np.concatenate([[0.0], np.geomspace(0.01, 60.0, 40)])
        half, middle = np.diff(edges) / 2, (edges[1:] + edges[:-1]) / 2
        return (middle[:, None] + np.outer(half, x)).ravel(), np.outer(half, w).ravel()


def _bisected(below: Callable[[np.ndarray], np.ndarray], low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """The right end of a set `below` of numbers in [low, high], which is an interval from the left."""
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        yes = below(middle)
        low, high = np.where(yes, middle, low), np.where(yes, high, middle)
    return high
