"""The exact privacy profile of recycled noise, by intervals, with certified ends.

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

from dpsub import checks
from dpsub.profiles.base import Profile, mirrored
from dpsub.recycling.kernels import EPS, Kernel
from dpsub.recycling.law import Recycled

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
class _Interval:
    low: float
    high: float
    inside: bool
    shifted_inside: bool


def _intervals(lower: float, upper: float, sensitivity: float) -> list[_Interval]:
    cuts = sorted({-math.inf, lower, upper, lower + sensitivity, upper + sensitivity, math.inf})
    return [
        _Interval(low, high, lower <= low and high <= upper, lower + sensitivity <= low and high <= upper + sensitivity)
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
    for piece in _intervals(lower, upper, sensitivity):
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


@dataclass(frozen=True)
class RecycledProfile(Profile):
    """Exact profile of recycled noise: the larger one of both directions, at the full sensitivity.

    The full sensitivity is the worst shift: 1 - H_a is the integral over t of the length of the overlap of the level
    sets {f > t} and {a f(. - d) > t} of the released density f, which are intervals, nested in t, and overlap less the
    larger |d| is.  At q = 1 the profile does not fall to 0.

    Parameters
    ----------
    law : Recycled

    References
    ----------
    brdp, Section 4 (its Theorem 1 and Proposition 2 are another function, in `dpsub.recycling.paper`).
    """

    law: Recycled

    def group_log_delta(self, epsilon: ArrayLike, occurrences: ArrayLike) -> np.ndarray:
        order, distance = np.broadcast_arrays(np.asarray(epsilon, dtype=float), np.asarray(occurrences))
        log = np.empty(order.shape)
        for l in np.unique(distance).tolist():  # noqa: E741
            here = distance == l
            log[here] = np.max([found.log for found in self.sticks(np.abs(order[here]), l)], axis=0)
        return mirrored(order, np.minimum(log, 0.0))

    def sticks(self, epsilon: ArrayLike, occurrences: int = 1) -> list[Stick]:
        """The divergences upwards and, where the bounds are not symmetric, downwards; any real epsilon."""
        times = checks.integer("occurrences", occurrences, at_least=1)
        laws = [self.law] if self.law.symmetric else [self.law, self.law.mirrored]
        return [direction(law, epsilon, times) for law in laws]

    def bounds(self, epsilon: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
        """Certified ends of delta(epsilon) at epsilon >= 0, of its shape: rounding and its propagation are charged."""
        order = checks.finite_array("epsilon", epsilon)
        found = self.sticks(order)
        return np.max([one.end(-1) for one in found], axis=0)[()], np.max([one.end(1) for one in found], axis=0)[()]


def direction(law: Recycled, epsilon: ArrayLike, occurrences: int = 1) -> Stick:
    """The divergence of the output from the one on a data set whose value is larger by the sensitivity."""
    with np.errstate(divide="ignore"):
        log_keep = np.log1p(-np.asarray(law.rate))
    return stick(law.kernel, log_keep, law.lower, law.upper, occurrences * law.sensitivity, epsilon)


def infinite_mass(law: Recycled) -> float:
    """Mass of infinite loss, upwards: 0 unless q = 1."""
    if law.rate < 1:
        return 0.0
    # inside for the value, outside for the neighbour: the part of I left of I + D
    return law.normaliser * law.kernel.mass(law.lower, min(law.upper, law.lower + law.sensitivity))
