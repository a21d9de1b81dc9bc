"""The largest rational rate of a discrete kernel that keeps a budget."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from dpsub.errors import ArgumentError
from dpsub.recycling.choice import budget
from dpsub.recycling.discrete_kernels import DiscreteKernel, DiscreteRecycled

_DENOMINATOR = 2**16
_SCAN = np.unique(np.round(_DENOMINATOR * -np.expm1(-np.linspace(0, 11, 64))).astype(int))


def largest_rate(
    kernel: DiscreteKernel, epsilon: float, delta: float, lower: int, upper: int, sensitivity: int
) -> DiscreteRecycled:
    """The recycler with the largest rate, a multiple of 2^-16, whose delta(epsilon), rounded up, is at most `delta`.

    Delta may fall before it rises with the rate, so that the whole range is looked at.

    Raises
    ------
    ArgumentError
        If none of the rates looked at will do: the budget is too small for the kernel.
    """
    order, target = budget(epsilon, delta)

    def law(numerator: int) -> DiscreteRecycled:
        return DiscreteRecycled(kernel, Fraction(numerator, _DENOMINATOR), lower, upper, sensitivity)

    def keeps(numerator: int) -> bool:
        return float(law(numerator).bounds(order)[1]) <= target

    if keeps(_DENOMINATOR):
        return law(_DENOMINATOR)
    kept = [int(numerator) for numerator in _SCAN if keeps(int(numerator))]
    if not kept:
        raise ArgumentError(
            f"the budget must allow for the kernel, got delta = {target:g} at epsilon = {order:g} which every rate of "
            "the discrete kernel exceeds; take a larger parameter or budget"
        )
    low = kept[-1]
    high = int(_SCAN[low < _SCAN].min(initial=_DENOMINATOR))
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if keeps(middle) else (low, middle)
    return law(low)
