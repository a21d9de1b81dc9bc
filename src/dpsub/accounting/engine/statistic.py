"""The lower law of cells of the output, and of one number of it, whose loss need not be monotone.

The largest output of an epoch, or the sum of a sample that is cut, has a law under P and Q that is
known, but its loss may rise and fall. It is tabulated, and cells of about one loss are united:
docs/proofs/numerics.md, "Laws of one number".
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import numpy as np

from dpsub.accounting.engine import work
from dpsub.accounting.engine.cell_masses import LAW_ERROR, TINY, UNDERFLOW, MassBounds
from dpsub.accounting.engine.lower_law import (
    best_origin,
    collapsed_losses,
    exchange_law,
    heaviest_loss,
    lower_law,
)
from dpsub.accounting.engine.outputs import Outputs
from dpsub.accounting.engine.pld import MAX_LOSS, PrivacyLossDistribution
from dpsub.errors import NumericalError

_EPS = float(np.finfo(float).eps)
# crossings of half-way points of the grid, at most
_MOST_POINTS = 2**23
# cells in which a loss that need not be monotone is tabulated
_TABLE = 4096
# cells that are worked on together: the clock is looked at between pieces
_PIECE = 2**16


class OutputCells(ABC):
    """Cells of the outputs whose masses under P and Q are known: which one holds the output is a
    processing of it (F2), so that its loss is a lower bound."""

    @abstractmethod
    def _cells(self, step: float, tail: float, swapped: bool) -> tuple[np.ndarray, np.ndarray]:
        """Masses of cells that suit a grid of losses, all but about `tail` of both laws: of the
        distribution that comes first from below, of the other from above."""

    def _losses(self, tail: float, swapped: bool) -> tuple[np.ndarray, np.ndarray]:
        """Masses of cells, and their losses."""
        cells = self._cells(math.inf, tail, swapped)
        return cells[0], _log_ratio(*cells)

    @property
    def outputs(self) -> Outputs | None:
        """The outputs themselves, where they have a closed form."""
        return None

    def spread(self) -> float:
        """Standard deviation of the loss, roughly; of the larger direction."""
        spreads = []
        for swapped in (False, True):
            masses, ratio = self._losses(1e-12, swapped)
            weights = np.where(np.isfinite(ratio), masses, 0.0)
            ratio = np.clip(np.where(weights > 0, ratio, 0.0), -MAX_LOSS, MAX_LOSS)
            mean = np.einsum("i,i", weights, ratio) / weights.sum()
            variance = np.einsum("i,i", weights, (ratio - mean) ** 2) / weights.sum()
            spreads.append(math.sqrt(variance))
        return max(*spreads, 1e-9)

    def lower_pld(
        self, step: float, *, tail: float, swapped: bool = False
    ) -> PrivacyLossDistribution:
        """Bound the law of log dP/dQ under P (swapped: log dQ/dP under Q) from below: cells of
        about one loss are united, which is a processing whatever the cells, and their loss rounded
        down."""
        cells = self._cells(step, tail, swapped)
        ratio = _log_ratio(*cells)
        seen = np.isfinite(ratio)
        work.spend(work.TERM * 12 * seen.size)
        bins, which = np.unique(np.round(ratio[seen] / step), return_inverse=True)
        least, most = (np.bincount(which, masses[seen], minlength=bins.size) for masses in cells)
        # a sum of so many positive terms is off by at most this share of itself
        kept_of_sums = 1 - 4 * _EPS * ratio.size
        masses = np.maximum(kept_of_sums * least * (1 - 2 * LAW_ERROR) - UNDERFLOW, 0.0)
        filled = masses > 0
        masses = masses[filled]
        at_most = most[filled] / kept_of_sums + TINY
        losses = collapsed_losses(masses, at_most, law_error=2 * LAW_ERROR)
        work.spend(work.TERM * 4 * masses.size)
        origin = best_origin(losses - bins[filled] * step, masses, step)
        slack = 8 * _EPS * (1 + float(np.abs(losses).max()))
        return lower_law(losses, masses, step, origin=origin, slack=slack)

    def exchanging_pld(
        self, step: float, *, tail: float, swapped: bool = False
    ) -> PrivacyLossDistribution:
        """Bound the same law by groups of cells that exchange shares, so that means of losses are
        kept: it suits steps that happen so often that rounding of each loss adds up."""
        first, second = self._cells(step, tail, swapped)
        work.spend(work.TERM * 24 * first.size)
        # each mass is off by at most this share of itself
        slack = 4 * LAW_ERROR
        first = np.maximum(first * (1 - 2 * LAW_ERROR) - UNDERFLOW, 0.0)
        second = second + TINY
        return exchange_law(first, second, step, slack, heaviest_loss(first, second, step))


class Statistic(OutputCells):
    """A number computed from the output, whose law under P and Q is known. The loss need not be
    monotone in it (docs/proofs/numerics.md, "Laws of one number")."""

    @abstractmethod
    def masses(self, edges: np.ndarray) -> tuple[MassBounds, MassBounds]:
        """Bounds of the masses of the cells between increasing edges, infinite ones included, under
        P and under Q."""

    @abstractmethod
    def range(self, tail: float) -> tuple[float, float]:
        """Limits that hold all but about `tail` of both laws; any limits are valid."""

    def _directed(self, edges: np.ndarray, swapped: bool) -> tuple[np.ndarray, np.ndarray]:
        """Masses of the distribution that comes first from below, and of the other from above:
        whichever is first, its events are never too likely."""
        first, second = [], []
        for start in range(0, edges.size - 1, _PIECE):
            work.spend(work.TERM * min(_PIECE, edges.size - start))
            under_p, under_q = self.masses(edges[start : start + _PIECE + 1])
            (least, _), (_, most) = (under_q, under_p) if swapped else (under_p, under_q)
            first.append(least)
            second.append(most)
        return np.concatenate(first), np.concatenate(second)

    def _table(self, tail: float, swapped: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Edges of cells, the masses of the cells, and their losses."""
        inner = np.linspace(*self.range(tail), _TABLE + 1)
        edges = np.concatenate([[-np.inf], inner, [np.inf]])
        least, most = self._directed(edges, swapped)
        return edges, least, _log_ratio(least, most)

    def _losses(self, tail: float, swapped: bool) -> tuple[np.ndarray, np.ndarray]:
        return self._table(tail, swapped)[1:]

    def _cells(self, step: float, tail: float, swapped: bool) -> tuple[np.ndarray, np.ndarray]:
        """Masses, as `_directed`, of cells in which the loss passes no half-way point of the grid,
        where more than the tail is."""
        edges, masses, table = self._table(tail, swapped)
        # a cell in which the loss passes half-way points of the grid would be rounded as a whole.
        # Those that hold less than the tail together are: where masses underflow, losses pass
        # millions of points
        looked_at = np.where(masses > tail / masses.size, table, np.nan)
        crossings = _crossings(edges[1:-1], looked_at[1:-1], step)
        work.spend(work.TERM * 9 * (edges.size + crossings.size))
        return self._directed(np.unique(np.concatenate([edges, crossings])), swapped)


