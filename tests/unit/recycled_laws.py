"""Recycled laws that several tests share, and their divergences by another road: quadrature of the density."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from dpsub.noise import AdditiveNoiseProfile, Mechanism
from dpsub.recycling import GaussianKernel, LaplaceKernel, Recycled
from dpsub.recycling.kernels import Kernel

NODES, WEIGHTS = np.polynomial.legendre.leggauss(16)


def nodes(law: Recycled, shift: float, panels: int = 100) -> tuple[np.ndarray, np.ndarray]:
    """Gauss-Legendre nodes and weights between all places where the density, or its shift, is not smooth."""
    reach = 45 * law.kernel.scale + shift
    cuts = {law.lower, law.upper, law.lower + shift, law.upper + shift, 0.0, shift}
    edges = np.unique(np.concatenate([np.linspace(-reach, reach, panels), list(cuts)]))
    half, middle = np.diff(edges) / 2, (edges[1:] + edges[:-1]) / 2
    return (middle[:, None] + np.outer(half, NODES)).ravel(), np.outer(half, WEIGHTS).ravel()


def density(law: Recycled, n: np.ndarray) -> np.ndarray:
    """The released density, from its definition: normalised by quadrature and not by the package."""
    return raw(law, n) / total(law)


def raw(law: Recycled, n: np.ndarray) -> np.ndarray:
    """The density up to its constant."""
    factor = np.where((n >= law.lower) & (n <= law.upper), 1.0, 1 - law.rate)
    return np.asarray(factor * np.exp(law.kernel.log_density(n)))


@lru_cache(maxsize=256)
def total(law: Recycled) -> float:
    """The integral of `raw`."""
    points, weights = nodes(law, 0.0)
    return float(weights @ raw(law, points))


def divergence(law: Recycled, epsilon: float, shift: float) -> float:
    """Integral of (f(n) - e^epsilon f(n - shift))_+, cut where the integrand changes sign, found by bisection."""
    points, weights = nodes(law, shift)

    def gain(n: np.ndarray) -> np.ndarray:
        return density(law, n) - math.exp(epsilon) * density(law, n - shift)

    values = gain(points)
    found = float(weights @ np.maximum(values, 0.0))
    # panels with a change of sign: the positive part once more, cut there
    panel = values.reshape(-1, NODES.size)
    for row in np.flatnonzero((panel.min(axis=1) < 0) & (panel.max(axis=1) > 0)):
        inside, own = points.reshape(panel.shape)[row], weights.reshape(panel.shape)[row]
        half = float(own.sum()) / 2
        low, high = float(inside.mean()) - half, float(inside.mean()) + half
        found -= float(own @ np.maximum(panel[row], 0.0))
        left, right = low, high
        rising = panel[row][-1] > 0
        for _ in range(60):
            middle = (left + right) / 2
            left, right = (left, middle) if (float(gain(np.array([middle]))[0]) > 0) == rising else (middle, right)
        a, b = (right, high) if rising else (low, left)
        found += float((b - a) / 2 * WEIGHTS @ np.maximum(gain((a + b) / 2 + (b - a) / 2 * NODES), 0.0))
    return found


@dataclass(frozen=True)
class Logistic(Mechanism):
    """Another symmetric log-concave noise."""

    name: ClassVar[str] = "logistic"

    def log_density(self, z: ArrayLike) -> np.ndarray:
        size = -np.abs(np.asarray(z, dtype=float)) / self.scale
        return np.asarray(size - 2 * np.log1p(np.exp(size)) - math.log(self.scale))

    def cdf(self, z: ArrayLike) -> np.ndarray:
        x = np.asarray(z, dtype=float) / self.scale
        tail = np.exp(-np.abs(x)) / (1 + np.exp(-np.abs(x)))
        return np.where(x < 0, tail, 1 - tail)

    @property
    def variance(self) -> float:
        return self.scale**2 * math.pi**2 / 3

    def standard_noise(self, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
        return rng.logistic(size=shape)

    def profile(self, sensitivity: float) -> AdditiveNoiseProfile:
        raise NotImplementedError


@dataclass(frozen=True)
class Gumbel(Logistic):
    """Asymmetric noise."""

    name: ClassVar[str] = "gumbel"

    def log_density(self, z: ArrayLike) -> np.ndarray:
        x = np.asarray(z, dtype=float) / self.scale
        return np.asarray(-x - np.exp(-x) - math.log(self.scale))


@dataclass(frozen=True)
class Cauchy(Logistic):
    """Symmetric noise that is not log-concave."""

    name: ClassVar[str] = "cauchy"

    def log_density(self, z: ArrayLike) -> np.ndarray:
        x = np.asarray(z, dtype=float) / self.scale
        return np.asarray(-np.log1p(x * x) - math.log(math.pi * self.scale))


KERNELS: tuple[Kernel, ...] = (GaussianKernel(1.3), GaussianKernel(4.0), LaplaceKernel(0.9), LaplaceKernel(3.0))
BOUNDS = ((-0.3, 0.3), (-3.0, 3.0), (-0.5, 2.0))
