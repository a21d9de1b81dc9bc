"""Cells of the game (docs/proofs/without_replacement.md, Theorem 70) for a record that
contributes 0, in samples without replacement.

Of the record's vector v and that of the member g that is replaced both are unit vectors, and the
angle between them is the one parameter; a cell is an interval of angles. Exchange of the data sets
is no choice of the adversary: both orders have values of their own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from scipy.special import ndtr

from dpsub.accounting.engine import work
from dpsub.accounting.engine.pairs import complement, log_complement
from dpsub.accounting.engine.pld import Profile
from dpsub.accounting.engine.profiles import PROFILE_ERROR
from dpsub.accounting.games.game import CellProfile, Copies
from dpsub.accounting.games.half_lines import (
    MOST_CHARGED,
    ROOT_ERROR,
    STEEPEST,
    TERM_ERROR,
    spread_charges,
    three_points,
)

_NEWTON_STEPS = 60
# nearer places of the third centre are bounded by a half-line
_NEAREST = 0.01


class ZeroedCell(NamedTuple):
    """Angles between v and g, from `low` to `high`, in [0, pi]."""

    low: float
    high: float


@dataclass(frozen=True)
class ZeroedCells:
    """Cells for samples that hold a record with probability `rate`, `missed` being 1 - rate
    (`complement`)."""

    rate: float
    noise_multiplier: float
    missed: float | None = None
    mirrored: ClassVar[bool] = False
    whole: ClassVar[ZeroedCell] = ZeroedCell(0.0, math.pi)
    extremes: ClassVar[Sequence[ZeroedCell]] = [ZeroedCell(at, at) for at in (0.0, math.pi)]
    """Fillers like the record, and opposite: those of the filler flip."""

    def profiles(self, cell: ZeroedCell, tail: float) -> tuple[Profile, Profile]:
        """Bounds of H_a(P || Q) and H_a(Q || P) on the cell, P with the record."""
        low, high = cell
        copies = Copies((complement(self.rate, self.missed), self.rate))

        def profile(radius: float, foot: float) -> CellProfile:
            foot = min(foot, radius)
            return CellProfile(copies, self.noise_multiplier, tail, 1.0, radius, foot)

        with_record = profile(2 * math.sin(high / 2), 1 - math.cos(high))
        if low < math.pi / 2:
            return with_record, profile(1.0, math.cos(low))
        return with_record, self._between(-math.cos(low), math.sin(low), tail)

    def halves(self, cell: ZeroedCell) -> list[ZeroedCell]:
        """Two cells that cover it; a right angle is never inside of one."""
        middle = (cell.low + cell.high) / 2
        return [cell._replace(high=middle), cell._replace(low=middle)]

    def middle(self, cell: ZeroedCell) -> ZeroedCell:
        """The angle in the middle of the cell, as a cell."""
        angle = (cell.low + cell.high) / 2
        return ZeroedCell(angle, angle)

    def _between(self, away: float, height: float, tail: float) -> Profile:
        """H_a(Q || P) where the centre of Q lies between those of P and of the base, along the line
        of P and Q: the base this far beyond it, and from the line (over C)."""
        s = self.noise_multiplier
        log_odds = log_complement(self.rate, self.missed) - math.log(self.rate)
        reach = max(8.5, math.sqrt(-2 * math.log(tail)))

        def profile(log_order: np.ndarray) -> np.ndarray:
            work.spend(work.TERM * 40 * log_order.size)
            with np.errstate(divide="ignore"):
                log_charge = np.log(np.expm1(log_order)) + log_odds
            bound = three_points(log_order, log_charge, 1 / s, 1 / s)
            if height <= STEEPEST * s:
                log_points, weights = spread_charges(height / s, reach)
                charges = log_charge[:, None] + log_points
                values = best_interval(log_order[:, None], charges, 1 / s, away / s)
                # mass left of the first point is charged as 1 (docs/proofs/numerics.md, "W")
                mean = np.einsum("ij,j->i", values, weights) + float(ndtr(-reach))
                bound = np.minimum(bound, mean)
            return np.asarray(np.minimum(self.rate * bound * (1 + PROFILE_ERROR), 1.0))

        return profile


def best_interval(
    log_order: np.ndarray, log_charge: np.ndarray, apart: float, away: float
) -> np.ndarray:
    """Upper bounds of I = sup over events A of N(0)(A) - a N(-apart)(A) - tau N(away)(A), scale 1,
    `apart` > 0 and `away` >= 0, with broadcasting.

    The ratio g of the negative densities and the first one is convex, so that the best event is the
    interval where it is below 1. Newton steps from outside of the ends of {ln g < 0} stay there;
    what the last residuals may hide is charged (docs/proofs/numerics.md, "I").
    """
    if away < _NEAREST * apart:
        return three_points(log_order, log_charge, away, apart)
    charge = np.clip(log_charge, -MOST_CHARGED, MOST_CHARGED)

    def log_ratio(t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """ln g, and its slope."""
        first = log_order - apart * t - apart**2 / 2
        second = charge + away * t - away**2 / 2
        total = np.logaddexp(first, second)
        share = np.exp(second - total)
        return total, away * share - apart * (1 - share)

    # where g is least, and where each of its terms alone is 1
    least = (log_order - charge + math.log(apart / away) + (away**2 - apart**2) / 2) / (
        apart + away
    )
    left = np.minimum((log_order - apart**2 / 2) / apart, least)
    right = np.maximum((away**2 / 2 - charge) / away, least)
    outer = left
    for _ in range(_NEWTON_STEPS):
        work.spend(work.TERM * 4 * left.size)
        (over_left, falling), (over_right, rising) = log_ratio(left), log_ratio(right)
        size = 1 + (apart + away) * (np.abs(left) + np.abs(right) + apart + away)
        done = np.maximum(over_left, over_right) <= ROOT_ERROR * size
        if np.all(done | (left >= least) & (right <= least)):
            break
        # where no root is left the ends meet at the least ratio
        step_left = np.where(over_left > 0, over_left / np.minimum(falling, -1e-300), 0.0)
        step_right = np.where(over_right > 0, over_right / np.maximum(rising, 1e-300), 0.0)
        left = np.minimum(left - step_left, least)
        right = np.maximum(right - step_right, least)
    # outside of the last ends g is at least 1, but for what its rounding hides
    hidden = np.minimum(8 * ROOT_ERROR * size, 1.0)
    gain, gain_size = _mass(left, right, 0.0)
    against, against_size = _mass(left, right, -apart)
    missing, missing_size = _mass(left, right, away)
    order, weight = np.exp(log_order), np.exp(charge)
    value = gain - order * against - weight * missing
    # residuals that are left stand for ends that are too far out: the part in which g exceeds 1
    excess = np.expm1(np.minimum(np.maximum(over_left, 0.0), 700.0)) + np.expm1(
        np.minimum(np.maximum(over_right, 0.0), 700.0)
    )
    beyond = ndtr(-outer)
    value = value + np.minimum(excess, 1e300) * beyond
    # where even the least ratio is not below 1 nothing is left but rounding
    value = hidden * beyond + np.where(log_ratio(least)[0] >= 0, 0.0, value)
    value += TERM_ERROR * (gain_size + order * against_size + weight * missing_size)
    return np.asarray(np.clip(np.minimum(value, beyond * (1 + TERM_ERROR)), 0.0, 1.0))


def _mass(left: np.ndarray, right: np.ndarray, centre: float) -> tuple[np.ndarray, np.ndarray]:
    """N(centre) of an interval, as a difference of tails, and the larger one of these."""
    low, high = left - centre, right - centre
    on_right = low + high > 0
    tail = np.where(on_right, ndtr(-low), ndtr(high))
    rest = np.where(on_right, ndtr(-high), ndtr(low))
    return tail - rest, tail
