"""The best half-line against several points, and the charges of a point off the line.

Profiles of cells of the games are made of these; most of their work is done here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce

import numpy as np
from scipy.special import ndtr

from dpsub.accounting.engine import work
from dpsub.accounting.engine.cell_masses import tail_differences

_EPS = float(np.finfo(float).eps)
# relative, charged for positive and negative terms of a profile (tails to 40 deviations)
TERM_ERROR = 4e-12
# what rounding may do to the equation of a threshold, over the size of its terms
ROOT_ERROR = 1e-12
_NEWTON_STEPS = 40
# least f over d, and least h: larger ones are less private
_LEAST, _FLATTEST = 1e-3, 1e-5
# largest h for which charges are spread
STEEPEST = 8.0
# log of the largest charge: smaller ones are less private
MOST_CHARGED = 690.0

# u, and v, of all e^u + e^v = 1 but those next to the ends, by the rising u - v
_BALANCE = np.linspace(-20.0, 20.0, 321)
_FIRST_PART, _SECOND_PART = -np.logaddexp(0.0, -_BALANCE), -np.logaddexp(0.0, _BALANCE)
# places for one pair of distances from which on its table pays
_MANY = 128
_UNDERFLOW = 700.0

_Term = tuple[np.ndarray, np.ndarray]
"""ln w and d of a point."""


def best_half_line(
    *points: tuple[np.ndarray, float | np.ndarray], added: float = TERM_ERROR / 8
) -> np.ndarray:
    """Upper bounds of S = sup over t of Phi(t) - sum over points (ln w, d) of w Phi(t - d), with
    broadcasting; distances d >= 0 in units of the noise.

    The best t is where the sum of w exp(t d - d^2 / 2) is 1. Its logarithm is a convex, increasing
    function of t, so a Newton step, from wherever, ends right of the root; the remainder after the
    last step is bounded by its curvature and charged (docs/proofs/numerics.md, "S and Psi"). Steps
    end where the charge is at most the share `added` of Phi.
    """
    farthest = reduce(np.maximum, (distance for _, distance in points))
    terms = [
        (np.minimum(log_weight, MOST_CHARGED), np.maximum(distance, _LEAST * farthest))
        for log_weight, distance in points
    ]
    nearest = reduce(np.minimum, (d for _, d in terms))
    size = np.broadcast(*(array for term in terms for array in term)).size
    work.spend(work.TERM * 3 * (1 + len(terms)) * size)
    t = _first_threshold(terms)
    log_scaled = [(log_weight - d * d / 2, d) for log_weight, d in terms]
    for step in range(_NEWTON_STEPS):
        if step:
            work.spend(work.TERM * len(terms) * size)
        residual, slope = _log_sum(t, log_scaled)
        moved = residual / slope
        t = t - moved
        # the second derivative is a variance of distances
        by_curvature = (farthest - nearest) ** 2 / 8 * (moved * moved)
        far = 1 + np.abs(t)
        rounding = 4 * ROOT_ERROR * (1 + farthest * (far + farthest))
        hidden = by_curvature + rounding
        away = hidden / nearest
        # the share of Phi that may lie between t and the best one
        between = np.minimum(away * (far + away), 1.0)
        share = hidden * between
        if np.all((share <= added) | (by_curvature <= rounding)):
            break
    gain = ndtr(t)
    losses = reduce(np.add, (np.exp(log_weight) * ndtr(t - d) for log_weight, d in terms))
    if max(hidden.max(), between.max()) <= 0.5:
        # as phi <= (1 + |u|) Phi, Phi(t + away) is at most Phi(t) e^between
        value = gain * (1 + TERM_ERROR + 2.2 * share) - losses * (1 - TERM_ERROR)
    else:
        at_most = ndtr(t + away)
        charge = np.expm1(np.minimum(hidden, 1.0)) * between * at_most
        value = gain - losses + TERM_ERROR * (gain + losses) + charge
        value = np.where(hidden < 1, value, at_most)
    return np.minimum(np.maximum(value, 0.0), 1.0)


def _log_sum(t: np.ndarray, terms: Sequence[_Term]) -> tuple[np.ndarray, np.ndarray]:
    """ln of the sum of e^(l + t d) over terms (l, d), and its slope, a mean of the distances: one
    term after the other is taken in."""
    (first, slope), *others = terms
    total = first + t * slope
    for log_weight, d in others:
        exponent = log_weight + t * d
        # exponentials that underflow take long, and count for nothing
        smaller = np.exp(np.maximum(-np.abs(exponent - total), -_UNDERFLOW))
        total = np.maximum(total, exponent) + np.log1p(smaller)
        slope = slope + (d - slope) * np.exp(np.maximum(exponent - total, -_UNDERFLOW))
    return total, slope


def _first_threshold(terms: Sequence[_Term]) -> np.ndarray:
    """Where Newton steps begin: right of the root, or close to it where many places share the two
    distances, all of them or those at one place of the first axis."""
    # each term alone gives a place that is too far to the right
    alone = [d / 2 - log_weight / d for log_weight, d in terms]
    d, f = np.broadcast_arrays(terms[0][1], terms[-1][1])
    apart = np.asarray(alone[-1] - alone[0])
    by_row = d.ndim == apart.ndim and d.size == apart.shape[0]
    if len(terms) != 2 or apart.size < _MANY * d.size or not (d.size == 1 or by_row):
        return np.asarray(reduce(np.minimum, alone))
    # where the terms are e^u and e^v, the root is -u / d left of the first place, and -v / f left
    # of the second: both depend on nothing but how far apart these are
    for row, d_i, f_i in zip(apart.reshape(d.size, -1), d.ravel(), f.ravel(), strict=True):
        moved = _FIRST_PART / d_i
        row[:] = np.interp(row, moved - _SECOND_PART / f_i, moved)
    return np.minimum(alone[0] + apart, alone[1])


def three_points(
    log_order: np.ndarray, log_charge: np.ndarray, reach: float, apart: float
) -> np.ndarray:
    """Upper bounds of Psi(a, tau; f, d) (Lemma 12), a >= 1, tau >= 0; f and d in units of the
    noise."""
    return best_half_line((log_order, apart), (log_charge, reach))


# bins on either side, of those of one width
_BINS = 0.5
# deviations beyond which a tail is none
_FARTHEST = 40.0
# logarithm of a base's weight of 1, and its probability
_ALONE, _SURE = np.zeros(1), np.ones(1)


def spread_charges(
    height: float, reach: float, log_bases: np.ndarray = _ALONE, base_weights: np.ndarray = _SURE
) -> tuple[np.ndarray, np.ndarray]:
    """Logarithms of the points, and the weights, of a law under which no falling convex function
    has a smaller mean than under u W, up to the probability of N(0, 1) left of -`reach`: W =
    exp(h Z - h^2 / 2), and u independent of it, with the given points and weights.

    Bins of Z, for each u, are moved to their ends, with the mean of u W kept, and what is right of
    them to the last one; u = 0 is a point of its own (docs/proofs/numerics.md, "W").
    """
    h = max(height, _FLATTEST)
    width = min(max(0.08 / h, 0.1), 1.0)
    # ever wider bins, where there is ever less mass
    bins = math.ceil(_BINS * reach / width)
    half = 2 * np.sinh(np.linspace(0.0, math.asinh(reach / 2), bins + 1))
    z = np.concatenate([-half[:0:-1], half])
    z[[0, -1]] = -reach, reach
    log_points = h * z - h * h / 2
    is_zero = log_bases == -np.inf
    at_zero = float(base_weights[is_zero].sum())
    log_bases, base_weights = log_bases[~is_zero], base_weights[~is_zero]
    narrowed = 4 if log_bases.size > 1 else 1
    if narrowed > 1:
        log_points = _joined(log_points, log_bases, h * width / narrowed)
    else:
        log_points = log_points + log_bases
    # where Z is at each end, for each u
    work.spend(work.TERM * 8 * log_points.size * log_bases.size)
    z = (log_points - log_bases[:, None] + h * h / 2) / h
    # under N(v, 1), whose density for v = h is W times that for v = 0: bins right of the centre as
    # differences of the upper tail
    mass, mean = (tail_differences(ndtr(z - v), ndtr(v - z), z[:, 1:] <= v) for v in (0.0, h))
    growth = -np.expm1(-np.diff(log_points))
    right = np.exp(np.clip(log_points[1:] - log_bases[:, None], -MOST_CHARGED, MOST_CHARGED))
    up = np.clip((mean / right - mass * (1 - growth)) / growth, 0.0, mass)
    # tails are off by eps (8 + 4 z^2) of themselves; dividing by the growth enlarges that
    farthest = np.clip(np.maximum(np.abs(z[:, :-1]), np.abs(z[:, 1:])), reach, _FARTHEST)
    error = narrowed * (64 + 16 * farthest**2) * _EPS * mass / growth
    weights = np.zeros(z.shape)
    weights[:, :-1] = mass - up + error
    weights[:, 1:] += up + error
    weights[:, -1] += ndtr(-z[:, -1])
    weights = np.einsum("j,jk->k", base_weights, weights)
    if at_zero == 0:
        return log_points, weights
    return np.append(-np.inf, log_points), np.append(at_zero, weights)


def _joined(log_points: np.ndarray, log_bases: np.ndarray, apart: float) -> np.ndarray:
    """Ends of bins for u W, from those for W: from the least of both on, and at the points of u
    where those of W are closer, as far as they are this far apart."""
    least, largest = float(log_bases.min()), float(log_bases.max())
    outer = [log_points[0] + min(least, 0.0), log_points[-1] + max(largest, 0.0)]
    ends = np.unique(np.concatenate([log_points, log_bases, outer]))
    kept = np.diff(ends, prepend=-np.inf) >= apart
    kept[-1] = True
    return np.asarray(ends[kept])
