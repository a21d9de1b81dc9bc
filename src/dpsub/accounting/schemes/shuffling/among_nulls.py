"""Differences of likelihood ratios where a record hides among clones of the null, on the grids of a
certificate (docs/proofs/shuffling.md, Theorem 89).

Sums on grids of equal steps are what a verifier forms by products of polynomials; here they are
computed by tilted transforms (`differences`).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from dpsub.accounting.engine import work
from dpsub.accounting.engine.cell_masses import normal_masses
from dpsub.accounting.engine.grid_sums import GridLaw
from dpsub.accounting.schemes.allocation.difference import Difference

_FARTHEST = 37.0  # deviations: masses further out are no doubles


class ValueGrid(NamedTuple):
    """Values at `first`, ..., `last` times a unit, below and above 0."""

    unit: float
    first: int
    last: int


class AmongNulls(Difference):
    """Z = e_f - a e_g with f and g, lengths in units of the noise, f and -f, f and 0, or 0 and
    -g."""

    def grid(self, unit: float, unseen: float) -> ValueGrid:
        """Return a grid from values that are as rare to values beyond which `unseen` is left on
        average, about."""
        lowest, highest = self.ends(unseen)
        first, last = math.floor(lowest / unit), math.ceil(highest / unit)
        return ValueGrid(unit, min(first, -1), max(last, 1))

    def law(self, grid: ValueGrid) -> GridLaw:
        """Return the law on a grid, which has the mean of what exceeds each of its places: values
        below the first one are moved up to it, those above the last one down, and charged."""
        places = np.arange(grid.first, grid.last + 1)
        values = grid.unit * places
        work.spend(work.TERM * 16 * places.size)
        edges = np.clip(self.places(values), -_FARTHEST, _FARTHEST)
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
        lowest, highest = self.ends(unseen)
        return max(min(self.deviation, highest) / 4, (highest - lowest) / most)
