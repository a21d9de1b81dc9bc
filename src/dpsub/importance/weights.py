"""The largest weights that a target loss allows: minimise sum 1/w_i subject to psi(x_i) <= eps* for every record.

The programme is separable.  With E = e^{eps*} - 1 a weight is feasible iff (e^{eps(w, x)} - 1) / w <= E, and the
solution is the largest feasible w >= 1, a function of the record alone.  Three roads for the linear profile eps = a
w: Newton's method in the log domain (the one to use), Lambert's function, bisection (any profile with convex e^eps);
a scan of a logarithmic grid for profiles whose feasible weights may have gaps.  All return feasible weights: rounding
goes down.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import lambertw

from dpsub import checks
from dpsub.errors import ArgumentError, NumericalError
from dpsub.importance.losses import PersonalisedProfile, log_expm1

SAFETY = 1e-13
"""Weights are lowered by this share, which outweighs the rounding of Newton's last step."""
_TOLERANCE = 1e-12  # eps(1, x) may exceed the target by this share: rounding of a limit that the caller has computed
_SMALLEST = 1e-290  # below it 1/a leaves the range of doubles
_BLOCK = 1 << 14
_NEWTON_STEPS = 60
_OVERFLOW = 600.0
_DOUBLINGS = 1000


def checked_slopes(slopes: ArrayLike, target: float) -> tuple[np.ndarray, float]:
    """Return eps(1, x) of all records and the target.

    Raises
    ------
    ArgumentError
        If the target is not above 0, or a slope is not above 0 (below 1e-290: its weight would be infinite) or exceeds
        the target.
    """
    goal = checks.real("target epsilon", target, above=0)
    a = checks.finite_array("slopes", np.atleast_1d(np.asarray(slopes, dtype=float)), ndim=1)
    if a.size and a.min() < _SMALLEST:
        raise ArgumentError(
            f"slopes must be above 0 (at least {_SMALLEST:g}), got {a.min():g}; a record without influence has no "
            "largest weight: cap it"
        )
    if a.size and a.max() > goal * (1 + _TOLERANCE):
        raise ArgumentError(
            f"the target must be at least the largest unsampled loss = {a.max():g}, got {goal:g}; raise the noise"
        )
    return a, goal


def optimal_weights(slopes: ArrayLike, target: float) -> np.ndarray:
    """Return the largest w >= 1 with log(1 + (e^{a w} - 1) / w) <= eps*, by Newton's method.

    The root is that of the convex h(w) = a w - log(1 + E w) right of its minimum, which lies below 1/a.  Started at
    max(1, eps*) / a, where h <= 0 or the slope is positive, the second and later iterates fall monotonically to it.

    Parameters
    ----------
    slopes : array_like, shape (n,)
        a > 0, nats per unit of weight, at most the target.
    target : float
        eps* > 0, nats.

    Returns
    -------
    ndarray, shape (n,)
        Feasible, and within a share of about 2e-13 of the optimum (of 1e-8 where a and eps* nearly agree).

    Raises
    ------
    ArgumentError
        As :func:`checked_slopes`.

    References
    ----------
    importance, Problem 7 and Theorem 10.
    """
    a, goal = checked_slopes(slopes, target)
    weights = np.empty(a.size)
    for start in range(0, a.size, _BLOCK):
        block = slice(start, start + _BLOCK)
        weights[block] = _newton(a[block], goal)
    return weights


def _newton(a: np.ndarray, goal: float) -> np.ndarray:
    large = goal > _OVERFLOW
    scale = math.inf if large else math.expm1(goal)
    w = max(1.0, goal) / a
    for _ in range(_NEWTON_STEPS):
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
    # where a and the target nearly agree the root is flat, and rounding may pass it: such weights gain nothing
    return np.maximum(w * (1 - SAFETY), 1.0)


def lambert_weights(slopes: ArrayLike, target: float) -> np.ndarray:
    """Return the same weights as max(1, -W_{-1}(-c e^{-c}) / a - 1/E), c = a/E, for targets up to 700.

    Raises
    ------
    ArgumentError
        As :func:`checked_slopes`, or if the target is above 700.
    """
    a, goal = checked_slopes(slopes, checks.real("target epsilon", target, at_most=700))
    scale = math.expm1(goal)
    c = a / scale
    argument = -c * np.exp(-c)
    # next to the branch point the argument says nothing: the root is that of a flat parabola about 1
    with np.errstate(invalid="ignore"):
        w = -lambertw(argument, k=-1).real / a - 1 / scale
    return np.maximum(np.where(np.isfinite(w), w * (1 - SAFETY), 1.0), 1.0)


def excess(profile: PersonalisedProfile, weights: np.ndarray, target: float) -> np.ndarray:
    """log(e^{eps(w)} - 1) - log w - log(e^{eps*} - 1): at most 0 iff the weight is feasible; any eps* up to 1e300."""
    with np.errstate(over="ignore"):
        return np.asarray(log_expm1(profile.loss(weights)) - np.log(weights) - log_expm1(target))


