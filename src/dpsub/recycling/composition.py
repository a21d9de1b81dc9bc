"""Composition of releases with recycled noise: delta at an epsilon, or epsilon at a delta, bounded
from both sides.

With symmetric bounds the noise and its shift by the full sensitivity dominate every pair of
neighbours, also in adaptive compositions. With asymmetric bounds the upper bound takes the larger
profile of the two directions at every order, and the lower bound composes one direction throughout,
from a distribution on a grid that the pair dominates (docs/recycling.md, section 4).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from dpsub import checks
from dpsub.accounting.engine.bracket import Target
from dpsub.accounting.engine.composition import Composition
from dpsub.accounting.engine.pld import (
    SLOPE_UNIT,
    PrivacyLossDistribution,
    RememberedProfile,
    hull_slopes,
    symmetric_pld,
)
from dpsub.accounting.engine.privacy_events import DominatedEvent, Event, order_grid
from dpsub.accounting.engine.work import OutOfWorkError
from dpsub.accounting.questions.account import WIDTH_MISSED, Account
from dpsub.recycling.divergence import HockeyStickPieces
from dpsub.recycling.kernels import EPS, GaussianKernel, LaplaceKernel
from dpsub.recycling.law import Recycled, RecycledProfile
from dpsub.relations import relation_named

CONDITIONS = (
    "given past releases, the value of the query changes by at most the sensitivity "
    "between neighbouring data sets",
    "bounds, rate and scale are public and do not depend on the value",
    "the recycler tests the noise drawn, not the difference between release and value",
    "real arithmetic and exact sampling are assumed",
)
"""Conditions of every guarantee for recycled noise."""

MOST_STEPS = 10**8
"""Largest number of releases."""
_BEYOND = 1e150  # no finite loss is larger
_WIDTH = {"epsilon": 1e-3, "delta": 5e-3}  # absolute for epsilon, relative for delta

Divergence = Callable[[np.ndarray], HockeyStickPieces]
"""The hockey-stick divergence as a function of log-orders >= 0."""


def checked_steps(steps: Any) -> int:
    """Return the number of releases, 1 to `MOST_STEPS`, else raise ArgumentError."""
    return checks.integer("steps", steps, at_least=1, at_most=MOST_STEPS)


def lower_law(
    forward: Divergence, backward: Divergence, step: float, indices: np.ndarray, infinity: float
) -> PrivacyLossDistribution:
    """Privacy loss distribution that the pair (P, Q) dominates: a lower bound for composition.

    Parameters
    ----------
    forward, backward : Divergence
        H_a(P || Q) and H_a(Q || P); one object if they are equal.
    step, indices : float and ndarray of int
        The orders are e^(step index), for indices from 0 on.
    infinity : float
        Mass of infinite loss under P, rounded down; it must not exceed that of the swapped pair.
    """
    log_orders = indices * step
    first = _lowered(forward(log_orders), log_orders, infinity)
    second = first if backward is forward else _lowered(backward(log_orders), log_orders, infinity)
    # One common value at order 1 gives the two inequalities on totals that orders below 1 need.
    at_one = min(first[0], second[0])
    first[0] = second[0] = at_one
    if at_one <= 0:
        # Nothing of the divergence is left: all finite loss is 0, which every pair dominates.
        centre_alone = np.array([(1 - infinity) * (1 - 8 * EPS)])
        return PrivacyLossDistribution(
            step, np.zeros(1, dtype=int), centre_alone, "lower", infinity=infinity
        )
    # The mass at an order is by how much the slope of the lower convex hull changes there; a
    # positive loss x has e^x times its mass under Q.
    positive = np.exp(log_orders[1:]) * _slope_changes(hull_slopes(first, log_orders)) * SLOPE_UNIT
    negative = _slope_changes(hull_slopes(second, log_orders)) * SLOPE_UNIT
    # Rounding may have raised the second total; it is charged relative to the value at order 1.
    positive *= max(0.0, 1 - 16 * EPS * log_orders.size * (1 + 1 / at_one))
    room = 1 - infinity - float(negative.sum())
    total = float(positive.sum())
    if total > room:
        positive *= max(0.0, room) / total
        total = max(0.0, room)
    # The rest is loss 0. Rounded down, the masses sum to at most 1.
    centre = max(0.0, room - total - 8 * EPS * log_orders.size)
    losses = np.concatenate([-indices[:0:-1], indices])
    masses = np.concatenate([negative[::-1], [centre], positive])
    return PrivacyLossDistribution(step, losses, masses, "lower", infinity=infinity)


def _lowered(divergence: HockeyStickPieces, log_orders: np.ndarray, infinity: float) -> np.ndarray:
    """Values whose linear interpolation lies below the divergence less the infinite mass.

    They are 0 from some order on.
    """
    values = divergence.end(-1)
    orders = np.exp(log_orders)
    widths = np.exp(log_orders[:-1]) * np.expm1(np.diff(log_orders))
    chord_fall = values[:-1] - values[1:]
    # The falls of the tangents at the left and the right end of a cell, rounded so that the
    # gap below comes out too large rather than too small.
    left_fall = widths * (divergence.steepness(1) / orders)[:-1]
    right_fall = widths * (divergence.steepness(-1) / orders)[1:]
    rounding = 8 * EPS * (values[:-1] + left_fall)
    # A and B of docs/recycling.md, section 4: the divergence is above both tangents, hence the
    # chord exceeds it by at most A B / (A + B).
    a = left_fall - chord_fall + rounding
    b = chord_fall - right_fall + rounding
    with np.errstate(divide="ignore", invalid="ignore"):
        gaps = np.where((a > 0) & (b > 0), a * b / (a + b), 0.0) * (1 + 8 * EPS)
    gaps = np.where(np.isnan(gaps), 0.0, gaps)
    # An order borders on two cells, and is lowered by the larger one of their gaps.
    larger_gap = np.maximum(np.append(gaps, 0.0), np.append(0.0, gaps))
    lowered = np.asarray(values - infinity - larger_gap)
    # In the cell where the values would reach 0 the interpolation must not lie above the
    # divergence, so that it reaches 0 at the cell's left end.
    vanished = np.flatnonzero(lowered <= 0)
    last = int(vanished[0]) - 1 if vanished.size else log_orders.size - 1
    lowered[max(last, 0) :] = 0.0
    return lowered


def _slope_changes(slopes: np.ndarray) -> np.ndarray:
    """Change of the slope at each order but the first, rounded down."""
    following = np.append(slopes[1:], 0.0)
    return np.maximum(slopes - following - 4 * EPS * slopes, 0.0)


@dataclass(frozen=True)
class RecycledEvent(Event):
    """Privacy event of one release with recycled noise."""

    law: Recycled

    tight_for_one_step = True
    # The larger profile of the two directions is that of both neighbours.
    upper_symmetric = True

    @cached_property
    def _profile(self) -> RememberedProfile:
        return RememberedProfile(lambda log_order: RecycledProfile(self.law).bounds(log_order)[1])

    def _orders(self, step: float, tail: float) -> np.ndarray:
        """Indices of the orders of a grid, up to where the profile falls to the infinite mass."""
        # Only hard bounds have infinite losses: the profile does not fall below their mass.
        floor = float(RecycledProfile(self.law).bounds(_BEYOND)[1]) if self.law.rate == 1 else 0.0
        return order_grid(self._profile, step, tail, floor)

    def upper(self, step: float, tail: float, swapped: bool) -> PrivacyLossDistribution:
        return symmetric_pld(self._profile, step, self._orders(step, tail))

    def lower(self, step: float, tail: float, swapped: bool) -> PrivacyLossDistribution:
        first, second = (self.law.mirrored, self.law) if swapped else (self.law, self.law.mirrored)
        forward = first.hockey_stick
        # `lower_law` knows equal divergences by identity, and computes them once.
        backward = forward if self.symmetric else second.hockey_stick
        indices = self._orders(step, tail)
        return lower_law(forward, backward, step, indices, _infinite_mass(self.law))

    def fitting(self, step: float) -> float:
        """A step near `step` such that D / b and L are nearly multiples of it.

        The lower bound is sharp where the atoms of the loss lie on the grid. Only Laplace noise has
        atoms; if many of them lie between two orders, they do not matter.
        """
        unit = self.law.sensitivity / self.law.kernel.scale
        if not isinstance(self.law.kernel, LaplaceKernel) or unit < step / 8:
            return step
        fewest = max(1, math.ceil(unit / step))
        if self.law.rate in (0.0, 1.0):
            # L is 0 or infinite: there are no atoms but at multiples of D / b.
            return unit / fewest
        parts = np.arange(fewest, 4 * fewest + 1)
        shift_in_steps = -math.log1p(-self.law.rate) / unit * parts
        # The distance of L from the grid, in units of D / b.
        distance = np.abs(shift_in_steps - np.round(shift_in_steps)) / parts
        return float(unit / parts[int(np.argmin(distance))])

    @property
    def symmetric(self) -> bool:
        return self.law.symmetric

    @property
    def exact(self) -> bool:
        return self.law.symmetric

    def spread(self) -> float:
        return DominatedEvent(lambda tail: (self._profile, None), None).spread()


def account(
    law: Recycled,
    steps: int = 1,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    adjacency: str = "substitute",
    width: float | None = None,
) -> Account:
    """Bound delta at `epsilon`, or epsilon at `delta`, for a composition of recycled releases.

    Parameters
    ----------
    law : Recycled
    steps : int
        Number of releases T, at most `MOST_STEPS`.
    epsilon, delta : float, optional
        One of the two; the other one is bounded.
    adjacency : str
        The relation under which `law.sensitivity` holds; it only enters the statement.
    width : float, optional
        Largest distance of the two bounds: absolute for epsilon (1e-3 by default), relative for
        delta (5e-3 by default).
    """
    relation = relation_named(adjacency)
    if width is None:
        width = _WIDTH["epsilon" if epsilon is None else "delta"]
    target = Target(epsilon, delta, width)
    times = checked_steps(steps)
    composition = Composition([(RecycledEvent(law), times)])
    width_met = True
    if times == 1:
        lower, upper = _single_release(law, target)
    elif law.rate == 0 and isinstance(law.kernel, GaussianKernel):
        # T releases with plain Gaussian noise have the loss of one with sqrt(T) times the
        # sensitivity.
        composed = replace(law, sensitivity=law.sensitivity * math.sqrt(times))
        lower, upper = _single_release(composed, target)
    elif target.delta is not None and _composed_infinite_mass(law, times) > target.delta:
        # Infinite losses alone have more than delta: no epsilon will do.
        lower, upper = math.inf, math.inf
    else:
        lower, upper, width_met = composition.answer(target)
    pair = (
        f"{law.kernel.name} noise of scale {law.kernel.scale:g}, redrawn with probability "
        f"{law.rate:g} outside [{law.lower:g}, {law.upper:g}], against itself moved by "
        f"{law.sensitivity:g}"
    )
    return Account(
        lower=min(lower, upper),
        upper=upper,
        kind="exact" if composition.is_exact else "bounds",
        pair=pair,
        adjacency=relation,
        sensitivity=f"neighbours move the value by up to {law.sensitivity:g}",
        quantity=target.quantity,
        lower_pair="the same pair",
        width_met=width_met,
        width_reason="" if width_met else "numerics: no finer grid brings the ends closer",
        conditions=CONDITIONS if width_met else (*CONDITIONS, WIDTH_MISSED),
    )


def upper_delta(law: Recycled, steps: int, epsilon: float) -> float:
    """Upper bound on delta(epsilon) of the composition, from a single grid.

    It is proved, and accurate to a fraction of a per cent: for searches. It is 1 where the budget
    of work does not suffice.
    """
    composition = Composition([(RecycledEvent(law), steps)])
    try:
        # So many cells across the spread of the composed loss keep the grid's error that small.
        step = composition.spread / 128
    except OutOfWorkError:
        return 1.0
    return composition.rough(Target(epsilon=epsilon), "upper", step)


def _infinite_mass(law: Recycled) -> float:
    """Probability of an infinite loss in the direction where it is smaller, rounded down."""
    # At a rate below 1 the two densities have the same support.
    if law.rate < 1:
        return 0.0
    return min(float(direction.hockey_stick(_BEYOND).end(-1)) for direction in (law, law.mirrored))


def _composed_infinite_mass(law: Recycled, steps: int) -> float:
    """Probability that at least one of `steps` releases has an infinite loss."""
    return -math.expm1(steps * math.log1p(-_infinite_mass(law)))


def _single_release(law: Recycled, target: Target) -> tuple[float, float]:
    """Both bounds for one release from the closed form; those of epsilon from those of delta."""
    bounds = RecycledProfile(law).bounds
    if target.delta is None:
        lower, upper = bounds(target.epsilon or 0.0)
        return float(lower), float(upper)
    # The lower bound of the bracket for the smaller delta, and the upper bound for the larger one.
    least, _ = bisected_epsilon(lambda epsilon: float(bounds(epsilon)[0]), target.delta)
    _, largest = bisected_epsilon(lambda epsilon: float(bounds(epsilon)[1]), target.delta)
    return least, largest


def bisected_epsilon(delta: Callable[[float], float], target: float) -> tuple[float, float]:
    """Bracket the smallest epsilon >= 0 at which a nonincreasing `delta` is at most `target`."""
    low, high = 0.0, 1.0
    if delta(low) <= target:
        return 0.0, 0.0
    if delta(_BEYOND) > target:
        return math.inf, math.inf
    while delta(high) > target:
        low, high = high, 2 * high
    return halved(lambda epsilon: delta(epsilon) <= target, low, high, 60)


def halved(
    holds: Callable[[float], bool], low: float, high: float, steps: int
) -> tuple[float, float]:
    """Bracket, by bisection, the point from which on a condition holds.

    It must hold at `high` and not at `low`, and so it does at the ends of the bracket.
    """
    for _ in range(steps):
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return low, high
