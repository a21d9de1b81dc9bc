"""Certified PLDs of a pair of Gaussian mixtures, in both directions, with floating-point errors.

*Upper* (connect the dots): masses p under P and q under Q of a cell of losses [x, x + dx] are moved
to its ends, both totals kept: up = (p - q e^x) / (1 - e^{-dx}) at x + dx, p - up at x.  *Lower*:
each bin becomes one point with loss log(p / q), moved by O(dx^2) to lie on or just above the grid,
then rounded down. After k compositions the bounds differ by O(k dx^2). Why both are valid, and what
inexact edges cost: docs/accounting.md, section 7.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from dpsub.accounting.pairs import LOSS_TOLERANCE, GaussianPair
from dpsub.accounting.pld import PrivacyLossDistribution, check_time
from dpsub.errors import NumericalError

_EPS = float(np.finfo(float).eps)
_CACHED = 2**14  # pairs of an edge and a component that are worked on together

MAX_LOSS = 600.0
"""Losses beyond it, where e^loss leaves the range of doubles, are charged as infinite, or moved up
to its negative."""

LAW_ERROR = 4e-12
"""Relative error allowed for the weights of the mixture: `laws.log_binomial` promises 6e-13 up to a
million slots, the most that a chain takes, and the laws of up to six stages multiply."""

_TINY = 1e-300
_UNDERFLOW = float(np.finfo(float).tiny)  # normal tails below it have lost their digits, or are 0
_DEEP = 1e-290  # beside smaller masses 1e-300 is seen
_BULK_TAIL = 1e-4
_WIDEST = 0.25
_MOST_POINTS = 2**23


class CellMasses(NamedTuple):
    """Masses of neighbouring cells under P and Q, by increasing loss, and bounds of their
    floating-point errors."""

    p: np.ndarray
    q: np.ndarray
    p_error: np.ndarray
    q_error: np.ndarray


Bounds = tuple[np.ndarray, np.ndarray]
"""Masses of the same events, from below and above."""


@dataclass(frozen=True)
class DirectedPair:
    """The loss log dP/dQ under P: P is X and Q is X' of the pair, or, `swapped`, the other way
    round."""

    pair: GaussianPair
    swapped: bool = False

    def place(self, losses: np.ndarray) -> np.ndarray:
        """The t with these losses: monotone, decreasing if swapped, infinite beyond the range of
        the loss."""
        if not self.swapped:
            return self.pair.inverse_loss(losses)
        return self.pair.inverse_loss(-losses[::-1])[::-1]

    def loss(self, t: np.ndarray, cells: np.ndarray) -> np.ndarray:
        """Losses at the lower edges of some of the cells between neighbouring places."""
        edges = t[cells]
        ends = np.where(np.isfinite(edges), edges, 0.0)
        losses = -self.pair.loss(ends) if self.swapped else self.pair.loss(ends)
        return np.where(np.isfinite(edges), losses, -np.inf)

    def masses(self, t: np.ndarray) -> CellMasses:
        """Masses of the cells between neighbouring places."""
        parts = self.pair.branches(t[::-1] if self.swapped else t)
        p, p_error = self._of(parts, *self.pair.components)
        q, q_error = self._of(parts, *self.pair.components_prime)
        if self.swapped:
            return CellMasses(q[::-1], p[::-1], q_error[::-1], p_error[::-1])
        return CellMasses(p, q, p_error, q_error)

    def _of(
        self, parts: list[np.ndarray], centres: np.ndarray, log_weights: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        masses, errors = mixture_masses(parts[0], centres, np.exp(log_weights), self.pair.scale)
        for falling in parts[1:]:
            more, more_errors = mixture_masses(
                falling[::-1], centres, np.exp(log_weights), self.pair.scale
            )
            masses, errors = masses + more[::-1], errors + more_errors[::-1]
        return masses, errors

    def mass_below(self, t: float) -> float:
        """Mass, under P, of losses below the one at t."""
        at = np.array([t])
        return float((self.pair.sf_prime(at) if self.swapped else self.pair.cdf(at))[0])

    def mass_above(self, t: float) -> float:
        """Mass, under P, of losses above the one at t."""
        at = np.array([t])
        return float((self.pair.cdf_prime(at) if self.swapped else self.pair.sf(at))[0])

    def range(self, tail: float) -> tuple[float, float]:
        """Losses between which all but about `tail` lies on each side, under both distributions."""
        low, high = _quantiles(self.pair, tail)
        ends = self.pair.loss(self.pair.branches(np.array([low, high]))[0])
        below, above = max(float(ends[0]), self.pair.loss_floor), float(ends[1])
        return (-above, -below) if self.swapped else (below, above)


@lru_cache(maxsize=32)
def _quantiles(pair: GaussianPair, tail: float) -> tuple[float, float]:
    """Points with mass at most `tail` to their left, and right, under both distributions."""
    # beyond 40 deviations from all centres every tail is below the smallest double
    reach = float(np.abs(pair.components[0]).max()) + 40 * pair.scale

    def first(holds: Callable[[np.ndarray], np.ndarray]) -> float:
        """A point a little beyond the smallest one where a monotone condition holds; each round
        divides by 128."""
        low, high = -pair.scale, reach
        for _ in range(2):
            points = np.linspace(low, high, 129)
            place = 1 + int(np.argmax(np.append(holds(points[1:-1]), True)))
            low, high = float(points[place - 1]), float(points[place])
        return high

    left = first(lambda u: np.maximum(pair.cdf(-u), pair.cdf_prime(-u)) <= tail)
    if pair.mirrored:
        return -left, left
    return -left, first(lambda u: np.maximum(pair.sf(u), pair.sf_prime(u)) <= tail)


def mixture_masses(
    edges: np.ndarray, centres: np.ndarray, weights: np.ndarray, scale: float
) -> tuple[np.ndarray, np.ndarray]:
    """Masses of a mixture between increasing edges, each component differenced on the side of its
    centre where the tail is small, and their errors: a normal tail is off by at most eps (8 + 4
    z^2) of itself, its own error and that of z."""
    masses, errors = np.zeros(edges.size - 1), np.zeros(edges.size)
    together = max(1, _CACHED // edges.size)
    for start in range(0, centres.size, together):
        check_time()
        centre, weight = (
            centres[start : start + together, None],
            weights[start : start + together, None],
        )
        z = (edges - centre) / scale
        # beyond 38 standard deviations the tail is below the smallest double
        size = np.minimum(np.abs(z, out=z), 40.0, out=z)
        tail = ndtr(-size)
        size *= size
        size += 2
        size *= tail
        size *= 4 * _EPS * weight
        right = np.searchsorted(edges, centre[:, 0], side="right")
        for row, place in enumerate(right):
            tail[row, place:] *= -1
        inside = tail[:, 1:] - tail[:, :-1]
        holding = np.flatnonzero((right > 0) & (right < edges.size))
        inside[holding, right[holding] - 1] += 1.0
        inside *= weight
        for row in range(right.size):
            errors += size[row]
            masses += inside[row]
    return np.maximum(masses, 0.0), errors[1:] + errors[:-1] + 4 * _EPS * np.abs(masses)


def upper_pld(
    pair: GaussianPair, step: float, *, tail: float, swapped: bool = False, lost: float = 0.0
) -> PrivacyLossDistribution:
    """Bound the law of log dP/dQ under P (swapped: log dQ/dP under Q) from above; P is X of the
    pair, Q is X'. `step` is dx in nats. Mass beyond the grid, about `tail`, is infinite loss on the
    right and moved up on the left; `lost`, what the pair's law lacks, is infinite loss, too."""
    direction = DirectedPair(pair, swapped)
    indices = loss_indices(direction, step, tail)
    points = indices * step
    t = direction.place(points)
    cells = direction.masses(t)
    growth = np.exp(points[:-1])
    up = cells.p - cells.q * growth + cells.p_error + (cells.q_error + _UNDERFLOW) * growth
    up /= -np.expm1(-np.diff(points))
    total = (cells.p + cells.p_error) * (1 + 2 * LAW_ERROR)
    up = np.clip(up * (1 + 2 * LAW_ERROR), 0.0, total)
    at_points = np.zeros(points.size)
    at_points[1:] += up
    at_points[:-1] += total - up
    at_points[0] += direction.mass_below(float(t[0])) * (1 + 1e-9)
    tolerance = LOSS_TOLERANCE * max(1.0, float(np.abs(points[[0, -1]]).max()))
    moved, charge = _inversion(direction, points, cells, tolerance)
    # a Gaussian pair has mass beyond every loss, be it smaller than any double
    beyond = min(1.0, max(direction.mass_above(float(t[-1])) * (1 + 1e-9), _TINY) + lost + charge)
    # edges are off by the first term in loss, and the loss itself, through the weights, by the
    # second
    return PrivacyLossDistribution(
        step, indices, at_points, "upper", infinity=beyond, offset=moved + 4 * LAW_ERROR
    )


