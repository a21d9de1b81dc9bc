"""Recyclers for a budget, chosen by exact accounting: plain noise, the largest rate of a kernel,
the best kernel.

One release is judged by its exact profile, several that share the budget by the proved delta of
their composition: spending all slack on one release is paid for many times (docs/recycling.md,
section 5).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Literal

import numpy as np

from dpsub import checks
from dpsub.accounting.compose import minimum
from dpsub.accounting.pld import OutOfTimeError, check_time
from dpsub.errors import ArgumentError, NumericalError
from dpsub.recycling.composition import checked_steps, halved, upper_delta
from dpsub.recycling.divergence import hockey_stick
from dpsub.recycling.kernels import Family, GaussianKernel, Kernel
from dpsub.recycling.law import Recycled, RecycledProfile


@dataclass(frozen=True)
class Choice:
    """A recycler for (epsilon, delta), the budget of `steps` releases together: kept by the exact
    profile, by a proved bound (upper), or by a published formula (paper), which is no guarantee:
    `true_delta` says what is."""

    law: Recycled
    epsilon: float
    delta: float
    kind: Literal["exact", "upper", "paper"]
    steps: int = 1

    @property
    def acceptance(self) -> float:
        """Probability that the released noise lies within the bounds."""
        return self.law.acceptance

    @property
    def kernel_epsilon(self) -> float:
        """epsilon_y: what the kernel alone has at the same delta."""
        return float(self.law.kernel.profile(self.law.sensitivity).epsilon(self.delta))

    @property
    def true_delta(self) -> float:
        """The exact delta of one release at epsilon, rounded up."""
        return true_delta(self.law, self.epsilon)


def true_delta(law: Recycled, epsilon: float) -> float:
    """The exact delta of one release, rounded up."""
    return float(RecycledProfile(law).bounds(epsilon)[1])


def checked_budget(epsilon: Any, delta: Any) -> tuple[float, float]:
    """The two numbers of a budget, epsilon above 0 and delta between 0 and 1, else
    ArgumentError."""
    order = checks.real("epsilon", epsilon, above=0, at_least=1e-100, at_most=1e100)
    return order, checks.real("delta", delta, above=0, below=1)


def out_of_time() -> bool:
    """Whether the time limit (`dpsub.accounting.pld.time_limited`) has passed."""
    try:
        check_time()
    except OutOfTimeError:
        return True
    return False


def best_place(value: Callable[[float], float], low: float, high: float, steps: int) -> float:
    """Where a function with one peak between low and high is largest, by golden sections."""
    return minimum(
        lambda place: -value(place), low, high, (high - low) * ((5**0.5 - 1) / 2) ** steps
    )[0]


def bracketed(
    excess: Callable[[float], float], low: float, high: float, steps: int, width: float
) -> tuple[float, float]:
    """Ends of a bracket of the change of sign of a monotone function, by the Illinois rule; either
    may be taken."""
    at_low, at_high = excess(low), excess(high)
    if at_low * at_high > 0:
        raise NumericalError(
            f"a budget must be met between the ends of a search, got {at_low:.3g} and {at_high:.3g}"
        )
    side = 0
    for _ in range(steps):
        if high - low <= width:
            break
        middle = (low * at_high - high * at_low) / (at_high - at_low)
        if not low < middle < high:
            middle = (low + high) / 2
        value = excess(middle)
        if value * at_low > 0:
            low, at_low = middle, value
            at_high, side = (at_high / 2 if side == 1 else at_high), 1
        else:
            high, at_high = middle, value
            at_low, side = (at_low / 2 if side == -1 else at_low), -1
    return low, high


def plain_noise(
    family: Family, epsilon: float, delta: float, bound: float, sensitivity: float, steps: int = 1
) -> Choice:
    """The kernel alone whose `steps` releases together keep the budget: what recycling has to
    beat."""
    order, target = checked_budget(epsilon, delta)
    times = checked_steps(steps)
    single = checks.real("sensitivity", sensitivity, above=0, at_least=1e-150, at_most=1e150)
    if times == 1 or family is GaussianKernel:
        # many releases with Gaussian noise are one of a larger sensitivity
        span = single * math.sqrt(times)
        scale = calibrated = family.calibrated(order, target, span).scale
        more = 1e-14
        while true_delta(Recycled.within(family(scale), 0.0, bound, span), order) > target:
            # the calibration of the kernel rounds its delta to the nearest number, the certified
            # end upwards
            scale, more = calibrated * (1 + more), 2 * more
    else:
        scale = _composed_scale(family, order, target, bound, single, times)
    law = Recycled.within(family(scale), 0.0, bound, single)
    return Choice(law, order, target, "exact" if times == 1 else "upper", times)


def _composed_scale(
    family: Family, epsilon: float, delta: float, bound: float, span: float, times: int
) -> float:
    @cache
    def excess(log_scale: float) -> float:
        return _log_excess(
            Recycled.within(family(math.exp(log_scale)), 0.0, bound, span), times, epsilon, delta
        )

    # with so much noise the loss of all releases together hardly ever exceeds epsilon, however
    # coarse the grid
    high = math.log(span * times / epsilon) + 0.1
    while excess(high) > 0:
        check_time()
        high += 0.5
    low = math.log(family.calibrated(epsilon, delta, span).scale) - 1e-3
    return math.exp(bracketed(excess, low, high, 24, 1e-5)[1])


def largest_rate(
    kernel: Kernel,
    epsilon: float,
    delta: float,
    lower: float,
    upper: float,
    sensitivity: float,
    steps: int = 1,
) -> Choice:
    """The recycler with the largest rate, hence acceptance, of which `steps` releases together keep
    (epsilon, delta): brdp, Algorithm 1, with the exact profile in place of (8). ArgumentError if no
    rate keeps the budget."""
    order, target = checked_budget(epsilon, delta)
    times = checked_steps(steps)
    alone = Recycled(kernel, 0.0, lower, upper, sensitivity)
    if times == 1:
        found, has = (
            _largest_once(alone, order, target),
            f"{float(RecycledProfile(alone).delta(order)):.3g}",
        )
    else:
        found, has = _largest_composed(alone, order, target, times), f"more in {times} releases"
    if found is None:
        check_time()
        raise ArgumentError(
            f"the budget must allow for the kernel, got delta = {target:g} at epsilon = {order:g} "
            f"where the kernel alone has {has} and no rate has less than the budget; take a "
            "larger scale or budget"
        )
    return Choice(found, order, target, "exact" if times == 1 else "upper", times)


def _at_rate(law: Recycled, log_keep: float) -> Recycled:
    return replace(law, rate=-math.expm1(log_keep))


def _largest_once(alone: Recycled, epsilon: float, delta: float) -> Recycled | None:
    """The largest rate for one release; None if no rate keeps the budget."""
    sides = {(alone.lower, alone.upper), (-alone.upper, -alone.lower)}

    def keeps(log_keep: np.ndarray) -> np.ndarray:
        found = [
            hockey_stick(alone.kernel, log_keep, *side, alone.sensitivity, epsilon).end(1)
            for side in sides
        ]
        return np.asarray(np.max(found, axis=0) <= delta)

    if keeps(np.array([-np.inf]))[0]:
        return _at_rate(alone, -math.inf)
    # where the kernel alone has more than delta, delta falls before it rises with -log(1 - q): look
    # at its whole range
    points = np.linspace(0.0, 20.0, 400)
    for _ in range(6):
        kept = np.flatnonzero(keeps(-points))
        if not kept.size:
            return None
        last = int(kept[-1])
        low, high = points[last], points[min(last + 1, points.size - 1)]
        points = np.linspace(low, high, 65)
    back = 1e-13  # the rate is rounded once more when it leaves log space
    while not true_delta(_at_rate(alone, -low), epsilon) <= delta:
        if low <= 0:
            return None
        low, back = max(0.0, low - back * (1 + low)), 2 * back
    return _at_rate(alone, -float(low))


def _largest_composed(alone: Recycled, epsilon: float, delta: float, times: int) -> Recycled | None:
    """The largest rate for several releases; None if the kernel alone does not keep the budget."""

    @cache
    def excess(loss: float) -> float:
        return _log_excess(_at_rate(alone, -loss), times, epsilon, delta)

    if excess(0.0) > 0:
        return None
    high = 0.25
    while excess(high) <= 0:
        if high > 12:
            return _at_rate(alone, -high)
        high *= 2
    return _at_rate(alone, -bracketed(excess, 0.0, high, 8, 1e-5)[0])


def _log_excess(law: Recycled, times: int, epsilon: float, delta: float) -> float:
    """log of delta(epsilon) over the target, cut where only its sign counts; never 0: a target just
    met is kept."""
    found = upper_delta(law, times, epsilon)
    excess = math.log(found / delta) if found > 0 else -math.inf
    return max(-3.0, min(3.0, excess)) or -1e-12


def best_recycler(
    family: Family, epsilon: float, delta: float, bound: float, sensitivity: float, steps: int = 1
) -> Choice:
    """The kernel and rate with the largest acceptance whose `steps` releases together keep
    (epsilon, delta): brdp, Algorithm 2, exact and without epsilon_y <= epsilon; of several releases
    the best one proved within a time limit."""
    order, target = checked_budget(epsilon, delta)
    times = checked_steps(steps)
    if times == 1:
        return _best_once(family, order, target, bound, sensitivity)
    start = plain_noise(family, order, target, bound, sensitivity, times)
    tried: dict[float, Recycled] = {}

    def acceptance(log_factor: float) -> float:
        alone = Recycled.within(
            family(start.law.kernel.scale * math.exp(log_factor)), 0.0, bound, sensitivity
        )
        tried[log_factor] = _largest_composed(alone, order, target, times) or start.law
        return tried[log_factor].acceptance

    place = best_place(acceptance, 0.0, math.log(2 + 2 * order / times), 12)
    # after the time limit no recycler counts as private: the best one was found before
    found = max(tried.values(), key=lambda law: law.acceptance) if out_of_time() else tried[place]
    return (
        Choice(found, order, target, "upper", times)
        if found.acceptance > start.acceptance
        else start
    )


def _best_once(
    family: Family, epsilon: float, delta: float, bound: float, sensitivity: float
) -> Choice:
    """A scan over scales, also of kernels that alone spend more than epsilon, then golden sections
    at its best one. Hard bounds accept all wherever they are private: the smallest scale has the
    smallest standard deviation."""
    start = math.log(family.calibrated(epsilon, delta, sensitivity).scale)

    @cache
    def law(log_scale: float) -> Recycled | None:
        return _largest_once(
            Recycled.within(family(math.exp(log_scale)), 0.0, bound, sensitivity), epsilon, delta
        )

    def acceptance(log_scale: float) -> float:
        found = law(log_scale)
        return -1.0 if found is None else found.acceptance

    def has_hard_bounds(log_scale: float) -> bool:
        found = law(log_scale)
        return found is not None and found.rate == 1

    # a kernel with less noise than the one that spends the whole budget may still be private once
    # recycled; that one, whose rate may be 0, is among them
    grid = np.linspace(start + math.log(0.5), start + math.log(2 + 2 * epsilon), 40)
    scales = np.unique(np.append(grid, start + 1e-12)).tolist()
    found = [acceptance(place) for place in scales]
    best = int(np.argmax(found))
    low, high = scales[max(best - 1, 0)], scales[min(best + 1, len(scales) - 1)]
    place = best_place(acceptance, low, high, 22)
    if acceptance(place) < found[best]:
        place = scales[best]
    if has_hard_bounds(place):
        place = halved(has_hard_bounds, low, place, 40)[1]
    chosen = law(place)
    if chosen is None:
        raise ArgumentError(
            f"the budget must allow for a kernel, got delta = {delta:g}; take a larger delta"
        )
    return Choice(chosen, epsilon, delta, "exact")
