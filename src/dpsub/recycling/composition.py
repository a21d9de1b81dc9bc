"""Many releases with recycled noise: delta at an epsilon, or epsilon at a delta, from both sides.

Under symmetric bounds the noise and its shift by the full sensitivity dominate every pair of neighbours, so that one
pair stands for adaptive compositions, and both ends are about its loss.  Under asymmetric ones the upper end takes the
larger profile of both directions at every order, the lower end one direction throughout.

The lower end comes from a distribution on a grid that the pair dominates.  Let H be the pair's divergence, convex in
the order a, with values H_i and subgradients -S_i at the orders a_i of a grid.  Between two orders H lies above its
tangents at both of them, so that the chord exceeds H by at most

    g = A B / (A + B),    A = S_i w - (H_i - H_{i+1}),    B = (H_i - H_{i+1}) - S_{i+1} w,    w = a_{i+1} - a_i.

Values lowered by the larger g of the two cells around each order are therefore interpolated below H, and so is their
lower convex hull F.  The masses that F stands for, a_i drop(a_i) at loss log a_i, give a smaller divergence at every
order; as composition only averages divergences over losses, k of them stay below k of the pair.  The cost is of second
order in the step, like that of the upper distribution, if no atom of the loss lies between two orders.

At losses below 0 the same is done with the pair swapped.  With M and M' the totals of the masses under both laws,
orders below 1 need M <= 1 and M <= M': both sides get one value at order 1, and the right one is shrunk by what was
rounded.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from dpsub import checks
from dpsub.accounting.account import WIDTH_MISSED, Account
from dpsub.accounting.bracket import Composition, DominatedEvent, Event, Target, order_grid
from dpsub.accounting.pld import SLOPE_UNIT, PrivacyLossDistribution, RememberedProfile, hull_slopes, symmetric_pld
from dpsub.recycling.divergence import HockeyStickPieces
from dpsub.recycling.kernels import EPS, GaussianKernel, LaplaceKernel
from dpsub.recycling.law import Recycled, RecycledProfile
from dpsub.relations import Relation

Divergence = Callable[[np.ndarray], HockeyStickPieces]
"""log orders >= 0 -> the divergence there."""


def lower_law(
    forward: Divergence, backward: Divergence, step: float, indices: np.ndarray, infinity: float
) -> PrivacyLossDistribution:
    """A distribution below the loss of P against Q under P.

    Parameters
    ----------
    forward, backward : callable
        H_a(P || Q) and H_a(Q || P); one object if they are equal.
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
        nothing = np.array([(1 - infinity) * (1 - 8 * EPS)])
        return PrivacyLossDistribution(step, np.zeros(1, dtype=int), nothing, "lower", infinity=infinity)
    right = np.exp(x[1:]) * _drops(hull_slopes(first, x)) * SLOPE_UNIT
    left = _drops(hull_slopes(second, x)) * SLOPE_UNIT
    # what rounding can make of the second total, against the value at order 1
    right *= max(0.0, 1 - 16 * EPS * x.size * (1 + 1 / at_one))
    room = 1 - infinity - float(left.sum())
    total = float(right.sum())
    if total > room:
        right *= max(0.0, room) / total
        total = max(0.0, room)
    centre = max(0.0, room - total - 8 * EPS * x.size)
    return PrivacyLossDistribution(
        step,
        np.concatenate([-indices[:0:-1], indices]),
        np.concatenate([left[::-1], [centre], right]),
        "lower",
        infinity=infinity,
    )


def _lowered(found: HockeyStickPieces, x: np.ndarray, infinity: float) -> np.ndarray:
    """Values without the infinite mass whose interpolation lies below the divergence; 0 from some order on."""
    values = found.end(-1)
    widths = np.exp(x[:-1]) * np.expm1(np.diff(x))
    falls = values[:-1] - values[1:]
    steep = widths * (found.steepness(1) / np.exp(x))[:-1]
    flat = widths * (found.steepness(-1) / np.exp(x))[1:]
    slack = 8 * EPS * (values[:-1] + steep)
    before, behind = steep - falls + slack, falls - flat + slack
    with np.errstate(divide="ignore", invalid="ignore"):
        gaps = np.where((before > 0) & (behind > 0), before * behind / (before + behind), 0.0) * (1 + 8 * EPS)
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
    return np.maximum(slopes - np.append(slopes[1:], 0.0) - 4 * EPS * slopes, 0.0)


