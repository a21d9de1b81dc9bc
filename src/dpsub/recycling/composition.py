"""Many releases with recycled noise: delta at an epsilon, or epsilon at a delta, from both sides.

Under symmetric bounds the noise and its shift by the full sensitivity dominate every pair of
neighbours, also in adaptive compositions. Under asymmetric ones the upper end takes the larger
profile of both directions at every order, the lower end one direction throughout, from a law on a
grid that the pair dominates (docs/recycling.md, section 4).
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
from dpsub.accounting.bracket import Target
from dpsub.accounting.composition import Composition
from dpsub.accounting.pld import (
    SLOPE_UNIT,
    OutOfTimeError,
    PrivacyLossDistribution,
    RememberedProfile,
    hull_slopes,
    symmetric_pld,
)
from dpsub.accounting.privacy_events import DominatedEvent, Event, order_grid
from dpsub.recycling.divergence import HockeyStickPieces
from dpsub.recycling.kernels import EPS, GaussianKernel, LaplaceKernel
from dpsub.recycling.law import Recycled, RecycledProfile
from dpsub.relations import Relation

CONDITIONS = (
    "the value of the query moves by at most the sensitivity between neighbouring data sets, given "
    "past releases",
    "bounds, rate and scale are public and do not depend on the value",
    "the recycler tests the noise that was drawn, not the difference of release and value",
    "real arithmetic and exact sampling are assumed",
)
"""Under which every guarantee for recycled noise holds."""

MOST_STEPS = 10**8  # largest number of releases
_BEYOND = 1e150  # no finite loss is larger
Divergence = Callable[[np.ndarray], HockeyStickPieces]  # log orders >= 0 -> the divergence there


def checked_steps(steps: Any) -> int:
    """How many releases there are, 1 to `MOST_STEPS`, else ArgumentError."""
    return checks.integer("steps", steps, at_least=1, at_most=MOST_STEPS)


def lower_law(
    forward: Divergence, backward: Divergence, step: float, indices: np.ndarray, infinity: float
) -> PrivacyLossDistribution:
    """A law below the loss of P against Q under P, from H_a(P || Q) and H_a(Q || P), one object if
    equal, at orders e^{step index}, index from 0; `infinity`: mass of infinite loss under P,
    rounded down, at most the swapped pair's."""
    x = indices * step
    first = _lowered(forward(x), x, infinity)
    second = first if backward is forward else _lowered(backward(x), x, infinity)
    at_one = min(first[0], second[0])
    first[0] = second[0] = at_one
    if at_one <= 0:
        nothing = np.array([(1 - infinity) * (1 - 8 * EPS)])
        return PrivacyLossDistribution(
            step, np.zeros(1, dtype=int), nothing, "lower", infinity=infinity
        )
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
    places, masses = (
        np.concatenate([-indices[:0:-1], indices]),
        np.concatenate([left[::-1], [centre], right]),
    )
    return PrivacyLossDistribution(step, places, masses, "lower", infinity=infinity)


def _lowered(found: HockeyStickPieces, x: np.ndarray, infinity: float) -> np.ndarray:
    """Values without the infinite mass whose interpolation lies below the divergence; 0 from some
    order on."""
    values = found.end(-1)
    widths = np.exp(x[:-1]) * np.expm1(np.diff(x))
    falls = values[:-1] - values[1:]
    steep = widths * (found.steepness(1) / np.exp(x))[:-1]
    flat = widths * (found.steepness(-1) / np.exp(x))[1:]
    slack = 8 * EPS * (values[:-1] + steep)
    before, behind = steep - falls + slack, falls - flat + slack
    with np.errstate(divide="ignore", invalid="ignore"):
        gaps = np.where((before > 0) & (behind > 0), before * behind / (before + behind), 0.0) * (
            1 + 8 * EPS
        )
    gaps = np.where(np.isnan(gaps), 0.0, gaps)
    lowered = np.asarray(values - infinity - np.maximum(np.append(gaps, 0.0), np.append(0.0, gaps)))
    # the divergence is lowered to 0 one order before it would be
    vanished = np.flatnonzero(lowered <= 0)
    lowered[max(int(vanished[0]) - 1 if vanished.size else x.size - 1, 0) :] = 0.0
    return lowered


def _drops(slopes: np.ndarray) -> np.ndarray:
    """What the slope loses at each order but the first, rounded down."""
    return np.maximum(slopes - np.append(slopes[1:], 0.0) - 4 * EPS * slopes, 0.0)


