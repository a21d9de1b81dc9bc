"""Masses of neighbouring cells of outputs under P and Q, with bounds of their rounding errors.

Every law on a grid of losses starts here.  The mass of a cell is the difference of two tails, taken
on the side where they are small; what a tail is off by is charged to both cells that it ends.
Which of the errors is added and which taken off is the choice of the law that is built: see
`rounded_masses`, and docs/proofs/numerics.md.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from dpsub.accounting.engine import work

_EPS = float(np.finfo(float).eps)

LAW_ERROR = 4e-12
"""Relative error allowed for the weights of a mixture: `laws.log_binomial` promises 6e-13 up to a
million slots, the most that a chain takes, and the laws of up to six stages multiply."""

UNDERFLOW = float(np.finfo(float).tiny)
"""Charge for each mass that is computed: normal tails below it have lost their digits, or are 0."""

TINY = 1e-300
"""Charge where the logarithm or the reciprocal of a mass is taken that may have underflowed."""

# beyond 38 standard deviations a normal tail is below the smallest double
_FARTHEST = 40.0
# pairs of an edge and a component that are worked on together: their arrays stay in the cache
_CACHED = 2**14

MassBounds = tuple[np.ndarray, np.ndarray]
"""Masses of the same events, from below and from above."""


class CellMasses(NamedTuple):
    """Masses of neighbouring cells under P and Q, by increasing loss, and bounds of their
    floating-point errors."""

    p: np.ndarray
    q: np.ndarray
    p_error: np.ndarray
    q_error: np.ndarray

    def exchanged(self) -> CellMasses:
        """Masses of the same cells with P and Q in each other's place."""
        return CellMasses(self.q, self.p, self.q_error, self.p_error)

    def reversed(self) -> CellMasses:
        """Masses of the same cells in the opposite order."""
        return CellMasses(*(values[::-1] for values in self))


def rounded_masses(
    masses: np.ndarray, errors: np.ndarray, side: str, least: float = UNDERFLOW
) -> np.ndarray:
    """Masses of a mixture rounded to a side, "upper" or "lower".

    The charges are twice the error of the weights, which covers that of this product, the errors of
    the masses, and `least` for those that underflow (docs/proofs/numerics.md, "Underflow").
    """
    sign = 1 if side == "upper" else -1
    charge = errors + least
    return np.maximum(masses * (1 + sign * 2 * LAW_ERROR) + sign * charge, 0.0)


def normal_tail_errors(
    z: np.ndarray, tails: np.ndarray, weight: np.ndarray | float = 1.0
) -> np.ndarray:
    """Bounds of the errors of normal tails at z, times a weight; overwrites z.

    A tail is off by at most eps (8 + 4 z^2) of itself: its own error, and that of z.
    """
    z *= z
    z += 2
    z *= tails
    z *= 4 * _EPS * weight
    return z


def tail_differences(below: np.ndarray, above: np.ndarray, rising: np.ndarray) -> np.ndarray:
    """Masses of cells from the probabilities `below` and `above` each edge.

    Where `rising` the cell is a difference of probabilities below its edges, else of those above:
    the difference of the smaller tail keeps its digits.
    """
    return np.where(rising, np.diff(below), -np.diff(above))


