"""Root search: the number at which a bound meets a target, found from the safe side by few
evaluations.

A bound on epsilon takes seconds, and is close to a power of the number x that is searched for: the
secant of logarithms needs two or three of them. Nothing is assumed for validity: `safe` was
evaluated itself, and met the target there (docs/proofs/numerics.md, "Calibration").
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from typing import NamedTuple

from dpsub.accounting.engine import work
from dpsub.accounting.engine.work import OutOfWorkError
from dpsub.errors import NumericalError, UnsupportedError

_MOST_ROUNDS = 60
# stands for log(bound / target) of a bound that is 0 or infinite
_FAR = 40.0
# how far beyond the root the next x lies, as a share of the accuracy, so that the ends of the
# answer close on it from both sides
_MARGIN, _MARGIN_RISING = 0.4, 0.3
# widest step outwards, of log x
_WIDEST, _WIDEST_RISING = 1.0, math.log(16)
# a secant keeps this share of the interval away from its ends
_INNER = 0.02
# bounds in messages, rounded up
_TWO_DIGITS = Context(prec=2, rounding=ROUND_CEILING)
_FLATTEST, _STEEPEST = 0.2, 20.0


@dataclass(frozen=True)
class Axis:
    """The number x that is searched for.

    Attributes
    ----------
    name : str
        What x is, in messages.
    least, most : float
        Its limits, above 0.
    rising : bool
        Whether the bound rises with x, so that the largest safe x is wanted, not the smallest.
    whole : bool
        Whether x is a whole number.
    """

    name: str
    least: float
    most: float
    rising: bool = False
    whole: bool = False

    @property
    def safest(self) -> float:
        return self.least if self.rising else self.most

    @property
    def last(self) -> float:
        """The limit on the side of the answers that are wanted."""
        return self.most if self.rising else self.least

    def clipped(self, x: float) -> float:
        return min(max(x, self.least), self.most)


class SafeRoot(NamedTuple):
    """Ends of an interval in which a bound meets its target.

    Attributes
    ----------
    safe : float
        The bound was evaluated here, and is at most the target.
    unsafe : float or None
        The nearest number at which it was evaluated and exceeds the target; None if there is none.
    root : float
        Where the bound may be the target, by interpolation.
    steepness : float
        abs(d log bound / d log x) between the two.
    evaluations : int
    closed : bool
        Whether both are as close as was asked for, or `safe` is the last number; else the deadline
        came first.
    """

    safe: float
    unsafe: float | None
    root: float
    steepness: float
    evaluations: int
    closed: bool


class _Point(NamedTuple):
    x: float
    gap: float
    """log(bound / target)"""


def safe_root(
    bound: Callable[[float], float],
    target: float,
    axis: Axis,
    *,
    start: float,
    accuracy: float,
    steepness: float = 1.0,
) -> SafeRoot:
    """Find the smallest x with bound(x) <= target, or the largest one if the bound rises.

    Safeguarded secants of logarithms.

    Parameters
    ----------
    bound : callable
        Falls or rises with x, 0 and infinity allowed; where it does not, the answer still meets the
        target.
    target : float
        Above 0.
    axis : Axis
    start : float
        Where the bound is evaluated first.
    accuracy : float
        Relative distance of the two ends of the answer.
    steepness : float
        A guess of abs(d log bound / d log x).

    Raises
    ------
    UnsupportedError
        If even the limit on the safe side misses the target.
    NumericalError
        If nothing met it in 60 rounds, or within the budget of work, after which what was found is
        returned.
    """
    side = -1 if axis.rising else 1
    margin = (_MARGIN_RISING if axis.rising else _MARGIN) * math.log1p(accuracy)
    # steps outward grow, so that no bound, however flat, holds them up
    slack, widest = (accuracy, _WIDEST_RISING) if axis.rising else (margin / 2, _WIDEST)
    safe: _Point | None = None
    over: _Point | None = None
    x = axis.clipped(start)
    x = float(math.floor(x)) if axis.whole else x
    evaluations, closed, late = 0, False, False
    while not closed and evaluations < _MOST_ROUNDS:
        try:
            work.spend(0)
            value = bound(x)
        except OutOfWorkError:
            late = True
            break
        evaluations += 1
        # epsilon is about a power of x: its logarithm is nearly a line in log x
        gap = _log_ratio(value, target)
        if value <= target:
            safe = _Point(x, gap)
        else:
            # a bound that exceeds the target by one rounding is not met
            over = _Point(x, max(gap, 1e-300))
        if over is not None and over.x == axis.safest:
            shown = float(_TWO_DIGITS.create_decimal(Decimal(value)))
            raise UnsupportedError(
                f"even {axis.name} of {axis.safest:g} (the search limit) gives epsilon up to "
                f"{shown:g}, above the target {target:g}; "
                f"{'add noise or choose' if axis.rising else 'choose'} a larger epsilon"
            )
        if safe is not None:
            closed = _is_closed(safe, over, axis, accuracy)
        if safe is None or over is None:
            # to where the guessed line meets the target, and a little farther, to have both sides
            reach = min(abs(gap) / steepness + slack * 2**evaluations, widest)
            x = _outwards(x, side * math.copysign(reach, gap), axis)
        else:
            x = _between(safe, over, margin, axis.whole)
    if safe is None:
        kind = OutOfWorkError if late else NumericalError
        raise kind(
            f"{axis.name}: nothing tried within {evaluations} accounts met the target; "
            "raise effort or the target"
        )
    if over is None:
        return SafeRoot(safe.x, None, safe.x, steepness, evaluations, closed)
    (low, gap_low), (high, gap_high) = sorted((safe, over))
    # the last secant: what is close to the root of a rough bound is where to start a finer one
    length = math.log(high / low)
    root = low * math.exp(gap_low / (gap_low - gap_high) * length)
    slope = min(max(abs(gap_low - gap_high) / length, _FLATTEST), _STEEPEST)
    return SafeRoot(safe.x, over.x, root, slope, evaluations, closed)


def _log_ratio(value: float, target: float) -> float:
    if 0 < value < math.inf:
        return math.log(value / target)
    return math.copysign(_FAR, value - target)


def _is_closed(safe: _Point, over: _Point | None, axis: Axis, accuracy: float) -> bool:
    """Whether nothing better than `safe` is left to find."""
    if safe.x == axis.last:
        return True
    end = over.x if over is not None else axis.last
    low, high = min(safe.x, end), max(safe.x, end)
    near = high <= low * (1 + accuracy) or (axis.whole and high - low <= 1)
    # a rising bound says nothing of the limit before it was evaluated there
    return near and (over is not None or not axis.rising)


def _outwards(x: float, log_step: float, axis: Axis) -> float:
    """Next x while all bounds lie on one side of the target."""
    moved = x * math.exp(log_step)
    if axis.whole:
        moved = math.floor(min(moved, x - 1)) if moved < x else math.ceil(max(moved, x + 1))
    return axis.clipped(moved)


def _between(safe: _Point, over: _Point, margin: float, whole: bool) -> float:
    """Next x between two that met and missed the target: a little beyond the secant's root."""
    (low, gap_low), (high, gap_high) = sorted((safe, over))
    length = math.log(high / low)
    log_x = math.log(low) + gap_low / (gap_low - gap_high) * length
    log_x += margin if abs(gap_low) < abs(gap_high) else -margin
    inner = _INNER * length
    x = math.exp(min(max(log_x, math.log(low) + inner), math.log(high) - inner))
    return min(max(float(round(x)), low + 1), high - 1) if whole else x
