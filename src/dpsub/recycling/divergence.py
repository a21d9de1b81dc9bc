"""Hockey-stick divergences of recycled noise from itself moved, by intervals, with rounding errors.

The output on neighbouring data is the noise moved by D.  The loss at noise n is z(n) + L (1[n in I] - 1[n - D in I])
with the kernel's loss z, L = -log(1 - q) and I = [lower, upper]: the ends of I and of I + D cut the line into at most
five intervals on which the second term is constant.  On each of them the kernel's loss does not increase, so that the
set {loss > epsilon} is an interval from its left end to h = min(right end, n*(epsilon - shift)):

    delta(epsilon) = c sum over intervals of [g(n) P(left < N <= h) - e^epsilon g(n - D) P(left < N + D <= h)],

with g = 1 inside I and 1 - q outside.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from dpsub.recycling.kernels import EPS, Kernel

_SMALLEST = 5e-324
"""No upper end is 0 where the divergence is not."""


class Stick(NamedTuple):
    """Hockey-stick divergences H_a at a = e^epsilon, each as a multiple of e^scale.

    Attributes
    ----------
    scale : ndarray
        -inf where the divergence is 0.
    value : ndarray
        H / e^scale, at least 0.
    slope : ndarray
        a P(loss > epsilon) under the second law, / e^scale: -a times a subgradient of H.
    error : ndarray
        Bound of the rounding error of `value`.
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
        """H, rounded up (sign 1) or down (-1) by all errors."""
        moved = np.maximum(self.value + sign * self.error, 0.0) * (1 + sign * 8 * EPS)
        ends = np.clip(np.exp(self.scale) * moved, 0.0, 1.0)
        return np.where(self.scale > -np.inf, np.maximum(ends, _SMALLEST), ends) if sign > 0 else ends

    def steepness(self, sign: int) -> np.ndarray:
        """a P(loss > epsilon) under the second law, rounded up or down."""
        moved = np.maximum(self.slope + sign * self.error, 0.0) * (1 + sign * 8 * EPS)
        return np.exp(self.scale) * moved


@dataclass(frozen=True)
class Interval:
    """Where noise n, and n - D, stay inside or outside of the bounds."""

    low: float
    high: float
    inside: bool
    shifted_inside: bool


def intervals(lower: float, upper: float, sensitivity: float) -> list[Interval]:
    """The line, cut at the ends of I and of I + D."""
    cuts = sorted({-math.inf, lower, upper, lower + sensitivity, upper + sensitivity, math.inf})
    return [
        Interval(low, high, lower <= low and high <= upper, lower + sensitivity <= low and high <= upper + sensitivity)
        for low, high in pairwise(cuts)
    ]


def stick(
    kernel: Kernel, log_keep: ArrayLike, lower: float, upper: float, sensitivity: float, epsilon: ArrayLike
) -> Stick:
    """The divergence of the noise from itself moved by `sensitivity`, upwards; downwards is that of mirrored bounds.

    Parameters
    ----------
    kernel : Kernel
    log_keep : array_like
        log(1 - q), broadcast with `epsilon`; -inf at q = 1.
    lower, upper, sensitivity : float
    epsilon : array_like
        Any real numbers.
    """
    order, keep = np.broadcast_arrays(np.asarray(epsilon, dtype=float), np.asarray(log_keep, dtype=float))
    zero = np.zeros(order.shape)
    firsts, seconds, errors = [], [], []
    for piece in intervals(lower, upper, sensitivity):
        first_factor = zero if piece.inside else keep
        second_factor = zero if piece.shifted_inside else keep
        jump = zero if piece.inside == piece.shifted_inside else second_factor - first_factor
        end = np.minimum(kernel.threshold(order + jump, sensitivity), piece.high)
        first, first_error = _cut_mass(kernel, piece.low, piece.high, end, 0.0)
        second, second_error = _cut_mass(kernel, piece.low, piece.high, end, sensitivity)
        firsts.append(first_factor + first)
        seconds.append(order + second_factor + second)
        errors.append((first_error + 4 * EPS * (1 + np.abs(first_factor)),
                       second_error + 4 * EPS * (1 + np.abs(order + second_factor))))  # fmt: skip
    scale = np.max(firsts, axis=0)
    base = np.where(np.isfinite(scale), scale, 0.0)
    value, slope, error = np.zeros(order.shape), np.zeros(order.shape), np.zeros(order.shape)
    for first, second, (first_error, second_error) in zip(firsts, seconds, errors, strict=True):
        gain, loss = np.exp(first - base), np.exp(second - base)
        value, slope = value + gain - loss, slope + loss
        with np.errstate(invalid="ignore"):
            error = error + np.where(gain > 0, gain * first_error, 0.0) + np.where(loss > 0, loss * second_error, 0.0)
    log_share = _log_normaliser(kernel, keep, lower, upper)
    return Stick(scale + log_share, np.maximum(value, 0.0), slope, error + 32 * EPS * (np.abs(value) + slope))


def _cut_mass(
    kernel: Kernel, low: float, high: float, end: np.ndarray, moved: float
) -> tuple[np.ndarray, np.ndarray]:
    """log P(low < N + moved <= end) and its relative error; what reaches `high` is computed once."""
    log, error = np.full(end.shape, -np.inf), np.zeros(end.shape)
    whole, part = end >= high, (end > low) & (end < high)
    if whole.any():
        found = kernel.log_mass(low - moved, high - moved)
        log[whole], error[whole] = found.log, found.error
    if part.any():
        found = kernel.log_mass(low - moved, end[part] - moved)
        log[part], error[part] = found.log, found.error
    return log, error


def _log_normaliser(kernel: Kernel, log_keep: np.ndarray, lower: float, upper: float) -> np.ndarray:
    inside = kernel.mass(lower, upper)
    outside = kernel.mass(-math.inf, lower) + kernel.mass(upper, math.inf)
    return -np.log(inside + np.exp(log_keep) * outside)


def ends(sticks: list[Stick]) -> tuple[np.ndarray, np.ndarray]:
    """Certified ends of the largest of several divergences."""
    return np.max([one.end(-1) for one in sticks], axis=0)[()], np.max([one.end(1) for one in sticks], axis=0)[()]
