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
up; only cells that can hold the supremum are cut further.  The supremand, which is differentiable (f_l' = 0 at x*_l)
with piecewise continuous g'', is also at most the larger of its values at the edges of a cell plus sup |g''| (c1 -
c0)^2 / 8, and sup |u phi(u)| over an interval bounds each term of g''.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import ndtr

from dpsub.accountants.gaussian_orders import gaussian_profile
from dpsub.errors import ArgumentError

_COARSEST = 128
"""Width of the first cells, in units of the grid of edges; they are bounded by the clip alone."""

_LEVELS = (16, 4, 1)
"""Widths of the cells that they are cut into, which are bounded to second order."""

_BLOCK = 8
"""Orders that share the choice among the first cells."""

_MOST_ENTRIES = 2**23
"""Of a table of normal tails, one for each edge and count: wide laws have wider cells."""

_LARGEST = 690.0

_ERROR = 4e-12
"""Relative error charged for the positive and the negative terms of a bound (normal tails to 40 deviations,
weights)."""

_PIECE = 1024
"""Orders that are worked on together."""


@dataclass(frozen=True, eq=False)
class GroupLemma:
    """h_p for one law, as a function of the order.

    Attributes
    ----------
    weights : ndarray, shape (m + 1,)
        p_0..p_m, nonnegative, of sum at most 1 (what a law lacks is charged by the caller).
    scale : float
        s, noise multiplier: standard deviation of the noise over the norm bound of one record.
    reach : float
        Normal tails beyond so many deviations are bounded by one cell each: about what the result cannot fall below.
    tolerance : float
        Relative accuracy at which cutting stops; the result is an upper bound whatever it is.
    resolution : int
        Edges a standard deviation of the noise, unless there are too many: cells that small are not cut further.
    """

    weights: np.ndarray
    scale: float
    reach: float = 9.0
    tolerance: float = 1e-4
    resolution: int = 100

    @cached_property
    def _counts(self) -> np.ndarray:
        return np.flatnonzero(self.weights[1:]) + 1

    @cached_property
    def _edges(self) -> np.ndarray:
        """Edges c of the cells; a multiple of the coarsest width, then +-infinity."""
        s, largest = self.scale, float(self._counts[-1])
        reach = self.reach * s
        cells = int(np.ceil((largest * 2 + 2 * reach) / (s / self.resolution) / _COARSEST)) * _COARSEST
        most = _MOST_ENTRIES // self._counts.size // _COARSEST * _COARSEST
        inner = np.linspace(-reach, 2 * largest + reach, max(min(cells, most), 4 * _COARSEST) - 2 * _COARSEST + 1)
        # one coarse cell of infinite extent at each end: all its inner edges are infinite as well
        ends = np.full(_COARSEST, np.inf)
        return np.concatenate([-ends, inner, ends])

    @cached_property
    def _tables(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Phi(-c/s), shape (e,); Phi((2l - c)/s) and Phi((-2l - c)/s), shape (e, counts)."""
        c = self._edges[:, None]
        s, apart = self.scale, 2 * self._counts[None, :]
        return ndtr(-self._edges / s), ndtr((apart - c) / s), ndtr((-apart - c) / s)

    @cached_property
    def _curvatures(self) -> dict[int, tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """What `_curvature` has computed, by width."""
        return {}

    def _curvature(self, width: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """sup |u| phi(u) on each cell of this width, for u = c/s, (2l - c)/s and (2l + c)/s."""
        if width not in self._curvatures:
            s, apart = self.scale, 2 * self._counts[None, :]
            c = np.clip(self._edges[::width], -1e6 * s, 1e6 * s)
            away = c[:, None]
            self._curvatures[width] = (
                _largest_slope(c / s), _largest_slope((apart - away) / s), _largest_slope((apart + away) / s)
            )  # fmt: skip
        return self._curvatures[width]

    def __call__(self, log_order: np.ndarray) -> np.ndarray:
        """Upper bounds of h_p at orders a = e^{log_order} >= 1, increasing, shape (n,).

        Raises
        ------
        ArgumentError
            If the orders do not increase, as the choice of cells relies on.
        """
        if np.any(np.diff(log_order) < -1e-9):
            raise ArgumentError("orders must increase, got a smaller one after a larger one; sort them")
        # beyond this order doubles overflow; the profile falls with the order
        x = np.minimum(np.asarray(log_order, dtype=float), _LARGEST)
        if not self._counts.size:
            return np.zeros_like(x)
        # few orders at a time stay in the caches
        pieces = [self._suprema(x[start : start + _PIECE]) for start in range(0, x.size, _PIECE)]
        return np.minimum(np.concatenate(pieces), 1.0)

    def _suprema(self, x: np.ndarray) -> np.ndarray:
        a = np.exp(x)
        inner = gaussian_profile(x[:, None], 2 * self._counts[None, :] / self.scale)
        optimum = self.scale**2 * x[:, None] / (2 * self._counts[None, :])
        best, result = np.zeros(x.size), np.zeros(x.size)
        order, left = self._kept(a, inner, optimum, best, result)
        for width, finer in zip(_LEVELS, (*_LEVELS[1:], 0), strict=True):
            if not order.size:
                break
            bound = self._smooth(a, inner, optimum, order, left, width, best)
            large = np.flatnonzero(bound > best[order] * (1 + self.tolerance))
            clipped = self._bounds(a, inner, optimum, order[large], left[large], left[large] + width)
            bound[large] = np.minimum(bound[large], clipped)
            small = (bound <= best[order] * (1 + self.tolerance)) | (finer == 0)
            np.maximum.at(result, order[small], bound[small])
            order, left = _cut(order[~small], left[~small], width, finer or width)
        return result

    def _kept(
        self, a: np.ndarray, inner: np.ndarray, optimum: np.ndarray, best: np.ndarray, result: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Cells of the first level that must be cut, for each order; raises `best` to what is attained, `result` to the
        bounds of the others.

        All bounds and values fall with the order.  So those at the lower end of a block of orders bound its cells, and
        what is attained at the upper end is attained at all orders of the block.
        """
        few = np.append(np.arange(0, a.size - 1, _BLOCK), a.size - 1)
        coarsest = np.arange(0, self._edges.size - 1, _COARSEST)
        at, left = np.repeat(few, coarsest.size), np.tile(coarsest, few.size)
        right = left + _COARSEST
        bound = self._bounds(a, inner, optimum, at, left, right).reshape(few.size, -1)
        value = self._bounds(a, inner, optimum, at, right, right).reshape(few.size, -1).max(axis=1)
        following = np.minimum(np.arange(1, few.size + 1), few.size - 1)
        attained = np.maximum(value - 2 * _ERROR * np.abs(value), 0.0)[following]
        done = bound <= attained[:, None] * (1 + self.tolerance)
        block = np.minimum(np.arange(a.size) // _BLOCK, few.size - 1)
        best[:] = attained[block]
        result[:] = np.where(done, bound, 0.0).max(axis=1)[block]
        order, cell = np.nonzero(~done[block])
        return _cut(order, coarsest[cell], _COARSEST, _LEVELS[0])

    def _smooth(
        self,
        a: np.ndarray,
        inner: np.ndarray,
        optimum: np.ndarray,
        order: np.ndarray,
        left: np.ndarray,
        width: int,
        best: np.ndarray,
    ) -> np.ndarray:
        """Bounds of second order on cells sorted by order and place; raises `best` to what is attained at edges."""
        right = left + width
        at_right = self._bounds(a, inner, optimum, order, right, right)
        # the left edge of most cells is the right edge of the cell before
        alone = np.append(True, (order[1:] != order[:-1]) | (left[1:] != right[:-1]))
        at_left = np.append(0.0, at_right[:-1])
        at_left[alone] = self._bounds(a, inner, optimum, order[alone], left[alone], left[alone])
        value = np.maximum(at_left, at_right)
        np.maximum.at(best, order, value - 2 * _ERROR * np.abs(value))
        return value + self._bend(a, optimum, order, left, width)

    def _bend(self, a: np.ndarray, optimum: np.ndarray, order: np.ndarray, low: np.ndarray, width: int) -> np.ndarray:
        """sup |g''| (c1 - c0)^2 / 8 on cells; infinite on cells without end."""
        centre, plus, minus = self._curvature(width)
        counts, orders, cell = self._counts, a[order], low // width
        c_low, c_high = self._edges[low], self._edges[low + width]
        at_centre, falling = centre[cell], orders * centre[cell]
        total = self.weights[0] * (orders - 1) * at_centre
        for index, (weight, count) in enumerate(zip(self.weights[counts], counts, strict=True)):
            z = optimum[order, index]
            early = np.where(z < c_high - count, plus[cell, index] + falling, 0.0)
            late = np.where(z > c_low + count, at_centre + orders * minus[cell, index], 0.0)
            total = total + weight * np.maximum(early, late)
        with np.errstate(invalid="ignore"):
            extent = (c_high - c_low) / self.scale
        return np.where(np.isfinite(extent), total * np.minimum(extent, 1e3) ** 2 / 8 * (1 + 1e-9), np.inf)

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


def _cut(order: np.ndarray, left: np.ndarray, width: int, finer: int) -> tuple[np.ndarray, np.ndarray]:
    """Cells cut into finer ones."""
    cuts = np.arange(0, width, finer)
    return np.repeat(order, cuts.size), (left[:, None] + cuts[None, :]).ravel()


def _largest_slope(u: np.ndarray) -> np.ndarray:
    """Bounds of |u| phi(u) between neighbouring edges along the first axis."""
    size = np.abs(u)
    least = np.where(u[1:] * u[:-1] <= 0, 0.0, np.minimum(size[1:], size[:-1]))
    most = np.maximum(size[1:], size[:-1])
    return np.asarray(most * np.exp(-0.5 * np.minimum(least, 60.0) ** 2) / math.sqrt(2 * math.pi))
