"""Recyclers for a budget of many releases together: spending all of it on one release is paid for many times."""

from __future__ import annotations

import math
from collections.abc import Callable

from dpsub import checks
from dpsub.accountants.ledger import Ledger
from dpsub.accountants.refinement import Question
from dpsub.calibration import analytic_gaussian_scale
from dpsub.errors import ArgumentError, NumericalError
from dpsub.recycling import budget as single
from dpsub.recycling.choice import Choice, best_place, budget
from dpsub.recycling.choice import plain as one_release
from dpsub.recycling.composed import RecycledEvent
from dpsub.recycling.kernels import Family, GaussianKernel, Kernel
from dpsub.recycling.law import Recycled

_POINTS = 128
"""Of a grid in a standard deviation of the loss: delta then comes out accurate to a fraction of a per cent."""
_SCALE_STEPS, _RATE_STEPS, _PLAIN_STEPS = 11, 8, 16
_WIDEST = math.log(2.0)
_MOST = 12.0
"""Largest -log(1 - q) looked at."""


def plain(
    family: Family, epsilon: float, delta: float, n_compositions: int, bound: float, sensitivity: float
) -> Choice:
    """The kernel alone whose releases together keep the budget.

    Raises
    ------
    ArgumentError
        If an argument is out of range.
    NumericalError
        If no scale was found.
    """
    order, target = budget(epsilon, delta)
    times = checks.integer("n_compositions", n_compositions, at_least=1)
    if times == 1:
        return one_release(family, order, target, bound, sensitivity)
    if family is GaussianKernel:
        scale = analytic_gaussian_scale(order, target, sensitivity * math.sqrt(times))
    else:
        scale = _plain_scale(family, order, target, times, bound, sensitivity)
    return Choice(Recycled.within(family(scale), 0.0, bound, sensitivity), order, target, "upper", times)


def _plain_scale(family: Family, epsilon: float, delta: float, times: int, bound: float, sensitivity: float) -> float:
    def log_excess(log_scale: float) -> float:
        law = Recycled.within(family(math.exp(log_scale)), 0.0, bound, sensitivity)
        return math.log(max(upper_delta(law, times, epsilon), 1e-300) / delta)

    # with so much noise the loss of all releases together hardly ever exceeds epsilon, however coarse the grid
    high = math.log(sensitivity * times / epsilon) + 0.1
    while log_excess(high) > 0:
        high += 0.5
    low = high - math.log(times) - 3
    return math.exp(_root(log_excess, low, high, _PLAIN_STEPS, 1e-4)[1])


def optimum(
    family: Family, epsilon: float, delta: float, n_compositions: int, bound: float, sensitivity: float
) -> Choice:
    """The kernel and rate with the largest acceptance whose `n_compositions` releases together keep (epsilon, delta).

    Golden sections over the scale, from that of the kernel alone to twice that; at each the largest rate whose proved
    delta keeps the budget.

    Raises
    ------
    ArgumentError
        If an argument is out of range.
    """
    if n_compositions == 1:
        return single.optimum(family, epsilon, delta, bound, sensitivity)
    start = plain(family, epsilon, delta, n_compositions, bound, sensitivity)

    def law(log_factor: float) -> Recycled:
        kernel = family(start.law.kernel.scale * math.exp(log_factor))
        return _largest(kernel, start.epsilon, start.delta, start.n_compositions, bound, sensitivity) or start.law

    place = best_place(lambda log_factor: law(log_factor).acceptance, 0.0, _WIDEST, _SCALE_STEPS)
    found = law(place)
    if found.acceptance <= start.acceptance:
        return start
    return Choice(found, start.epsilon, start.delta, "upper", start.n_compositions)


def largest_rate(
    kernel: Kernel, epsilon: float, delta: float, n_compositions: int, bound: float, sensitivity: float
) -> Choice:
    """The recycler of the kernel with the largest rate of which that many releases keep (epsilon, delta) together.

    Raises
    ------
    ArgumentError
        If the kernel alone does not keep it.
    """
    order, target = budget(epsilon, delta)
    times = checks.integer("n_compositions", n_compositions, at_least=1)
    if times == 1:
        return single.largest_rate(kernel, order, target, -bound, bound, sensitivity)
    found = _largest(kernel, order, target, times, bound, sensitivity)
    if found is None:
        raise ArgumentError(
            f"the budget must allow for the kernel, got delta = {target:g} at epsilon = {order:g} which {times} "
            f"releases at scale {kernel.scale:g} exceed without a recycler; take a larger scale or budget"
        )
    return Choice(found, order, target, "upper", times)


def _largest(
    kernel: Kernel, epsilon: float, delta: float, times: int, bound: float, sensitivity: float
) -> Recycled | None:
    """The kernel with the largest rate that keeps the budget; None if the kernel alone does not."""

    def law(loss: float) -> Recycled:
        return Recycled.within(kernel, -math.expm1(-loss), bound, sensitivity)

    def log_excess(loss: float) -> float:
        return math.log(max(upper_delta(law(loss), times, epsilon), 1e-300) / delta)

    if log_excess(0.0) > 0:
        return None
    high = 0.25
    while log_excess(high) <= 0:
        if high > _MOST:
            return law(high)
        high *= 2
    return law(_root(log_excess, 0.0, high, _RATE_STEPS, 1e-5)[0])


def upper_delta(law: Recycled, n_compositions: int, epsilon: float) -> float:
    """A proved delta(epsilon) of the composition from one grid, which is fine enough for searches."""
    ledger = Ledger([(RecycledEvent(law), n_compositions)])
    return ledger.rough(Question(epsilon=epsilon), "upper", ledger.spread / _POINTS)


def _root(
    excess: Callable[[float], float], low: float, high: float, steps: int, width: float
) -> tuple[float, float]:
    """Ends of a bracket of the change of sign of a monotone function, by the Illinois rule."""
    at_low, at_high = excess(low), excess(high)
    if at_low * at_high > 0:
        raise NumericalError(f"a budget must be met between the ends of a search, got {at_low:.3g} and {at_high:.3g}")
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
