"""Cells of the game (docs/proofs/without_replacement.md, Theorem 11) for scalar Laplace noise
on samples without replacement.

Of v, v' and the member g that is replaced two are antipodal, the third lies between (Lemma 28), and
a cell is an interval of places of the third; one or two triples bound all those of a cell (Lemma
29, Theorem 30).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple

import numpy as np

from dpsub.accounting.engine import work
from dpsub.accounting.engine.pairs import log_complement
from dpsub.accounting.engine.pld import Profile
from dpsub.accounting.engine.profiles import PROFILE_ERROR

_EPS = float(np.finfo(float).eps)
# largest exponent: e^700 is finite
_LARGEST = 700.0
_TINY = 1e-300


class LaplaceCell(NamedTuple):
    """Triples with antipodal v, v' ("replaced", the third is g), v, g ("second", v') or v', g
    ("first", v), or any; the third is between `low` and `high` from g, or, if it is g, from v; in
    [0, 2]."""

    third: Literal["any", "replaced", "second", "first"]
    low: float = 0.0
    high: float = 2.0


@dataclass(frozen=True)
class LaplaceCells:
    """Cells for samples that hold a record with probability `rate`, `missed` being 1 - rate
    (`complement`), and Laplace noise of scale `noise_multiplier` over C."""

    rate: float
    noise_multiplier: float
    missed: float | None = None
    mirrored: ClassVar[bool] = True
    whole: ClassVar[LaplaceCell] = LaplaceCell("any")
    extremes: ClassVar[Sequence[LaplaceCell]] = [
        LaplaceCell("replaced", at, at) for at in (0.0, 2.0)
    ]

    def profiles(self, cell: LaplaceCell, tail: float) -> tuple[Profile, Profile]:
        """Bounds of H_a(P || Q) and H_a(Q || P) on the cell, whose losses are bounded, whatever the
        tail."""
        third, low, high = cell
        if third == "any":
            return self._largest((2.0, 0.0)), self._largest((2.0, 0.0))
        if third == "replaced":
            return self._largest((high, high - 2)), self._largest((2 - low, -low))
        towards = self._largest((2.0, low))
        # of x between 0 and y, both distances largest, or the origin as near as possible
        away = self._largest((high, high + (2 - low)), (low, 2.0))
        return (towards, away) if third == "second" else (away, towards)

    def halves(self, cell: LaplaceCell) -> list[LaplaceCell]:
        """Two cells that cover it; of all triples three."""
        if cell == self.whole:
            return [LaplaceCell(third) for third in ("replaced", "second", "first")]
        middle = (cell.low + cell.high) / 2
        return [cell._replace(high=middle), cell._replace(low=middle)]

    def middle(self, cell: LaplaceCell) -> LaplaceCell:
        """The triple in the middle of the cell, as a cell."""
        if cell == self.whole:
            return self.extremes[0]
        middle = (cell.low + cell.high) / 2
        return cell._replace(low=middle, high=middle)

    def _largest(self, *pairs: tuple[float, float]) -> Profile:
        """The largest profile of these x and y, in units of C, at each order."""
        s = self.noise_multiplier

        def profile(log_order: np.ndarray) -> np.ndarray:
            work.spend(work.TERM * 8 * np.size(log_order))
            bounds = [
                three_laplace(log_order, self.rate, x / s, y / s, self.missed) for x, y in pairs
            ]
            return np.asarray(np.maximum.reduce(bounds))

        return profile


def three_laplace(
    log_order: np.ndarray, rate: float, x: float, y: float, missed: float | None = None
) -> np.ndarray:
    """Upper bounds of H_a of (1 - q) Lap(0) + q Lap(x) against (1 - q) Lap(0) + q Lap(y) at ln a >=
    0, scale 1.

    q times the integral of (1 - g) Lap(x) over the interval about x where g < 1, g = (a Lap(y) +
    tau Lap(0))/Lap(x) in densities, tau = (1 - q)(a - 1)/q: on either side of x g does not fall
    with the distance from x (Lemma 29). `missed` is 1 - q (`complement`).
    """
    apart, foot = abs(x - y), abs(x)
    # from ln a = |x - y| on it is 0
    orders = np.minimum(log_order, apart + 1)
    log_odds = log_complement(rate, missed) - math.log(rate)
    with np.errstate(divide="ignore"):
        log_tau = orders + np.log(-np.expm1(-orders)) + log_odds
    points = [(orders, y - x), (log_tau, -x)]
    at_x = sum(_exp(log_weight - abs(place)) for log_weight, place in points)
    # what rounding does to g or to any mass below is at most this, of densities up to about that of
    # Lap(x): 64 eps times the size of the exponents (docs/proofs/numerics.md, "Laplace")
    size = 2 + apart + foot + orders + (abs(log_odds) if math.isfinite(log_odds) else 0.0)
    slack = 64 * _EPS * size
    total = np.zeros(orders.shape)
    for side in (1.0, -1.0):
        # the interval ends, on this side of x, where g reaches 1: terms about places on the other
        # side, and about x itself, are constant here
        near = [(log_weight, side * place) for log_weight, place in points if side * place > 0]
        constant = sum(
            (_exp(log_weight - abs(place)) for log_weight, place in points if side * place <= 0),
            np.zeros(orders.shape),
        )
        end = _end(near, 1 - constant)
        total += 0.5 * (1 - constant) * -np.expm1(-end)
        for log_weight, place in near:
            # e^-u e^(2 min(u, c) - c) over 0 < u < end, c the place
            inner = np.minimum(end, place)
            beyond = np.maximum(end, place) - place
            total -= 0.5 * _exp(log_weight - place + inner) * -np.expm1(-inner)
            total -= 0.5 * _exp(log_weight) * -np.expm1(-beyond)
    # S is also at most 1 - g(x), and 0 where that is negative by more than what is charged
    below = np.minimum(np.maximum(1 - at_x, 0.0), 1.0)
    bound = np.minimum(np.maximum(total, 0.0) + slack, below + slack) * (1 + PROFILE_ERROR)
    return np.asarray(np.where(at_x >= 1 + slack, 0.0, np.minimum(rate * bound, 1.0)))


def _exp(exponent: np.ndarray) -> np.ndarray:
    """e^exponent, or a number that is large enough."""
    return np.asarray(np.exp(np.minimum(exponent, _LARGEST)))


def _end(points: Sequence[tuple[np.ndarray, float]], free: np.ndarray) -> np.ndarray:
    """Return the place where the sum over points (ln w, c) of w e^(2 min(u, c) - c) reaches `free`:
    u >= 0, infinite if nowhere."""
    end, start = np.full(free.shape, np.inf), 0.0
    with np.errstate(divide="ignore", invalid="ignore"):
        # between neighbouring places some terms rise like e^(2 u), and the others are constant
        for place in sorted({place for _, place in points}):
            passed = sum((_exp(w + c) for w, c in points if c < place), np.zeros(free.shape))
            rising = np.logaddexp.reduce([w - c for w, c in points if c >= place])
            # with nothing left the end is where this piece starts
            u = (np.log(np.maximum(free - passed, _TINY)) - rising) / 2
            here = np.isinf(end) & ~(u > place)
            end, start = np.where(here, np.maximum(u, start), end), place
    return end
