"""A loss law that dominates a privacy profile known only by upper bounds at chosen orders (connect the dots).

Let H(a) be the supremum of the hockey-stick divergences H_a(P || Q) over all neighbouring pairs that can occur.  Each
H_a is convex in a, so H is.  Given u_i >= H(a_i) at orders a_i, the lower convex hull of the points (0, 1), (a_i,
u_i) is
at least H: every point of the hull is an average of points above a convex function.  It is the profile of a pair on the
losses log a_i and +-infinity, which therefore dominates H at all orders, hence (by backward induction over convex
functions) its k-fold product dominates k adaptive compositions.

Under substitution H(a) = 1 - a + a H(1/a), so that values for a >= 1 say everything: the law puts q_i, the drop of the
slope at a_i, on -log a_i and a_i q_i on log a_i.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.optimize import isotonic_regression

from dpsub.accountants.loss_law import LossLaw
from dpsub.errors import NumericalError

_EPS = float(np.finfo(float).eps)

Profile = Callable[[np.ndarray], np.ndarray]
"""Maps log orders >= 0, increasing from 0, to upper bounds of H at them, rounded up."""

_WIDEST = 0.25
MAX_LOSS = 600.0
"""Orders end at e^600; what the profile still holds there is charged as infinite loss."""


def order_indices(step: float, fine: float, last: float) -> np.ndarray:
    """Indices i of the orders e^{i step} to evaluate: every one up to `fine`, then ever sparser ones up to `last`.

    Any choice of orders is valid; those far in the tail have little weight, so their spacing may grow with the loss.
    """
    inside = np.arange(0, int(np.ceil(fine / step)) + 1)
    indices = [inside]
    # relative spacing in the tail: it falls with the step, so that finer grids converge there too
    ratio = min(0.04, 6 / inside.size)
    at = int(inside[-1])
    rest = []
    while at * step < last:
        at += max(1, int(min(ratio * max(at * step - fine, 0.0), _WIDEST) / step))
        rest.append(at)
    indices.append(np.array(rest, dtype=int))
    return np.concatenate(indices)


def symmetric_law(profile: Profile, step: float, indices: np.ndarray) -> LossLaw:
    """Dominate a self-dual profile: H(a) = 1 - a + a H(1/a).

    Parameters
    ----------
    profile : callable
    step : float
    indices : ndarray of int, shape (n,)
        Increasing from 0: orders are e^{step index}.
    """
    forward = _tail_slopes(profile, step, indices)
    return _assemble(step, indices, *forward, forward[1])


def two_sided_law(forward: Profile, backward: Profile, step: float, indices: np.ndarray) -> LossLaw:
    """Dominate a profile given for a >= 1 by `forward`, H_a(P || Q), and `backward`, H_a(Q || P)."""
    return _assemble(step, indices, *_tail_slopes(forward, step, indices), _tail_slopes(backward, step, indices)[1])


def _tail_slopes(profile: Profile, step: float, indices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Orders' upper bounds on the convex hull of the part a >= 1, and the hull's slopes, negated, between them."""
    x = indices * step
    values = np.minimum(np.minimum.accumulate(profile(x)), 1.0)
    a = np.exp(x)
    # the mirrored half must continue the hull convexly at a = 1: lower the value there if a chord runs below it
    values[0] = min(values[0], float(np.min((a[1:] - 1 + 2 * values[1:]) / (a[1:] + 1))))
    widths = a[:-1] * np.expm1(np.diff(x))
    slopes = -np.diff(values) / widths
    # the greatest convex minorant has the isotonic regression of the slopes as its slopes
    hull = isotonic_regression(slopes, weights=widths, increasing=False).x
    return values, np.maximum(hull, 0.0)


def _assemble(
    step: float,
    indices: np.ndarray,
    values: np.ndarray,
    slopes: np.ndarray,
    mirrored_slopes: np.ndarray,
) -> LossLaw:
    a = np.exp(indices * step)
    right = a[1:] * _drops(slopes)  # masses under P at losses above 0
    left = _drops(mirrored_slopes)  # masses under P at losses below 0: those under Q of the mirrored side
    # where the loss is -infinity P has no mass: what P has sums to 1 without it
    rest = 1 - float(right.sum()) - float(left.sum()) - float(values[-1])
    if rest < -1e-6:
        raise NumericalError(
            f"a dominating profile must be convex at order 1, got a missing mass of {-rest:.3g}; take a smaller step"
        )
    centre = max(rest, 0.0) + 8 * _EPS * indices.size
    return LossLaw(
        step,
        np.concatenate([-indices[:0:-1], indices]),
        np.concatenate([left[::-1], [centre], right]),
        "upper",
        infinity=min(1.0, float(values[-1]) * (1 + 4 * _EPS)),
    )


def _drops(slopes: np.ndarray) -> np.ndarray:
    """What the slope loses at each order but the first, rounded up."""
    return np.maximum(slopes - np.append(slopes[1:], 0.0), 0.0) + 4 * _EPS * slopes
