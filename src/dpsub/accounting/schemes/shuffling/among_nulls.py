"""Differences of likelihood ratios where a record hides among clones of the null, on the grids of a
certificate (docs/proofs/shuffling.md, Theorem 89).

Sums on grids of equal steps are what a verifier forms by products of polynomials; here they are
computed by tilted transforms (`differences`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from dpsub.accounting.engine import work
from dpsub.accounting.engine.cell_masses import normal_masses
from dpsub.accounting.engine.grid_sums import GridLaw

_FARTHEST = 37.0  # deviations: masses further out are no doubles
_NARROW = 10.0  # smallest value of a grid, over its largest one: smaller ones hardly ever count


class ValueGrid(NamedTuple):
    """Values at `first`, ..., `last` times a unit, below and above 0."""

    unit: float
    first: int
    last: int


@dataclass(frozen=True)
class AmongNulls:
    """Z = e_f - a e_g, e_u(x) = exp(u x - u^2/2), x ~ N(0, 1), f > g: it rises with x.

    Parameters
    ----------
    order : float
        a >= 1.
    ahead, behind : float
        f and g: f and -f, f and 0, or 0 and -g.
    """

    order: float
    ahead: float
    behind: float

    def grid(self, unit: float, unseen: float) -> ValueGrid:
        """Return a grid from values that are as rare to values beyond which `unseen` is left on
        average, about."""
        lowest, highest = self._ends(unseen)
        first, last = math.floor(lowest / unit), math.ceil(highest / unit)
        return ValueGrid(unit, min(first, -1), max(last, 1))

    def _ends(self, unseen: float) -> tuple[float, float]:
        """Return values beyond which there is little."""
        rare = max(-float(ndtri(min(unseen, 0.25))), 1.0)
        highest = max(self._value(self.ahead + rare), 1e-3)
        return max(self._value(-rare), -_NARROW * highest), highest

    def law(self, grid: ValueGrid) -> GridLaw:
        """Return the law on a grid, which has the mean of what exceeds each of its places: values
        below the first one are moved up to it, those above the last one down, and charged."""
        places = np.arange(grid.first, grid.last + 1)
        values = grid.unit * places
        work.spend(work.TERM * 16 * places.size)
        edges = np.clip(self._places(values), -_FARTHEST, _FARTHEST)
        mass, moved, near = (normal_masses(edges, u)[0] for u in (0.0, self.ahead, self.behind))
        excess = (moved - self.order * near)[1:] - values * mass[1:]
        upper = np.clip(excess[:-1] / grid.unit, 0.0, mass[1:-1])
        masses = mass[1:].copy()
        masses[:-1] -= upper
        masses[1:] += upper
        masses[0] += mass[0]
        none = np.zeros(places.size - 1)
        return GridLaw(grid.unit, places, masses, none, 0.0, max(float(excess[-1]), 0.0))

    def coarsest(self, unseen: float, most: int) -> float:
        """Return the unit of a grid that is hardly fine enough, or of one with so many places."""
        f, g, a = self.ahead, self.behind, self.order
        own, other, both = (math.expm1(min(u * v, 600.0)) for u, v in ((f, f), (g, g), (f, g)))
        deviation = math.sqrt(own + a * a * other - 2 * a * both)
        lowest, highest = self._ends(unseen)
        return max(min(deviation, highest) / 4, (highest - lowest) / most)

    def _value(self, x: float) -> float:
        f, g = self.ahead, self.behind
        return math.exp(f * x - f * f / 2) - self.order * math.exp(g * x - g * g / 2)

    def _places(self, values: np.ndarray) -> np.ndarray:
        """Return where Z has these values; infinite ones beyond all that it has."""
        f, g, a = self.ahead, self.behind, self.order
        with np.errstate(divide="ignore", invalid="ignore"):
            if f == 0.0:
                return np.asarray(np.log(np.maximum(1 - values, 0.0) / a) / g + g / 2)
            if g == 0.0:
                return np.asarray(np.log(np.maximum(a + values, 0.0)) / f + f / 2)
        # a quadratic equation for e^(f x), whose positive root is a sum of positive terms
        shrunk = math.exp(-f * f / 2)
        root = np.sqrt(values * values + 4 * a * shrunk * shrunk)
        raised = np.where(
            values >= 0, (values + root) / (2 * shrunk), 2 * a * shrunk / (root - values)
        )
        return np.asarray(np.log(raised) / f)