def _log_ratio(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """log(first / second) of each cell, not finite where the first is 0."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(first) - np.log(second + TINY))


def _crossings(edges: np.ndarray, table: np.ndarray, step: float) -> np.ndarray:
    """Places where a tabulated loss passes half-way points of the grid, by interpolation between
    centres of cells, those of NaN left out."""
    known = np.isfinite(table)
    centres = ((edges[:-1] + edges[1:]) / 2)[known]
    height = np.clip(table[known], -MAX_LOSS, MAX_LOSS) / step + 0.5
    before, after = np.floor(height[:-1]), np.floor(height[1:])
    passed = np.abs(after - before).astype(int)
    if passed.sum() > _MOST_POINTS:
        raise NumericalError(
            f"the losses of one step need {passed.sum()} cells; take a step above {step:g}"
        )
    cell = np.repeat(np.arange(passed.size), passed)
    work.spend(work.NUMBER * 10 * cell.size)
    nth = np.arange(cell.size) - np.repeat(np.cumsum(passed) - passed, passed)
    work.spend(work.TERM * 6 * cell.size)
    crossed = np.minimum(before, after)[cell] + 1 + nth
    rise = (height[1:] - height[:-1])[cell]
    share = np.clip((crossed - height[cell]) / rise, 0.0, 1.0)
    width = (centres[1:] - centres[:-1])[cell]
    return np.asarray(centres[cell] + share * width)
