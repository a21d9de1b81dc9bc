"""Recycled laws that several tests share, and their divergences computed in another way, by
quadrature of the density."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from dpsub.recycling import GaussianKernel, LaplaceKernel, Recycled
from dpsub.recycling.kernels import Kernel

NODES, WEIGHTS = np.polynomial.legendre.leggauss(16)


def nodes(law: Recycled, shift: float, panels: int = 100) -> tuple[np.ndarray, np.ndarray]:
    """Return Gauss-Legendre nodes and weights between all places where the density, or its shift,
    is not smooth."""
    reach = 45 * law.kernel.scale + shift
    cuts = {law.lower, law.upper, law.lower + shift, law.upper + shift, 0.0, shift}
    edges = np.unique(np.concatenate([np.linspace(-reach, reach, panels), list(cuts)]))
    half, middle = np.diff(edges) / 2, (edges[1:] + edges[:-1]) / 2
    return (middle[:, None] + np.outer(half, NODES)).ravel(), np.outer(half, WEIGHTS).ravel()


def density(law: Recycled, n: np.ndarray) -> np.ndarray:
    """Return the released density, from its definition: normalised by quadrature and not by the
    package."""
    return raw(law, n) / total(law)


def raw(law: Recycled, n: np.ndarray) -> np.ndarray:
    """Return the density up to its constant."""
    factor = np.where((n >= law.lower) & (n <= law.upper), 1.0, 1 - law.rate)
    return np.asarray(factor * np.exp(law.kernel.log_density(n)))


@lru_cache(maxsize=256)
def total(law: Recycled) -> float:
    """Return the integral of `raw`."""
    points, weights = nodes(law, 0.0)
    return float(weights @ raw(law, points))


def divergence(law: Recycled, epsilon: float, shift: float) -> float:
    """Return the integral of (f(n) - e^epsilon f(n - shift))_+, cut where the integrand changes
    sign, found by bisection."""
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
            left, right = (
                (left, middle)
                if (float(gain(np.array([middle]))[0]) > 0) == rising
                else (middle, right)
            )
        a, b = (right, high) if rising else (low, left)
        found += float(
            (b - a) / 2 * WEIGHTS @ np.maximum(gain((a + b) / 2 + (b - a) / 2 * NODES), 0.0)
        )
    return found


def laplace_split(epsilon: float, bound: float, sensitivity: float) -> float:
    """Return epsilon of the best Laplace kernel under pure privacy: min(epsilon, -log(1 - r) / r),
    r = bound / sensitivity.

    With r >= 1, and for every epsilon <= 1, it is epsilon: the recycler gains nothing
    (docs/recycling.md, section 5).
    """
    ratio = bound / sensitivity
    return min(epsilon, -math.log1p(-ratio) / ratio) if ratio < 1 else epsilon


def laplace_optimum(epsilon: float, bound: float, sensitivity: float) -> Recycled:
    """Return the best recycled Laplace noise with delta = 0."""
    split = laplace_split(epsilon, bound, sensitivity)
    kernel = LaplaceKernel.calibrated(split, 0.0, sensitivity)
    return Recycled.within(kernel, -math.expm1(split - epsilon), bound, sensitivity)


KERNELS: tuple[Kernel, ...] = (
    GaussianKernel(1.3),
    GaussianKernel(4.0),
    LaplaceKernel(0.9),
    LaplaceKernel(3.0),
)
BOUNDS = ((-0.3, 0.3), (-3.0, 3.0), (-0.5, 2.0))
