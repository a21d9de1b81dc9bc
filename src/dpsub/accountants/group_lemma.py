"""The profile of l substituted records among m, for each l of a law: a supremum over tests, certified.

Lemma.  Let |x|, |y|, |x - y| <= 2 l, a > 0, and let A be a test with N(0, s^2 I)(A) = Phi(-c/s).  With
f_l(z) = Phi((l - z)/s) - a Phi((-l - z)/s) and x*_l = s^2 ln(a) / (2 l), where f_l is largest,

    N(x)(A) - a N(y)(A) <= f_l(clip(x*_l, c - l, c + l)).

Inside the interval the right side is H_a(N(2l) || N(0)); outside it follows by comparison with the order at which the
optimum is at the edge, and convexity.  Applied for each l to one common test A, for a base independent of the number l
of replaced records,

    h_p(a) = sup over c of p_0 (1 - a) Phi(-c/s) + sum over l >= 1 of p_l f_l(clip(x*_l, c - l, c + l)).

The supremum is bounded on cells: for c in [c0, c1] the clip to [c0 - l, c1 + l] can only raise f_l, and for a >= 1 the
first term is at most p_0 (1 - a) Phi(-c1/s).  Edges of cells lie on one fixed grid, so that all normal tails are looked
up; only cells that can hold the supremum are cut further.  On the finest cells the supremand, which is differentiable
(f_l' = 0 at x*_l) with piecewise continuous g'', is also at most the larger of its values at the edges plus
sup |g''| (c1 - c0)^2 / 8, and sup |u phi(u)| over an interval bounds each term of g''.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import ndtr

from dpsub.accountants.gaussian_orders import gaussian_profile

_LEVELS = (128, 16, 4, 1)
"""Widths of cells, in units of the grid of edges, from the first cut to the last."""

_LARGEST = 690.0

_ERROR = 4e-12
"""Relative error charged for the positive and the negative terms of a bound (normal tails to 40 deviations,
weights)."""

_CHUNK = 200_000


@dataclass(frozen=True, eq=False)
class GroupLemma:
    """h_p for one law, as a function of the order.

    Attributes
    ----------
    weights : ndarray, shape (m + 1,)
        p_0..p_m, nonnegative, of sum at most 1 (what a law lacks is charged by the caller).
    scale : float
        s, noise multiplier: standard deviation of the noise over the norm bound of one record.
    tolerance : float
        Relative accuracy at which cutting stops; the result is an upper bound whatever it is.
    resolution : int
        Edges a standard deviation of the noise: cells that small are not cut further.
    """

    weights: np.ndarray
    scale: float
    tolerance: float = 1e-4
    resolution: int = 100

    @cached_property
    def _counts(self) -> np.ndarray:
        return np.flatnonzero(self.weights[1:]) + 1

    @cached_property
    def _edges(self) -> np.ndarray:
        """Edges c of the cells; a multiple of the coarsest width, then +-infinity."""
        s, largest = self.scale, float(self._counts[-1])
        reach = 9 * s
        cells = int(np.ceil((largest * 2 + 2 * reach) / (s / self.resolution) / _LEVELS[0])) * _LEVELS[0]
        inner = np.linspace(-reach, 2 * largest + reach, max(cells, 4 * _LEVELS[0]) - 2 * _LEVELS[0] + 1)
        # one coarse cell of infinite extent at each end: all its inner edges are infinite as well
        ends = np.full(_LEVELS[0], np.inf)
        return np.concatenate([-ends, inner, ends])

    @cached_property
    def _tables(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Phi(-c/s), shape (e,); Phi((2l - c)/s) and Phi((-2l - c)/s), shape (e, counts)."""
        c = self._edges[:, None]
        s, apart = self.scale, 2 * self._counts[None, :]
        return ndtr(-self._edges / s), ndtr((apart - c) / s), ndtr((-apart - c) / s)

    @cached_property
    def _curvatures(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """sup |u| phi(u) on each finest cell, for u = c/s, (2l - c)/s and (2l + c)/s."""
        s, apart = self.scale, 2 * self._counts[None, :]
        c = np.clip(self._edges, -1e6 * s, 1e6 * s)
        return _largest_slope(c / s), _largest_slope((apart - c[:, None]) / s), _largest_slope((apart + c[:, None]) / s)

    def __call__(self, log_order: np.ndarray) -> np.ndarray:
        """Upper bounds of h_p at orders a = e^{log_order} >= 1, increasing, shape (n,)."""
        # beyond this order doubles overflow; the profile falls with the order
        x = np.minimum(np.asarray(log_order, dtype=float), _LARGEST)
        if not self._counts.size:
            return np.zeros_like(x)
        a = np.exp(x)
        inner = gaussian_profile(x[:, None], 2 * self._counts[None, :] / self.scale)
        optimum = self.scale**2 * x[:, None] / (2 * self._counts[None, :])
        best = np.zeros(x.size)
        result = np.zeros(x.size)
        size = self._edges.size - 1
        starts = np.arange(0, size, _LEVELS[0])
        order = np.repeat(np.arange(x.size), starts.size)
        left = np.tile(starts, x.size)
        for width, finer in zip(_LEVELS, (*_LEVELS[1:], 0), strict=True):
            bound, value = self._evaluate(a, inner, optimum, order, left, width)
            np.maximum.at(best, order, value)
            small = bound <= best[order] * (1 + self.tolerance)
            if not finer:
                small[:] = True
            np.maximum.at(result, order[small], bound[small])
            order, left = order[~small], left[~small]
            if not order.size:
                break
            cuts = np.arange(0, width, finer)
            order = np.repeat(order, cuts.size)
            left = (left[:, None] + cuts[None, :]).ravel()
        return np.minimum(result, 1.0)

    def _evaluate(
        self, a: np.ndarray, inner: np.ndarray, optimum: np.ndarray, order: np.ndarray, left: np.ndarray, width: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Bounds on cells, and values at their right edges."""
        bound, value = np.empty(order.size), np.empty(order.size)
        for start in range(0, order.size, _CHUNK):
            part = slice(start, start + _CHUNK)
            low, at = left[part], order[part]
            high = low + width
            bound[part] = self._bounds(a, inner, optimum, at, low, high)
            value[part] = self._bounds(a, inner, optimum, at, high, high)
            if width == 1:
                at_low = self._bounds(a, inner, optimum, at, low, low)
                smooth = np.maximum(at_low, value[part]) + self._bend(a, optimum, at, low)
                bound[part] = np.minimum(bound[part], smooth)
        return bound, value - 2 * _ERROR * np.abs(value)

    def _bend(self, a: np.ndarray, optimum: np.ndarray, order: np.ndarray, low: np.ndarray) -> np.ndarray:
        """sup |g''| (c1 - c0)^2 / 8 on finest cells; infinite on cells without end."""
        centre, plus, minus = self._curvatures
        counts, orders = self._counts, a[order]
        c_low, c_high = self._edges[low], self._edges[low + 1]
        total = self.weights[0] * (orders - 1) * centre[low]
        for index, (weight, count) in enumerate(zip(self.weights[counts], counts, strict=True)):
            z = optimum[order, index]
            early = np.where(z < c_high - count, plus[low, index] + orders * centre[low], 0.0)
            late = np.where(z > c_low + count, centre[low] + orders * minus[low, index], 0.0)
            total = total + weight * np.maximum(early, late)
        with np.errstate(invalid="ignore"):
            width = (c_high - c_low) / self.scale
        return np.where(np.isfinite(width), total * np.minimum(width, 1e3) ** 2 / 8 * (1 + 1e-9), np.inf)

    def _bounds(
        self,
        a: np.ndarray,
        inner: np.ndarray,
        optimum: np.ndarray,
        order: np.ndarray,
        low: np.ndarray,
        high: np.ndarray,
    ) -> np.ndarray:
        base, plus, minus = self._tables
        weights, counts = self.weights[self._counts], self._counts
        orders = a[order]
        below = self.weights[0] * (orders - 1) * base[high]
        positive, negative = np.zeros(order.size), below
        c_low, c_high = self._edges[low], self._edges[high]
        for index, (weight, count) in enumerate(zip(weights, counts, strict=True)):
            z = optimum[order, index]
            early = z < c_low - count
            late = z > c_high + count
            gain = np.where(early, plus[low, index], np.where(late, base[high], inner[order, index]))
            loss = np.where(early, orders * base[low], np.where(late, orders * minus[high, index], 0.0))
            positive = positive + weight * gain
            negative = negative + weight * loss
        return positive * (1 + _ERROR) - negative * (1 - _ERROR)


def _largest_slope(u: np.ndarray) -> np.ndarray:
    """Bounds of |u| phi(u) between neighbouring edges along the first axis."""
    size = np.abs(u)
    least = np.where(u[1:] * u[:-1] <= 0, 0.0, np.minimum(size[1:], size[:-1]))
    most = np.maximum(size[1:], size[:-1])
    return np.asarray(most * np.exp(-0.5 * np.minimum(least, 60.0) ** 2) / math.sqrt(2 * math.pi))