def mixture_masses(
    edges: np.ndarray, centres: np.ndarray, weights: np.ndarray, deviation: float
) -> tuple[np.ndarray, np.ndarray]:
    """Masses of a mixture of normal laws between increasing edges, and bounds of their errors.

    Each component is differenced on the side of its centre where the tail is small.

    Parameters
    ----------
    edges : ndarray, shape (n + 1,)
        Increasing; infinite ones included.
    centres, weights : ndarray, shape (c,)
        Means of the components, and how likely each of them is.
    deviation : float
        Standard deviation of every component, in the unit of the centres.

    Returns
    -------
    masses, errors : ndarray, shape (n,)
    """
    masses, errors = np.zeros(edges.size - 1), np.zeros(edges.size)
    together = max(1, _CACHED // edges.size)
    for start in range(0, centres.size, together):
        work.spend(work.TERM * 2 * together * edges.size)
        centre = centres[start : start + together, None]
        weight = weights[start : start + together, None]
        z = (edges - centre) / deviation
        distance = np.minimum(np.abs(z, out=z), _FARTHEST, out=z)
        tail = ndtr(-distance)
        tail_error = normal_tail_errors(distance, tail, weight)
        # right of a centre the tail is the one above the edge, and falls from cell to cell
        right = np.searchsorted(edges, centre[:, 0], side="right")
        for row, place in enumerate(right):
            tail[row, place:] *= -1
        inside = tail[:, 1:] - tail[:, :-1]
        # the cell that holds the centre is what both tails leave of the mass 1
        holding = np.flatnonzero((right > 0) & (right < edges.size))
        inside[holding, right[holding] - 1] += 1.0
        inside *= weight
        # added row by row, as the order of a sum decides its last digits
        for row in range(right.size):
            errors += tail_error[row]
            masses += inside[row]
    # a cell is off by what both its edges are, and by what the sums above round
    return np.maximum(masses, 0.0), errors[1:] + errors[:-1] + 4 * _EPS * np.abs(masses)


def normal_masses(inner: np.ndarray, mean: float) -> tuple[np.ndarray, np.ndarray]:
    """Masses of N(mean, 1) left of, between and right of increasing edges, and bounds of their
    errors; shape (n + 1,) for n edges.

    Cells about the mean are differences of two larger tails, unlike in `mixture_masses`. So errors
    are those of a tail at the farther end of the cell, at the distance |edge| + |mean|, which is
    beyond both.
    """
    edges = np.concatenate([[-np.inf], inner - mean, [np.inf]])
    # of each edge the smaller tail, which both cells at it have in common
    tail = ndtr(-np.abs(edges))
    # right of the mean a cell is a difference of upper tails
    flipped = edges[:-1] > 0
    larger = np.where(flipped, tail[:-1], tail[1:])
    smaller = np.where(flipped, tail[1:], tail[:-1])
    # the cell that holds the mean ends right of it, where the lower tail is the larger one
    holding = int(np.argmax(edges > 0)) - 1
    larger[holding] = ndtr(edges[holding + 1])
    # of the outermost cells the finite end counts: the tail at the other one is 0, exactly
    ends = np.abs(np.append(inner, inner[-1])), np.abs(np.append(inner[0], inner))
    farthest = np.maximum(*ends) + abs(mean)
    return larger - smaller, normal_tail_errors(farthest, larger + smaller)


def laplace_masses(edges: np.ndarray, centre: float) -> np.ndarray:
    """Masses of Laplace noise of scale 1 about a centre between increasing edges.

    They are sums of positive terms, so that small ones keep their digits.
    """
    left, right = edges[:-1] - centre, edges[1:] - centre

    def one_side(near: np.ndarray, far: np.ndarray) -> np.ndarray:
        """Mass between distances near <= far from the centre, on one side."""
        # a width of 1 stands in where the cell lies on the other side, and has no mass here
        width = np.where(near < far, far, near + 1) - near
        return np.where(near < far, 0.5 * np.exp(-near) * -np.expm1(-width), 0.0)

    with np.errstate(invalid="ignore"):
        above = one_side(np.maximum(left, 0.0), np.maximum(right, 0.0))
        below = one_side(np.maximum(-right, 0.0), np.maximum(-left, 0.0))
    return above + below


def laplace_densities(edges: np.ndarray, rate: float, centre: float) -> np.ndarray:
    """Bounds of the density of rate Lap(centre) on the cells between increasing edges, and a little
    beyond them: what an edge that is off by some eps can move from one cell to the next."""
    beyond = np.maximum(edges[:-1] - centre, centre - edges[1:])
    nearest = np.maximum(beyond, 0.0)
    return np.asarray(0.5 * rate * np.exp(-nearest) * (1 + 1e-9))