@dataclass(frozen=True)
class RecycledEvent(Event):
    """One release."""

    law: Recycled

    tight_for_one_step = True
    upper_symmetric = True

    @cached_property
    def _profile(self) -> RememberedProfile:
        return RememberedProfile(lambda log_order: RecycledProfile(self.law).bounds(log_order)[1])

    def _orders(self, step: float, tail: float) -> np.ndarray:
        """Those of a grid, up to where the profile falls to the mass of infinite losses."""
        floor = float(RecycledProfile(self.law).bounds(_BEYOND)[1]) if self.law.rate == 1 else 0.0
        return order_grid(self._profile, step, tail, floor)

    def upper(self, step: float, tail: float, swapped: bool) -> PrivacyLossDistribution:
        return symmetric_pld(self._profile, step, self._orders(step, tail))

    def lower(self, step: float, tail: float, swapped: bool) -> PrivacyLossDistribution:
        first, second = (self.law.mirrored, self.law) if swapped else (self.law, self.law.mirrored)
        forward = first.hockey_stick
        backward = forward if self.symmetric else second.hockey_stick
        return lower_law(
            forward, backward, step, self._orders(step, tail), _surely_infinite(self.law)
        )

    def fitting(self, step: float) -> float:
        """A step that nearly divides both L and what the kernel's losses are multiples of: lower
        laws are sharp where atoms of the loss, which only Laplace noise has, lie on the grid; many
        between two orders do not matter."""
        unit = self.law.sensitivity / self.law.kernel.scale
        if not isinstance(self.law.kernel, LaplaceKernel) or unit < step / 8:
            return step
        fewest = max(1, math.ceil(unit / step))
        if self.law.rate in (0.0, 1.0):
            return unit / fewest
        parts = np.arange(fewest, 4 * fewest + 1)
        ratio = -math.log1p(-self.law.rate) / unit * parts
        return float(unit / parts[int(np.argmin(np.abs(ratio - np.round(ratio)) / parts))])

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
    deadline: float | None = None,
) -> Account:
    """Bound delta at `epsilon`, or epsilon at `delta`, of up to `MOST_STEPS` releases with one
    recycler. `adjacency`, for which `law.sensitivity` holds, only enters the words; `width` is
    absolute for epsilon (default 1e-3), relative for delta (5e-3); what is reached at `deadline`, a
    reading of `time.monotonic`, is the answer."""
    relation = Relation(checks.one_of("adjacency", adjacency, list(Relation)))
    target = Target(
        epsilon, delta, width if width is not None else 1e-3 if epsilon is None else 5e-3, deadline
    )
    times = checked_steps(steps)
    ledger = Composition([(RecycledEvent(law), times)])
    width_met = True
    if times == 1:
        lower, upper = _once(law, target)
    elif law.rate == 0 and isinstance(law.kernel, GaussianKernel):
        # many releases with plain Gaussian noise have the loss of one whose sensitivity is sqrt(T)
        # as large
        lower, upper = _once(replace(law, sensitivity=law.sensitivity * math.sqrt(times)), target)
    elif (
        target.delta is not None
        and -math.expm1(times * math.log1p(-_surely_infinite(law))) > target.delta
    ):
        lower, upper = math.inf, math.inf
    else:
        lower, upper, width_met = ledger.answer(target)
    pair = (
        f"{law.kernel.name} noise of scale {law.kernel.scale:g}, redrawn with probability "
        f"{law.rate:g} outside [{law.lower:g}, {law.upper:g}], against itself moved by "
        f"{law.sensitivity:g}"
    )
    return Account(
        lower=min(lower, upper),
        upper=upper,
        kind="exact" if ledger.is_exact else "bounds",
        pair=pair,
        adjacency=relation,
        sensitivity=f"neighbours move the value by up to {law.sensitivity:g}",
        quantity=target.quantity,
        lower_pair="the same pair",
        width_met=width_met,
        conditions=CONDITIONS if width_met else (*CONDITIONS, WIDTH_MISSED),
    )


def upper_delta(law: Recycled, steps: int, epsilon: float) -> float:
    """A proved delta(epsilon) of the composition from one grid, accurate to a fraction of a per
    cent: for searches. After the time limit it is 1."""
    ledger = Composition([(RecycledEvent(law), steps)])
    try:
        step = ledger.spread / 128
    except OutOfTimeError:
        return 1.0
    return ledger.rough(Target(epsilon=epsilon), "upper", step)


def _surely_infinite(law: Recycled) -> float:
    """Probability of an infinite loss in the direction where it is smaller, rounded down."""
    if law.rate < 1:
        return 0.0
    return min(float(each.hockey_stick(_BEYOND).end(-1)) for each in (law, law.mirrored))


def _once(law: Recycled, target: Target) -> tuple[float, float]:
    """One release from the closed form; epsilon from both ends of delta."""
    bounds = RecycledProfile(law).bounds
    if target.delta is None:
        low, high = bounds(target.epsilon or 0.0)
        return float(low), float(high)
    first = bisected_epsilon(lambda epsilon: float(bounds(epsilon)[0]), target.delta)
    return first[0], bisected_epsilon(lambda epsilon: float(bounds(epsilon)[1]), target.delta)[1]


def bisected_epsilon(delta: Callable[[float], float], target: float) -> tuple[float, float]:
    """Both ends of a bracket of the smallest epsilon >= 0 at which a nonincreasing `delta` is at
    most `target`."""
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
    """Ends of a bracket of where a condition, which holds at `high` and not at `low`, begins to
    hold."""
    for _ in range(steps):
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return low, high
