"""Random allocation to 1 of t steps where a record is replaced: the record at C against -C among
zero records, which is the worst case (docs/proofs/allocation.md, Theorem 79).

H_a is the mean of the positive part of (Z_1 + ... + Z_t) / t, Z_j independent with the law of
E(f) - a E(-f), E(u) = exp(u x - u^2/2), x ~ N(0, 1), f = 1 / s. As in `one_step` sums are formed
pair by pair, doubling their number of terms, and brought back to few points:

- from above (`upper_mean`) the mass of each cell of values is moved to its ends, keeping its mean;
- from below (`attained`) the cells are all that an attack sees of the outputs.

All sums are of positive terms; what they and the points may be off by is charged at once
(docs/proofs/numerics.md, "Opposite records").
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, Protocol, TypeVar

import numpy as np
from scipy.special import ndtri

from dpsub.accounting.engine import work
from dpsub.accounting.engine.cell_masses import TINY, normal_masses

_EPS = float(np.finfo(float).eps)
_DEEPEST = 37.0  # deviations: masses further out are no doubles
_KEPT = 1e-290  # smaller masses have lost their digits
_ROWS = 8  # of a table of pairs that are summed together
# of a table of pairs of one law with itself, each pair is counted once, twice off the diagonal
_TRIANGLE = 2 * np.triu(np.ones((_ROWS, _ROWS))) - np.eye(_ROWS)
# how skewed a law is whose points lie about 0, too, and how far towards it, in its deviations
_SKEWED, _RAREST = math.log(4), 5.0
_BEND = 9.0  # cells over which widths grow as a hyperbolic cosine; beyond, as the places do


class _Weighed(Protocol):
    """A law of a sum of `terms` values: masses at increasing values, shape (n,)."""

    @property
    def terms(self) -> int: ...

    @property
    def value(self) -> np.ndarray: ...

    @property
    def mass(self) -> np.ndarray: ...


Law = TypeVar("Law", bound=_Weighed)


@dataclass(frozen=True, eq=False)
class UpperLaw:
    """A law that the sum lies below in convex increasing order, once `beyond` is charged for values
    that are moved down."""

    terms: int
    value: np.ndarray
    mass: np.ndarray
    beyond: float


@dataclass(frozen=True, eq=False)
class SeenCells:
    """Cells of the outputs of `terms` steps: their masses without the record, and the sums over the
    steps of their masses with the record C there (`ahead`), and -C (`behind`), shape (n,); all are
    off by a share of at most `error`."""

    terms: int
    order: float
    mass: np.ndarray
    ahead: np.ndarray
    behind: np.ndarray
    error: float

    @cached_property
    def value(self) -> np.ndarray:
        """Means of the sum of Z, about."""
        return np.asarray((self.ahead - self.order * self.behind) / self.mass)


class Attained(NamedTuple):
    """Probabilities of an event with the record at C, from below, and at -C, from above."""

    ahead: float
    behind: float


def upper_mean(order: float, f: float, t: int, fineness: float, tail: float) -> float:
    """Return an upper bound of H_a, a = `order` >= 1, for 1 of t >= 2 steps with noise 1 / f, by
    cells of about `fineness` deviations; about `tail` is cut off."""
    single = _single_above(order, f, fineness, tail)
    a, b = _halves(single, t, lambda a, b: _joined_above(a, b, fineness, tail))
    work.spend(work.TERM * a.value.size * b.value.size)
    total = 0.0
    for start in range(0, a.value.size, _ROWS):
        rows = slice(start, start + _ROWS)
        sums = np.maximum(np.add.outer(a.value[rows], b.value), 0.0)
        # products of matrices might depend on the number of threads
        total += float(np.einsum("i,i", a.mass[rows], np.einsum("ij,j->i", sums, b.mass)))
    rounding = _EPS * (a.value.size + b.value.size + 64)
    return (total * (1 + rounding) + TINY + a.beyond + b.beyond) / t


def upper_means(
    order: float, f: float, counts: Sequence[int], fineness: float, tail: float
) -> list[float]:
    """Return upper bounds as `upper_mean` for several numbers of steps, each of them a power of 2,
    or the sum of two."""
    law = _single_above(order, f, fineness, tail)
    doubled = {1: law}
    while 2 * law.terms <= max(counts):
        law = _joined_above(law, law, fineness, tail)
        doubled[law.terms] = law
    bounds = []
    for t in counts:
        first = doubled[t & -t]
        if first.terms == t:
            mean = float(np.einsum("i,i", first.mass, np.maximum(first.value, 0.0)))
            mean = mean * (1 + _EPS * (first.value.size + 64)) + TINY + first.beyond
        else:
            mean = _sum_above_zero(first, doubled[t - first.terms])
        bounds.append(mean / t * (1 + 4 * _EPS))
    return bounds


def _sum_above_zero(a: UpperLaw, b: UpperLaw) -> float:
    """Return an upper bound of the mean of the positive part of the sum of two."""
    # of each value of the first law all of the second one that lift the sum above 0
    work.spend(work.TERM * (a.value.size + b.value.size))
    lifting = np.searchsorted(b.value, -a.value, side="right")
    mass, mean, size = (
        np.append(np.cumsum(each[::-1])[::-1], 0.0)[lifting]
        for each in (b.mass, b.mass * b.value, b.mass * np.abs(b.value))
    )
    # the mean of what is above 0 is a difference: it is off by a share of what it is made from
    off = _EPS * (2 * b.value.size + 16) * (size + np.abs(a.value) * mass)
    total = float(np.einsum("i,i", a.mass, np.maximum(mean + a.value * mass, 0.0) + off))
    return total * (1 + _EPS * (a.value.size + 64)) + TINY + a.beyond + b.beyond


def attained(
    order: float,
    f: float,
    t: int,
    fineness: float,
    tail: float,
    rate: float = 1.0,
    turns: int = 1,
) -> Attained:
    """Return the probabilities of the event in which the ratio of both likelihoods exceeds the
    order, as far as cells tell: of a record in 1 of t steps, or in the turns of 1 of t groups, in
    each with the probability `rate`."""
    single = _drawn(_single_cells(order, f, fineness, tail), rate)
    whole = single
    for bit in f"{turns:b}"[1:]:
        whole = _multiplied(whole, whole, fineness, tail)
        if bit == "1":
            whole = _multiplied(whole, single, fineness, tail)
    single = whole
    a, b = _halves(single, t, lambda a, b: _joined_cells(a, b, fineness, tail))
    # of each cell of the first half all of the second half from one cell on: any are an event
    first = np.searchsorted(b.value, -a.value, side="right")
    rest, ahead, behind = (
        np.append(np.cumsum(each[::-1])[::-1], 0.0)[first] for each in (b.mass, b.ahead, b.behind)
    )
    off = a.error + b.error + _EPS * (a.mass.size + b.mass.size + 64)
    in_a = (np.einsum("i,i", each, rest) for each in (a.ahead, a.behind))
    in_b = (np.einsum("i,i", a.mass, each) for each in (ahead, behind))
    at_c, at_minus_c = (float(one + other) for one, other in zip(in_a, in_b, strict=True))
    at_least = at_c / t * (1 - off)
    at_most = at_minus_c / t * (1 + off) + TINY
    return Attained(min(max(at_least, 0.0), 1.0), min(at_most, 1.0))


def _halves(single: Law, t: int, join: Callable[[Law, Law], Law]) -> tuple[Law, Law]:
    """Return the laws of two sums that have t terms together."""
    law, both = single, (single, single)
    # as t is read from its binary digits: each doubles the number of terms, and may add one
    others = [other for bit in f"{t:b}"[1:] for other in (None, single)[: 1 + int(bit)]]
    for place, other in enumerate(others):
        if place:
            law = join(*both)
        both = law, other or law
    return both


def _cell_edges(f: float, fineness: float, tail: float) -> np.ndarray:
    """Return edges of cells of the output of a step, in deviations."""
    reach = min(-float(ndtri(max(tail, TINY))), _DEEPEST - f)
    x = np.linspace(-reach, reach + f, math.ceil((2 * reach + f) / fineness) + 2)
    work.spend(work.TERM * 8 * x.size)
    return x


def _single_above(order: float, f: float, fineness: float, tail: float) -> UpperLaw:
    """Return the law of Z."""
    x = _cell_edges(f, fineness, tail)
    up, down = np.exp(f * x - f * f / 2), order * np.exp(-f * x - f * f / 2)
    value = up - down
    # what the value of an edge is off by
    off = _EPS * (8 + 4 * (f * np.abs(x) + f * f)) * (up + down)
    (mass, mass_error), (ahead, ahead_error), (behind, behind_error) = (
        normal_masses(x, mean) for mean in (0.0, f, -f)
    )
    below = float(mass[0] + mass_error[0])
    # of the cells right of each edge
    mass, mass_error, ahead, behind = mass[1:], mass_error[1:], ahead[1:], order * behind[1:]
    error = ahead_error[1:] + order * behind_error[1:] + (np.abs(value) + off) * mass_error
    error += off * mass + 8 * _EPS * (ahead + behind + np.abs(value) * mass)
    excess = ahead - behind - value * mass
    width = np.diff(value)
    up = np.clip(excess[:-1] / width, 0.0, mass[:-1])
    # the width is off by what its ends are
    charge = error[:-1] / width + mass_error[:-1] + TINY
    charge += (2 * (off[1:] + off[:-1]) / width + 8 * _EPS) * mass[:-1]
    law = _at_ends(
        x.size, mass[:-1] - up + charge, up + charge, below, float(mass[-1] + mass_error[-1])
    )
    beyond = max(float(excess[-1]), 0.0) + float(error[-1]) + TINY
    return UpperLaw(1, value + off, law, beyond)


def _at_ends(
    points: int, lower: np.ndarray, upper: np.ndarray, below: float, above: float
) -> np.ndarray:
    """Return masses of points: what cells leave at their lower and move to their upper ends, and
    what lies below the first point and above the last one."""
    mass = np.zeros(points)
    mass[:-1] += lower
    mass[1:] += upper
    mass[0] += below
    mass[-1] += above
    return mass * (1 + 4 * _EPS)


def _single_cells(order: float, f: float, fineness: float, tail: float) -> SeenCells:
    """Return the cells of one step."""
    x = _cell_edges(f, fineness, tail)
    masses = [[part[1:-1] for part in normal_masses(x, mean)] for mean in (0.0, f, -f)]
    kept = np.min([values for values, _ in masses], axis=0) > _KEPT
    error = max(float(np.max(errors[kept] / values[kept])) for values, errors in masses)
    mass, ahead, behind = (values[kept] for values, _ in masses)
    return SeenCells(1, order, mass, ahead, behind, 2 * error)


def _drawn(cells: SeenCells, rate: float) -> SeenCells:
    """Return the cells of a step in which the record is drawn with a probability."""
    if rate == 1:
        return cells
    ahead, behind = ((1 - rate) * cells.mass + rate * each for each in (cells.ahead, cells.behind))
    return replace(cells, ahead=ahead, behind=behind, error=cells.error + 4 * _EPS)


def _multiplied(a: SeenCells, b: SeenCells, fineness: float, tail: float) -> SeenCells:
    """Return cells of the turns of both, of one group, by the value of Z; those that are hardly
    ever seen are left out."""
    usual, centre = math.hypot(_usual(a).width, _usual(b).width), 1 - a.order

    def place(value: np.ndarray) -> np.ndarray:
        # any cells are valid: ever wider ones, as values are nearly log-normal
        return np.asarray(np.floor(np.arcsinh((value - centre) / usual) / fineness))

    both = a.ahead / a.mass, a.behind / a.mass
    others = b.ahead / b.mass, b.behind / b.mass
    ends = np.array([[each.min(), each.max()] for each in (*both, *others)])
    lowest = place(ends[0, 0] * ends[2, 0] - a.order * ends[1, 1] * ends[3, 1])
    highest = place(ends[0, 1] * ends[2, 1] - a.order * ends[1, 0] * ends[3, 0])
    mass, ahead, behind = np.zeros((3, int(highest - lowest) + 3))
    for start in range(0, a.mass.size, _ROWS):
        rows = slice(start, start + _ROWS)
        work.spend(work.TERM * 3 * _ROWS * b.mass.size)
        value = np.multiply.outer(both[0][rows], others[0])
        value -= a.order * np.multiply.outer(both[1][rows], others[1])
        cells = (place(value) - lowest + 1).astype(np.intp).ravel()
        for total, in_a, in_b in (
            (mass, a.mass, b.mass),
            (ahead, a.ahead, b.ahead),
            (behind, a.behind, b.behind),
        ):
            weights = np.multiply.outer(in_a[rows], in_b).ravel()
            total += np.bincount(cells, weights, minlength=total.size)
    error = a.error + b.error + 2 * _rounding(a, b)
    return _seen(1, a.order, (mass, ahead, behind), error, tail)


def _places(a: _Weighed, b: _Weighed, fineness: float) -> np.ndarray:
    """Return points for a sum: close together where it usually is, ever further apart beyond."""
    usual, others = _usual(a), _usual(b)
    centre, width = usual.centre + others.centre, math.hypot(usual.width, others.width)
    bend = 3 * width * math.sinh(_BEND / 3)

    def number(distance: float) -> float:
        inside = min(abs(distance), bend)
        more = math.log(max(abs(distance) / bend, 1.0))
        return math.copysign(3 * math.asinh(inside / (3 * width)) + more, distance)

    first = number(float(a.value[0] + b.value[0]) - centre)
    last = number(float(a.value[-1] + b.value[-1]) - centre)
    u = np.linspace(first, last, math.ceil((last - first) / fineness) + 2)
    inside = np.clip(u, -_BEND, _BEND)
    places = centre + 3 * width * np.sinh(inside / 3) * np.exp(np.abs(u - inside))
    scale = max(usual.scale, others.scale)
    if scale > _SKEWED:
        # log-normal values: what is rare there is a sum of small ones
        small = np.exp(-scale * fineness * np.arange(math.ceil(_RAREST / fineness)))
        small *= abs(centre) + width
        small = small[small < min(-places[0], places[-1])]
        places = np.concatenate([places, small, -small])
    return np.unique(places)


class _Usual(NamedTuple):
    """Median of a law, the distance to the nearer quantile a normal deviation from it, and how many
    times e the distance to the other one is as large, roughly a deviation of the logarithm."""

    centre: float
    width: float
    scale: float


def _usual(law: _Weighed) -> _Usual:
    total = np.cumsum(law.mass)
    ends = np.searchsorted(total, np.array([0.1587, 0.5, 0.8413]) * total[-1])
    left, middle, right = (float(each) for each in law.value[ends])
    nearer, farther = sorted([middle - left, right - middle])
    width = max(nearer, 1e-3 * farther, 1e-200)
    return _Usual(middle, width, math.log(max(farther / width, 1.0)))


class _Pairs(NamedTuple):
    """A block of pairs of points of two laws: slices of both, how often each pair is counted, and
    the cell of the sum."""

    rows: slice
    columns: slice
    times: np.ndarray
    sums: np.ndarray
    cells: np.ndarray


def _pairs(a: _Weighed, b: _Weighed, edges: np.ndarray) -> Iterator[_Pairs]:
    """Return all pairs, each block with the cells of the sums."""
    for start in range(0, a.value.size, _ROWS):
        rows = slice(start, start + _ROWS)
        # of a law with itself, pairs (i, j) and (j, i) are one
        columns = slice(start if a is b else 0, None)
        sums = np.add.outer(a.value[rows], b.value[columns])
        work.spend(work.TERM * 2 * sums.size)
        count = np.full(sums.shape, 2.0 if a is b else 1.0)
        if a is b:
            count[:, :_ROWS] = _TRIANGLE[: sums.shape[0], : sums.shape[1]]
        yield _Pairs(rows, columns, count, sums, edges.searchsorted(sums.ravel(), side="right"))


def _rounding(a: _Weighed, b: _Weighed) -> float:
    """Return what a sum over pairs is off by, as a share: sums of n terms in blocks are off by at
    most (8 n + n/8 + 8) eps."""
    longest = max(a.value.size, b.value.size)
    return _EPS * (_ROWS * longest + longest / _ROWS + 24)


def _joined_above(a: UpperLaw, b: UpperLaw, fineness: float, tail: float) -> UpperLaw:
    """Return the law of the sum of the terms of both."""
    edges = _places(a, b, fineness)
    floor = np.append(edges[0], edges)
    mass, excess = np.zeros(floor.size), np.zeros(floor.size)
    for pairs in _pairs(a, b, edges):
        weights = np.multiply.outer(a.mass[pairs.rows], b.mass[pairs.columns]) * pairs.times
        mass += np.bincount(pairs.cells, weights.ravel(), minlength=floor.size)
        # above the lower ends of cells: what stays of a cell keeps its digits
        weights = weights.ravel() * (pairs.sums.ravel() - floor[pairs.cells])
        excess += np.bincount(pairs.cells, weights, minlength=floor.size)
    rounding = _rounding(a, b)
    below, above = float(mass[0]), float(mass[-1])
    mass, width = mass[1:-1], np.diff(edges)
    up = np.minimum(excess[1:-1] / width, mass)
    charge = 4 * rounding * mass + TINY
    law = _at_ends(edges.size, mass - up + charge, up + charge, below, above) * (1 + 2 * rounding)
    # what a sum in either cell at a point is rounded by
    size = np.abs(edges)
    farther = np.maximum(np.append(size[1:], size[-1]), np.append(size[0], size[:-1]))
    off = 2 * _EPS * np.maximum(size, farther)
    beyond = float(excess[-1]) * (1 + 2 * rounding) + 2 * float(off[-1]) * above + TINY
    return _trimmed(
        UpperLaw(a.terms + b.terms, edges + off, law, a.beyond + b.beyond + beyond), tail
    )


def _trimmed(law: UpperLaw, tail: float) -> UpperLaw:
    """Move the lowest masses up to a point below which there is no more than `tail`, and the
    highest ones down to one above which masses times values are no more, and charge them."""
    value, mass = law.value, law.mass
    first = int(np.count_nonzero(np.cumsum(mass) <= tail))
    over = np.cumsum((mass * np.maximum(value, 0.0))[::-1])[::-1]
    last = value.size - 1 - int(np.count_nonzero(over[first + 2 :] <= tail))
    kept = mass[first : last + 1].copy()
    kept[0] += float(mass[:first].sum()) * (1 + 1e-12)
    kept[-1] += float(mass[last + 1 :].sum()) * (1 + 1e-12)
    moved = float(np.sum(mass[last + 1 :] * (value[last + 1 :] - value[last]))) * (1 + 1e-12)
    return UpperLaw(law.terms, value[first : last + 1], kept, law.beyond + moved)


def _joined_cells(a: SeenCells, b: SeenCells, fineness: float, tail: float) -> SeenCells:
    """Return cells of the steps of both, by the sum of their values; at the ends those that are
    hardly ever seen, in either data set, are left out."""
    edges = _places(a, b, fineness)
    mass, ahead, behind = np.zeros((3, edges.size + 1))
    for rows, columns, count, _, cells in _pairs(a, b, edges):
        first, second = a.mass[rows, None] * count, b.mass[None, columns]

        def add(total: np.ndarray, weights: np.ndarray, cells: np.ndarray = cells) -> None:
            total += np.bincount(cells, weights.ravel(), minlength=total.size)

        add(mass, first * second)
        for total, in_a, in_b in ((ahead, a.ahead, b.ahead), (behind, a.behind, b.behind)):
            add(total, in_a[rows, None] * count * second + first * in_b[None, columns])
    error = a.error + b.error + 2 * _rounding(a, b)
    return _seen(a.terms + b.terms, a.order, (mass, ahead, behind), error, tail)


def _seen(
    terms: int,
    order: float,
    masses: tuple[np.ndarray, np.ndarray, np.ndarray],
    error: float,
    tail: float,
) -> SeenCells:
    """Return cells without those at the ends that are hardly ever seen, in either data set."""
    mass, ahead, behind = masses
    seen = np.minimum(np.minimum(ahead, behind), mass) > _KEPT
    rare = np.maximum(np.cumsum(mass), np.cumsum(ahead)) <= tail
    rare |= np.cumsum(ahead[::-1])[::-1] <= tail
    kept = seen & ~rare
    return SeenCells(terms, order, mass[kept], ahead[kept], behind[kept], error)
