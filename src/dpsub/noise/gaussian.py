"""Gaussian noise: density, release, privacy profile without cancellation, and calibration."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from numpy.polynomial.legendre import leggauss
from numpy.typing import ArrayLike
from scipy.special import erfcx, erfinv, ndtr, ndtri

from dpsub import checks
from dpsub.noise.base import AdditiveNoiseProfile, Mechanism, mirrored, round_up

_NODES, _WEIGHTS = leggauss(16)
# of the same quadrature on [0, 1]
_PLACES, _HALF_WEIGHTS = 0.5 * (1 + _NODES), 0.5 * _WEIGHTS
_HALF_LOG_TWO_PI = 0.5 * math.log(2 * math.pi)
CLASSICAL_BELOW = 1.0
"""The classical formula is proved for epsilon strictly below this (must, footnote 4)."""
_FARTHEST = 1e150  # t² overflows beyond it; log delta is then below -5e299


@dataclass(frozen=True)
class GaussianProfile(AdditiveNoiseProfile):
    """Profile of f(x) + N(0, sigma² I) with theta = Delta_2 / sigma (must, Theorem 1(b); balle,
    Theorem 4).

        delta(epsilon) = Phi(theta/2 - epsilon/theta) - exp(epsilon) Phi(-theta/2 - epsilon/theta).

    With t = epsilon/theta - theta/2, Mills ratio R(t) = (1 - Phi(t)) / phi(t) and epsilon >= 0 this
    is phi(t) (R(t) - R(t + theta)), which keeps its relative accuracy where both terms of the
    printed form underflow. Where the two ratios are close, their difference is the integral of
    -R'(u) = 1 - u R(u) over [t, t + theta].
    """

    name: ClassVar[str] = "gaussian"

    def group_log_delta(self, epsilon: ArrayLike, occurrences: ArrayLike) -> np.ndarray:
        # At the largest double delta is 1, as it would be at an infinite ratio.
        with np.errstate(over="ignore"):
            group_ratio = np.asarray(occurrences, dtype=float) * self.ratio
        ratio = np.minimum(group_ratio, np.finfo(float).max)
        order, ratio = np.broadcast_arrays(np.asarray(epsilon, dtype=float), ratio)
        log_delta = _log_delta(np.abs(order).ravel(), ratio.ravel())
        return mirrored(order, log_delta.reshape(order.shape))

    def log_moment(self, order: float) -> float:
        """Return s (s + 1) theta^2 / 2, as the loss is N(theta^2 / 2, theta^2)."""
        s = checks.real("order", order, at_least=0)
        return s * (s + 1) * self.ratio**2 / 2

    def _root(self, delta: float) -> float:
        """Safeguarded root finding on log delta(epsilon) = log `delta`; infinite at 0."""
        # Imported here: it takes as long as all other imports, and most callers need no root.
        from scipy.optimize import brentq

        if delta == 0:
            return math.inf
        goal = math.log(delta)

        def excess(order: float) -> float:
            return float(self.group_log_delta(order, 1)) - goal

        # 1 - exp(epsilon) <= delta(epsilon) <= Phi(theta/2 - epsilon/theta), so these two enclose
        # the root.
        low = math.log1p(-delta)
        high = self.ratio * (self.ratio / 2 - float(ndtri(delta)))
        step = 1e-15 * (abs(low) + abs(high))
        # Rounding may put either end on the wrong side.
        while excess(low) < 0:
            low, step = low - step, 2 * step
        while excess(high) > 0:
            high, step = high + step, 2 * step
        tolerance = 1e-16 * min(1.0, self.ratio)
        root = float(brentq(excess, low, high, xtol=tolerance, rtol=1e-15, maxiter=500))
        return round_up(root, lambda order: excess(order) <= 0)


def _log_delta(order: np.ndarray, ratio: np.ndarray) -> np.ndarray:
    """log delta for flat arrays of orders >= 0 and ratios."""
    result = np.full(order.shape, -np.inf)
    with np.errstate(over="ignore", divide="ignore"):
        start = order / ratio - ratio / 2
        close = (ratio <= np.maximum(1.0, start)) & (start < _FARTHEST)
        distant = ~close & (start >= 0) & (start < _FARTHEST)
        left = ~close & (start < 0)
        if close.any():
            # The two Mills ratios nearly cancel: their difference is integrated.
            result[close] = _log_phi(start[close]) + _log_mills_drop(start[close], ratio[close])
        if distant.any():
            t = start[distant]
            result[distant] = _log_phi(t) + np.log(_mills(t) - _mills(t + ratio[distant]))
        if left.any():
            t = start[left]
            # 1 - delta is the sum of both error probabilities of the half-line test.
            second_error = np.exp(_log_phi(t)) * _mills(t + ratio[left])
            result[left] = np.log1p(-(ndtr(t) + second_error))
    return result


def _log_phi(t: np.ndarray) -> np.ndarray:
    return -0.5 * t * t - _HALF_LOG_TWO_PI


def _mills(t: np.ndarray) -> np.ndarray:
    """Mills ratio (1 - Phi(t)) / phi(t)."""
    return math.sqrt(math.pi / 2) * erfcx(t / math.sqrt(2))


def _log_mills_drop(start: np.ndarray, width: np.ndarray) -> np.ndarray:
    """log(R(t) - R(t + width)) by Gauss-Legendre quadrature of -R', for width <= max(1, t)."""
    # -R' is entire and has no feature narrower than such an interval: 16 nodes reach rounding.
    if start.size <= 1000:
        # For few orders all nodes are evaluated in one call: the overhead of small calls is most
        # of the time of a calibration. `accumulate` adds in the order of the loop below.
        slopes = _mills_slope(start + _PLACES[:, None] * width)
        total = np.add.accumulate(_HALF_WEIGHTS[:, None] * slopes)[-1]
    else:
        total = np.zeros_like(start)
        for weight, place in zip(_HALF_WEIGHTS, _PLACES, strict=True):
            total += weight * _mills_slope(start + place * width)
    return np.log(width) + np.log(total)