def bisected_weights(
    profile: PersonalisedProfile, target: float, *, convexity: ArrayLike | None = None, steps: int = 2500
) -> np.ndarray:
    """Return the largest feasible weights of a profile whose e^{eps(w)} is strongly convex.

    e^{eps(w)} - 1 - w E is convex and at most 0 at w = 1, so feasible weights form an interval from 1 and bisection
    between a feasible and an infeasible weight finds its end, also where eps(1) = eps*.

    Parameters
    ----------
    profile : PersonalisedProfile
    target : float
        eps*.
    convexity : array_like, shape (n,), optional
        mu, a lower bound of the second derivative of e^{eps(w)}; then the bracket ends at :func:`bracket_end`.
        Without it, or where that end overflows, the upper end is doubled from 2 until it is infeasible.
    steps : int
        At most so many halvings; they end when no double is left between the ends.

    Raises
    ------
    ArgumentError
        If eps(1, x) exceeds the target.
    NumericalError
        If doubling finds no infeasible weight: then there is no largest one.

    References
    ----------
    importance, Algorithm 1, with the offset of its proof; docs/importance.md, section 3.
    """
    goal = checks.real("target epsilon", target, above=0)
    low = np.ones(profile.n)
    refuse_infeasible(profile, goal)
    high = np.full(profile.n, 2.0)
    if convexity is not None:
        ends = bracket_end(profile, goal, convexity)
        high = np.where(np.isfinite(ends), np.maximum(ends, 1.0), high)
    high = doubled(profile, goal, high)
    for _ in range(checks.integer("steps", steps, at_least=1)):
        middle = 0.5 * (low + high)
        if not ((low < middle) & (middle < high)).any():
            break
        feasible = excess(profile, middle, goal) <= 0
        low, high = np.where(feasible, middle, low), np.where(feasible, high, middle)
    return low


def doubled(profile: PersonalisedProfile, goal: float, high: np.ndarray) -> np.ndarray:
    """Double the entries of `high` until all are infeasible (or 1, where nothing above 1 is feasible)."""
    for _ in range(_DOUBLINGS):
        feasible = excess(profile, high, goal) <= 0
        if not feasible.any():
            return high
        high = np.where(feasible, 2 * high, high)
    raise NumericalError("the weights must be infeasible from some weight on, found none up to 2^1000; cap them")


def bracket_end(profile: PersonalisedProfile, target: float, convexity: ArrayLike, offset: float = 2.0) -> np.ndarray:
    """Return 2 (e^{eps*} - v) / mu + offset, v = min{e^{eps(1)} + mu/2, eps'(1) e^{eps(1)} + 1}, shape (n,).

    With the offset 2 of the proof every weight beyond it is infeasible; infinite where doubles overflow.
    """
    mu = checks.finite_array("convexity", convexity)
    if mu.size and mu.min() <= 0:
        raise ArgumentError(f"convexity must be above 0, got {mu.min():g}; leave it out if there is none")
    one = np.ones(profile.n)
    with np.errstate(over="ignore", invalid="ignore"):
        at_one = np.exp(profile.loss(one))
        v = np.minimum(at_one + mu / 2, profile.slope(one) * at_one + 1)
        ends = 2 * (np.exp(np.float64(target)) - v) / mu + offset
    return np.where(np.isnan(ends), np.inf, ends)


def refuse_infeasible(profile: PersonalisedProfile, goal: float) -> None:
    """Raise an ArgumentError if eps(1, x) of a record exceeds the target."""
    unsampled = profile.loss(np.ones(profile.n))
    if unsampled.size and float(unsampled.max()) > goal * (1 + _TOLERANCE):
        raise ArgumentError(
            f"the target must be at least the largest unsampled loss = {unsampled.max():g}, got {goal:g}; "
            "raise the noise"
        )


def scanned_weights(
    profile: PersonalisedProfile, target: float, *, largest: float = 1e6, points: int = 2000
) -> np.ndarray:
    """Return the largest feasible weights found on a logarithmic grid on [1, largest], refined upwards.

    The road for profiles whose feasible weights have gaps; feasible always, optimal up to gaps narrower than the grid.

    Raises
    ------
    ArgumentError
        If eps(1, x) exceeds the target or the grid is none.
    """
    goal = checks.real("target epsilon", target, above=0)
    top = checks.real("largest", largest, above=1)
    refuse_infeasible(profile, goal)
    grid = np.geomspace(1.0, top, checks.integer("points", points, at_least=2))
    low, high = np.ones(profile.n), np.full(profile.n, grid[1])
    for left, right in zip(grid, np.append(grid[1:], top), strict=True):
        feasible = excess(profile, np.full(profile.n, left), goal) <= 0
        low, high = np.where(feasible, left, low), np.where(feasible, right, high)
    while True:
        middle = 0.5 * (low + high)
        open_ = (low < middle) & (middle < high)
        if not open_.any():
            return low
        feasible = excess(profile, middle, goal) <= 0
        low, high = np.where(open_ & feasible, middle, low), np.where(open_ & ~feasible, middle, high)


def expected_size(weights: np.ndarray) -> float:
    """sum 1/w_i, the expected sample size."""
    return float(np.sum(1 / weights))
