"""A loss law on a grid that a pair of distributions dominates: the lower end of compositions.

Let H be the pair's divergence, convex in the order a, with values H_i and subgradients -S_i at the orders a_i of a
grid.  Between two orders H lies above its tangents at both of them, so that the chord exceeds H by at most

    g = A B / (A + B),    A = S_i w - (H_i - H_{i+1}),    B = (H_i - H_{i+1}) - S_{i+1} w,    w = a_{i+1} - a_i.

Values lowered by the larger g of the two cells around each order are therefore interpolated below H, and so is their
lower convex hull F.  The masses that F stands for, a_i drop(a_i) at loss log a_i, give a smaller divergence at every
order; as composition only averages divergences over losses, k of them stay below k of the pair.  The cost is of second
order in the step, like that of the upper law, if no atom of the loss lies between two orders.

At losses below 0 the same is done with the pair swapped.  With M and M' the totals of the masses under both laws,
orders below 1 need M <= 1 and M <= M': both sides get one value at order 1, and the right one is shrunk by what was
rounded.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dpsub.accountants.loss_law import LossLaw
from dpsub.accountants.profile_losses import hull_slopes
from dpsub.recycling.divergence import Stick

_EPS = float(np.finfo(float).eps)

Divergence = Callable[[np.ndarray], Stick]
"""log orders >= 0 -> the divergence there."""


def lower_law(forward: Divergence, backward: Divergence, step: float, indices: np.ndarray, infinity: float) -> LossLaw:
    """The law below the loss of P against Q under P.

    Parameters
    ----------
    forward, backward : callable
        H_a(P || Q) and H_a(Q || P).
    step : float
    indices : ndarray of int, shape (n,)
        Increasing from 0: orders are e^{step index}.
    infinity : float
        Mass of infinite loss under P, rounded down; the pair swapped has as much or more.
    """
    x = indices * step
    first = _lowered(forward(x), x, infinity)
    second = first if backward is forward else _lowered(backward(x), x, infinity)
    at_one = min(first[0], second[0])
    first[0] = second[0] = at_one
    if at_one <= 0:
        nothing = np.array([(1 - infinity) * (1 - 8 * _EPS)])
        return LossLaw(step, np.zeros(1, dtype=int), nothing, "lower", infinity=infinity)
    right = np.exp(x[1:]) * _drops(hull_slopes(first, x))
    left = _drops(hull_slopes(second, x))
    # what rounding can make of the second total, against the value at order 1
    right *= max(0.0, 1 - 16 * _EPS * x.size * (1 + 1 / at_one))
    room = 1 - infinity - float(left.sum())
    total = float(right.sum())
    if total > room:
        right *= max(0.0, room) / total
        total = max(0.0, room)
    centre = max(0.0, room - total - 8 * _EPS * x.size)
    return LossLaw(
        step,
        np.concatenate([-indices[:0:-1], indices]),
        np.concatenate([left[::-1], [centre], right]),
        "lower",
        infinity=infinity,
    )


def _lowered(found: Stick, x: np.ndarray, infinity: float) -> np.ndarray:
    """Values without the infinite mass whose interpolation lies below the divergence; 0 from some order on."""
    values = found.end(-1)
    widths = np.exp(x[:-1]) * np.expm1(np.diff(x))
    falls = values[:-1] - values[1:]
    steep = widths * (found.steepness(1) / np.exp(x))[:-1]
    flat = widths * (found.steepness(-1) / np.exp(x))[1:]
    slack = 8 * _EPS * (values[:-1] + steep)
    before, behind = steep - falls + slack, falls - flat + slack
    with np.errstate(divide="ignore", invalid="ignore"):
        gaps = np.where((before > 0) & (behind > 0), before * behind / (before + behind), 0.0) * (1 + 8 * _EPS)
    gaps = np.where(np.isnan(gaps), 0.0, gaps)
    around = np.maximum(np.append(gaps, 0.0), np.append(0.0, gaps))
    lowered = values - infinity - around
    # the divergence is lowered to 0 one order before it would be
    vanished = np.flatnonzero(lowered <= 0)
    end = int(vanished[0]) - 1 if vanished.size else x.size - 1
    lowered[max(end, 0) :] = 0.0
    return np.asarray(lowered)


def _drops(slopes: np.ndarray) -> np.ndarray:
    """What the slope loses at each order but the first, rounded down."""
    return np.maximum(slopes - np.append(slopes[1:], 0.0) - 4 * _EPS * slopes, 0.0)
