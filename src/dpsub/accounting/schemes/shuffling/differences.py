"""The worst law of X - a X' in one step, and means of several of them (docs/proofs/shuffling.md,
Lemma 60 and Theorem 61).

X and X' are the likelihood ratios of a step that holds the differing record, as it is in either
data set, and of one that holds another record. No three vectors spread X - a X' more than the law
here, which has the positive part of one triple and the negative part of another.

The mean of the positive part of a sum is computed by tilted transforms. Their windows are not cut:
aliasing can only increase the mean (docs/proofs/numerics.md, "Differences").
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from dpsub.accounting.engine import work
from dpsub.accounting.engine.cell_masses import normal_masses
from dpsub.accounting.engine.grid_sums import GridLaw, MeanAboveZero

_EPS = float(np.finfo(float).eps)
_FARTHEST = 9.5  # deviations to which X is followed; what lies beyond is charged, 1e-20 or so
_MOST_PLACES = 2**48  # of the grid, of either sign
_USUAL = 7.2  # deviations of X: values beyond count for hardly anything
# of which all next to 0 are points of the grid, and beyond ever fewer, so far apart relatively
_DENSE, _SPACING = 128, 1 / 96
_SPARSE = round(math.log(_MOST_PLACES / _DENSE) / _SPACING)
_PLACES = np.unique(
    np.rint([*range(_DENSE), *np.geomspace(_DENSE, _MOST_PLACES, _SPARSE)]).astype(int)
)
# of the mean excess over 0, that over the largest values that are kept
_CUTS = 10.0 ** -np.concatenate([np.arange(0, 6, 0.25), np.arange(6, 12, 0.5), np.arange(12, 21)])
_MOST_MOMENT = 600.0  # exponent up to which moments are computed


class PositivePart(NamedTuple):
    """(c e_f - c' e_(f - d))_+ for N(0, 1), e_u(t) = exp(u t - u^2/2), on the points of a grid: the
    last of n cells reaches to infinity."""

    places: np.ndarray  # of the points, from 0 on, shape (n,)
    lower: np.ndarray  # what each cell but the last leaves at its lower end, shape (n - 1,)
    upper: np.ndarray  # what it moves to its upper end
    mass: np.ndarray  # of each cell, shape (n,)
    beyond: np.ndarray  # mean of what exceeds each point, shape (n,)
    off: np.ndarray  # mean of what values may lie off their cell, shape (n,)
    none: float  # mass that is left of all cells


class Fineness(NamedTuple):
    """Fineness of a grid of values."""

    cells: int  # in a deviation
    most: int  # up to where values are usual
    coarsest: float  # deviations, from which on a grid tells too little
    every: int = 1  # of so many points one is used

    @property
    def places(self) -> np.ndarray:
        """Points of a grid from 0 on, in its steps; they have their like below 0."""
        return _PLACES[:: self.every]


FINE = Fineness(12, 3 * 2**15, 2.0)
FOR_MOMENTS = Fineness(512, 2**62, math.inf, 3)
"""For means of exponentials, which need no grid of equal steps."""


@dataclass(frozen=True)
class Differences:
    """The law Z of Lemma 60 at one order: positive values are those of e_f - a e_(f - d), negative
    ones those of -(a e_g - e_(g - d)), lengths in units of the noise.

    Parameters
    ----------
    order : float
        a >= 1.
    apart : float
        d, the distance of the two vectors of the differing record.
    ahead, behind : float
        f and g, d or 2 d: how far the record's vector in the first, and in the second data set is
        from that of another record.
    """

    order: float
    apart: float
    ahead: float
    behind: float
    fineness: Fineness = FINE

    @cached_property
    def step(self) -> float:
        """The step of the grid of values."""
        return max(self._deviation / self.fineness.cells, self._usual / self.fineness.most)

    @property
    def is_covered(self) -> bool:
        """Whether the grid is fine enough."""
        return self.step <= self.fineness.coarsest * self.order * self._deviation

    @property
    def _usual(self) -> float:
        """Value up to which values are usual."""
        f = max(self.ahead, self.behind)
        # beyond 600 no order is covered
        return self.order * math.exp(min(f * (_USUAL + f / 2), 600.0))

    @property
    def size(self) -> int:
        """Number of points of either sign that the grid has, about."""
        f = max(self.ahead, self.behind)
        return self._places(math.exp(min(f * (_FARTHEST + f / 2), 600.0)) / self.step).size

    @property
    def length(self) -> int:
        """Number of places of the grid between values that are hardly ever exceeded, about."""
        both = ((1.0, self.order, self.ahead), (self.order, 1.0, self.behind))
        farthest = 0.0
        for factor, other, f in both:
            g, t = f - self.apart, f + _USUAL
            exponents = min(f * t - f * f / 2, 600.0), min(g * t - g * g / 2, 600.0)
            farthest += factor * math.exp(exponents[0]) - other * math.exp(exponents[1])
        return math.ceil(farthest / self.step)

    def _places(self, last: float) -> np.ndarray:
        """Return points of a grid up to the first one beyond a value, at least."""
        places = self.fineness.places
        return places[: 2 + int(places.searchsorted(last))]

    @cached_property
    def _deviation(self) -> float:
        """Standard deviation of e_f - e_(f - d), f the larger one, whatever the order."""
        f = max(self.ahead, self.behind)
        g = f - self.apart
        most, least, both = (math.exp(min(u, 600.0)) for u in (f * f, g * g, f * g))
        # the sum of (f^k - g^k)^2 / k! over k, whose first term is left where the others cancel
        return math.sqrt(max(most + least - 2 * both, self.apart**2))

    @cached_property
    def _parts(self) -> tuple[PositivePart, PositivePart]:
        """Parts of positive and of negative values."""
        a = self.order
        return self._part(1.0, a, self.ahead), self._part(a, 1.0, self.behind)

    def _part(self, factor: float, other: float, f: float) -> PositivePart:
        """Return the law of (factor e_f - other e_(f - d))_+."""
        d, h = self.apart, self.step
        places = self._places(factor * math.exp(min(f * (_FARTHEST + f / 2), 600.0)) / h)
        work.spend(work.TERM * 16 * places.size)
        values = h * places
        if f > 1.5 * d:
            # e_2d = e_d^2 exp(-d^2): a quadratic equation for e_d
            shrunk = factor * math.exp(-d * d)
            single = (other + np.sqrt(other * other + 4 * shrunk * values)) / (2 * shrunk)
            taken_off = other * single
        else:
            single = (other + values) / factor
            taken_off = np.full(places.size, other)
        edges = np.log(single) / d + d / 2
        # of cells with positive values; f - d may be 0
        at = {mean: normal_masses(edges, mean) for mean in {0.0, f, f - d}}
        none = sum(float(part[0]) for part in at[0.0])
        p, p_error, moved, moved_error, near, near_error = (
            part[1:] for mean in (0.0, f, f - d) for part in at[mean]
        )
        mean = factor * moved - other * near
        error = factor * (moved_error + 4 * _EPS * moved) + other * (near_error + 4 * _EPS * near)
        error += values * (p_error + 4 * _EPS * p)
        # the excess over the lower end of the cell decides what goes to the upper one
        width = np.diff(values)
        up = np.clip((mean - values * p)[:-1] / width, 0.0, p[:-1])
        charge = error[:-1] / width + p_error[:-1]
        # what both terms are off by at an edge, relatively ("Differences")
        off = 2 * _EPS * (12 + 5 * f * np.abs(edges) + 10 * f * f) * (values + 2 * taken_off)
        farther = np.append(np.maximum(off[:-1], off[1:]), off[-1])
        return PositivePart(
            places,
            p[:-1] - up + charge,
            up + charge,
            p + p_error,
            _beyond(values, p + p_error, mean - values * p + error) + off * _from_above(p),
            p * farther,
            none,
        )

    def mean_above_zero(self, count: int, unseen: float = 0.0) -> MeanAboveZero:
        """Return an upper bound of the mean of the positive part of the mean of `count` independent
        ones.

        Values beyond the first point beyond which there are at most `unseen` on average, if there
        is one, are moved down to it, and charged.
        """
        return self._law(unseen).mean_of(count, self._deviation, unseen)

    def cut(self, least: float) -> CutDifference:
        """Return the law with each of several values as the largest one, up to one beyond which
        less than `least` is left on average."""
        ahead, behind = self._parts
        work.spend(work.NUMBER * 16 * (ahead.places.size + behind.places.size))
        # places beyond which ever less is left, from 0 on
        wanted = float(ahead.beyond[0]) * _CUTS
        wanted = wanted[: 1 + np.count_nonzero(wanted > least)]
        places = np.unique([np.count_nonzero(ahead.beyond > each) for each in wanted])
        places = np.minimum(places, ahead.places.size - 1)
        rest = _from_above(ahead.mass) * (1 + 4 * _EPS * ahead.mass.size)
        masses = _on_points(ahead, ahead.places.size - 1, float(ahead.mass[-1]))
        left = _on_points(behind, behind.places.size - 1, float(behind.mass[-1]))
        below = np.append(left[:0:-1], self._at_zero(masses[0] + left[0]))
        zero = below.size - 1
        cut_masses = rest[places] + np.append(0.0, ahead.upper)[places]
        cut_masses[places == 0] = self._at_zero(float(rest[0] + left[0]))
        off = np.concatenate([behind.off[-2::-1], ahead.off])
        off[0] += behind.off[-1]
        return CutDifference(
            self.step * np.concatenate([-behind.places[:0:-1], ahead.places]),
            np.append(below, masses[1:]),
            zero + places,
            cut_masses,
            ahead.beyond[places],
            off / self.step,
        )

    def _at_zero(self, mass: float) -> float:
        """Return the mass of 0: what its cells leave there, and that of values that are neither
        positive nor negative."""
        ahead, behind = self._parts
        # a difference of two small numbers: what all others lack of 1 may be far below round-off
        rounding = 8 * _EPS * ahead.mass.size * behind.none
        return mass + max(behind.none - float(ahead.mass.sum()), 0.0) + rounding

    def _law(self, unseen: float) -> GridLaw:
        """Return the law on its grid from above."""
        ahead, behind = self._parts
        # beyond an early point less is left than beyond a later one
        seen = ahead.beyond > unseen
        last = min(int(np.count_nonzero(seen)), seen.size - 1)
        rest = float(ahead.mass[last:].sum()) * (1 + 4 * _EPS * seen.size)
        first = _on_points(ahead, last, rest)
        # negative values beyond the last point are moved up to it, which needs no charge
        left = _on_points(behind, behind.places.size - 1, float(behind.mass[-1]))
        zero = self._at_zero(float(first[0] + left[0]))
        places = np.concatenate([-behind.places[:0:-1], [0], ahead.places[1 : last + 1]])
        masses = np.concatenate([left[:0:-1], [zero], first[1:]])
        # of each cell from the left: that of the last point is moved up to, or down to it
        off = np.concatenate([behind.off[-2::-1], ahead.off[:last]])
        off[0] += behind.off[-1]
        total = float(off.sum()) * (1 + 4 * _EPS * off.size)
        return GridLaw(self.step, places, masses, off / self.step, total, float(ahead.beyond[last]))


@dataclass(frozen=True)
class CutDifference:
    """A law on a grid of values, shape (n,), with the values above one of several places moved down
    to it.

    `masses` are those without a cut, shape (n,); `places` those of the cuts, with their masses and
    the mean excess `beyond` them, shape (b,); `off` is the mean by which values lie off each cell,
    in steps, shape (n,).
    """

    values: np.ndarray
    masses: np.ndarray
    places: np.ndarray
    cut_masses: np.ndarray
    beyond: np.ndarray
    off: np.ndarray

    @property
    def cuts(self) -> np.ndarray:
        return np.asarray(self.values[self.places])

    @property
    def cut_places(self) -> np.ndarray:
        """Places of the cuts among those of the grid from 0 on."""
        return np.asarray(self.places - np.count_nonzero(self.values < 0))

    @cached_property
    def deviation(self) -> float:
        """Standard deviation with the last cut."""
        last = int(self.places[-1])
        masses = np.append(self.masses[:last], self.cut_masses[-1])
        values = self.values[: last + 1]
        mean = float(np.einsum("n,n", masses, values))
        return math.sqrt(np.einsum("n,n", masses, (values - mean) ** 2))

    def log_mgf(self, tilts: np.ndarray) -> np.ndarray:
        """Upper bounds of ln E e^(tilt Z) with each cut, shape (b, tilts); infinite ones where they
        are large."""
        last = int(self.places[-1])
        values, places = self.values[: last + 1], self.places
        work.spend(work.TERM * 2 * tilts.size * values.size)
        exponents = np.multiply.outer(tilts, values)
        factors = np.exp(np.minimum(exponents, _MOST_MOMENT))
        # values off their cells weigh as much as twice this mass at the lower end of the cell, and
        # once at each of the next two points
        weights = self.masses[: last + 1] + 2 * self.off[: last + 1]
        weights[1:] += self.off[:last]
        weights[2:] += self.off[: last - 1]
        below = np.cumsum(weights * factors, axis=1)[:, places - 1]
        at_cut = self.cut_masses + 4 * _from_above(self.off)[places - 2]
        means = below + at_cut * factors[:, places]
        # of exponents, factors and sums
        error = _EPS * (2 * values.size + 32 + 8 * np.abs(tilts[:, None]) * np.abs(values[0]))
        log_means = np.log(means) + error + 8 * _EPS * exponents[:, places]
        return np.where(exponents[:, places] < _MOST_MOMENT, log_means, np.inf).T


def _from_above(values: np.ndarray) -> np.ndarray:
    """Return sums of each value and all after it."""
    return np.cumsum(values[::-1])[::-1]


def _beyond(values: np.ndarray, mass: np.ndarray, excess: np.ndarray) -> np.ndarray:
    """Return the mean excess over each point, for cells with these masses and the mean excess over
    their lower ends."""
    # from cell to cell, so that small ones keep their digits
    steps = np.append(np.diff(values) * _from_above(mass)[1:], 0.0)
    total = _from_above(np.maximum(excess, 0.0) + steps)
    return np.asarray(total * (1 + 8 * _EPS * values.size))


def _on_points(part: PositivePart, last: int, rest: float) -> np.ndarray:
    """Return masses of the points up to the last one, which has the rest as well."""
    masses = np.zeros(last + 1)
    masses[1:] = part.upper[:last]
    masses[:-1] += part.lower[:last]
    masses[-1] += rest
    return masses