CONDITIONS = (
    "the value of the query moves by at most the sensitivity between neighbouring data sets, given past releases",
    "bounds, rate and scale are public and do not depend on the value",
    "the recycler tests the noise that was drawn, not the difference of release and value",
    "real arithmetic and exact sampling are assumed",
)
"""Under which every guarantee for recycled noise holds."""

MOST_STEPS = 10**8
"""Largest number of releases."""

_ALIGNMENTS = 4
"""Steps are looked for in this many times the number of those that fit one atom."""
_MOST_ATOMS = 8
"""Between two orders that atoms are put on the grid for."""
_BEYOND = 1e150
"""No finite loss is larger."""
_HALVINGS = 60
_POINTS = 128
"""Of a grid in a standard deviation of the loss: delta then comes out accurate to a fraction of a per cent."""


def checked_steps(steps: Any) -> int:
    """How many releases there are, 1 to `MOST_STEPS`, else ArgumentError."""
    return checks.integer("steps", steps, at_least=1, at_most=MOST_STEPS)


@dataclass(frozen=True)
class RecycledEvent(Event):
    """One release."""

    law: Recycled

    @cached_property
    def _proved(self) -> DominatedEvent:
        profile = RememberedProfile(self._upper_end)
        return DominatedEvent(lambda tail: (profile, None), None)

    @cached_property
    def _infinite_above(self) -> float:
        """What the profile falls to: no orders are needed beyond."""
        return float(self._upper_end(np.array([_BEYOND]))[0]) if self.law.rate == 1 else 0.0

    def _upper_end(self, log_order: np.ndarray) -> np.ndarray:
        return np.asarray(np.max([law.hockey_stick(log_order).end(1) for law in self.law.directions], axis=0))

    def upper(self, step: float, tail: float, swapped: bool) -> PrivacyLossDistribution:
        profile = self._proved.profile(tail)[0]
        return symmetric_pld(profile, step, order_grid(profile, step, tail, self._infinite_above))

    def lower(self, step: float, tail: float, swapped: bool) -> PrivacyLossDistribution:
        first, second = (self.law.mirrored, self.law) if swapped else (self.law, self.law.mirrored)
        indices = order_grid(self._proved.profile(tail)[0], step, tail, self._infinite_above)
        forward = first.hockey_stick
        backward = forward if self.symmetric else second.hockey_stick
        return lower_law(forward, backward, step, indices, _surely_infinite(self.law))

    def fitting(self, step: float) -> float:
        """A step that nearly divides both what all losses of the kernel are multiples of, and L.

        Lower laws are sharp where atoms of the loss lie on the grid, and only Laplace noise has atoms.  Where many lie
        between two orders, none matters.
        """
        unit = self.law.sensitivity / self.law.kernel.scale
        if not isinstance(self.law.kernel, LaplaceKernel) or unit < step / _MOST_ATOMS:
            return step
        fewest = max(1, math.ceil(unit / step))
        if self.law.rate in (0.0, 1.0):
            return unit / fewest
        parts = np.arange(fewest, _ALIGNMENTS * fewest + 1)
        ratio = -math.log1p(-self.law.rate) / unit * parts
        return float(unit / parts[int(np.argmin(np.abs(ratio - np.round(ratio)) / parts))])

    @property
    def symmetric(self) -> bool:
        return self.law.symmetric

    @property
    def exact(self) -> bool:
        return self.law.symmetric

    def spread(self) -> float:
        return self._proved.spread()

    @property
    def attained_once(self) -> bool:
        return True

    @property
    def upper_symmetric(self) -> bool:
        return True