def _inversion(
    direction: DirectedPair, points: np.ndarray, cells: CellMasses, tolerance: float
) -> tuple[float, float]:
    """How far to move the law to the right, and what to add at infinity, as edges are off by up to
    `tolerance` in loss. Moving by 2 tolerance suffices where Q(|L - x| <= tolerance) is at most 2
    Q(L > x + 2 tolerance), by masses of cells or of intervals of a few tolerances; elsewhere what
    may lack, e^x (e^tolerance - 1) times the first mass, is charged (docs/accounting.md, section 7,
    "Inversion")."""
    moved = 2 * tolerance
    if points.size < 3:
        return moved, 0.0
    if 24 * tolerance > np.diff(points).min():
        # errors may reach beyond the next cell: everything is charged
        return moved, 2 * math.expm1(tolerance)
    inner = points[1:-1]
    # where Q underflows, e^x Q is at most e^tolerance P
    hidden = np.where(
        (cells.q[:-1] + cells.q[1:]) < _TINY, (cells.p + cells.p_error)[:-1] + cells.p[1:], 0.0
    )
    charge = float(hidden.max()) * 2 * math.expm1(tolerance)
    q_at_most = cells.q + cells.q_error
    near = q_at_most[:-1] + q_at_most[1:]
    suspected = inner[near > 2 * _from_each(cells)[2:]] if inner.size > 1 else inner
    if not suspected.size:
        return moved, charge
    edges = np.append(
        (suspected[:, None] + tolerance * np.array([-2.0, 2.0, 5.0])).ravel(), points[-1]
    )
    fine = direction.masses(direction.place(edges))
    near = (fine.q + fine.q_error)[0::3]
    lacking = np.exp(suspected) * math.expm1(tolerance) * near * (1 + 1e-9)
    return moved, charge + float(np.max(np.where(near <= 2 * _from_each(fine)[2::3], 0.0, lacking)))


