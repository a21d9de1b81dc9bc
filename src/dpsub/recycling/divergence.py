"""Hockey-stick divergences of recycled noise from itself moved, with a bound of their rounding
errors.

The ends of I = [lower, upper] and of I + D cut the line into at most five intervals, on each of
which {loss > epsilon} is one interval from its left end to h (docs/recycling.md, section 2); with g
= 1 inside I and 1 - q outside,

    delta(epsilon) = c sum over intervals of [g(n) P(left < N <= h) - e^epsilon g(n - D) P(left < N
    + D <= h)].
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from dpsub.recycling.kernels import EPS, Kernel


class HockeyStickPieces(NamedTuple):
    """H_a at a = e^epsilon in units of e^scale (scale -inf where H is 0): `value` is H, `error` a
    bound of its rounding, and `slope` a P(loss > epsilon) under the second law, which is -a times a
    subgradient of H."""

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
        """H, rounded up (sign 1) or down (-1) by all errors."""
        # where doubles are no longer evenly fine, a product is off by units of the smallest
        ends = np.clip(self._moved(self.value, sign) + sign * 2 * 5e-324, 0.0, 1.0)
        return np.where(self.scale > -np.inf, ends, 0.0)

    def steepness(self, sign: int) -> np.ndarray:
        """a P(loss > epsilon) under the second law, rounded up or down."""
        return self._moved(self.slope, sign)

    def _moved(self, value: np.ndarray, sign: int) -> np.ndarray:
        return np.exp(self.scale) * (
            np.maximum(value + sign * self.error, 0.0) * (1 + sign * 8 * EPS)
        )


class LossInterval(NamedTuple):
    """Where noise n, and n - D, stay inside or outside of the bounds."""

    low: float
    high: float
    inside: bool
    shifted_inside: bool


def intervals(lower: float, upper: float, sensitivity: float) -> list[LossInterval]:
    """The line, cut at the ends of I and of I + D, which are moved by one number at least: no
    crossing is lost."""
    start, stop = (max(end + sensitivity, math.nextafter(end, math.inf)) for end in (lower, upper))
    cuts = sorted({-math.inf, lower, upper, start, stop, math.inf})
    return [
        LossInterval(low, high, lower <= low and high <= upper, start <= low and high <= stop)
        for low, high in pairwise(cuts)
    ]


def hockey_stick(
    kernel: Kernel,
    log_keep: ArrayLike,
    lower: float,
    upper: float,
    sensitivity: float,
    epsilon: ArrayLike,
) -> HockeyStickPieces:
    """The divergence of the noise from itself moved up by `sensitivity`; moved down: that of
    mirrored bounds. `log_keep` is log(1 - q), -inf at q = 1, broadcast with `epsilon`, any real
    numbers."""
    order, keep = np.broadcast_arrays(
        np.asarray(epsilon, dtype=float), np.asarray(log_keep, dtype=float)
    )
    zero = np.zeros(order.shape)
    firsts, seconds, errors, hidden = [], [], [], []
    for piece in intervals(lower, upper, sensitivity):
        first_factor = zero if piece.inside else keep
        second_factor = zero if piece.shifted_inside else keep
        jump = zero if piece.inside == piece.shifted_inside else second_factor - first_factor
        end = np.minimum(kernel.threshold(order + jump, sensitivity), piece.high)
        first, first_error = _cut_mass(kernel, piece, end, 0.0)
        second, second_error = _cut_mass(kernel, piece, end, sensitivity)
        firsts.append(first_factor + first)
        seconds.append(order + second_factor + second)
        hidden.append(first_factor + _hidden_mass(kernel, piece, end, order, jump, sensitivity))
        errors.append(
            (
                first_error + 4 * EPS * (1 + np.abs(first_factor)),
                second_error + 4 * EPS * (1 + np.abs(order + second_factor)),
            )
        )
    scale = np.max(firsts + hidden, axis=0)
    base = np.where(np.isfinite(scale), scale, 0.0)
    value, slope, error = zero, zero, np.exp(np.array(hidden) - base).sum(axis=0)
    for first, second, (first_error, second_error) in zip(firsts, seconds, errors, strict=True):
        # below the scale but for rounding, which is large only where e^scale is 0
        gain, loss = np.exp(first - base), np.exp(np.minimum(second - base, 300.0))
        value, slope = value + gain - loss, slope + loss
        with np.errstate(invalid="ignore"):
            error = (
                error
                + np.where(gain > 0, gain * first_error, 0.0)
                + np.where(loss > 0, loss * second_error, 0.0)
            )
    log_share, share_error = _log_normaliser(kernel, keep, lower, upper)
    error = error + (32 * EPS + share_error) * (np.abs(value) + slope)
    return HockeyStickPieces(scale + log_share, np.maximum(value, 0.0), slope, error)


def _hidden_mass(
    kernel: Kernel,
    piece: LossInterval,
    end: np.ndarray,
    order: np.ndarray,
    jump: np.ndarray,
    sensitivity: float,
) -> np.ndarray:
    """log of what rounding can hide where much of a piece has its loss within a rounding of the
    order: at most the first density times the distance of loss and order."""
    rounding = 8 * EPS * (1 + np.abs(order) + np.abs(jump))
    with np.errstate(invalid="ignore"):
        wide = np.minimum(kernel.threshold(order + jump - rounding, sensitivity), piece.high)
        # further than that no rounding moves the end of a set, unless the loss is flat
        jumped = (wide > piece.low) & (wide - np.maximum(end, piece.low) > 1e-3 * kernel.scale)
    log = np.full(order.shape, -np.inf)
    if jumped.any():
        log[jumped] = _cut_mass(kernel, piece, wide[jumped], 0.0)[0] + np.log(2 * rounding[jumped])
    return log


def _cut_mass(
    kernel: Kernel, piece: LossInterval, end: np.ndarray, moved: float
) -> tuple[np.ndarray, np.ndarray]:
    """log P(low < N + moved <= end) and its relative error; what reaches `high` is computed
    once."""
    log, error = np.full(end.shape, -np.inf), np.zeros(end.shape)
    whole, part = end >= piece.high, (end > piece.low) & (end < piece.high)
    for chosen, stop in ((whole, piece.high), (part, end[part])):
        if chosen.any():
            log[chosen], error[chosen] = kernel.log_mass(piece.low - moved, stop - moved)
    return log, error


def _log_normaliser(
    kernel: Kernel, log_keep: np.ndarray, lower: float, upper: float
) -> tuple[np.ndarray, np.ndarray]:
    """log c and its error."""
    ends = ((lower, upper), (-math.inf, lower), (upper, math.inf))
    masses, errors = zip(*(kernel.log_mass(*each) for each in ends), strict=True)
    logs = [masses[0], log_keep + masses[1], log_keep + masses[2]]
    total = np.logaddexp(logs[0], np.logaddexp(logs[1], logs[2]))
    error = sum(np.exp(log - total) * each for log, each in zip(logs, errors, strict=True))
    return -total, np.asarray(error + 4 * EPS * (1 + np.abs(total)))
