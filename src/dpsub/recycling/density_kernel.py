"""Any mechanism with a symmetric log-concave density as a kernel, by its own density and distribution function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpsub.errors import ArgumentError
from dpsub.mechanisms import Mechanism
from dpsub.recycling.kernels import EPS, Kernel

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
