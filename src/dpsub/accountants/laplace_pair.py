"""Two mixtures of Laplace laws: the outputs of a scalar query on two data sets that differ in one record."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpsub import checks
from dpsub.accountants.directed_pair import CellMasses
from dpsub.accountants.laplace_profiles import largest_loss, smallest_loss
from dpsub.accountants.loss_law import LossLaw

_EPS = float(np.finfo(float).eps)


@dataclass(frozen=True)
class LaplacePair:
    """(1 - q) Lap(0) + q Lap(theta) against Lap(0), or, `mirrored`, against its mirror image; Lap(c) has scale 1.

    The loss is constant left of the leftmost and right of the rightmost centre and increases between them.

    Attributes
    ----------
    rate : float
        q in (0, 1].
    ratio : float
        theta, distance of the centres over the scale of the noise, above 0.
    mirrored : bool
    """

    rate: float
    ratio: float
    mirrored: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "rate", checks.real("rate", self.rate, above=0, at_most=1))
        object.__setattr__(self, "ratio", checks.real("ratio", self.ratio, above=0))

    def loss(self, t: np.ndarray) -> np.ndarray:
        """log of the density of the first law over that of the second, at t in units of the noise scale."""
        t = np.asarray(t, dtype=float)
        above = self._above(t)
        return above - self._above(-t) if self.mirrored else above

    def _above(self, t: np.ndarray) -> np.ndarray:
        """log of the mixture over its first component."""
        return np.log1p(self.rate * np.expm1(np.clip(2 * t - self.ratio, -self.ratio, self.ratio)))

    @property
    def ends(self) -> tuple[float, float]:
        """Smallest and largest loss."""
        low, high = smallest_loss(self.rate, self.ratio), largest_loss(self.rate, self.ratio)
        return (low - high, high - low) if self.mirrored else (low, high)

    def inverse_loss(self, x: np.ndarray) -> np.ndarray:
        """t with this loss, infinite at and beyond the ends."""
        x = np.asarray(x, dtype=float)
        # right of 0 the mirror image has its smallest ratio to Lap(0), so that the loss is the other one moved
        moved = np.abs(x) + smallest_loss(self.rate, self.ratio) if self.mirrored else x
        low, high = smallest_loss(self.rate, self.ratio), largest_loss(self.rate, self.ratio)
        inside = np.clip(np.expm1(np.clip(moved, low, high)) / self.rate, np.expm1(-self.ratio), np.expm1(self.ratio))
        with np.errstate(divide="ignore"):
            t = (self.ratio + np.log1p(inside)) / 2
        t = np.where(moved >= high, np.inf, t)
        return np.copysign(t, x) if self.mirrored else np.where(moved <= low, -np.inf, t)

    def place(self, losses: np.ndarray) -> np.ndarray:
        """`inverse_loss`, as `DirectedPair` has it."""
        return self.inverse_loss(losses)

    def range(self, tail: float) -> tuple[float, float]:
        """All losses, whatever the tail: they are bounded."""
        return self.ends

    def masses(self, t: np.ndarray) -> CellMasses:
        """Masses of the cells between neighbouring places, and bounds of their floating-point errors."""
        q, theta = self.rate, self.ratio
        base = _cells(t, 0.0)
        first = (1 - q) * base + q * _cells(t, theta)
        second = (1 - q) * base + q * _cells(t, -theta) if self.mirrored else base
        # distances from the centres are off by eps (theta + |t|), and |t| <= theta where cells end: each end of a cell
        # moves by that, beside which a cell may be narrow, and masses by it times the largest density
        moved = 2 * _EPS * theta
        first_error = moved * _densest(t, q, theta)
        second_error = moved * _densest(t, q, -theta) if self.mirrored else np.zeros(base.size)
        error = 16 * _EPS * (1 + theta)
        return CellMasses(first, second, error * first + first_error, error * second + second_error)

    def lower_law(self, step: float, swapped: bool) -> LossLaw:
        """Bound the law of the loss, of the other direction if `swapped`, from below.

        Between two centres densities are of the form a e^t + b e^-t, so that a cell which is symmetric about the place
        of a loss has that loss exactly.  From the top down, cells about the places of grid losses tile the line; the
        grid begins at the smallest loss (`mirrored`: at 0), and `fitting` makes it end at the largest.
        """
        edges = self._edges(step)
        cells = self.masses(edges)
        p, q, p_error, q_error = cells.p, cells.q, cells.p_error, cells.q_error
        if swapped:
            p, q, p_error, q_error = q, p, q_error, p_error
        masses = np.maximum(p - p_error, 0.0)
        keep = (masses > 0) & (q > 0)
        loss = np.log(masses[keep]) - np.log(q[keep] + q_error[keep])
        loss -= 8 * _EPS * (1 + np.abs(loss))
        origin = 0.0 if self.mirrored else (-1 if swapped else 1) * self.ends[0]
        place = np.floor((loss - origin) / step + 1e-6).astype(int)
        # what the tolerance has lifted is taken back from all
        lifted = float(np.max(place * step + origin - loss, initial=0.0))
        rounding = 8 * _EPS * (1 + self.ratio)
        return LossLaw(step, place, masses[keep], "lower", offset=origin - lifted - rounding)

    def fitting(self, step: float) -> float:
        """The largest step, at most the one given, of a grid that meets both ends of the loss."""
        span = self.ends[1] - (0.0 if self.mirrored else self.ends[0])
        return span / max(1, math.ceil(span / step - 1e-9))

    def _edges(self, step: float) -> np.ndarray:
        lowest = 0.0 if self.mirrored else self.ends[0]
        count = int((self.ends[1] - lowest) / step + 1e-9)
        # places of grid losses, decreasing from the top; the cell about each one begins where the one above it ends
        places = np.clip(self.inverse_loss(lowest + np.arange(count, 0, -1) * step), 0.0, self.ratio)
        signs = np.where(np.arange(count) % 2, -1.0, 1.0)
        ends = signs * (2 * np.cumsum(signs * places) - self.ratio)
        falling = np.minimum.accumulate(np.clip(np.append(self.ratio, ends), 0.0, self.ratio))
        rising = falling[::-1]
        inner = np.concatenate([-falling, rising]) if self.mirrored else np.append(0.0, rising)
        return np.concatenate([[-np.inf], inner, [np.inf]])


def _densest(edges: np.ndarray, rate: float, centre: float) -> np.ndarray:
    """Bounds of the density of rate Lap(centre) on the cells between increasing edges, a little beyond them as well."""
    nearest = np.maximum(np.maximum(edges[:-1] - centre, centre - edges[1:]), 0.0)
    return np.asarray(0.5 * rate * np.exp(-nearest) * (1 + 1e-9))


def _cells(edges: np.ndarray, centre: float) -> np.ndarray:
    """Masses of Lap(centre) between increasing edges, in sums of positive terms."""
    left, right = edges[:-1] - centre, edges[1:] - centre

    def side(near: np.ndarray, far: np.ndarray) -> np.ndarray:
        """Mass between distances near <= far from the centre, on one side."""
        width = np.where(near < far, far, near + 1) - near
        return np.where(near < far, 0.5 * np.exp(-near) * -np.expm1(-width), 0.0)

    with np.errstate(invalid="ignore"):
        return side(np.maximum(left, 0.0), np.maximum(right, 0.0)) + side(
            np.maximum(-right, 0.0), np.maximum(-left, 0.0)
        )
