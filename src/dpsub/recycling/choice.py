"""Recyclers for a budget, chosen by exact accounting: plain noise, the largest rate for a kernel,
and the best kernel with its rate.

A single release is judged by its exact profile. Releases that share a budget are judged by the
proved delta of their composition: slack that one release spends is missing from all of them
(docs/recycling.md, section 5).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Literal

import numpy as np

from dpsub import checks
from dpsub.accounting.engine import work
from dpsub.accounting.engine.fourier import minimum
from dpsub.errors import ArgumentError, NumericalError
from dpsub.recycling.composition import checked_steps, halved, upper_delta
from dpsub.recycling.divergence import hockey_stick
from dpsub.recycling.kernels import Family, GaussianKernel, Kernel
from dpsub.recycling.law import Recycled, RecycledProfile


@dataclass(frozen=True)
class Choice:
    """A recycler for the budget (epsilon, delta) of `steps` releases together.

    `kind` says by what the budget is kept: by the exact profile, by a proved upper bound, or by a
    formula of the paper, which is no guarantee; `true_delta` is one.
    """

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
        """epsilon_y: the epsilon of the kernel without recycling at the same delta."""
        return float(self.law.kernel.profile(self.law.sensitivity).epsilon(self.delta))

    @property
    def true_delta(self) -> float:
        """The exact delta of one release at epsilon, rounded up."""
        return true_delta(self.law, self.epsilon)


def true_delta(law: Recycled, epsilon: float) -> float:
    """Exact delta(epsilon) of one release, rounded up."""
    return float(RecycledProfile(law).bounds(epsilon)[1])


def checked_budget(epsilon: Any, delta: Any) -> tuple[float, float]:
    """Return epsilon above 0 and delta between 0 and 1, else raise ArgumentError."""
    order = checks.real("epsilon", epsilon, above=0, at_least=1e-100, at_most=1e100)
    return order, checks.real("delta", delta, above=0, below=1)


def argmax_unimodal(value: Callable[[float], float], low: float, high: float, steps: int) -> float:
    """Maximiser of a function with one peak between `low` and `high`, by golden sections."""
    # Each section leaves the golden ratio of the interval.
    width = (high - low) * ((5**0.5 - 1) / 2) ** steps
    place, _ = minimum(lambda place: -value(place), low, high, width)
    return place


def bracketed(
    excess: Callable[[float], float], low: float, high: float, steps: int, width: float
) -> tuple[float, float]:
    """Bracket the change of sign of a monotone function, by the Illinois rule.

    Each evaluation is a composition, so false position is worth it; either end may be taken.
    """
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
        # An end that stays twice in a row has its value halved: else false position would move
        # the other end alone.
        if value * at_low > 0:
            low, at_low = middle, value
            if side == 1:
                at_high /= 2
            side = 1
        else:
            high, at_high = middle, value
            if side == -1:
                at_low /= 2
            side = -1
    return low, high


def plain_noise(
    family: Family, epsilon: float, delta: float, bound: float, sensitivity: float, steps: int = 1
) -> Choice:
    """The kernel without recycling whose `steps` releases together keep the budget.

    This is what recycling has to beat.
    """
    order, target = checked_budget(epsilon, delta)
    times = checked_steps(steps)
    single = checks.real("sensitivity", sensitivity, above=0, at_least=1e-150, at_most=1e150)
    if times == 1 or family is GaussianKernel:
        # T releases with Gaussian noise are one with sqrt(T) times the sensitivity.
        composed = single * math.sqrt(times)
        scale = calibrated = family.calibrated(order, target, composed).scale
        # The calibration may be short by a rounding, which the certified upper bound shows.
        excess = 1e-14
        while true_delta(Recycled.within(family(scale), 0.0, bound, composed), order) > target:
            scale = calibrated * (1 + excess)
            excess = 2 * excess
    else:
        scale = _composed_scale(family, order, target, bound, single, times)
    law = Recycled.within(family(scale), 0.0, bound, single)
    return Choice(law, order, target, "exact" if times == 1 else "upper", times)


def _composed_scale(
    family: Family, epsilon: float, delta: float, bound: float, sensitivity: float, steps: int
) -> float:
    """The scale at which `steps` releases of the kernel together use up the budget, rounded up."""

    @cache
    def excess(log_scale: float) -> float:
        kernel = family(math.exp(log_scale))
        alone = Recycled.within(kernel, 0.0, bound, sensitivity)
        return _log_excess(alone, steps, epsilon, delta)

    # With so much noise the losses of all releases hardly ever sum to more than epsilon, however
    # coarse the grid is.
    high = math.log(sensitivity * steps / epsilon) + 0.1
    while excess(high) > 0:
        work.spend(0)
        high += 0.5
    # The scale for one release, less its rounding, is too small for several.
    low = math.log(family.calibrated(epsilon, delta, sensitivity).scale) - 1e-3
    _, log_scale = bracketed(excess, low, high, 24, 1e-5)
    return math.exp(log_scale)


def largest_rate(
    kernel: Kernel,
    epsilon: float,
    delta: float,
    lower: float,
    upper: float,
    sensitivity: float,
    steps: int = 1,
) -> Choice:
    """The recycler with the largest rate, hence acceptance, that keeps the budget.

    This is brdp, Algorithm 1, with the exact profile in place of (8), and for the budget
    (epsilon, delta) of `steps` releases together.

    Raises
    ------
    ArgumentError
        If no rate keeps the budget.
    """
    order, target = checked_budget(epsilon, delta)
    times = checked_steps(steps)
    alone = Recycled(kernel, 0.0, lower, upper, sensitivity)
    if times == 1:
        law = _largest_single(alone, order, target)
        kernel_delta = f"{float(RecycledProfile(alone).delta(order)):.3g}"
    else:
        law = _largest_composed(alone, order, target, times)
        kernel_delta = f"more in {times} releases"
    if law is None:
        work.spend(0)
        raise ArgumentError(
            f"the budget must allow for the kernel, got delta = {target:g} at epsilon = "
            f"{order:g} where the kernel alone has {kernel_delta} and no rate meets the "
            "budget; take a larger scale or budget"
        )
    return Choice(law, order, target, "exact" if times == 1 else "upper", times)


def _at_rate(law: Recycled, log_keep: float) -> Recycled:
    return replace(law, rate=-math.expm1(log_keep))


def _largest_single(alone: Recycled, epsilon: float, delta: float) -> Recycled | None:
    """The largest rate for one release; None if no rate keeps the budget."""
    directions = {(alone.lower, alone.upper), (-alone.upper, -alone.lower)}

    def keeps(log_keep: np.ndarray) -> np.ndarray:
        upper_ends = [
            hockey_stick(alone.kernel, log_keep, *bounds, alone.sensitivity, epsilon).end(1)
            for bounds in directions
        ]
        return np.asarray(np.max(upper_ends, axis=0) <= delta)

    hard_bounds = np.array([-np.inf])
    if keeps(hard_bounds)[0]:
        return _at_rate(alone, -math.inf)
    # delta need not increase with L = -log(1 - q): where the kernel alone misses the budget it
    # falls before it rises. So the whole range is scanned, and the last rate that keeps the
    # budget is refined.
    losses = np.linspace(0.0, 20.0, 400)
    for _ in range(6):
        kept = np.flatnonzero(keeps(-losses))
        if not kept.size:
            return None
        last = int(kept[-1])
        low, high = losses[last], losses[min(last + 1, losses.size - 1)]
        losses = np.linspace(low, high, 65)
    # The rate is rounded once more when it leaves log space: step back until it is proved.
    step_back = 1e-13
    while not true_delta(_at_rate(alone, -low), epsilon) <= delta:
        if low <= 0:
            return None
        low = max(0.0, low - step_back * (1 + low))
        step_back = 2 * step_back
    return _at_rate(alone, -float(low))


def _largest_composed(alone: Recycled, epsilon: float, delta: float, steps: int) -> Recycled | None:
    """The largest rate for several releases; None if the kernel alone does not keep the budget."""

    @cache
    def excess(loss: float) -> float:
        return _log_excess(_at_rate(alone, -loss), steps, epsilon, delta)

    if excess(0.0) > 0:
        return None
    high = 0.25
    while excess(high) <= 0:
        # At L > 12 hardly any noise outside is released: a larger rate gains nothing.
        if high > 12:
            return _at_rate(alone, -high)
        high *= 2
    # The end of the bracket where the budget is kept.
    loss, _ = bracketed(excess, 0.0, high, 8, 1e-5)
    return _at_rate(alone, -loss)


def _log_excess(law: Recycled, steps: int, epsilon: float, delta: float) -> float:
    """log of delta(epsilon) over the target, clipped to [-3, 3] and never 0.

    The search interpolates; far from the root only the sign is of use. A target that is just met is
    kept, hence not an excess.
    """
    composed = upper_delta(law, steps, epsilon)
    excess = math.log(composed / delta) if composed > 0 else -math.inf
    return max(-3.0, min(3.0, excess)) or -1e-12


def best_recycler(
    family: Family, epsilon: float, delta: float, bound: float, sensitivity: float, steps: int = 1
) -> Choice:
    """The kernel and rate with the largest acceptance that keep the budget.

    This is brdp, Algorithm 2, with exact accounting, without the restriction epsilon_y <= epsilon,
    and for the budget (epsilon, delta) of `steps` releases together. For several releases it is the
    best one that was proved within the budget of work.
    """
    order, target = checked_budget(epsilon, delta)
    times = checked_steps(steps)
    if times == 1:
        return _best_single(family, order, target, bound, sensitivity)
    plain = plain_noise(family, order, target, bound, sensitivity, times)
    tried: dict[float, Recycled] = {}

    def acceptance(log_factor: float) -> float:
        kernel = family(plain.law.kernel.scale * math.exp(log_factor))
        alone = Recycled.within(kernel, 0.0, bound, sensitivity)
        tried[log_factor] = _largest_composed(alone, order, target, times) or plain.law
        return tried[log_factor].acceptance

    before = work.refusals()
    best_factor = argmax_unimodal(acceptance, 0.0, math.log(2 + 2 * order / times), 12)
    # Where the budget is spent no recycler counts as private: take the best one before that.
    if work.refusals() > before:
        best = max(tried.values(), key=lambda law: law.acceptance)
    else:
        best = tried[best_factor]
    if best.acceptance > plain.acceptance:
        return Choice(best, order, target, "upper", times)
    return plain


def _best_single(
    family: Family, epsilon: float, delta: float, bound: float, sensitivity: float
) -> Choice:
    """The best recycler for one release: a scan over scales, then golden sections at its best."""
    calibrated = math.log(family.calibrated(epsilon, delta, sensitivity).scale)

    @cache
    def law(log_scale: float) -> Recycled | None:
        alone = Recycled.within(family(math.exp(log_scale)), 0.0, bound, sensitivity)
        return _largest_single(alone, epsilon, delta)

    def acceptance(log_scale: float) -> float:
        recycler = law(log_scale)
        return -1.0 if recycler is None else recycler.acceptance

    def has_hard_bounds(log_scale: float) -> bool:
        recycler = law(log_scale)
        return recycler is not None and recycler.rate == 1

    # A kernel with less noise than the one that spends the whole budget may be private once it is
    # recycled, so that the scan begins below that one. It is itself among them, with a rate that
    # may be 0.
    grid = np.linspace(calibrated + math.log(0.5), calibrated + math.log(2 + 2 * epsilon), 40)
    log_scales = np.unique(np.append(grid, calibrated + 1e-12)).tolist()
    acceptances = [acceptance(log_scale) for log_scale in log_scales]
    best = int(np.argmax(acceptances))
    low = log_scales[max(best - 1, 0)]
    high = log_scales[min(best + 1, len(log_scales) - 1)]
    log_scale = argmax_unimodal(acceptance, low, high, 22)
    if acceptance(log_scale) < acceptances[best]:
        log_scale = log_scales[best]
    # Hard bounds accept everything wherever they are private: of all such scales the smallest has
    # the smallest standard deviation.
    if has_hard_bounds(log_scale):
        _, log_scale = halved(has_hard_bounds, low, log_scale, 40)
    chosen = law(log_scale)
    if chosen is None:
        raise ArgumentError(
            f"the budget must allow for a kernel, got delta = {delta:g}; take a larger delta"
        )
    return Choice(chosen, epsilon, delta, "exact")
