"""A recycler chosen for a budget, and what it was chosen by."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dpsub import checks
from dpsub.accountants.chernoff import minimum
from dpsub.errors import NumericalError
from dpsub.recycling.exact import RecycledProfile
from dpsub.recycling.kernels import Family
from dpsub.recycling.law import Recycled

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
    n_compositions : int
    """

    law: Recycled
    epsilon: float
    delta: float
    kind: str
    n_compositions: int = 1

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
