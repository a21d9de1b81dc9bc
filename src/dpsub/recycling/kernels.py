"""Kernels of budget recycling: Gaussian and Laplace noise whose masses keep their digits in both
tails."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import erf, log_ndtr, ndtri

from dpsub import checks
from dpsub.noise import Gaussian, Laplace, Mechanism

EPS = float(np.finfo(float).eps)


class _Masses(NamedTuple):
    """log P(low < N <= high), and its ingredients: the distances of the intervals' ends from 0, the
    log-tails there, and which intervals are around 0."""

    inner: np.ndarray
    outer: np.ndarray
    log_inner: np.ndarray
    log_outer: np.ndarray
    around_zero: np.ndarray
    log_mass: np.ndarray


class Kernel(Mechanism):
    """Noise N with a symmetric, log-concave density k.

    The loss z(n) = log k(n) - log k(n - D) against the noise shifted by D > 0 is therefore
    nonincreasing in n, and {z > epsilon} is a half-line.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        # Within this range the square of the scale is a finite double.
        checks.real("scale", self.scale, at_least=1e-150, at_most=1e150)

    @abstractmethod
    def log_tail(self, n: np.ndarray) -> np.ndarray:
        """log P(N > n) for n >= 0; infinite n allowed."""

    @abstractmethod
    def tail_rounding(self, n: np.ndarray) -> np.ndarray:
        """Bound on the relative error of the tail at n >= 0, with that of rounding n itself."""

    @abstractmethod
    def log_half(self, n: np.ndarray) -> np.ndarray:
        """log P(0 < N <= n) for n >= 0, accurate to 16 roundings."""

    @abstractmethod
    def threshold(self, epsilon: np.ndarray, sensitivity: float) -> np.ndarray:
        """The end n* of {z > epsilon}: z(n) > epsilon iff n < n*; infinite epsilon allowed."""

    @abstractmethod
    def quantile(self, probability: np.ndarray) -> np.ndarray:
        """n with P(N <= n) = `probability` in (0, 1), accurate near 0."""

    @abstractmethod
    def tail_moments(self, n: float) -> tuple[float, float]:
        """E[N; N > n] and E[N^2; N > n] for n >= 0."""

    def log_mass(self, low: ArrayLike, high: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
        """log P(low < N <= high), and a bound on the relative error of the mass.

        The ends may be infinite. An interval on one side of 0 is the difference of two tails; one
        around 0 is the sum of its halves, which does not cancel.
        """
        masses = self._masses(low, high)
        inner, outer, log_mass = masses.inner, masses.outer, masses.log_mass
        # The absolute errors of both tails are charged relative to the mass; where it underflows,
        # relative to 1.
        base = np.where(np.isfinite(log_mass), log_mass, 0.0)
        inner_to_mass = np.exp(np.minimum(masses.log_inner - base, 700.0))
        outer_to_mass = np.exp(np.minimum(masses.log_outer - base, 700.0))
        error = inner_to_mass * self.tail_rounding(inner)
        error = error + outer_to_mass * self.tail_rounding(outer)
        error = np.where(masses.around_zero, 16 * EPS, error)
        # The rounding of the logarithm itself is a relative error of the mass.
        error = error + 4 * EPS * (1 + np.abs(log_mass))
        return log_mass, np.where(np.isfinite(log_mass), error, 0.0)

    def _masses(self, low: ArrayLike, high: ArrayLike) -> _Masses:
        starts, ends = np.asarray(low, dtype=float), np.asarray(high, dtype=float)
        # By symmetry an interval left of 0 has the mass of its mirror image. `inner` is how far
        # its nearer end is from 0, where the tail is larger, and `outer` how far the other end is.
        right = starts >= 0
        inner, outer = np.where(right, starts, np.abs(ends)), np.where(right, ends, -starts)
        around_zero = ~right & (ends > 0)
        log_inner, log_outer = self.log_tail(inner), self.log_tail(outer)
        with np.errstate(divide="ignore", invalid="ignore"):
            # A mass that cancels completely is set to the largest one that rounding can hide. The
            # error charged for it then exceeds it, so that the bounds still enclose the truth.
            share = np.maximum(-np.expm1(np.minimum(log_outer - log_inner, 0.0)), EPS)
            log_mass = np.where(log_inner == -np.inf, -np.inf, log_inner + np.log(share))
        if around_zero.any():
            both_halves = np.logaddexp(self.log_half(inner), self.log_half(outer))
            log_mass = np.where(around_zero, both_halves, log_mass)
        return _Masses(inner, outer, log_inner, log_outer, around_zero, log_mass)

    def mass(self, low: float, high: float) -> float:
        """P(low < N <= high)."""
        if high <= low:
            return 0.0
        return float(np.exp(self._masses(low, high).log_mass))

    def delta(self, epsilon: ArrayLike, sensitivity: float) -> np.ndarray:
        """delta(epsilon) of the kernel without recycling, at any real or infinite epsilon."""
        order = np.asarray(epsilon, dtype=float)
        # The loss exceeds epsilon on a half-line, which has these masses under the two laws.
        end = self.threshold(order, sensitivity)
        first = np.exp(self._masses(-math.inf, end).log_mass)
        with np.errstate(invalid="ignore"):
            second = np.exp(order + self._masses(-math.inf, end - sensitivity).log_mass)
        at_infinity = np.where(order < 0, 1.0, 0.0)
        return np.where(np.isinf(order), at_infinity, np.maximum(first - second, 0.0))[()]


class GaussianKernel(Kernel, Gaussian):
    """N(0, scale^2): brdp, Sections 3 and 5."""

    def log_tail(self, n: np.ndarray) -> np.ndarray:
        return np.asarray(log_ndtr(-np.asarray(n) / self.scale))

    def tail_rounding(self, n: np.ndarray) -> np.ndarray:
        # An error dz of z is a relative error z dz of the tail. Beyond 1e3 standard deviations the
        # tail is 0 in double precision, and so is its error.
        z = np.minimum(np.asarray(n) / self.scale, 1e3)
        return EPS * (8 + 4 * z * z)

    def log_half(self, n: np.ndarray) -> np.ndarray:
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(0.5 * erf(np.asarray(n) / (self.scale * math.sqrt(2)))))

    def threshold(self, epsilon: np.ndarray, sensitivity: float) -> np.ndarray:
        """D / 2 - epsilon sigma^2 / D."""
        # sigma^2 / D as (sigma / D) sigma: the square could overflow where the quotient does not.
        offset = np.asarray(epsilon) * (self.scale / sensitivity) * self.scale
        return np.asarray(sensitivity / 2 - offset)

    def quantile(self, probability: np.ndarray) -> np.ndarray:
        return np.asarray(self.scale * ndtri(probability))

    def tail_moments(self, n: float) -> tuple[float, float]:
        with np.errstate(over="ignore"):
            density = math.exp(float(self.log_density(n))) if math.isfinite(n) else 0.0
        tail = math.exp(float(self.log_tail(np.asarray(n))))
        # sigma^2 k(n), and by parts sigma^2 P(N > n) + n sigma^2 k(n)
        first = self.scale**2 * density
        second = self.scale**2 * tail
        # An infinite n times a vanished density is 0, not NaN.
        return first, second + (n * first if first > 0 else 0.0)


