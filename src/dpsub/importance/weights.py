"""The largest weights that a target loss allows, for losses that are linear in the weight.

The smallest expected size sum 1/w_i such that psi(x_i) <= eps* for all records has, for each
record, the largest w >= 1 with (e^{a w} - 1) / w <= e^{eps*} - 1, a function of the record alone
(docs/importance.md, section 3). The weights of the released code need not be feasible.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from dpsub import checks
from dpsub.errors import ArgumentError
from dpsub.importance.losses import moderate

_SMALLEST = 1e-30
_BLOCK = 1 << 14


def optimal_weights(slopes: ArrayLike, target: float) -> np.ndarray:
    """Return the largest w >= 1 with log(1 + (e^{a w} - 1) / w) <= eps*, shape (n,).

    The weights are feasible after rounding, and within about 2e-13 of the optimum, relatively
    (within 1e-8 where a and eps* nearly agree).

    Parameters
    ----------
    slopes : array_like, shape (n,)
        a in nats per unit of weight, at least 1e-30 and at most the target.
    target : float
        eps* in nats, from 1e-30 to 1e30.

    References
    ----------
    importance, Problem 7 and Theorem 10.
    """
    goal = moderate("target epsilon", target)
    a = np.atleast_1d(checks.finite_array("slopes", slopes))
    if a.size and a.min() < _SMALLEST:
        raise ArgumentError(
            f"slopes must be above 0 (at least {_SMALLEST:g}), got {a.min():g}; a record without "
            "influence has no largest weight: cap it"
        )
    # A limit that the caller has computed may be off by its rounding.
    if a.size and a.max() > goal * (1 + 1e-12):
        raise ArgumentError(
            f"the target must be at least the largest unsampled loss = {a.max():g}, got {goal:g}; "
            "raise the noise"
        )
    weights = np.empty(a.shape)
    # Newton steps that would overflow are not taken.
    with np.errstate(over="ignore"):
        for start in range(0, len(a), _BLOCK):
            weights[start : start + _BLOCK] = _newton(a[start : start + _BLOCK], goal)
    return weights


def _newton(a: np.ndarray, goal: float) -> np.ndarray:
    """Root of the convex h(w) = a w - log(1 + E w) right of its minimum, which lies below 1/a.

    From max(1, eps*) / a, where h <= 0 or the slope is positive, Newton's method is right of the
    root after at most one step, and decreases monotonically to it from there.
    """
    # E = e^eps* - 1; beyond the range of doubles 1 + E w is E w.
    large = goal > 600
    e = math.inf if large else math.expm1(goal)
    w = max(1.0, goal) / a
    if goal <= 1:
        # The slope of h at 1/a is about a/E, which may be lost in rounding next to 1; from 2/a on
        # it is at least 1/2.
        w = np.where(a < 1e-15 * e, 2 * w, w)
    for _ in range(60):
        log_term = goal + np.log(w) if large else np.log1p(e * w)
        share = np.ones_like(w) if large else e * w / (1 + e * w)
        aw = a * w
        # w h'(w). Where rounding leaves nothing of it, the root is the minimum, and w stays.
        slope = np.maximum(aw - share, 1e-300)
        move = (aw - log_term) / slope
        new = w * (1 - np.maximum(move, -1e300))
        settled = np.abs(move) < 1e-14 + 4e-16 * (aw + log_term) / slope
        w = np.where(settled | ~np.isfinite(new), w, np.maximum(new, 1.0))
        if settled.all():
            break
    # Lowered by more than the rounding of the last step, which may pass the root where a and the
    # target nearly agree: the weight must be feasible.
    return np.maximum(w * (1 - 1e-13), 1.0)


def released_weights(slopes: ArrayLike, target: float) -> np.ndarray:
    """Return the weights of the released code, whose losses may exceed the target (IM18).

    The arguments are those of :func:`optimal_weights`. The code bisects eleven times below the
    first infeasible power of 2, and returns the middle of the last interval.
    """
    # A weight is feasible if and only if it is at most the optimal one.
    optimal = optimal_weights(slopes, target)
    high = 2 ** np.maximum(1.0, np.floor(np.log2(optimal)) + 1)
    low = high / 2
    for _ in range(11):
        middle = 0.5 * (low + high)
        feasible = middle <= optimal
        low, high = np.where(feasible, middle, low), np.where(feasible, high, middle)
    return np.asarray(0.5 * (low + high))
