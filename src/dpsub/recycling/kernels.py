"""Kernels of budget recycling: Gaussian and Laplace noise with masses that keep their digits in
both tails."""

from __future__ import annotations

import math
from abc import abstractmethod

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import erf, log_ndtr, ndtri

from dpsub import checks
from dpsub.noise import Gaussian, Laplace, Mechanism

EPS = float(np.finfo(float).eps)


class Kernel(Mechanism):
    """Noise N of a `scale` > 0, its density k symmetric and log-concave: z(n) = log k(n) - log k(n
    - D) never rises."""

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.real("scale", self.scale, at_least=1e-150, at_most=1e150)  # its square is a double

    @abstractmethod
    def log_tail(self, n: np.ndarray) -> np.ndarray:
        """log P(N > n) for n >= 0; infinite n allowed."""

    @abstractmethod
    def tail_rounding(self, n: np.ndarray) -> np.ndarray:
        """Bound of the relative error of the tail at n >= 0, the rounding of n itself included."""

    @abstractmethod
    def log_half(self, n: np.ndarray) -> np.ndarray:
        """log P(0 < N <= n) for n >= 0, to 16 roundings."""

    @abstractmethod
    def threshold(self, epsilon: np.ndarray, sensitivity: float) -> np.ndarray:
        """n* with z(n) > epsilon iff n < n*; infinite epsilon allowed."""

    @abstractmethod
    def quantile(self, probability: np.ndarray) -> np.ndarray:
        """n with P(N <= n) = `probability` in (0, 1), accurate near 0."""

    @abstractmethod
    def tail_moments(self, n: float) -> tuple[float, float]:
        """E[N; N > n] and E[N^2; N > n] for n >= 0."""

    def log_mass(self, low: float, high: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
        """log P(low < N <= high), ends perhaps infinite, and a bound of the mass's relative error.
        Of two tails the smaller one is differenced; an interval around 0 is the sum of its
        halves."""
        ends = np.asarray(high, dtype=float)
        if low >= 0:
            inner, outer, around = np.asarray(low), ends, np.zeros(ends.shape, dtype=bool)
        else:
            inner, outer, around = np.abs(ends), np.asarray(-low), ends > 0
        log_inner, log_outer = self.log_tail(inner), self.log_tail(outer)
        with np.errstate(divide="ignore", invalid="ignore"):
            # where rounding leaves nothing of an interval, it is put at what rounding can hide,
            # with an error above it
            drop = np.maximum(-np.expm1(np.minimum(log_outer - log_inner, 0.0)), EPS)
            log = np.where(log_inner == -np.inf, -np.inf, log_inner + np.log(drop))
        base = np.where(np.isfinite(log), log, 0.0)  # relative to the tails where both underflow
        relative = np.exp(np.minimum(log_inner - base, 700.0)) * self.tail_rounding(inner)
        relative = relative + np.exp(np.minimum(log_outer - base, 700.0)) * self.tail_rounding(
            outer
        )
        if around.any():
            log = np.where(around, np.logaddexp(self.log_half(inner), self.log_half(outer)), log)
            relative = np.where(around, 16 * EPS, relative)
        return log, np.where(np.isfinite(log), relative + 4 * EPS * (1 + np.abs(log)), 0.0)

    def mass(self, low: float, high: float) -> float:
        """P(low < N <= high)."""
        return float(np.exp(self.log_mass(low, high)[0])) if high > low else 0.0

    def delta(self, epsilon: ArrayLike, sensitivity: float) -> np.ndarray:
        """The kernel's own delta(epsilon), at any real or infinite epsilon: the half-line where the
        loss exceeds it."""
        order = np.asarray(epsilon, dtype=float)
        end = self.threshold(order, sensitivity)
        first = np.exp(self.log_mass(-math.inf, end)[0])
        with np.errstate(invalid="ignore"):
            second = np.exp(order + self.log_mass(-math.inf, end - sensitivity)[0])
        return np.where(
            np.isinf(order), np.where(order < 0, 1.0, 0.0), np.maximum(first - second, 0.0)
        )[()]


class GaussianKernel(Kernel, Gaussian):
    """N(0, scale^2): brdp, Sections 3 and 5."""

    def log_tail(self, n: np.ndarray) -> np.ndarray:
        return np.asarray(log_ndtr(-np.asarray(n) / self.scale))

    def tail_rounding(self, n: np.ndarray) -> np.ndarray:
        # an error of z enters as z dz; beyond 1e3 deviations nothing is left to be off
        z = np.minimum(np.asarray(n) / self.scale, 1e3)
        return EPS * (8 + 4 * z * z)

    def log_half(self, n: np.ndarray) -> np.ndarray:
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(0.5 * erf(np.asarray(n) / (self.scale * math.sqrt(2)))))

    def threshold(self, epsilon: np.ndarray, sensitivity: float) -> np.ndarray:
        """D / 2 - epsilon sigma^2 / D."""
        return np.asarray(
            sensitivity / 2 - np.asarray(epsilon) * (self.scale / sensitivity) * self.scale
        )

    def quantile(self, probability: np.ndarray) -> np.ndarray:
        return np.asarray(self.scale * ndtri(probability))

    def tail_moments(self, n: float) -> tuple[float, float]:
        with np.errstate(over="ignore"):
            density = math.exp(float(self.log_density(n))) if math.isfinite(n) else 0.0
        first = self.scale**2 * density
        beyond = self.scale**2 * math.exp(float(self.log_tail(np.asarray(n))))
        return first, beyond + (n * first if first > 0 else 0.0)


class LaplaceKernel(Kernel, Laplace):
    """Laplace noise of scale b: brdp, Sections 3 and 5."""

    def log_tail(self, n: np.ndarray) -> np.ndarray:
        return np.asarray(-np.asarray(n) / self.scale - math.log(2))

    def tail_rounding(self, n: np.ndarray) -> np.ndarray:
        return EPS * (4 + 4 * np.minimum(np.asarray(n) / self.scale, 1e6))

    def log_half(self, n: np.ndarray) -> np.ndarray:
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(-0.5 * np.expm1(-np.asarray(n) / self.scale)))

    def threshold(self, epsilon: np.ndarray, sensitivity: float) -> np.ndarray:
        """(D - b epsilon) / 2 between -D / b and D / b, infinite beyond."""
        order, span = np.asarray(epsilon, dtype=float), sensitivity / self.scale
        inside = (sensitivity - self.scale * np.clip(order, -span, span)) / 2
        return np.where(order >= span, -np.inf, np.where(order < -span, np.inf, inside))

    def quantile(self, probability: np.ndarray) -> np.ndarray:
        p = np.asarray(probability)
        with np.errstate(divide="ignore"):
            return np.asarray(np.copysign(self.scale * np.log(2 * np.minimum(p, 1 - p)), p - 0.5))

    def tail_moments(self, n: float) -> tuple[float, float]:
        b, half = self.scale, 0.5 * math.exp(-n / self.scale)
        if half == 0:
            return 0.0, 0.0
        return (n + b) * half, (n * n + 2 * b * n + 2 * b * b) * half


Family = type[GaussianKernel] | type[LaplaceKernel]

FAMILIES: dict[str, Family] = {"gaussian": GaussianKernel, "laplace": LaplaceKernel}