def _from_each(cells: CellMasses) -> np.ndarray:
    """Q-mass of each cell and of those to its right, rounded down, shape (n + 1,): the last is
    0."""
    sure = np.maximum(cells.q - cells.q_error, 0.0)
    return np.append(np.cumsum(sure[::-1])[::-1], 0.0) * (1 - 4 * _EPS * sure.size)


def lower_pld(
    pair: GaussianPair, step: float, *, tail: float, swapped: bool = False
) -> PrivacyLossDistribution:
    """Bound the law of log dP/dQ under P (swapped: log dQ/dP under Q) from below; arguments as in
    `upper_pld`."""
    direction = DirectedPair(pair, swapped)
    points = loss_indices(direction, step, tail) * step
    edges = np.concatenate(
        [[points[0] - step / 2], (points[1:] + points[:-1]) / 2, [points[-1] + step / 2]]
    )
    t = direction.place(edges)
    # the last bin takes all losses beyond the grid: its own is log(p / q), like that of any other
    t[-1] = -np.inf if swapped else np.inf
    finite = np.isfinite(t)
    slope = np.zeros(t.size)
    if np.count_nonzero(finite) > 2:
        slope[finite] = np.gradient(t[finite], edges[finite])
    moved = np.zeros(t.size)
    loss, masses = _collapsed(direction, t)
    # a bin that cannot be moved, at the infimum of the loss, may hold most of the mass: the grid is
    # put under it
    points = points + _best_offset(loss - points, masses, step)
    for correct in (_centre, _centre, _centre, _lift):
        moved = np.clip(
            moved + correct(loss - points, masses, edges + moved, loss, step), -step / 2, step / 2
        )
        loss, masses = _collapsed(direction, t + moved * slope)
    offset = _best_offset(loss, masses, step)
    keep = masses > 0
    place = np.floor((loss[keep] - offset) / step)
    # the division may round up: a bin must never be lifted
    place = np.where(place * step + offset <= loss[keep], place, place - 1).astype(int)
    slack = 8 * LAW_ERROR + 8 * _EPS * float(np.abs(points[[0, -1]]).max())
    return PrivacyLossDistribution(step, place, masses[keep], "lower", offset=offset - slack)