def account(
    law: Recycled,
    steps: int = 1,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    adjacency: str = "substitute",
    width: float | None = None,
    deadline: float | None = None,
) -> Account:
    """Bound delta at `epsilon`, or epsilon at `delta`, of many releases with one recycler.

    Parameters
    ----------
    law : Recycled
    steps : int
        T, from 1 to `MOST_STEPS`.
    epsilon, delta : float
        Exactly one of them.
    adjacency : {"substitute", "add_remove"}
        The relation for which `law.sensitivity` holds; it only enters the answer's words.
    width : float, optional
        Accuracy wanted: absolute for epsilon (default 1e-3), relative for delta (default 5e-3).
    deadline : float, optional
        A reading of `time.monotonic`: what has been reached then is the answer.

    Raises
    ------
    ArgumentError
        If an argument is out of range.
    """
    relation = Relation(checks.one_of("adjacency", adjacency, list(Relation)))
    wanted = width if width is not None else 1e-3 if epsilon is None else 5e-3
    target = Target(epsilon, delta, wanted, deadline)
    times = checked_steps(steps)
    ledger = Composition([(RecycledEvent(law), times)])
    if times == 1:
        lower, upper, width_met = *_once(law, target), True
    elif law.rate == 0 and isinstance(law.kernel, GaussianKernel):
        # many releases with plain Gaussian noise have the loss of one whose sensitivity is sqrt(T) as large
        together = replace(law, sensitivity=law.sensitivity * math.sqrt(times))
        lower, upper, width_met = *_once(together, target), True
    elif target.delta is not None and -math.expm1(times * math.log1p(-_surely_infinite(law))) > target.delta:
        lower, upper, width_met = math.inf, math.inf, True
    else:
        lower, upper, width_met = ledger.answer(target)
    return Account(
        lower=min(lower, upper),
        upper=upper,
        kind="exact" if ledger.one_number else "bounds",
        pair=(
            f"{law.kernel.name} noise of scale {law.kernel.scale:g}, redrawn with probability {law.rate:g} outside "
            f"[{law.lower:g}, {law.upper:g}], against itself moved by {law.sensitivity:g}"
        ),
        adjacency=relation,
        sensitivity=f"neighbours move the value by up to {law.sensitivity:g}",
        quantity=target.quantity,
        lower_pair="the same pair",
        conditions=CONDITIONS if width_met else (*CONDITIONS, WIDTH_MISSED),
        width_met=width_met,
    )


def upper_delta(law: Recycled, steps: int, epsilon: float) -> float:
    """A proved delta(epsilon) of the composition from one grid, which is fine enough for searches."""
    ledger = Composition([(RecycledEvent(law), steps)])
    return ledger.rough(Target(epsilon=epsilon), "upper", ledger.spread / _POINTS)


def _surely_infinite(law: Recycled) -> float:
    """Probability of an infinite loss in the direction where it is smaller, rounded down."""
    if law.rate < 1:
        return 0.0
    return min(float(each.hockey_stick(_BEYOND).end(-1)) for each in (law, law.mirrored))


def _once(law: Recycled, target: Target) -> tuple[float, float]:
    """One release from the closed form; epsilon from both ends of delta."""
    bounds = RecycledProfile(law).bounds
    if target.epsilon is not None:
        low, high = bounds(target.epsilon)
        return float(low), float(high)
    assert target.delta is not None
    first = bisected_epsilon(lambda epsilon: float(bounds(epsilon)[0]), target.delta)
    return first[0], bisected_epsilon(lambda epsilon: float(bounds(epsilon)[1]), target.delta)[1]


def bisected_epsilon(delta: Callable[[float], float], target: float) -> tuple[float, float]:
    """Both ends of a bracket of the smallest epsilon >= 0 at which a nonincreasing `delta` is at most `target`."""
    low, high = 0.0, 1.0
    if delta(low) <= target:
        return 0.0, 0.0
    if delta(_BEYOND) > target:
        return math.inf, math.inf
    while delta(high) > target:
        low, high = high, 2 * high
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if delta(middle) <= target else (middle, high)
    return low, high
