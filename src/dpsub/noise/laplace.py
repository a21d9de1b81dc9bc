"""Laplace noise: density, release, privacy profile and calibration."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from dpsub import checks
from dpsub.errors import ArgumentError
from dpsub.noise.base import AdditiveNoiseProfile, Mechanism, nonnegative


@dataclass(frozen=True)
class LaplaceProfile(AdditiveNoiseProfile):
    """Profile of f(x) + Laplace noise with theta = Delta_1 / b (must, Theorem 1(a); balle, Theorem
    3).

        delta(epsilon) = max(0, 1 - exp((epsilon - theta) / 2), 1 - exp(epsilon)).

    The last term is absent from the printed formula for epsilon >= 0. It is the larger one for
    epsilon < -theta, where the optimal rejection region is the whole line; from -theta on the
    printed formula is exact.
    """

    name: ClassVar[str] = "laplace"

    def group_log_delta(self, epsilon: ArrayLike, occurrences: ArrayLike) -> np.ndarray:
        exponent = self._exponent(epsilon, occurrences)
        with np.errstate(divide="ignore"):
            # Each form loses digits where the other one keeps them: delta near 1, delta near 0.
            near_one = np.log1p(-np.exp(np.minimum(exponent, -0.5)))
            return np.where(exponent < -math.log(2), near_one, np.log(-np.expm1(exponent)))[()]

    def delta(self, epsilon: ArrayLike) -> np.ndarray:
        return -np.expm1(self._exponent(checks.finite_array("epsilon", epsilon), 1)) + 0.0

    def epsilon(self, delta: ArrayLike) -> np.ndarray:
        """Return max(theta + 2 log(1 - delta), log(1 - delta)), rounded up."""
        target = nonnegative("delta", delta)
        if target.size:
            checks.real("delta", target.max(), below=1)
        log_complement = np.log1p(-target)
        root = np.atleast_1d(np.maximum(log_complement, self.ratio + 2 * log_complement))
        # The closed form may be off by a rounding to the wrong side. Its condition is on
        # log(1 - delta).
        for _ in range(4):
            low = self._exponent(root, 1) < np.atleast_1d(log_complement)
            root = np.where(low, np.nextafter(root, np.inf), root)
        return root.reshape(target.shape)[()]

    def log_moment(self, order: float) -> float:
        """Return log E exp(s L) for s = `order` >= 0: the logarithm of the sum below, with a = s +
        1.

        a / (2a - 1) exp((a - 1) theta) + (a - 1) / (2a - 1) exp(-a theta)
        """
        s = checks.real("order", order, at_least=0)
        if s == 0:
            return 0.0
        width = 2 * s + 1
        terms = (
            math.log((s + 1) / width) + s * self.ratio,
            math.log(s / width) - (s + 1) * self.ratio,
        )
        return float(np.logaddexp(*terms))

    def _exponent(self, epsilon: ArrayLike, occurrences: ArrayLike) -> np.ndarray:
        """log(1 - delta), at most 0."""
        order = np.asarray(epsilon, dtype=float)
        # An infinite ratio has delta 1.
        with np.errstate(over="ignore"):
            half_line = (order - np.asarray(occurrences) * self.ratio) / 2
        return np.minimum(np.minimum(order, half_line), 0.0)


@dataclass(frozen=True)
class Laplace(Mechanism):
    """Laplace noise with density exp(-|z| / scale) / (2 scale) per coordinate (must, Theorem 1)."""

    name: ClassVar[str] = "laplace"

    def log_density(self, z: ArrayLike) -> np.ndarray:
        return (-np.abs(np.asarray(z, dtype=float)) / self.scale - math.log(2 * self.scale))[()]

    def cdf(self, z: ArrayLike) -> np.ndarray:
        standard = np.asarray(z, dtype=float) / self.scale
        tail = 0.5 * np.exp(-np.abs(standard))
        return np.where(standard < 0, tail, 1 - tail)[()]

    @property
    def variance(self) -> float:
        return 2 * self.scale**2

    def standard_noise(self, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
        return rng.laplace(size=shape)

    def profile(self, sensitivity: float) -> LaplaceProfile:
        return LaplaceProfile(sensitivity / self.scale)

    @classmethod
    def calibrated(cls, epsilon: float, delta: float, sensitivity: float) -> Self:
        """Return the noise of scale sensitivity / (epsilon - 2 log(1 - delta)), which is exact.

        Parameters
        ----------
        epsilon : nats, at least 0.
        delta : in [0, 1), and above 0 if epsilon is 0.
        sensitivity : L1 sensitivity of the query, above 0, in its units.
        """
        order = checks.real("epsilon", epsilon, at_least=0)
        target = checks.real("delta", delta, at_least=0, below=1)
        span = checks.real("sensitivity", sensitivity, above=0)
        enhanced = order - 2 * math.log1p(-target)
        if enhanced == 0:
            raise ArgumentError(
                "no finite noise is (0, 0)-private, got epsilon = 0 and delta = 0; "
                "raise one of them"
            )
        return cls(span / enhanced * (1 + 4 * np.finfo(float).eps))
