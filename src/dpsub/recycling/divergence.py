"""Hockey-stick divergences of recycled noise from itself shifted, with a bound on their rounding.

The ends of I = [lower, upper] and of I + D cut the line into at most five intervals. On each of
them {loss > epsilon} is one interval from the left end to h (docs/recycling.md, section 2). With
g = 1 inside I and 1 - q outside,

    delta(epsilon) = c sum over intervals of
        [g(n) P(left < N <= h) - e^epsilon g(n - D) P(left < N + D <= h)].
"""

from __future__ import annotations

import math
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from dpsub.recycling.kernels import EPS, Kernel

_SMALLEST = 5e-324  # the smallest positive double


class HockeyStickPieces(NamedTuple):
    """The divergence H_a at a = e^epsilon, in units of e^scale.

    Attributes
    ----------
    scale : ndarray
        Logarithm of the unit of the other three; -inf where H is 0.
    value : ndarray
        H_a.
    slope : ndarray
        a P(loss > epsilon) under the second law, which is -a times a subgradient of H in a.
    error : ndarray
        Bound on the rounding error of `value` and of `slope`.
    """

    scale: np.ndarray
    value: np.ndarray
    slope: np.ndarray
    error: np.ndarray

    @property
    def log(self) -> np.ndarray:
        """log H."""
        with np.errstate(divide="ignore"):
            return self.scale + np.log(self.value)

    def end(self, sign: int) -> np.ndarray:
        """H, rounded up (sign 1) or down (sign -1) by all errors."""
        # Among the subnormal numbers a product is off by units of the smallest one, which the
        # relative errors do not cover.
        rounded = self._rounded(self.value, sign) + sign * 2 * _SMALLEST
        return np.where(self.scale > -np.inf, np.clip(rounded, 0.0, 1.0), 0.0)

    def steepness(self, sign: int) -> np.ndarray:
        """a P(loss > epsilon) under the second law, rounded up or down."""
        return self._rounded(self.slope, sign)

    def _rounded(self, value: np.ndarray, sign: int) -> np.ndarray:
        safe = np.maximum(value + sign * self.error, 0.0)
        # The last two factors are rounded once more.
        return np.exp(self.scale) * (safe * (1 + sign * 8 * EPS))


class LossInterval(NamedTuple):
    """An interval of n in which n, and n - D, stay inside or outside the bounds."""

    low: float
    high: float
    inside: bool
    shifted_inside: bool


def intervals(lower: float, upper: float, sensitivity: float) -> list[LossInterval]:
    """Cut the line at the ends of I and of I + D.

    Where D is lost in rounding, I + D starts one number further: no crossing of a bound may vanish.
    """
    shifted_lower = max(lower + sensitivity, math.nextafter(lower, math.inf))
    shifted_upper = max(upper + sensitivity, math.nextafter(upper, math.inf))
    cuts = sorted({-math.inf, lower, upper, shifted_lower, shifted_upper, math.inf})
    pieces = []
    for low, high in pairwise(cuts):
        inside = lower <= low and high <= upper
        shifted_inside = shifted_lower <= low and high <= shifted_upper
        pieces.append(LossInterval(low, high, inside, shifted_inside))
    return pieces


def hockey_stick(
    kernel: Kernel,
    log_keep: ArrayLike,
    lower: float,
    upper: float,
    sensitivity: float,
    epsilon: ArrayLike,
) -> HockeyStickPieces:
    """Hockey-stick divergence of recycled noise from itself shifted up by `sensitivity`.

    The divergence from the noise shifted down is that of the mirrored bounds.

    Parameters
    ----------
    kernel : Kernel
    log_keep : array_like
        log(1 - q), -inf at q = 1; broadcast with `epsilon`.
    lower, upper, sensitivity : float
        As in `Recycled`.
    epsilon : array_like
        Logarithms of the orders, any real numbers.
    """
    order, keep = np.broadcast_arrays(
        np.asarray(epsilon, dtype=float), np.asarray(log_keep, dtype=float)
    )
    zero = np.zeros(order.shape)
    log_firsts, log_seconds, relative_errors, log_hidden = [], [], [], []
    for piece in intervals(lower, upper, sensitivity):
        # log g(n) and log g(n - D)
        first_factor = zero if piece.inside else keep
        second_factor = zero if piece.shifted_inside else keep
        # The loss is z(n) - jump here. Equal factors cancel also where both are -inf.
        jump = zero if piece.inside == piece.shifted_inside else second_factor - first_factor
        end = np.minimum(kernel.threshold(order + jump, sensitivity), piece.high)
        first, first_error = _mass_up_to(kernel, piece, end, 0.0)
        second, second_error = _mass_up_to(kernel, piece, end, sensitivity)
        log_firsts.append(first_factor + first)
        log_seconds.append(order + second_factor + second)
        hidden = _hidden_mass(kernel, piece, end, order, jump, sensitivity)
        log_hidden.append(first_factor + hidden)
        # The sums of logarithms are rounded in proportion to their size.
        first_error = first_error + 4 * EPS * (1 + np.abs(first_factor))
        second_error = second_error + 4 * EPS * (1 + np.abs(order + second_factor))
        relative_errors.append((first_error, second_error))
    # All terms are taken relative to the largest one, so that far tails do not underflow.
    scale = np.max(log_firsts + log_hidden, axis=0)
    base = np.where(np.isfinite(scale), scale, 0.0)
    value, slope = zero, zero
    error = np.exp(np.array(log_hidden) - base).sum(axis=0)
    terms = zip(log_firsts, log_seconds, relative_errors, strict=True)
    for log_first, log_second, (first_error, second_error) in terms:
        gain = np.exp(log_first - base)
        # On {loss > epsilon} the second term is below the first but for rounding; it can only be
        # large where e^scale is 0 anyway.
        loss = np.exp(np.minimum(log_second - base, 300.0))
        value = value + gain - loss
        slope = slope + loss
        with np.errstate(invalid="ignore"):
            gain_error = np.where(gain > 0, gain * first_error, 0.0)
            loss_error = np.where(loss > 0, loss * second_error, 0.0)
        error = error + gain_error + loss_error
    log_c, c_error = _log_normaliser(kernel, keep, lower, upper)
    # The error of c is a relative one of the whole; 32 roundings cover the sums above.
    error = error + (32 * EPS + c_error) * (np.abs(value) + slope)
    return HockeyStickPieces(scale + log_c, np.maximum(value, 0.0), slope, error)


