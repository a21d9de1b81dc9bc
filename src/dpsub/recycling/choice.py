"""Recyclers for a budget, chosen by exact accounting: plain noise, the largest rate of a kernel, the best kernel.

For one release the exact profile decides; for several that share the budget, the proved delta of their composition:
spending all slack on one release is paid for many times.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from dpsub import checks
from dpsub.accounting.compose import minimum
from dpsub.accounting.pld import OutOfTimeError, check_time
from dpsub.errors import ArgumentError, NumericalError
from dpsub.recycling.composition import checked_steps, upper_delta
from dpsub.recycling.divergence import hockey_stick
from dpsub.recycling.kernels import Family, GaussianKernel, Kernel
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


def checked_budget(epsilon: Any, delta: Any) -> tuple[float, float]:
    """The two numbers of a budget, epsilon above 0 and delta between 0 and 1, else ArgumentError."""
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
    return minimum(lambda place: -value(place), low, high, (high - low) * _GOLDEN**steps)[0]


def bracketed(
    excess: Callable[[float], float], low: float, high: float, steps: int, width: float
) -> tuple[float, float]:
    """Ends of a bracket of the change of sign of a monotone function, by the Illinois rule; either may be taken."""
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


_PLAIN_STEPS, _RATE_STEPS, _SCALE_STEPS = 24, 8, 12
_LARGEST_EXCESS, _JUST_MET = 3.0, 1e-12
_MOST = 12.0
"""Largest -log(1 - q) looked at for several releases."""
_SCAN = np.linspace(0.0, 20.0, 400)
"""-log(1 - q) for one release: where the kernel alone has more than delta, delta falls before it rises with q, so that
the whole range is looked at."""
_ROUNDS, _SECTIONS = 6, 64
_SCALES, _GOLDEN_STEPS, _HALVINGS = 40, 22, 40
_NARROWER = 0.5
"""Smallest scale looked at, in those of the kernel that spends the whole budget: a kernel with less noise than that may
still be private once recycled."""


def plain_noise(
    family: Family, epsilon: float, delta: float, bound: float, sensitivity: float, steps: int = 1
) -> Choice:
    """The kernel alone whose `steps` releases together keep the budget: what recycling has to beat.

    Raises
    ------
    ArgumentError
        If an argument is out of range.
    """
    order, target = checked_budget(epsilon, delta)
    times = checked_steps(steps)
    single = checks.real("sensitivity", sensitivity, above=0, at_least=1e-150, at_most=1e150)
    if times > 1 and family is not GaussianKernel:
        scale = _composed_scale(family, order, target, bound, single, times)
        return Choice(Recycled.within(family(scale), 0.0, bound, sensitivity), order, target, "upper", times)
    # many releases with Gaussian noise are one of a larger sensitivity
    span = single * math.sqrt(times)
    kernel = family.calibrated(order, target, span)
    found, more = Choice(Recycled.within(kernel, 0.0, bound, span), order, target, "exact"), _ROUNDING
    while found.true_delta > target:
        # the calibration of the kernel rounds its delta to the nearest number, the certified end upwards
        law = Recycled.within(family(kernel.scale * (1 + more)), 0.0, bound, span)
        found, more = Choice(law, order, target, "exact"), 2 * more
    if times == 1:
        return found
    return Choice(Recycled.within(found.law.kernel, 0.0, bound, sensitivity), order, target, "upper", times)


def _composed_scale(
    family: Family, epsilon: float, delta: float, bound: float, sensitivity: float, times: int
) -> float:
    @cache
    def excess(log_scale: float) -> float:
        law = Recycled.within(family(math.exp(log_scale)), 0.0, bound, sensitivity)
        return _log_excess(law, times, epsilon, delta)

    # with so much noise the loss of all releases together hardly ever exceeds epsilon, however coarse the grid
    high = math.log(sensitivity * times / epsilon) + 0.1
    while excess(high) > 0:
        check_time()
        high += 0.5
    low = math.log(family.calibrated(epsilon, delta, sensitivity).scale) - 1e-3
    return math.exp(bracketed(excess, low, high, _PLAIN_STEPS, 1e-5)[1])


def largest_rate(
    kernel: Kernel, epsilon: float, delta: float, lower: float, upper: float, sensitivity: float, steps: int = 1
) -> Choice:
    """The recycler with the largest rate, hence acceptance, of which `steps` releases together keep (epsilon, delta).

    Raises
    ------
    ArgumentError
        If no rate will do: the budget is too small for the kernel.

    References
    ----------
    brdp, Algorithm 1, with the exact profile in place of equation (8).
    """
    order, target = checked_budget(epsilon, delta)
    times = checked_steps(steps)
    alone = Recycled(kernel, 0.0, lower, upper, sensitivity)
    if times == 1:
        found, has = _largest_once(alone, order, target), f"{float(RecycledProfile(alone).delta(order)):.3g}"
    else:
        found, has = _largest_composed(alone, order, target, times), f"more in {times} releases"
    if found is None:
        check_time()
        raise ArgumentError(
            f"the budget must allow for the kernel, got delta = {target:g} at epsilon = {order:g} where the kernel "
            f"alone has {has} and no rate has less than the budget; take a larger scale or budget"
        )
    return Choice(found, order, target, "exact" if times == 1 else "upper", times)


def _at_rate(law: Recycled, log_keep: float) -> Recycled:
    return Recycled(law.kernel, -math.expm1(log_keep), law.lower, law.upper, law.sensitivity)


def _largest_once(alone: Recycled, epsilon: float, delta: float) -> Recycled | None:
    """The largest rate for one release; None if no rate keeps the budget."""

    def keeps(log_keep: np.ndarray) -> np.ndarray:
        sides = {(alone.lower, alone.upper), (-alone.upper, -alone.lower)}
        ends = [
            hockey_stick(alone.kernel, log_keep, low, high, alone.sensitivity, epsilon).end(1)
            for low, high in sorted(sides)
        ]
        return np.asarray(np.max(ends, axis=0) <= delta)

    if keeps(np.array([-np.inf]))[0]:
        return _at_rate(alone, -math.inf)
    points = _SCAN
    for _ in range(_ROUNDS):
        kept = np.flatnonzero(keeps(-points))
        if not kept.size:
            return None
        last = int(kept[-1])
        low, high = points[last], points[min(last + 1, points.size - 1)]
        points = np.linspace(low, high, _SECTIONS + 1)
    # the rate is rounded once more when it leaves log space
    back = 1e-13
    while not float(RecycledProfile(_at_rate(alone, -low)).bounds(epsilon)[1]) <= delta:
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
        if high > _MOST:
            return _at_rate(alone, -high)
        high *= 2
    return _at_rate(alone, -bracketed(excess, 0.0, high, _RATE_STEPS, 1e-5)[0])


def _log_excess(law: Recycled, times: int, epsilon: float, delta: float) -> float:
    """log of delta(epsilon) over the target, cut where it says no more than its sign to the search of a root.

    Never 0: a target that is just met is kept.
    """
    found = upper_delta(law, times, epsilon)
    excess = math.log(found / delta) if found > 0 else -math.inf
    return max(-_LARGEST_EXCESS, min(_LARGEST_EXCESS, excess)) or -_JUST_MET


def best_recycler(
    family: Family, epsilon: float, delta: float, bound: float, sensitivity: float, steps: int = 1
) -> Choice:
    """The kernel and rate with the largest acceptance whose `steps` releases together keep (epsilon, delta).

    A search over several releases that meets a time limit ends with the best recycler that was proved until then.

    Parameters
    ----------
    family : type
        `GaussianKernel` or `LaplaceKernel`.
    epsilon, delta : float
        The budget of all releases together.
    bound, sensitivity : float
    steps : int

    Raises
    ------
    ArgumentError
        If an argument is out of range.

    References
    ----------
    brdp, Algorithm 2, with the exact profile and without the limit epsilon_y <= epsilon.
    """
    order, target = checked_budget(epsilon, delta)
    theta = checks.real("bound", bound, above=0)
    times = checked_steps(steps)
    if times == 1:
        return _best_once(family, order, target, theta, sensitivity)
    start = plain_noise(family, order, target, theta, sensitivity, times)
    tried: dict[float, Recycled] = {}

    def acceptance(log_factor: float) -> float:
        kernel = family(start.law.kernel.scale * math.exp(log_factor))
        alone = Recycled.within(kernel, 0.0, theta, sensitivity)
        tried[log_factor] = _largest_composed(alone, order, target, times) or start.law
        return tried[log_factor].acceptance

    place = best_place(acceptance, 0.0, math.log(2 + 2 * order / times), _SCALE_STEPS)
    # after the time limit no recycler counts as private: the best one was found before
    found = max(tried.values(), key=lambda law: law.acceptance) if out_of_time() else tried[place]
    return Choice(found, order, target, "upper", times) if found.acceptance > start.acceptance else start


def _best_once(family: Family, epsilon: float, delta: float, bound: float, sensitivity: float) -> Choice:
    """A scan over scales, then golden sections at its best one.

    Kernels that spend more than epsilon alone are among them.  Noise with hard bounds accepts all at any scale at which
    it is private: the smallest one has the smallest standard deviation.
    """
    start = math.log(family.calibrated(epsilon, delta, sensitivity).scale)

    def law(log_scale: float) -> Recycled | None:
        alone = Recycled.within(family(math.exp(log_scale)), 0.0, bound, sensitivity)
        return _largest_once(alone, epsilon, delta)

    def acceptance(log_scale: float) -> float:
        found = law(log_scale)
        return -1.0 if found is None else found.acceptance

    # the spent budget itself is one of them: its rate may be 0, never less
    reach = math.log(2 + 2 * epsilon)
    scales = np.unique(np.append(np.linspace(start + math.log(_NARROWER), start + reach, _SCALES), start + 1e-12))
    found = np.array([acceptance(float(place)) for place in scales])
    best = int(np.argmax(found))
    low, high = float(scales[max(best - 1, 0)]), float(scales[min(best + 1, scales.size - 1)])
    place = best_place(acceptance, low, high, _GOLDEN_STEPS)
    if acceptance(place) < found[best]:
        place = float(scales[best])
    chosen = law(place)
    if chosen is None:
        raise ArgumentError(f"the budget must allow for a kernel, got delta = {delta:g}; take a larger delta")
    if chosen.rate == 1:
        chosen = _narrowest(law, low, place)
    return Choice(chosen, epsilon, delta, "exact")


def _narrowest(law: Callable[[float], Recycled | None], low: float, high: float) -> Recycled:
    """The law at the smallest scale that may have rate 1: at `high` it may; below `low` it is not looked for."""
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        found = law(middle)
        low, high = (low, middle) if found is not None and found.rate == 1 else (middle, high)
    narrowest = law(high)
    assert narrowest is not None
    return narrowest
