"""Shuffled epochs: the steps of a record weighed by what the first step tells of them
(docs/proofs/shuffling.md, Theorem 76).

Theorem 61 allows no weight above 1/k and pays for the rest as if it were all lost. Here each weight
pays for itself: by an exponential moment, which grows with it, and by what is cut off its
difference of likelihood ratios, which a heavy weight has cut off early. The mean excess of weights
over each of some levels is known (Lemma 52), and the cost of a weight is a convex function of it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dpsub.accounting.engine import work
from dpsub.accounting.schemes.shuffling.differences import CutDifference

_LEVELS = 40  # of weights, relative to equal ones: close together where most weights are
_MOST_AT_EASE = 8.0  # largest weight, relative to equal ones, of those that pay a common price
_FINER = 1.4  # factor between tilts that are compared
_TILTS = np.geomspace(2.0**-6, 16.0, 11)  # the first ones, over one in a deviation of a mean
_NEARBY = 2  # levels on either side of the one that was best
_FEWER = 4  # places for the cut of the first step, and levels at first, are fewer by this factor
_ROUNDING = 1 + 1e-9
_STEEPEST = 1e200  # slope of what a weight pays: beyond it nothing is proved
_LARGEST = 300.0  # of an exponent: beyond it nothing is proved


class WeighedBound(NamedTuple):
    """A bound of H_a and the choices that prove it: a tilt, which level it is up to which weights
    pay the common price, and where the differences are cut: that of the first step, and those of
    weights up to each of the next levels. A cut is named by its place among those of the grid from
    0 on."""

    value: float
    tilt: float
    level: int
    first_cut: int
    cuts: tuple[int, ...]


class _Prices(NamedTuple):
    """Exponential moments under a tilt t, for each place of a cut: ln E e^(t Z / T), shape (b,);
    (T/c) ln E e^(t c Z / T) for each level c, shape (b, l); and e to it, over e t."""

    tilt: float
    log_first: np.ndarray
    exponents: np.ndarray
    moments: np.ndarray


@dataclass(frozen=True, eq=False)
class Weights:
    """Weights of T - 1 steps after the first one.

    Parameters
    ----------
    steps : int
        T.
    levels : ndarray
        Weights over 1/T, increasing from 1 to T, shape (l,).
    leaks : ndarray
        Upper bounds of the mean excess of weights over them, shape (l,).
    """

    steps: int
    levels: np.ndarray
    leaks: np.ndarray

    @staticmethod
    def levels_of(steps: int) -> np.ndarray:
        """Return levels that suit so many steps."""
        levels = np.exp(math.log(steps) * np.linspace(0.0, 1.0, _LEVELS) ** 1.5)
        levels[-1] = steps
        return levels

    def bound(self, law: CutDifference, near: WeighedBound | None) -> WeighedBound:
        """Return the least bound that is found for a law of Lemma 60, by choices about those that
        were best at an order before."""
        levels = np.flatnonzero(self.levels <= _MOST_AT_EASE)[:-1]
        if near is None:
            tilts = _TILTS * math.sqrt(self.steps) / law.deviation
            near = self._best(law, [self._prices(law, t) for t in tilts], levels[::_FEWER])
        tilts = near.tilt * np.array([1 / _FINER, 1.0, _FINER])
        prices = {tilt: self._prices(law, tilt) for tilt in tilts.tolist()}
        best = self._best(law, prices.values(), levels[near.level : near.level + 1])
        nearby = levels[max(0, near.level - _NEARBY) : near.level + _NEARBY + 1]
        return self._best(law, [prices[best.tilt]], nearby)

    def _best(
        self, law: CutDifference, priced: Iterable[_Prices], levels: np.ndarray
    ) -> WeighedBound:
        bounds = [self._bound(law, prices, level) for prices in priced for level in levels.tolist()]
        return min(bounds, key=lambda bound: bound.value)

    def _prices(self, law: CutDifference, tilt: float) -> _Prices:
        T = self.steps
        log_means = law.log_mgf(np.append(1.0, self.levels) * (tilt / T))
        exponents = log_means[:, 1:] * (T / self.levels)
        moments = np.exp(np.minimum(exponents, _LARGEST)) / (math.e * tilt)
        moments[exponents >= _LARGEST] = np.inf
        return _Prices(tilt, log_means[:, 0], exponents, moments)

    def _bound(self, law: CutDifference, prices: _Prices, level: int) -> WeighedBound:
        """Return the bound of Theorem 76 where weights up to a level pay the common price, with the
        best cuts."""
        T, tilt, beyond = self.steps, prices.tilt, law.beyond
        common = int(np.argmin(beyond + prices.moments[:, level]))
        least, exponent = prices.moments[common, level], prices.exponents[common, level]
        if not least < np.inf:
            return WeighedBound(1.0, tilt, level, 0, ())
        # for some places where the difference of the first step may be cut
        tried = np.arange(0, beyond.size, _FEWER)
        rise = np.maximum((tilt * law.cuts[tried] - exponent) / T, 0.0)
        tried, rise = tried[rise < _LARGEST], rise[rise < _LARGEST]
        grown, beyond_first = np.exp(rise), beyond[tried]
        first = np.maximum(np.exp(prices.log_first[tried] - exponent / T), 1.0)
        first += tilt / T * grown * beyond_first
        common_price = beyond[common] + first * least + beyond_first / T
        slopes, cuts = self._slopes(law, prices, level, common, grown)
        growth = np.diff(np.minimum(slopes, _STEEPEST), axis=1, prepend=0.0)
        totals = common_price + np.einsum("bl,l->b", growth, self.leaks[level:-1])
        totals[slopes[:, -1] > _STEEPEST] = np.inf
        best = int(np.argmin(totals))
        value = min(float(totals[best]) * _ROUNDING, 1.0)
        first_cut, chosen = law.cut_places[tried[best]], law.cut_places[cuts[best]]
        return WeighedBound(value, tilt, level, int(first_cut), tuple(chosen.tolist()))

    def _slopes(
        self, law: CutDifference, prices: _Prices, level: int, common: int, grown: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the slopes between levels of what weights pay beyond the common price, and where
        they are best cut, for each factor of the moments, shape (f, l - 1)."""
        levels, moments = self.levels[level:], prices.moments[:, level:]
        by_cut = np.maximum(law.beyond - law.beyond[common], 0.0)[:, None]
        by_moment = np.maximum(moments - moments[common, 0], 0.0)
        paid = levels * (by_cut + grown[:, None, None] * by_moment)
        work.spend(work.NUMBER * 4 * paid.size)
        # with one cut for the weights between two levels the chord is above what they pay
        cuts = paid[:, :, 1:].argmin(axis=1)
        cuts[:, 0] = common
        factor, interval = np.arange(grown.size)[:, None], np.arange(levels.size - 1)
        lower, upper = paid[factor, cuts, interval], paid[factor, cuts, interval + 1]
        most = np.append(np.zeros((grown.size, 1)), upper, axis=1)
        most[:, 1:-1] = np.maximum(upper[:, :-1], lower[:, 1:])
        # nothing is proved from a level on that no cut serves
        known = np.minimum(most, 2 * _STEEPEST * levels[-1])
        slopes = np.diff(known) / np.diff(levels)
        return np.maximum.accumulate(slopes, axis=1), cuts
