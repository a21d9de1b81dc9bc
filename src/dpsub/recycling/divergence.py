"""Hockey-stick divergences between recycled noise and its shift, with a bound on their rounding.

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
_PIECE = 2048  # orders that are worked on together


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
    """Hockey-stick divergence of recycled noise from the same noise shifted up by `sensitivity`.

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
    order, keep = np.asarray(epsilon, dtype=float), np.asarray(log_keep, dtype=float)
    if order.ndim == 1 and keep.ndim == 0 and order.size > _PIECE:
        parts = [
            hockey_stick(kernel, keep, lower, upper, sensitivity, order[start : start + _PIECE])
            for start in range(0, order.size, _PIECE)
        ]
        return HockeyStickPieces(*map(np.concatenate, zip(*parts, strict=True)))
    cells = _Cells.of(intervals(lower, upper, sensitivity), np.broadcast(order, keep).ndim)
    # log g(n) and log g(n - D)
    first_factor = np.where(cells.inside, 0.0, keep)
    second_factor = np.where(cells.shifted_inside, 0.0, keep)
    # The loss is z(n) - jump here. Equal factors cancel also where both are -inf.
    with np.errstate(invalid="ignore"):
        difference = second_factor - first_factor
    jump = np.where(cells.inside == cells.shifted_inside, 0.0, difference)
    end = np.minimum(kernel.threshold(order + jump, sensitivity), cells.high)
    masses, errors = _masses_up_to(kernel, cells, end, (0.0, sensitivity))
    (first, second), (first_error, second_error) = masses, errors
    log_first, log_second = first_factor + first, order + second_factor + second
    # The sums of logarithms are rounded in proportion to their size.
    first_error += 4 * EPS * (1 + np.abs(first_factor))
    second_error += 4 * EPS * (1 + np.abs(order + second_factor))
    log_hidden = first_factor + _hidden_mass(kernel, cells, end, order, jump, sensitivity)
    # All terms are taken relative to the largest one, so that far tails do not underflow.
    scale = np.maximum(log_first.max(axis=0), log_hidden.max(axis=0))
    base = np.where(np.isfinite(scale), scale, 0.0)
    gains = np.exp(log_first - base)
    # On {loss > epsilon} the second term is below the first but for rounding; it can only be
    # large where e^scale is 0 anyway.
    losses = np.exp(np.minimum(log_second - base, 300.0))
    with np.errstate(invalid="ignore"):
        gain_errors = np.where(gains > 0, gains * first_error, 0.0)
        loss_errors = np.where(losses > 0, losses * second_error, 0.0)
    error = np.exp(log_hidden - base).sum(axis=0)
    value, slope = np.zeros(base.shape), losses.sum(axis=0)
    for gain, loss, gain_error, loss_error in zip(
        gains, losses, gain_errors, loss_errors, strict=True
    ):
        value = value + gain - loss
        error = error + gain_error + loss_error
    log_c, c_error = _log_normaliser(kernel, keep, lower, upper)
    # The error of c is a relative one of the whole; 32 roundings cover the sums above.
    error = error + (32 * EPS + c_error) * (np.abs(value) + slope)
    return HockeyStickPieces(scale + log_c, np.maximum(value, 0.0), slope, error)


class _Cells(NamedTuple):
    """Intervals as columns, one entry of the first axis for each."""

    low: np.ndarray
    high: np.ndarray
    inside: np.ndarray
    shifted_inside: np.ndarray

    @classmethod
    def of(cls, pieces: list[LossInterval], ndim: int) -> _Cells:
        """Columns that broadcast with orders of this number of axes."""
        shape = (len(pieces), *[1] * ndim)
        return cls(*(np.array(column).reshape(shape) for column in zip(*pieces, strict=True)))


def _hidden_mass(
    kernel: Kernel,
    cells: _Cells,
    end: np.ndarray,
    order: np.ndarray,
    jump: np.ndarray,
    sensitivity: float,
) -> np.ndarray:
    """Logarithm of the most mass that rounding the threshold can hide in each interval; mostly
    -inf.

    Where the loss is within a rounding of epsilon on a large part of the interval, that part may be
    missing from the set. It contributes at most its mass under the first law times the distance of
    loss and epsilon.
    """
    rounding = 8 * EPS * (1 + np.abs(order) + np.abs(jump))
    with np.errstate(invalid="ignore"):
        wide_threshold = kernel.threshold(order + jump - rounding, sensitivity)
        wide_end = np.minimum(wide_threshold, cells.high)
        # Rounding moves the end of the set this far only where the loss is flat.
        missing = wide_end - np.maximum(end, cells.low)
        flat = (wide_end > cells.low) & (missing > 1e-3 * kernel.scale)
    if not flat.any():
        return np.full(end.shape, -np.inf)
    (log_mass,), _ = _masses_up_to(kernel, cells, np.where(flat, wide_end, cells.low), (0.0,))
    # A rounding may be infinite where nothing is flat.
    with np.errstate(invalid="ignore"):
        hidden = log_mass + np.log(2 * rounding)
    return np.where(flat, hidden, -np.inf)


def _masses_up_to(
    kernel: Kernel, cells: _Cells, end: np.ndarray, shifts: tuple[float, ...]
) -> tuple[np.ndarray, np.ndarray]:
    """log P(low < N + shift <= end) within each interval, and its relative error, for each
    shift."""
    shift = np.array(shifts).reshape(-1, *[1] * end.ndim)
    low, high = cells.low - shift, cells.high - shift
    # Most orders take the whole interval, whose mass is computed once for all of them.
    log_whole, whole_error = _whole_masses(
        kernel, tuple(low.ravel().tolist()), tuple(high.ravel().tolist())
    )
    whole = end >= cells.high
    log_mass = np.where(whole, log_whole.reshape(low.shape), -np.inf)
    error = np.where(whole, whole_error.reshape(low.shape), 0.0)
    partial = (end > cells.low) & ~whole
    if partial.any():
        starts = np.broadcast_to(low, log_mass.shape)[:, partial]
        log_mass[:, partial], error[:, partial] = kernel.log_mass(starts, (end - shift)[:, partial])
    return log_mass, error


# A search for the share q or for epsilon asks for the masses of the same intervals each time.
@lru_cache(maxsize=1024)
def _whole_masses(
    kernel: Kernel, lows: tuple[float, ...], highs: tuple[float, ...]
) -> tuple[np.ndarray, np.ndarray]:
    """log P(low < N <= high) of each interval, and its relative error."""
    return kernel.log_mass(np.array(lows), np.array(highs))


def _log_normaliser(
    kernel: Kernel, log_keep: np.ndarray, lower: float, upper: float
) -> tuple[np.ndarray, np.ndarray]:
    """log c and its error: 1 / c is the mass inside plus 1 - q times the mass of both tails."""
    lows, highs = (lower, -math.inf, upper), (upper, lower, math.inf)
    (inside, below, above), errors = _whole_masses(kernel, lows, highs)
    logs = [inside, log_keep + below, log_keep + above]
    total = np.logaddexp(logs[0], np.logaddexp(logs[1], logs[2]))
    # The relative error of a sum weighs the relative errors of its terms by their shares.
    error = sum(np.exp(log - total) * relative for log, relative in zip(logs, errors, strict=True))
    return -total, np.asarray(error + 4 * EPS * (1 + np.abs(total)))
