"""Recyclers chosen by exact accounting: the largest rate of a kernel, and the best kernel.

A recycler chosen for a budget, and what it was chosen by.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpsub import checks
from dpsub.accounting.compose import minimum
from dpsub.errors import ArgumentError, NumericalError
from dpsub.recycling.divergence import stick
from dpsub.recycling.kernels import Family, Kernel, LaplaceKernel
from dpsub.recycling.law import Recycled, RecycledProfile

KINDS = ("exact", "upper", "paper")
_ROUNDING = 1e-14
_GOLDEN = (5**0.5 - 1) / 2


@dataclass(frozen=True)
class Choice:
    """A recycler for (epsilon, delta).

    Attributes
    ----------
    law : Recycled
    epsilon, delta : float
        The budget that was asked for; of all releases together if there are several.
    kind : {"exact", "upper", "paper"}
        exact: the exact profile keeps the budget; upper: a proved bound does; paper: a published formula does, which is
        no guarantee (`true_delta` says what is).
    steps : int
    """

    law: Recycled
    epsilon: float
    delta: float
    kind: str
    steps: int = 1

    def __post_init__(self) -> None:
        checks.one_of("kind", self.kind, KINDS)

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
        return float(RecycledProfile(self.law).bounds(self.epsilon)[1])


def budget(epsilon: Any, delta: Any) -> tuple[float, float]:
    """The two numbers of a budget, checked.

    Raises
    ------
    ArgumentError
        Unless epsilon > 0 and 0 < delta < 1.
    """
    return checks.real("epsilon", epsilon, above=0), checks.real("delta", delta, above=0, below=1)


def plain(family: Family, epsilon: float, delta: float, bound: float, sensitivity: float) -> Choice:
    """The kernel alone, calibrated exactly: what recycling has to beat."""
    order, target = budget(epsilon, delta)
    kernel = family.for_budget(order, target, sensitivity)
    found, more = Choice(Recycled.within(kernel, 0.0, bound, sensitivity), order, target, "exact"), _ROUNDING
    while found.true_delta > target:
        # the calibration of the kernel rounds its delta to the nearest number, the certified end upwards
        law = Recycled.within(family(kernel.scale * (1 + more)), 0.0, bound, sensitivity)
        found, more = Choice(law, order, target, "exact"), 2 * more
    return found


def best_place(value: Callable[[float], float], low: float, high: float, steps: int) -> float:
    """Where a function with one peak between low and high is largest, by golden sections."""
    return minimum(lambda place: -value(place), low, high, (high - low) * _GOLDEN**steps)[0]


def bracketed(
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


_SCAN = np.linspace(0.0, 20.0, 400)
"""-log(1 - q): delta does not grow with q where the kernel alone has more than delta, so the whole range is looked
at."""
_ROUNDS, _SECTIONS = 6, 64
_SCALES, _GOLDEN_STEPS = 40, 22
_NARROWER = 0.5
"""Smallest scale looked at, in those of the kernel that spends the whole budget: a kernel with less noise than that may
still be private once recycled."""


def largest_rate(
    kernel: Kernel, epsilon: float, delta: float, lower: float, upper: float, sensitivity: float
) -> Choice:
    """The recycler with the largest rate, hence acceptance, whose exact delta(epsilon) is at most `delta`.

    Raises
    ------
    ArgumentError
        If no rate will do: the budget is too small for the kernel.

    References
    ----------
    brdp, Algorithm 1, with the exact profile in place of equation (8).
    """
    order, target = budget(epsilon, delta)
    found = _largest(kernel, order, target, lower, upper, sensitivity)
    if found is None:
        alone = float(RecycledProfile(Recycled(kernel, 0.0, lower, upper, sensitivity)).delta(order))
        raise ArgumentError(
            f"the budget must allow for the kernel, got delta = {target:g} at epsilon = {order:g} where the kernel "
            f"alone has {alone:.3g} and no rate has less than the budget; take a larger scale or budget"
        )
    return Choice(found, order, target, "exact")


def _largest(
    kernel: Kernel, epsilon: float, delta: float, lower: float, upper: float, sensitivity: float
) -> Recycled | None:
    def law(log_keep: float) -> Recycled:
        return Recycled(kernel, -math.expm1(log_keep), lower, upper, sensitivity)

    def keeps(log_keep: np.ndarray) -> np.ndarray:
        sides = {(lower, upper), (-upper, -lower)}
        ends = [stick(kernel, log_keep, low, high, sensitivity, epsilon).end(1) for low, high in sorted(sides)]
        return np.asarray(np.max(ends, axis=0) <= delta)

    if keeps(np.array([-np.inf]))[0]:
        return law(-math.inf)
    points = _SCAN
    for _ in range(_ROUNDS):
        kept = np.flatnonzero(keeps(-points))
        if not kept.size:
            return None
        last = int(kept[-1])
        low, high = points[last], points[min(last + 1, points.size - 1)]
        points = np.linspace(low, high, _SECTIONS + 1)
    # the rate is rounded once more when it leaves log space
    while not float(RecycledProfile(law(-low)).bounds(epsilon)[1]) <= delta:
        if low <= 0:
            return None
        low = max(0.0, low - 1e-13 * (1 + low))
    return law(-float(low))


def optimum(family: Family, epsilon: float, delta: float, bound: float, sensitivity: float) -> Choice:
    """The kernel and rate with the largest acceptance whose exact delta(epsilon) is at most `delta`.

    A scan over scales, then golden sections at its best one; kernels that spend more than epsilon alone are among them.

    References
    ----------
    brdp, Algorithm 2, with the exact profile and without the limit epsilon_y <= epsilon.
    """
    order, target = budget(epsilon, delta)
    theta = checks.real("bound", bound, above=0)
    start = math.log(family.for_budget(order, target, sensitivity).scale)

    def best_law(log_scale: float) -> Recycled | None:
        return _largest(family(math.exp(log_scale)), order, target, -theta, theta, sensitivity)

    def acceptance(log_scale: float) -> float:
        found = best_law(log_scale)
        return -1.0 if found is None else found.acceptance

    # the spent budget itself is one of them: its rate may be 0, never less
    reach = math.log(2 + 2 * order)
    scales = np.unique(np.append(np.linspace(start + math.log(_NARROWER), start + reach, _SCALES), start + 1e-12))
    found = np.array([acceptance(float(place)) for place in scales])
    best = int(np.argmax(found))
    low, high = float(scales[max(best - 1, 0)]), float(scales[min(best + 1, scales.size - 1)])
    place = best_place(acceptance, low, high, _GOLDEN_STEPS)
    if acceptance(place) < found[best]:
        place = float(scales[best])
    law = best_law(place)
    if law is None:
        raise ArgumentError(f"the budget must allow for a kernel, got delta = {target:g}; take a larger delta")
    return Choice(law, order, target, "exact")


def laplace_split(epsilon: float, bound: float, sensitivity: float) -> float:
    """epsilon_y of the best Laplace kernel under pure privacy: min(epsilon, -log(1 - r) / r), r = bound / sensitivity.

    With r >= 1, and for every epsilon <= 1, it is epsilon: the recycler gains nothing.
    """
    order = checks.real("epsilon", epsilon, above=0)
    ratio = checks.real("bound", bound, above=0) / checks.real("sensitivity", sensitivity, above=0)
    return min(order, -math.log1p(-ratio) / ratio) if ratio < 1 else order


def laplace_optimum(epsilon: float, bound: float, sensitivity: float) -> Recycled:
    """The best recycled Laplace noise with delta = 0: q = 1 - exp(-(epsilon - epsilon_y)) at the `laplace_split`."""
    split = laplace_split(epsilon, bound, sensitivity)
    kernel = LaplaceKernel.for_budget(split, 0.0, sensitivity)
    return Recycled.within(kernel, -math.expm1(split - epsilon), bound, sensitivity)


def proved_baseline(law: Recycled, kernel_epsilon: float) -> tuple[float, float]:
    """(epsilon_y + L, c delta_Z(epsilon_y)): a guarantee for every symmetric log-concave kernel with q < 1.

    The released density is at most c k, and at least c (1 - q) k' for the neighbour.

    References
    ----------
    brdp, Theorem 2, which omits c.
    """
    spent = checks.real("kernel_epsilon", kernel_epsilon, at_least=0)
    checks.real("rate", law.rate, below=1)
    alone = float(law.kernel.profile(law.sensitivity).delta(spent))
    return spent - math.log1p(-law.rate), min(1.0, law.normaliser * alone)
