"""The largest weights that a target loss allows: minimise sum 1/w_i subject to psi(x_i) <= eps* for every record.

The programme is separable.  With E = e^{eps*} - 1 a weight is feasible iff (e^{eps(w, x)} - 1) / w <= E, and the
solution is the largest feasible w >= 1, a function of the record alone.  Three roads for the linear profile eps = a
w: Newton's method in the log domain (the one to use), Lambert's function, bisection (any profile with convex e^eps);
a scan of a logarithmic grid for profiles whose feasible weights may have gaps.  All return feasible weights: rounding
goes down.

The largest noise-to-norm factor s that keeps a core-set sampler below its target, with a proof for every norm.

At norm z the loss is at most eps* iff s <= f(z) = phi(q(z)) / (z + offset), phi(q) = q log(1 + E/q), E = e^{eps*} - 1,
q(z) = A + B z^2.  With u = E/q the logarithmic derivative is

    f'/f = e(u) q'/q - 1 / (z + offset),   e(u) = 1 - (u / (1 + u)) / log(1 + u),

and e increases with u, from 0 to 1.  All parts are monotone in z, which bounds f'/f on a cell.  Where the bounds have
one sign the smallest value is at an end; elsewhere log f is at least its value in the middle minus half the width
times the largest slope, and the cell is halved.  As slopes vanish at minima, few cells are halved more than a few
times.

Algorithm 1 as printed and the weights that the released code used, to show what they return.
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


_CELLS = 2048
_ROUNDS = 60
_GAP = 1e-12
ROUNDING = 1e-12
"""Relative error allowed for the evaluation of f; the factor is lowered by it."""


def log_factor(z: np.ndarray, q: np.ndarray, offset: float, target: float) -> np.ndarray:
    """log f at norms z included with probability q: also the closed form of uniform sampling."""
    return _curve(z, q, offset, float(log_expm1(target)))[0]


def _curve(z: np.ndarray, q: np.ndarray, offset: float, log_gain: float) -> tuple[np.ndarray, np.ndarray]:
    """log f at norms z, and log u there; log_gain is log E."""
    log_q = np.log(q)
    log_u = log_gain - log_q
    return np.asarray(log_q + np.log(np.logaddexp(0.0, log_u)) - np.log(z + offset)), log_u


def _elasticity(log_u: np.ndarray) -> np.ndarray:
    return np.asarray(1 - 1 / (1 + np.exp(-log_u)) / np.logaddexp(0.0, log_u))


def smallest_factor(constant: float, square: float, radius: float, offset: float, target: float) -> tuple[float, float]:
    """Return a lower bound of min f over [0, radius] for q(z) = constant + square z^2, and the value found at a point.

    Parameters
    ----------
    constant, square : float
        A > 0, B >= 0, A + B radius^2 <= 1.
    radius, offset : float
        Above 0.
    target : float
        eps* > 0.

    Raises
    ------
    NumericalError
        If bound and value do not come within 1e-12 of each other.
    """

    def rate(z: np.ndarray) -> np.ndarray:
        return constant + square * z * z

    log_gain = float(log_expm1(target))

    def curve(z: np.ndarray, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return _curve(z, np.minimum(q, 1.0), offset, log_gain)

    edges = np.linspace(0.0, radius, _CELLS + 1)
    left, right = edges[:-1], edges[1:]
    best, proved = np.inf, np.inf
    for _ in range(_ROUNDS):
        q_left, q_right, middle = rate(left), rate(right), 0.5 * (left + right)
        (at_left, u_left), (at_right, u_right) = curve(left, q_left), curve(right, q_right)
        at_middle, _ = curve(middle, rate(middle))
        steepest = _elasticity(u_left) * 2 * square * right / q_left - 1 / (right + offset)
        flattest = _elasticity(u_right) * 2 * square * left / q_right - 1 / (left + offset)
        ends = np.minimum(at_left, at_right)
        best = min(best, float(at_middle.min()), float(ends.min()))
        largest = np.maximum(np.abs(steepest), np.abs(flattest))
        bound = np.where((steepest <= 0) | (flattest >= 0), ends, at_middle - largest * (right - left) / 2)
        open_ = bound < best - _GAP
        if not open_.all():
            proved = min(proved, float(bound[~open_].min()))
        if not open_.any():
            return float(np.exp(proved)) * (1 - ROUNDING), float(np.exp(best))
        left = np.concatenate([left[open_], middle[open_]])
        right = np.concatenate([middle[open_], right[open_]])
    raise NumericalError(f"the minimum over norms must settle, got a value of exp({best:g}) and {left.size} open cells")


RELEASED_STEPS = 11


def printed_weights(
    profile: PersonalisedProfile, target: float, convexity: ArrayLike, *, steps: int = 200
) -> tuple[np.ndarray, np.ndarray]:
    """Return what Algorithm 1 returns as printed, and the end of its bracket, both of shape (n,).

    The bracket ends at offset 1, and it is half open only where eps(1) = eps* and eps'(1) < 0: then bisection starts
    at the minimiser of e^{eps(w)} - 1 - w E.  Else it keeps the end at which the residual has its own sign, which at a
    root in w = 1 is the root itself.

    Raises
    ------
    ArgumentError
        If eps(1, x) exceeds the target.
    NumericalError
        If the end of a bracket overflows, as it does for targets above 709.

    References
    ----------
    importance, Algorithm 1 (errata E1 to E3: `convexity` is the caller's, printed or right).
    """
    goal = checks.real("target epsilon", target, above=0)
    refuse_infeasible(profile, goal)
    one = np.ones(profile.n)
    end = bracket_end(profile, goal, convexity, offset=1.0)
    if not np.isfinite(end).all():
        raise NumericalError(f"brackets must end at a double, got infinity at epsilon = {goal:g}; use optimal_weights")
    at_one = excess(profile, one, goal)
    half_open = (at_one == 0) & (profile.slope(one) < 0)
    low, high = one.copy(), np.maximum(end, 1.0)
    if half_open.any():
        low = np.where(half_open, _minimiser(profile, goal, high), low)
    closed_root = (at_one == 0) & ~half_open
    for _ in range(steps):
        middle = 0.5 * (low + high)
        below = excess(profile, middle, goal) <= 0
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return np.where(closed_root, 1.0, low), end


def _minimiser(profile: PersonalisedProfile, goal: float, high: np.ndarray) -> np.ndarray:
    """Where the derivative eps'(w) e^{eps(w)} of the convex function reaches E, by bisection on [1, high]."""
    low, end, gain = np.ones(profile.n), high.copy(), float(np.expm1(goal))
    for _ in range(200):
        middle = 0.5 * (low + end)
        falling = profile.slope(middle) * np.exp(profile.loss(middle)) < gain
        low, end = np.where(falling, middle, low), np.where(falling, end, middle)
    return low


def printed_iterations(profile: PersonalisedProfile, target: float, convexity: ArrayLike, width: float) -> np.ndarray:
    """Return the number of halvings per record that Proposition 12 prints, not rounded (erratum E4), shape (n,)."""
    span = bracket_end(profile, target, convexity, offset=1.0) - 1
    inner = np.ceil(span / (2 * checks.real("width", width, above=0)))
    return np.log2(np.maximum(inner, 1.0))


def needed_iterations(profile: PersonalisedProfile, target: float, convexity: ArrayLike, width: float) -> np.ndarray:
    """Return how many halvings bring the bracket of offset 2 to the half-width `width`, shape (n,)."""
    span = (bracket_end(profile, target, convexity) - 1) / (2 * checks.real("width", width, above=0))
    return np.maximum(np.ceil(np.log2(np.maximum(span, 1.0))), 0.0).astype(int)


def released_weights(profile: PersonalisedProfile, target: float) -> np.ndarray:
    """Return middles of brackets after eleven halvings from a doubled end, on either side of feasible (R4)."""
    goal = checks.real("target epsilon", target, above=0)
    refuse_infeasible(profile, goal)
    high = doubled(profile, goal, np.full(profile.n, 2.0))
    low = high / 2
    for _ in range(RELEASED_STEPS):
        middle = 0.5 * (low + high)
        feasible = excess(profile, middle, goal) <= 0
        low, high = np.where(feasible, middle, low), np.where(feasible, high, middle)
    return 0.5 * (low + high)