def _mills_slope(u: np.ndarray) -> np.ndarray:
    """-R'(u) = 1 - u R(u)."""
    # From 9 on the difference cancels more than the asymptotic series u^-2 - 3 u^-4 + 15 u^-6 - ...
    # is off; both errors are 1e-14 there.
    far = u > 9.0
    if not far.any():
        return 1 - u * _mills(u)
    slope, near = np.empty_like(u), u[~far]
    slope[~far] = 1 - near * _mills(near)
    square = 1 / u[far] ** 2
    series = np.ones_like(square)
    for k in range(24, 0, -1):
        series = 1 - (2 * k + 1) * square * series
    slope[far] = square * series
    return slope


@dataclass(frozen=True)
class Gaussian(Mechanism):
    """Noise N(0, scale²) per coordinate, scale > 0.

    References: must, Theorem 1; balle, Section 3 on output perturbation.
    """

    name: ClassVar[str] = "gaussian"

    def log_density(self, z: ArrayLike) -> np.ndarray:
        standard = np.asarray(z, dtype=float) / self.scale
        return (-0.5 * standard * standard - math.log(self.scale) - 0.5 * math.log(2 * math.pi))[()]

    def cdf(self, z: ArrayLike) -> np.ndarray:
        return ndtr(np.asarray(z, dtype=float) / self.scale)

    @property
    def variance(self) -> float:
        return self.scale**2

    def standard_noise(self, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
        return rng.standard_normal(shape)

    def profile(self, sensitivity: float) -> GaussianProfile:
        return GaussianProfile(sensitivity / self.scale)

    @classmethod
    def calibrated(cls, epsilon: float, delta: float, sensitivity: float) -> Self:
        """Return the smallest noise with delta(epsilon) <= `delta`, by the exact profile.

        Parameters
        ----------
        epsilon : nats, at least 0.
        delta : in (0, 1).
        sensitivity : L2 sensitivity of the query, above 0, in its units.

        Examples
        --------
        >>> exact, formula = Gaussian.calibrated(1.0, 1e-5, 2.0), Gaussian.classical(1.0, 1e-5, 2.0)
        >>> print(f"{exact.scale:.2f}, by the classical formula {formula.scale:.2f}")
        7.46, by the classical formula 9.69
        >>> bool(exact.profile(2.0).delta(1.0) <= 1e-5)
        True
        """
        order = checks.real("epsilon", epsilon, at_least=0)
        target = checks.real("delta", delta, above=0, below=1)
        span = checks.real("sensitivity", sensitivity, above=0)
        goal = math.log(target)

        def excess(ratio: float) -> float:
            return float(GaussianProfile(ratio).log_delta(order)) - goal

        # delta_theta(epsilon) is at most delta_theta(0) and at most Phi(theta/2 - epsilon/theta);
        # each equals `delta` at a ratio that is therefore no larger than the root.
        quantile = float(ndtri(target))
        length = math.hypot(quantile, math.sqrt(2 * order))
        by_half_line = quantile + length if quantile >= 0 else 2 * order / (length - quantile)
        low = max(2 * math.sqrt(2) * float(erfinv(target)), by_half_line)
        # Rounding may put it above the root.
        while excess(low) > 0:
            low *= 1 - 1e-12
        high = 2 * low
        while excess(high) < 0:
            high *= 2
        from scipy.optimize import brentq

        ratio = float(brentq(excess, low, high, xtol=1e-300, rtol=1e-15, maxiter=500))
        return cls(round_up(span / ratio, lambda scale: excess(span / scale) <= 0))

    @classmethod
    def classical(cls, epsilon: float, delta: float, sensitivity: float) -> Self:
        """Return the noise sigma = sensitivity sqrt(2 log(1.25 / delta)) / epsilon.

        The proof of this classical formula needs epsilon < 1 (`CLASSICAL_BELOW`). It is evaluated
        for every epsilon > 0, as in the paper (must, Equation 9), but from 1 on it is no guarantee;
        the exact delta is that of `profile(sensitivity)`.
        """
        order = checks.real("epsilon", epsilon, above=0)
        target = checks.real("delta", delta, above=0, below=1)
        span = checks.real("sensitivity", sensitivity, above=0)
        return cls(span * math.sqrt(2 * math.log(1.25 / target)) / order)
