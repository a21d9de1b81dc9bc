"""The smallest noise for which a decreasing bound meets a target, from the safe side."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from dpsub.errors import UnsupportedError

_MOST = 60
_WIDEST = 1.0


@dataclass(frozen=True)
class SafeRoot:
    """A number x with bound(x) <= target that was checked, and one below it with bound > target.

    Attributes
    ----------
    safe, unsafe : float
        unsafe < safe; both were evaluated, except that unsafe is 0 where no x was found to miss the target.
    root : float
        Where the bound may be the target, by interpolation between the two.
    steepness : float
        How fast the logarithm of the bound falls with that of x between the two.
    value : float
        The bound at `safe`.
    evaluations : int
    """

    safe: float
    unsafe: float
    root: float
    steepness: float
    value: float
    evaluations: int


def smallest_noise(
    bound: Callable[[float], float],
    target: float,
    *,
    start: float,
    least: float,
    most: float,
    accuracy: float,
    steepness: float = 1.0,
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
    steepness : float
        A guess of -d log bound / d log x near the root.

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
    # a little beyond where the root should be, so that the bracket closes on it from both sides
    margin = 0.4 * math.log1p(accuracy)
    for _ in range(_MOST):
        g = gap(x)
        if g <= 0:
            high, gap_high = x, g
        else:
            low, gap_low = x, g
        if (not math.isnan(gap_high) and high <= low * (1 + accuracy)) or high == least:
            break
        if math.isnan(gap_high) or math.isnan(gap_low):
            if low == most:
                raise UnsupportedError(
                    f"the target cannot be met with noise up to {most:g}, where the bound is {seen[-1][1]:g}; raise it"
                )
            reach = min(abs(g) / steepness + margin * 2 ** (len(seen) - 1), _WIDEST)
            x = min(max(x * math.exp(math.copysign(reach, g)), least), most)
        else:
            u = math.log(low) + gap_low / (gap_low - gap_high) * math.log(high / low)
            u += margin if gap_low < -gap_high else -margin
            inner = 0.02 * math.log(high / low)
            x = math.exp(min(max(u, math.log(low) + inner), math.log(high) - inner))
    value = next(v for at, v in reversed(seen) if at == high)
    if math.isnan(gap_low):
        # `low` is still the limit that it began with, of which nothing is known
        return SafeRoot(high, 0.0, high, steepness, value, len(seen))
    apart = math.log(high / low)
    root = low * math.exp(gap_low / (gap_low - gap_high) * apart)
    fall = min(max((gap_low - gap_high) / apart, 0.2), 20.0)
    return SafeRoot(high, low, root, fall, value, len(seen))
