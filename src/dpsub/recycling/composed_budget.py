"""Recyclers for a budget of many releases together: spending all of it on one release is paid for many times."""

from __future__ import annotations

import math

from dpsub import checks
from dpsub.accountants.ledger import Ledger
from dpsub.accountants.refinement import Question
from dpsub.errors import ArgumentError
from dpsub.recycling import budget as single
from dpsub.recycling.choice import Choice, best_place, bracketed, budget
from dpsub.recycling.choice import plain as one_release
from dpsub.recycling.composed import RecycledEvent
from dpsub.recycling.kernels import Family, GaussianKernel, Kernel
from dpsub.recycling.law import Recycled

_POINTS = 128
"""Of a grid in a standard deviation of the loss: delta then comes out accurate to a fraction of a per cent."""
_SCALE_STEPS, _RATE_STEPS, _PLAIN_STEPS = 12, 8, 24
_LARGEST_EXCESS = 3.0
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
    """
    order, target = budget(epsilon, delta)
    times = checks.integer("n_compositions", n_compositions, at_least=1)
    if times == 1:
        return one_release(family, order, target, bound, sensitivity)
    if family is GaussianKernel:
        # all releases together are one of that sensitivity
        scale = one_release(family, order, target, bound, sensitivity * math.sqrt(times)).law.kernel.scale
    else:
        scale = _plain_scale(family, order, target, times, bound, sensitivity)
    return Choice(Recycled.within(family(scale), 0.0, bound, sensitivity), order, target, "upper", times)


def _plain_scale(family: Family, epsilon: float, delta: float, times: int, bound: float, sensitivity: float) -> float:
    def excess(log_scale: float) -> float:
        law = Recycled.within(family(math.exp(log_scale)), 0.0, bound, sensitivity)
        return _excess(law, times, epsilon, delta)

    # with so much noise the loss of all releases together hardly ever exceeds epsilon, however coarse the grid
    high = math.log(sensitivity * times / epsilon) + 0.1
    while excess(high) > 0:
        high += 0.5
    low = math.log(family.for_budget(epsilon, delta, sensitivity).scale) - 1e-3
    return math.exp(bracketed(excess, low, high, _PLAIN_STEPS, 1e-5)[1])


def optimum(
    family: Family, epsilon: float, delta: float, n_compositions: int, bound: float, sensitivity: float
) -> Choice:
    """The kernel and rate with the largest acceptance whose `n_compositions` releases together keep (epsilon, delta).

    Golden sections over the scale, from that of the kernel alone upwards; at each the largest rate whose proved
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

    widest = math.log(2 + 2 * start.epsilon / start.n_compositions)
    place = best_place(lambda log_factor: law(log_factor).acceptance, 0.0, widest, _SCALE_STEPS)
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

    def excess(loss: float) -> float:
        return _excess(law(loss), times, epsilon, delta)

    if excess(0.0) > 0:
        return None
    high = 0.25
    while excess(high) <= 0:
        if high > _MOST:
            return law(high)
        high *= 2
    return law(bracketed(excess, 0.0, high, _RATE_STEPS, 1e-5)[0])


def _excess(law: Recycled, times: int, epsilon: float, delta: float) -> float:
    """log of delta(epsilon) over the target, cut where it says no more than its sign to the search of a root."""
    found = upper_delta(law, times, epsilon)
    return max(-_LARGEST_EXCESS, min(_LARGEST_EXCESS, math.log(found / delta))) if found > 0 else -_LARGEST_EXCESS


def upper_delta(law: Recycled, n_compositions: int, epsilon: float) -> float:
    """A proved delta(epsilon) of the composition from one grid, which is fine enough for searches."""
    ledger = Ledger([(RecycledEvent(law), n_compositions)])
    return ledger.rough(Question(epsilon=epsilon), "upper", ledger.spread / _POINTS)
