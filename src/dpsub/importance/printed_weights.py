"""Algorithm 1 as printed and the weights that the released code used, to show what they return."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from dpsub import checks
from dpsub.errors import NumericalError
from dpsub.importance.losses import PersonalisedProfile
from dpsub.importance.weights import bracket_end, doubled, excess, refuse_infeasible

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
