"""One direction of a pair of Gaussian mixtures: where losses lie, and what cells weigh, with floating-point errors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import ndtr

from dpsub.accountants.gaussian_pair import GaussianPair

_EPS = float(np.finfo(float).eps)

_ROUNDS, _POINTS = 2, 129
"""Of the search for a quantile: each round divides by 128 what is left."""


@dataclass(frozen=True)
class CellMasses:
    """Masses of neighbouring cells, in the order of increasing loss, with bounds of their floating-point errors.

    Attributes
    ----------
    p, q : ndarray, shape (n,)
        Under the first and the second distribution of the direction.
    p_error, q_error : ndarray, shape (n,)
    """

    p: np.ndarray
    q: np.ndarray
    p_error: np.ndarray
    q_error: np.ndarray


@dataclass(frozen=True)
class DirectedPair:
    """The loss log dP/dQ under P: P is X and Q is X' of the pair, or, `swapped`, the other way round.

    Attributes
    ----------
    pair : GaussianPair
    swapped : bool
    """

    pair: GaussianPair
    swapped: bool = False

    def place(self, losses: np.ndarray) -> np.ndarray:
        """The t with the given losses; monotone in them, decreasing if swapped, infinite beyond the range of the
        loss."""
        if not self.swapped:
            return self.pair.inverse_loss(losses)
        return self.pair.inverse_loss(-losses[::-1])[::-1]

    def masses(self, t: np.ndarray) -> CellMasses:
        """Masses of the cells between neighbouring places."""
        edges = t[::-1] if self.swapped else t
        counts, log_weights = self.pair.components
        weights = np.exp(log_weights)
        first = _mixture_masses(edges, counts, weights, self.pair.scale)
        if self.pair.mirrored:
            second = _mixture_masses(edges, -counts, weights, self.pair.scale)
        else:
            second = _mixture_masses(edges, np.zeros(1), np.ones(1), self.pair.scale)
        if self.swapped:
            return CellMasses(second[0][::-1], first[0][::-1], second[1][::-1], first[1][::-1])
        return CellMasses(first[0], second[0], first[1], second[1])

    def mass_below(self, t: float) -> float:
        """Mass, under P, of losses below the one at t."""
        at = np.array([t])
        return float((self.pair.sf_prime(at) if self.swapped else self.pair.cdf(at))[0])

    def mass_above(self, t: float) -> float:
        """Mass, under P, of losses above the one at t."""
        at = np.array([t])
        return float((self.pair.cdf_prime(at) if self.swapped else self.pair.sf(at))[0])

    def range(self, tail: float) -> tuple[float, float]:
        """Losses between which all but about `tail` lies on each side, under both distributions."""
        low, high = _quantiles(self.pair, tail)
        ends = self.pair.loss(np.array([low, high]))
        below, above = max(float(ends[0]), self.pair.loss_floor), float(ends[1])
        return (-above, -below) if self.swapped else (below, above)


@lru_cache(maxsize=32)
def _quantiles(pair: GaussianPair, tail: float) -> tuple[float, float]:
    """Points with mass at most `tail` to their left, and right, under both distributions."""

    # beyond 40 deviations from all centres every tail is below the smallest double
    reach = float(np.abs(pair.components[0]).max()) + 40 * pair.scale

    def left(u: np.ndarray) -> np.ndarray:
        return np.maximum(pair.cdf(-u), pair.cdf_prime(-u)) <= tail

    def right(u: np.ndarray) -> np.ndarray:
        return np.maximum(pair.sf(u), pair.sf_prime(u)) <= tail

    return -_first(left, -pair.scale, reach), _first(right, -pair.scale, reach)


def _first(holds: Callable[[np.ndarray], np.ndarray], low: float, high: float) -> float:
    """A point a little beyond the smallest one above `low` where a monotone condition holds, which `high` meets."""
    for _ in range(_ROUNDS):
        points = np.linspace(low, high, _POINTS)
        place = 1 + int(np.argmax(np.append(holds(points[1:-1]), True)))
        low, high = float(points[place - 1]), float(points[place])
    return high


def _mixture_masses(
    edges: np.ndarray, centres: np.ndarray, weights: np.ndarray, scale: float
) -> tuple[np.ndarray, np.ndarray]:
    """Masses of a mixture between increasing edges, and their errors.

    Each component is differenced on the side of its centre where the tail is small.  The normal tail is off by at most
    eps (8 + 4 z^2) of itself: its own error, and that of z, which enters as z dz.
    """
    masses, errors = np.zeros(edges.size - 1), np.zeros(edges.size - 1)
    for centre, weight in zip(centres, weights, strict=True):
        z = (edges - centre) / scale
        # beyond 38 standard deviations the tail is below the smallest double
        size = np.minimum(np.abs(z), 40.0)
        tail = ndtr(-size)
        here = np.diff(np.where(z <= 0, tail, -tail))
        middle = int(np.searchsorted(z, 0.0, side="right")) - 1
        if 0 <= middle < here.size:
            here[middle] += 1.0
        relative = tail * (8 + 4 * size * size)
        masses += weight * here
        errors += (weight * _EPS) * (relative[1:] + relative[:-1])
    return np.maximum(masses, 0.0), errors + 4 * _EPS * np.abs(masses)