def lower_pld_of_many(
    pair: GaussianPair, step: float, *, tail: float, swapped: bool = False
) -> PrivacyLossDistribution:
    """`lower_pld` for a sum of very many losses, where even a small share of a step adds up if bins
    lie above their points: what cannot be moved onto the grid by its edges, as bins at the infimum
    of the loss, exchanges shares."""
    direction = DirectedPair(pair, swapped)
    points = loss_indices(direction, step, tail) * step
    edges = np.concatenate(
        [[points[0] - step / 2], (points[1:] + points[:-1]) / 2, [points[-1] + step / 2]]
    )
    for _ in range(_ALIGNMENTS):
        check_time()
        t = direction.place(edges)
        t[-1] = -np.inf if swapped else np.inf
        loss, masses = _collapsed(direction, t)
        origin = _aligned(loss, masses, step)
        # half of what a bin is off its point is taken away by each of its edges
        edges += _centre(loss - points - origin, masses, edges, loss, step)
    second = masses * np.exp(-np.where(masses > 0, loss, 0.0))
    return grouped_pld(masses, second, step, 8 * LAW_ERROR, origin)


def _aligned(losses: np.ndarray, masses: np.ndarray, step: float) -> float:
    """Where to put the grid, modulo its step: under the bin at one of the ends, which has a
    neighbour on one side alone and may hold much of the mass."""
    filled = np.flatnonzero(masses > 0)
    if not filled.size:
        return 0.0
    end = max(filled[0], filled[-1], key=lambda place: masses[place])
    return float(losses[end] - step * np.round(losses[end] / step))


_ALIGNMENTS = 3  # of the grid and the bin at its end, whose loss moves with the grid
_EXCHANGES = 6
_MOST_GIVEN = 0.5  # share of a group that goes to one neighbour
_SMALL = 1e-270  # products of smaller masses lose their digits


def grouped_pld(
    first: np.ndarray, second: np.ndarray, step: float, slack: float, origin: float = 0.0
) -> PrivacyLossDistribution:
    """The law of ln(first / second) under the first of two measures on the same points, from below:
    points are grouped about the losses `origin` + i `step`, and groups exchange shares until their
    losses are those, up to `slack`.

    Grouping and exchanging are a processing of what tells the points apart, whatever the groups and
    the shares."""
    seen = (first > 0) & (second > 0)
    first, second = first[seen], second[seen]
    points = first.size
    losses = np.clip(np.log(first) - np.log(second), -MAX_LOSS, MAX_LOSS)
    levels, group = np.unique(np.rint((losses - origin) / step).astype(int), return_inverse=True)
    first, second = (np.bincount(group, part) for part in (first, second))
    grid = origin + levels * step
    for _ in range(_EXCHANGES):
        first, second = exchanged(first, second, np.exp(grid))
    # each exchange rounds what is left of a group and what it takes by some ten eps of themselves
    slack += 256 * _EPS * (1 + float(np.abs(grid).max(initial=0.0)))
    filled = (first > 0) & (second > 0)
    if not filled.any():
        return PrivacyLossDistribution(step, np.zeros(1, dtype=int), np.zeros(1), "lower")
    first, second = first[filled], second[filled]
    # what the slack lifts is taken back from all by the offset
    places = np.floor((np.log(first) - np.log(second) - origin + slack) / step).astype(int)
    first = first * (1 - (128 + points) * _EPS)
    return PrivacyLossDistribution(step, places, first, "lower", offset=origin - 2 * slack)


