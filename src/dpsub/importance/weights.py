"""The largest weights that a target loss allows, for losses that are linear in the weight.

Least sum 1/w_i with psi(x_i) <= eps* for all records: the largest w >= 1 with (e^{a w} - 1) / w <=
e^{eps*} - 1, a function of the record alone (docs/importance.md, section 3). Those of the released
code need not be feasible.
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
    """Return the largest w >= 1 with log(1 + (e^{a w} - 1) / w) <= eps*, shape (n,); importance,
    Problem 7, Theorem 10.

    Feasible after rounding, and within a share of about 2e-13 of the optimum (of 1e-8 where a and
    eps* nearly agree).

    Parameters
    ----------
    slopes : a in nats per unit of weight, at least 1e-30 and at most the target, shape (n,)
    target : eps* from 1e-30 to 1e30, nats
    """
    goal, a = (
        moderate("target epsilon", target),
        np.atleast_1d(checks.finite_array("slopes", slopes)),
    )
    if a.size and a.min() < _SMALLEST:
        raise ArgumentError(
            f"slopes must be above 0 (at least {_SMALLEST:g}), got {a.min():g}; a record without "
            "influence has no largest weight: cap it"
        )
    # rounding of a limit that the caller has computed is let pass
    if a.size and a.max() > goal * (1 + 1e-12):
        raise ArgumentError(
            f"the target must be at least the largest unsampled loss = {a.max():g}, got {goal:g}; "
            "raise the noise"
        )
    weights = np.empty(a.shape)
    with np.errstate(over="ignore"):  # of steps that are not taken
        for start in range(0, len(a), _BLOCK):
            weights[start : start + _BLOCK] = _newton(a[start : start + _BLOCK], goal)
    return weights


def _newton(a: np.ndarray, goal: float) -> np.ndarray:
    """Root of the convex h(w) = a w - log(1 + E w) right of its minimum, which lies below 1/a.
    Started at max(1, eps*) / a, where h <= 0 or the slope is positive, later iterates fall
    monotonically to it."""
    large = goal > 600
    scale = math.inf if large else math.expm1(goal)
    w = max(1.0, goal) / a
    if goal <= 1:
        # the slope of h at 1/a is about a/E, which next to 1 is lost; it is 1/2 or more from 2/a on
        w = np.where(a < 1e-15 * scale, 2 * w, w)
    for _ in range(60):
        # beyond the range of doubles 1 + E w is E w
        grown = goal + np.log(w) if large else np.log1p(scale * w)
        share = np.ones_like(w) if large else scale * w / (1 + scale * w)
        aw = a * w
        # a slope that rounding has taken away leaves the place as it is: the root is the minimum
        bend = np.maximum(aw - share, 1e-300)
        move = (aw - grown) / bend
        new = w * (1 - np.maximum(move, -1e300))
        settled = np.abs(move) < 1e-14 + 4e-16 * (aw + grown) / bend
        w = np.where(settled | ~np.isfinite(new), w, np.maximum(new, 1.0))
        if settled.all():
            break
    # lowered by more than the rounding of the last step, which may pass the root where a and the
    # target nearly agree
    return np.maximum(w * (1 - 1e-13), 1.0)


def released_weights(slopes: ArrayLike, target: float) -> np.ndarray:
    """Return the weights of the released code, which may exceed the target (R4); arguments as
    :func:`optimal_weights`.

    Eleven halvings from the first infeasible power of 2, then the middle; feasible is what is at
    most the optimum."""
    best = optimal_weights(slopes, target)
    high = 2 ** np.maximum(1.0, np.floor(np.log2(best)) + 1)
    low = high / 2
    for _ in range(11):
        middle = 0.5 * (low + high)
        low, high = np.where(middle <= best, middle, low), np.where(middle <= best, high, middle)
    return np.asarray(0.5 * (low + high))
