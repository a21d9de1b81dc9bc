"""The smallest noise for which a decreasing bound meets a target, from the safe side."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from dpsub.errors import UnsupportedError

_MOST = 60
_WIDEST = 0.5


@dataclass(frozen=True)
class SafeRoot:
    """A number x with bound(x) <= target that was checked, and one below it with bound > target.

    Attributes
    ----------
    safe, unsafe : float
        unsafe < safe; both were evaluated, except that unsafe is 0 where no x was found to miss the target.
    value : float
        The bound at `safe`.
    evaluations : int
    """

    safe: float
    unsafe: float
    value: float
    evaluations: int


def smallest_noise(
    bound: Callable[[float], float], target: float, *, start: float, least: float, most: float, accuracy: float
) -> SafeRoot:
    """Find the smallest x with bound(x) <= target, to a relative accuracy, by safeguarded secants of logarithms.

    Parameters
    ----------
    bound : callable
        Decreasing in x, positive; may be infinite.
    target : float
    start, least, most : float
        First guess and limits of x.
    accuracy : float
        Relative distance of the two ends of the answer.

    Raises
    ------
    UnsupportedError
        If even x = most does not meet the target.
    """
    seen: list[tuple[float, float]] = []

    def gap(x: float) -> float:
        value = bound(x)
        seen.append((x, value))
        return math.log(value / target) if 0 < value < math.inf else math.copysign(40.0, value - target)

    low, high = least, most
    gap_low, gap_high = math.nan, math.nan
    x = min(max(start, least), most)
    for _ in range(_MOST):
        g = gap(x)
        if g <= 0:
            high, gap_high = x, g
        else:
            low, gap_low = x, g
        if (not math.isnan(gap_high) and high <= low * (1 + accuracy)) or high == least:
            break
        if math.isnan(gap_high):
            if low == most:
                raise UnsupportedError(
                    f"the target cannot be met with noise up to {most:g}, where the bound is {seen[-1][1]:g}; raise it"
                )
            # epsilon falls at least like 1/x where it is moderate: a little more than that
            x = min(x * math.exp(min(1.2 * gap_low + accuracy, _WIDEST)), most)
        elif math.isnan(gap_low):
            x = max(x * math.exp(max(1.2 * gap_high - accuracy, -_WIDEST)), least)
        else:
            # secant in log x, aimed a little to either side so that the bracket closes on the root from both
            share = gap_low / (gap_low - gap_high)
            u = math.log(low) + share * math.log(high / low)
            margin = 0.3 * math.log1p(accuracy)
            u += margin if abs(gap_low) < abs(gap_high) else -margin
            inner = 0.02 * math.log(high / low)
            x = math.exp(min(max(u, math.log(low) + inner), math.log(high) - inner))
    value = next(v for at, v in reversed(seen) if at == high)
    # `low` may still be the limit that it began with, of which nothing is known
    return SafeRoot(high, low if not math.isnan(gap_low) else 0.0, value, len(seen))
