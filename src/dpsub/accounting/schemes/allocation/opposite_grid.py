"""Random allocation to 1 of t steps where the record at C is replaced by -C among zero records
(docs/proofs/allocation.md, Theorem 79), on grids of equal steps.

Sums of Z = E(f) - a E(-f), E(u) = exp(u x - u^2/2), are formed at once for all steps, by transforms
(`GridLaw`), where the values of one step are not too far apart for a grid; else pair by pair
(`opposite`). From above each cell's mass is moved to its ends, with its mean kept; from below the
cells are all that an attack sees of an output.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpsub.accounting.engine import work
from dpsub.accounting.engine.cell_masses import TINY, normal_masses
from dpsub.accounting.engine.grid_sums import GridLaw
from dpsub.accounting.schemes.allocation.difference import Difference
from dpsub.accounting.schemes.allocation.opposite import Attained

_EPS = float(np.finfo(float).eps)
_DEEPEST = 37.0  # deviations: masses further out are no doubles
_KEPT = 1e-290  # smaller masses have lost their digits
_UNTOLD = 0.03  # of a bound: what round-off may be of it
# tilts that are tried for a sum, and terms of a transform: where a single value decides, sums need
# many, and those of pairs take less work
_TILTS, _MOST_TERMS = 16, 2**17


@dataclass(frozen=True)
class OppositeGrid:
    """Z at one order, on a grid.

    Parameters
    ----------
    order : float
        a >= 1.
    f : float
        1 / s.
    t : int
        Number of steps.
    fineness : float
        Step of the grid, in deviations of Z.
    unseen : float
        Mean of the positive part beyond the grid, about.
    """

    order: float
    f: float
    t: int
    fineness: float
    unseen: float

    @cached_property
    def _value(self) -> Difference:
        return Difference(self.order, self.f, -self.f)

    @property
    def deviation(self) -> float:
        """Standard deviation of Z."""
        return self._value.deviation

    @property
    def step(self) -> float:
        return self.fineness * self.deviation

    @property
    def size(self) -> int:
        """Number of places."""
        lowest, highest = self._value.ends(self.unseen)
        return math.ceil((highest - lowest) / self.step)

    @cached_property
    def _places(self) -> np.ndarray:
        lowest, highest = (each / self.step for each in self._value.ends(self.unseen))
        return np.arange(min(math.floor(lowest), -1), max(math.ceil(highest), 1) + 1)

    def _edges(self, values: np.ndarray) -> np.ndarray:
        """Return about where Z has these values."""
        return np.clip(self._value.places(values), -_DEEPEST, _DEEPEST)

    def upper_mean(self) -> float | None:
        """Return an upper bound of H_a for 1 of t steps, if a transform of few terms tells it."""
        law = self._from_above()
        mean = law.mean_of(self.t, self.deviation, self.unseen)
        # masses are rounded up: so their sum to the power of t is above 1
        grown = self.t * (float(law.masses.sum()) - 1)
        is_told = mean.charge <= _UNTOLD * min(mean.value, 1.0) and grown <= _UNTOLD
        return min(mean.value, 1.0) if is_told else None

    def _from_above(self) -> GridLaw:
        """Return the law on the grid: values below it are moved up to it, those above it down, and
        charged."""
        f, a, h = self.f, self.order, self.step
        values = h * self._places
        work.spend(work.TERM * 10 * values.size)
        x = self._edges(values)
        up, down = np.exp(f * x - f * f / 2), a * np.exp(-f * x - f * f / 2)
        # how far the value of an edge is from its place, and what both are rounded by
        off = np.abs(up - down - values) + _EPS * np.abs(values)
        off += _EPS * (8 + 4 * (f * np.abs(x) + f * f)) * (up + down)
        (mass, mass_error), (ahead, ahead_error), (behind, behind_error) = (
            normal_masses(x, mean) for mean in (0.0, f, -f)
        )
        below = float(mass[0] + mass_error[0])
        # of the cells right of each edge
        mass, mass_error, ahead, behind = mass[1:], mass_error[1:], ahead[1:], a * behind[1:]
        error = ahead_error[1:] + a * behind_error[1:] + np.abs(values) * mass_error
        error += 8 * _EPS * (ahead + behind + np.abs(values) * mass)
        excess = ahead - behind - values * mass
        to_upper = np.clip(excess[:-1] / h, 0.0, mass[:-1])
        charge = error[:-1] / h + mass_error[:-1] + 8 * _EPS * mass[:-1] + TINY
        masses = np.zeros(values.size)
        masses[:-1] += mass[:-1] - to_upper + charge
        masses[1:] += to_upper + charge
        masses[0] += below
        masses[-1] += float(mass[-1] + mass_error[-1])
        by_cell = (mass + mass_error)[:-1] * np.maximum(off[:-1], off[1:])
        # also of values that lie off the first and the last cell
        beyond = max(float(excess[-1]), 0.0) + float(error[-1] + off[-1] * mass[-1]) + TINY
        beyond += below * float(off[0]) + float(by_cell[-1])
        total = float(by_cell.sum()) * (1 + 4 * _EPS * by_cell.size)
        return GridLaw(
            h,
            self._places,
            masses * (1 + 4 * _EPS),
            by_cell / h,
            total,
            beyond,
            _TILTS,
            _MOST_TERMS,
        )

    def attained(self) -> Attained | None:
        """Return the probabilities of the event that the places of all t outputs add up to more
        than 0, if a transform of few terms tells them."""
        places = self._places
        work.spend(work.TERM * 10 * places.size)
        edges = self._edges(self.step * (places[:-1] + 0.5))
        masses = [normal_masses(edges, mean) for mean in (0.0, self.f, -self.f)]
        # outputs in other cells are no event
        kept = np.min([values for values, _ in masses], axis=0) > _KEPT
        error = max(float(np.max(errors[kept] / values[kept])) for values, errors in masses)
        null, *others = (values[kept] for values, _ in masses)
        law = GridLaw(
            self.step, places[kept], null, np.zeros(null.size - 1), 0.0, 0.0, _TILTS, _MOST_TERMS
        )
        bounds = law.above_zero(self.t, others, self.deviation)
        if bounds is None:
            return None
        (ahead, ahead_at_most), (_, behind) = bounds
        off = 2 * self.t * error
        ahead, behind = ahead * max(1 - off, 0.0), behind * (1 + off) + TINY
        if not ahead_at_most - ahead <= _UNTOLD * (ahead - self.order * behind):
            return None
        return Attained(ahead, min(behind, 1.0))