def _hidden_mass(
    kernel: Kernel,
    piece: LossInterval,
    end: np.ndarray,
    order: np.ndarray,
    jump: np.ndarray,
    sensitivity: float,
) -> np.ndarray:
    """log of the divergence that rounding can hide on an interval with a nearly constant loss.

    Where the loss is within a rounding of epsilon on a large part of the interval, that part may be
    missing from the set. It contributes at most its mass under the first law times the distance of
    loss and epsilon.
    """
    rounding = 8 * EPS * (1 + np.abs(order) + np.abs(jump))
    with np.errstate(invalid="ignore"):
        wide_threshold = kernel.threshold(order + jump - rounding, sensitivity)
        wide_end = np.minimum(wide_threshold, piece.high)
        # Rounding moves the end of the set this far only where the loss is flat.
        missing = wide_end - np.maximum(end, piece.low)
        flat = (wide_end > piece.low) & (missing > 1e-3 * kernel.scale)
    log_hidden = np.full(order.shape, -np.inf)
    if flat.any():
        log_mass, _ = _mass_up_to(kernel, piece, wide_end[flat], 0.0)
        log_hidden[flat] = log_mass + np.log(2 * rounding[flat])
    return log_hidden


def _mass_up_to(
    kernel: Kernel, piece: LossInterval, end: np.ndarray, shift: float
) -> tuple[np.ndarray, np.ndarray]:
    """log P(low < N + shift <= end) within the interval, and its relative error."""
    log_mass = np.full(end.shape, -np.inf)
    error = np.zeros(end.shape)
    # Most orders take the whole interval, whose mass is computed once for all of them.
    whole = end >= piece.high
    if whole.any():
        log_mass[whole], error[whole] = _whole_mass(kernel, piece.low - shift, piece.high - shift)
    partial = (end > piece.low) & (end < piece.high)
    if partial.any():
        stop = end[partial] - shift
        log_mass[partial], error[partial] = kernel.log_mass(piece.low - shift, stop)
    return log_mass, error


# A search for the share q or for epsilon asks for the masses of the same intervals each time.
@lru_cache(maxsize=4096)
def _whole_mass(kernel: Kernel, low: float, high: float) -> tuple[float, float]:
    """log P(low < N <= high) and its relative error."""
    log_mass, error = kernel.log_mass(low, high)
    return float(log_mass), float(error)


def _log_normaliser(
    kernel: Kernel, log_keep: np.ndarray, lower: float, upper: float
) -> tuple[np.ndarray, np.ndarray]:
    """log c and its error: 1 / c is the mass inside plus 1 - q times the mass of both tails."""
    inside, inside_error = _whole_mass(kernel, lower, upper)
    below, below_error = _whole_mass(kernel, -math.inf, lower)
    above, above_error = _whole_mass(kernel, upper, math.inf)
    logs: list[np.ndarray | float] = [inside, log_keep + below, log_keep + above]
    errors = [inside_error, below_error, above_error]
    total = np.logaddexp(logs[0], np.logaddexp(logs[1], logs[2]))
    # The relative error of a sum weighs the relative errors of its terms by their shares.
    error = sum(np.exp(log - total) * relative for log, relative in zip(logs, errors, strict=True))
    return -total, np.asarray(error + 4 * EPS * (1 + np.abs(total)))