def exchanged(
    first: np.ndarray, second: np.ndarray, grid: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Groups about the ratios `grid`: one whose ratio is too small takes a share of the next group
    above it, one whose ratio is too large a share of the next one below. Any shares are valid;
    these bring all ratios near the grid."""
    excess = first - grid * second
    from_above, from_below = np.zeros(grid.size), np.zeros(grid.size)
    richer, poorer = first[1:] - grid[:-1] * second[1:], grid[1:] * second[:-1] - first[:-1]
    seen = (
        np.minimum(np.minimum(first[1:], first[:-1]), np.minimum(second[1:], second[:-1])) > _SMALL
    )
    np.divide(
        -excess[:-1], richer, out=from_above[:-1], where=seen & (excess[:-1] < 0) & (richer > 0)
    )
    np.divide(excess[1:], poorer, out=from_below[1:], where=seen & (excess[1:] > 0) & (poorer > 0))
    # between neighbours
    down, up = np.minimum(from_above[:-1], _MOST_GIVEN), np.minimum(from_below[1:], _MOST_GIVEN)
    changed = []
    for part, sign in ((first, -1), (second, 1)):
        # what is left may be a small difference: its rounding is charged as a share of all
        left = 1 - np.append(0.0, down) - np.append(up, 0.0) + sign * 4 * _EPS
        kept = part * np.maximum(left, 0.0)
        kept[:-1] += down * part[1:]
        kept[1:] += up * part[:-1]
        changed.append(kept)
    return changed[0], changed[1]


def loss_indices(direction: DirectedPair, step: float, tail: float) -> np.ndarray:
    """Indices of the points that cells end at, any of which are valid: all in the bulk, ever
    sparser in the tails."""
    below, above = np.clip(direction.range(tail), -MAX_LOSS, MAX_LOSS)
    fine_below, fine_above = np.clip(direction.range(_BULK_TAIL), below, above)
    low, high = int(np.floor(fine_below / step)), int(np.ceil(fine_above / step)) + 1
    if high - low > _MOST_POINTS:
        raise NumericalError(
            f"the losses of one step need {high - low} grid points; take a step above {step:g}"
        )
    # relative width of the sparse cells: it falls with the step, so that finer grids converge in
    # the tails too
    ratio = min(0.02, 6 / (high - low))
    right = high + _sparse(above / step - high, ratio, step)
    left = low - _sparse(low - below / step, ratio, step)
    return np.concatenate([left[::-1], np.arange(low, high + 1), right])


def _sparse(reach: float, ratio: float, step: float) -> np.ndarray:
    """Increasing distances from the bulk, the last one at least `reach`, all in steps."""
    # up to two cells' width the next distance is the next integer
    at = int(min(2 / ratio, max(reach, 0.0)))
    distances, widest = list(range(1, at + 1)), _WIDEST / step
    while at < reach:
        at += max(1, int(min(ratio * at, widest)))
        distances.append(at)
    return np.array(distances, dtype=int)


def _collapsed(direction: DirectedPair, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Losses log(p / q) of the bins, and their masses, both rounded down; empty bins get loss
    -inf."""
    monotone = np.minimum.accumulate(t) if direction.swapped else np.maximum.accumulate(t)
    cells = direction.masses(monotone)
    masses = np.maximum(cells.p * (1 - 2 * LAW_ERROR) - cells.p_error - _UNDERFLOW, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        loss = np.log(np.maximum(cells.p - cells.p_error - _UNDERFLOW, 0.0)) - np.log(
            cells.q + cells.q_error + _TINY
        )
    loss -= 4 * _EPS * (1 + np.abs(loss))
    # where q underflows, the loss of a bin is at least that of its lower edge
    deep = np.flatnonzero((masses > 0) & (cells.q < _DEEP))
    if deep.size:
        least = direction.loss(monotone, deep)
        loss[deep] = np.maximum(loss[deep], least - LOSS_TOLERANCE * np.maximum(1.0, np.abs(least)))
    return np.where(masses > 0, loss, -np.inf), masses


def _centre(
    gaps: np.ndarray, masses: np.ndarray, edges: np.ndarray, loss: np.ndarray, step: float
) -> np.ndarray:
    """Moves of the edges that take smooth gaps away: half of a gap by each edge of its bin."""
    usable = np.where((masses > 0) & (np.abs(gaps) < step / 2), gaps, 0.0)
    moves = np.zeros(edges.size)
    moves[1:-1] = -(usable[1:] + usable[:-1]) / 2
    return moves


def _lift(
    gaps: np.ndarray, masses: np.ndarray, edges: np.ndarray, loss: np.ndarray, step: float
) -> np.ndarray:
    """Moves of edges to the right that lift each bin below its point onto it: the lowest part of
    one bin goes to the top of another, and both rise. Of the two edges of a bin the one with the
    greater density is taken."""
    usable = (masses > 0) & (np.abs(gaps) < step / 2)
    density = np.zeros(edges.size)
    density[1:-1] = np.where(
        usable[:-1] & usable[1:], np.sqrt(masses[:-1] * masses[1:]) / step, 0.0
    )
    needed = -np.minimum(np.where(usable, gaps, 0.0), 0.0) * masses
    safe = np.where(usable, loss, edges[:-1] + step / 2)
    with np.errstate(divide="ignore", invalid="ignore"):
        by_left = needed / (density[:-1] * np.maximum(safe - edges[:-1], step / 4))
        by_right = needed / (density[1:] * np.maximum(edges[1:] - safe, step / 4))
    leftwards = density[:-1] > density[1:]
    moves = np.zeros(edges.size)
    moves[:-1] += np.where(leftwards & (needed > 0), np.minimum(by_left, step / 4), 0.0)
    right = np.where(
        ~leftwards & (needed > 0) & (density[1:] > 0), np.minimum(by_right, step / 4), 0.0
    )
    moves[1:] = np.maximum(moves[1:], right)
    return moves


def _best_offset(gaps: np.ndarray, masses: np.ndarray, step: float) -> float:
    """Where, modulo the step, to put the grid so that rounding down to it costs least: at one of
    the gaps."""
    filled = masses > 0
    rest = gaps[filled] - step * np.round(gaps[filled] / step)
    order = np.argsort(rest)
    heights, weights = rest[order], masses[filled][order]
    return float(
        heights[int(np.argmin(step * (np.cumsum(weights) - weights) - heights * weights.sum()))]
    )


_TABLE = 4096  # cells in which a loss that need not be monotone is tabulated
_PIECE = 2**16  # cells that are worked on together


class Statistic(ABC):
    """A number computed from the output, whose law under P and Q is known: a processing, so that
    its loss is a lower bound. The loss need not be monotone."""

    @abstractmethod
    def masses(self, edges: np.ndarray) -> tuple[Bounds, Bounds]:
        """Bounds of the masses of the cells between increasing edges, infinite ones included, under
        P and under Q."""

    @abstractmethod
    def range(self, tail: float) -> tuple[float, float]:
        """Where all but about `tail` lies under both: any is valid."""

    def _directed(self, edges: np.ndarray, swapped: bool) -> tuple[np.ndarray, np.ndarray]:
        """Masses of the distribution that comes first from below, and of the other from above:
        whichever is first, its events are never too likely."""
        pieces = []
        for start in range(0, edges.size - 1, _PIECE):
            check_time()
            under_p, under_q = self.masses(edges[start : start + _PIECE + 1])
            (least, _), (_, most) = (under_q, under_p) if swapped else (under_p, under_q)
            pieces.append((least, most))
        least, most = map(np.concatenate, zip(*pieces, strict=True))
        return least, most

    def _table(self, tail: float, swapped: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        points = np.concatenate([[-np.inf], np.linspace(*self.range(tail), _TABLE + 1), [np.inf]])
        least, most = self._directed(points, swapped)
        return points, least, _log_ratio(least, most)

    def spread(self) -> float:
        """Standard deviation of the loss, roughly; of the larger direction."""
        spreads = []
        for swapped in (False, True):
            _, masses, ratio = self._table(1e-12, swapped)
            weights = np.where(np.isfinite(ratio), masses, 0.0)
            ratio = np.clip(np.where(weights > 0, ratio, 0.0), -MAX_LOSS, MAX_LOSS)
            mean = np.einsum("i,i", weights, ratio) / weights.sum()
            spreads.append(
                math.sqrt(np.einsum("i,i", weights, (ratio - mean) ** 2) / weights.sum())
            )
        return max(*spreads, 1e-9)

    def lower_pld(
        self, step: float, *, tail: float, swapped: bool = False
    ) -> PrivacyLossDistribution:
        """Bound the law of log dP/dQ under P (swapped: log dQ/dP under Q) from below: cells of
        about one loss are united, which is a processing whatever the cells, and their loss rounded
        down."""
        points, _, table = self._table(tail, swapped)
        crossings = _crossings(points, table, step)
        check_time()
        cells = self._directed(np.unique(np.concatenate([points, crossings])), swapped)
        ratio = _log_ratio(*cells)
        kept = np.isfinite(ratio)
        check_time()
        bins, which = np.unique(np.round(ratio[kept] / step), return_inverse=True)
        least, most = (np.bincount(which, part[kept], minlength=bins.size) for part in cells)
        sums = 1 - 4 * _EPS * ratio.size
        masses = np.maximum(sums * least * (1 - 2 * LAW_ERROR) - _UNDERFLOW, 0.0)
        filled = masses > 0
        masses = masses[filled]
        loss = np.log(masses) - np.log(most[filled] / sums + _TINY)
        loss -= 8 * _EPS * (1 + np.abs(loss)) + 2 * LAW_ERROR
        check_time()
        offset = _best_offset(loss - bins[filled] * step, masses, step)
        place = np.floor((loss - offset) / step)
        # the division may round up: a bin must never be lifted
        place = np.where(place * step + offset <= loss, place, place - 1).astype(int)
        slack = 8 * _EPS * (1 + float(np.abs(loss).max()))
        return PrivacyLossDistribution(step, place, masses, "lower", offset=offset - slack)


def _log_ratio(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """log(first / second) of each cell, not finite where the first is 0."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(first) - np.log(second + _TINY))


def _crossings(points: np.ndarray, table: np.ndarray, step: float) -> np.ndarray:
    """Where a tabulated loss passes half-way points of the grid, by interpolation."""
    known = np.isfinite(table[1:-1])
    centres = ((points[1:-2] + points[2:-1]) / 2)[known]
    height = np.clip(table[1:-1][known], -MAX_LOSS, MAX_LOSS) / step + 0.5
    before, after = np.floor(height[:-1]), np.floor(height[1:])
    passed = np.abs(after - before).astype(int)
    if passed.sum() > _MOST_POINTS:
        raise NumericalError(
            f"the losses of one step need {passed.sum()} cells; take a step above {step:g}"
        )
    cell = np.repeat(np.arange(passed.size), passed)
    check_time()
    nth = np.arange(cell.size) - np.repeat(np.cumsum(passed) - passed, passed)
    check_time()
    share = (np.minimum(before, after)[cell] + 1 + nth - height[cell]) / (height[1:] - height[:-1])[
        cell
    ]
    return np.asarray(centres[cell] + np.clip(share, 0.0, 1.0) * (centres[1:] - centres[:-1])[cell])