class LaplaceKernel(Kernel, Laplace):
    """Laplace noise of scale b: brdp, Sections 3 and 5."""

    def log_tail(self, n: np.ndarray) -> np.ndarray:
        return np.asarray(-np.asarray(n) / self.scale - math.log(2))

    def tail_rounding(self, n: np.ndarray) -> np.ndarray:
        # The log-tail is linear: an absolute error of n / b is a relative error of the tail.
        return EPS * (4 + 4 * np.minimum(np.asarray(n) / self.scale, 1e6))

    def log_half(self, n: np.ndarray) -> np.ndarray:
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(-0.5 * np.expm1(-np.asarray(n) / self.scale)))

    def threshold(self, epsilon: np.ndarray, sensitivity: float) -> np.ndarray:
        """(D - b epsilon) / 2 for epsilon between -D / b and D / b, infinite beyond."""
        order = np.asarray(epsilon, dtype=float)
        largest_loss = sensitivity / self.scale
        clipped = np.clip(order, -largest_loss, largest_loss)
        inside = (sensitivity - self.scale * clipped) / 2
        # The loss is constant beyond both centres: at the largest loss the set {z > epsilon} is
        # empty, and below the smallest one it is the whole line.
        finite_or_all = np.where(order < -largest_loss, np.inf, inside)
        return np.where(order >= largest_loss, -np.inf, finite_or_all)

    def quantile(self, probability: np.ndarray) -> np.ndarray:
        p = np.asarray(probability)
        with np.errstate(divide="ignore"):
            size = self.scale * np.log(2 * np.minimum(p, 1 - p))
        return np.asarray(np.copysign(size, p - 0.5))

    def tail_moments(self, n: float) -> tuple[float, float]:
        b = self.scale
        tail = 0.5 * math.exp(-n / b)
        # An infinite n times a vanished tail is 0, not NaN.
        if tail == 0:
            return 0.0, 0.0
        first = (n + b) * tail
        second = (n * n + 2 * b * n + 2 * b * b) * tail
        return first, second


Family = type[GaussianKernel] | type[LaplaceKernel]
"""A kernel whose scale is still open."""

FAMILIES: dict[str, Family] = {"gaussian": GaussianKernel, "laplace": LaplaceKernel}
