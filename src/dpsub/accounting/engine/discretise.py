"""Certified PLDs of a pair of Gaussian mixtures, in both directions, with floating-point errors.

*Upper* (connect the dots): masses p under P and q under Q of a cell of losses [x, x + dx] are moved
to its ends, both totals kept: up = (p - q e^x) / (1 - e^{-dx}) at x + dx, p - up at x.  *Lower*:
each bin becomes one point with loss log(p / q), moved by O(dx^2) to lie on or just above the grid,
then rounded down. After k compositions the bounds differ by O(k dx^2). Why both are valid, and what
inexact edges cost: docs/proofs/numerics.md, "Pairs, upper", "Inversion", "Pairs, lower".
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dpsub.accounting.engine import work
from dpsub.accounting.engine.cell_masses import (
    LAW_ERROR,
    TINY,
    UNDERFLOW,
    CellMasses,
    mixture_masses,
    rounded_masses,
)
from dpsub.accounting.engine.lower_law import (
    best_origin,
    collapsed_losses,
    exchange_law,
    heavier_end,
    lower_law,
)
from dpsub.accounting.engine.pairs import LOSS_TOLERANCE, GaussianPair
from dpsub.accounting.engine.pld import MAX_LOSS, PrivacyLossDistribution
from dpsub.errors import NumericalError

_EPS = float(np.finfo(float).eps)
_LARGEST_EXPONENT = 700.0  # a little below where exp overflows
# the loss of a bin with less Q-mass is at least that of its lower edge: next to it TINY is seen
_DEEP = 1e-290
# mass beyond the fine part of a grid, on each side, about
_BULK_TAIL = 1e-4
# largest width of a sparse cell, in nats
_WIDEST = 0.25
_MOST_POINTS = 2**23
# of the grid and the bin at its end, whose loss moves with the grid
_ALIGNMENTS = 3


@dataclass(frozen=True)
class DirectedPair:
    """Loss log dP/dQ under P: P is X and Q is X' of the pair, or, `swapped`, the other way
    round."""

    pair: GaussianPair
    swapped: bool = False

    def place(self, losses: np.ndarray) -> np.ndarray:
        """Outputs t with these losses: monotone, decreasing if swapped, infinite beyond the range
        of the loss."""
        if not self.swapped:
            return self.pair.inverse_loss(losses)
        return self.pair.inverse_loss(-losses[::-1])[::-1]

    def loss(self, t: np.ndarray, cells: np.ndarray) -> np.ndarray:
        """Losses at the lower edges of some of the cells between neighbouring places."""
        edges = t[cells]
        finite = np.isfinite(edges)
        ends = np.where(finite, edges, 0.0)
        losses = -self.pair.loss(ends) if self.swapped else self.pair.loss(ends)
        return np.where(finite, losses, -np.inf)

    def masses(self, t: np.ndarray) -> CellMasses:
        """Masses of the cells between neighbouring places."""
        branches = self.pair.branches(t[::-1] if self.swapped else t)
        p, p_error = self._of(branches, *self.pair.components)
        q, q_error = self._of(branches, *self.pair.components_prime)
        cells = CellMasses(p, q, p_error, q_error)
        return cells.exchanged().reversed() if self.swapped else cells

    def _of(
        self, branches: list[np.ndarray], centres: np.ndarray, log_weights: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        weights, deviation = np.exp(log_weights), self.pair.deviation
        masses, errors = mixture_masses(branches[0], centres, weights, deviation)
        # where the loss falls before it rises a cell of losses is the union of two intervals of
        # outputs (docs/proofs/numerics.md, "A loss that falls before it rises")
        for falling in branches[1:]:
            more, more_errors = mixture_masses(falling[::-1], centres, weights, deviation)
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
        rising = self.pair.branches(np.array([low, high]))[0]
        ends = self.pair.loss(rising)
        below, above = max(float(ends[0]), self.pair.loss_floor), float(ends[1])
        return (-above, -below) if self.swapped else (below, above)


@work.remembered(32)
def _quantiles(pair: GaussianPair, tail: float) -> tuple[float, float]:
    """Points with mass at most `tail` to their left, and right, under both distributions."""
    # beyond 40 deviations from all centres every tail is below the smallest double
    reach = float(np.abs(pair.components[0]).max()) + 40 * pair.deviation

    def first(holds: Callable[[np.ndarray], np.ndarray]) -> float:
        """A point a little beyond the smallest one where a monotone condition holds; each round
        divides by 128."""
        low, high = -pair.deviation, reach
        for _ in range(2):
            points = np.linspace(low, high, 129)
            place = 1 + int(np.argmax(np.append(holds(points[1:-1]), True)))
            low, high = float(points[place - 1]), float(points[place])
        return high

    left = first(lambda u: np.maximum(pair.cdf(-u), pair.cdf_prime(-u)) <= tail)
    if pair.mirrored:
        return -left, left
    return -left, first(lambda u: np.maximum(pair.sf(u), pair.sf_prime(u)) <= tail)


def upper_pld(
    pair: GaussianPair, step: float, *, tail: float, swapped: bool = False, lost: float = 0.0
) -> PrivacyLossDistribution:
    """Bound the law of the loss of a pair from above.

    Parameters
    ----------
    pair : GaussianPair
        P is its X and Q its X'.
    step : float
        Width dx of a cell of losses, in nats.
    tail : float
        About the mass beyond the grid on each side. It is infinite loss on the right, and moved up
        on the left.
    swapped : bool
        Whether the loss is log dQ/dP under Q, instead of log dP/dQ under P.
    lost : float
        Mass that the law of the pair lacks, charged as infinite loss (docs/proofs/numerics.md,
        "Trimming").
    """
    direction = DirectedPair(pair, swapped)
    indices = loss_indices(direction, step, tail)
    points = indices * step
    t = direction.place(points)
    cells = direction.masses(t)
    # of each cell, what goes to its upper end: p is rounded up and q down or up as that raises it,
    # and everything is above the truth by what was charged ("Pairs, upper")
    # p - e^x q falls with x: where e^x overflows a smaller one bounds it from above
    growth = np.exp(np.minimum(points[:-1], _LARGEST_EXPONENT))
    up = cells.p - cells.q * growth + cells.p_error + (cells.q_error + UNDERFLOW) * growth
    up /= -np.expm1(-np.diff(points))
    total = (cells.p + cells.p_error) * (1 + 2 * LAW_ERROR)
    up = np.clip(up * (1 + 2 * LAW_ERROR), 0.0, total)
    at_points = np.zeros(points.size)
    at_points[1:] += up
    at_points[:-1] += total - up
    # mass left of the grid is moved up to its first point
    at_points[0] += direction.mass_below(float(t[0])) * (1 + 1e-9)
    tolerance = LOSS_TOLERANCE * max(1.0, float(np.abs(points[[0, -1]]).max()))
    moved, charge = _inversion(direction, points, cells, tolerance)
    # mass right of it is infinite ("Losses beyond the grid"): a Gaussian pair has mass beyond every
    # loss, be it smaller than any double
    above = max(direction.mass_above(float(t[-1])) * (1 + 1e-9), TINY)
    infinity = min(1.0, above + lost + charge)
    # edges are off by the first term in loss, and the loss itself, through the weights, by the
    # second
    offset = moved + 4 * LAW_ERROR
    return PrivacyLossDistribution(
        step, indices, at_points, "upper", infinity=infinity, offset=offset
    )


def _inversion(
    direction: DirectedPair, points: np.ndarray, cells: CellMasses, tolerance: float
) -> tuple[float, float]:
    """Return how far to move the law to the right, and how much to add at infinity, as edges are
    off by up to `tolerance` in loss.

    Moving by 2 tolerance suffices where Q(|L - x| <= tolerance) is at most 2 Q(L > x + 2
    tolerance), by masses of cells or of intervals of a few tolerances; elsewhere what may lack,
    e^x (e^tolerance - 1) times the first mass, is charged (docs/proofs/numerics.md,
    "Inversion").
    """
    moved = 2 * tolerance
    if points.size < 3:
        return moved, 0.0
    if 24 * tolerance > np.diff(points).min():
        # errors may reach beyond the next cell: everything is charged
        return moved, 2 * math.expm1(tolerance)
    inner = points[1:-1]
    # where Q underflows, e^x Q is at most e^tolerance P ("Underflow")
    p_at_most = (cells.p + cells.p_error)[:-1] + cells.p[1:]
    hidden = np.where((cells.q[:-1] + cells.q[1:]) < TINY, p_at_most, 0.0)
    charge = float(hidden.max()) * 2 * math.expm1(tolerance)
    # first with the masses of whole cells, which are there already
    q_at_most = cells.q + cells.q_error
    near = q_at_most[:-1] + q_at_most[1:]
    suspected = inner[near > 2 * _from_each(cells)[2:]] if inner.size > 1 else inner
    if not suspected.size:
        return moved, charge
    # where these are too coarse, with those of intervals of a few tolerances
    around = tolerance * np.array([-2.0, 2.0, 5.0])
    edges = np.append((suspected[:, None] + around).ravel(), points[-1])
    fine = direction.masses(direction.place(edges))
    near = (fine.q + fine.q_error)[0::3]
    beyond = _from_each(fine)[2::3]
    shortfall = np.exp(suspected) * math.expm1(tolerance) * near * (1 + 1e-9)
    return moved, charge + float(np.max(np.where(near <= 2 * beyond, 0.0, shortfall)))


def _from_each(cells: CellMasses) -> np.ndarray:
    """Q-mass of each cell and of those to its right, rounded down, shape (n + 1,): the last is
    0."""
    sure = np.maximum(cells.q - cells.q_error, 0.0)
    return np.append(np.cumsum(sure[::-1])[::-1], 0.0) * (1 - 4 * _EPS * sure.size)


def lower_pld(
    pair: GaussianPair, step: float, *, tail: float, swapped: bool = False, exchange: bool = False
) -> PrivacyLossDistribution:
    """Bound the law of the loss of a pair from below; arguments as in `upper_pld`.

    Bins of losses about the points of a grid are collapsed to one point each. Their edges are
    moved until these lie on the grid or just above it. With `exchange`, for a sum of very many
    losses, where even a small share of a step adds up, bins exchange shares instead: that serves
    also those that no edge can move, at the infimum of the loss.
    """
    direction = DirectedPair(pair, swapped)
    points = loss_indices(direction, step, tail) * step
    half_way = (points[1:] + points[:-1]) / 2
    edges = np.concatenate([[points[0] - step / 2], half_way, [points[-1] + step / 2]])
    align = _exchanging_shares if exchange else _moving_edges
    return align(direction, points, edges, step)


def _moving_edges(
    direction: DirectedPair, points: np.ndarray, edges: np.ndarray, step: float
) -> PrivacyLossDistribution:
    """The lower law of bins whose edges are moved until their losses lie on the grid."""
    t = _opened(direction, edges)
    finite = np.isfinite(t)
    slope = np.zeros(t.size)
    if np.count_nonzero(finite) > 2:
        slope[finite] = np.gradient(t[finite], edges[finite])
    moved = np.zeros(t.size)
    loss, masses = _collapsed(direction, t)
    # a bin that cannot be moved, at the infimum of the loss, may hold most of the mass: the grid is
    # put under it
    points = points + best_origin(loss - points, masses, step)
    for correction in (_centre, _centre, _centre, _lift):
        correct = correction(loss - points, masses, edges + moved, loss, step)
        moved = np.clip(moved + correct, -step / 2, step / 2)
        # along the tangent: edges need not be where they were meant to be, as any bins are valid
        loss, masses = _collapsed(direction, t + moved * slope)
    kept = masses > 0
    origin = best_origin(loss, masses, step)
    # losses go by the weights of the mixture, whose errors are charged here, and by the points
    slack = 8 * LAW_ERROR + 8 * _EPS * float(np.abs(points[[0, -1]]).max())
    return lower_law(loss[kept], masses[kept], step, origin=origin, slack=slack)


def _exchanging_shares(
    direction: DirectedPair, points: np.ndarray, edges: np.ndarray, step: float
) -> PrivacyLossDistribution:
    """The lower law of bins that exchange shares, on a grid under the bin at the heavier end."""
    for _ in range(_ALIGNMENTS):
        work.spend(work.TERM * 4 * edges.size)
        loss, masses = _collapsed(direction, _opened(direction, edges))
        origin = heavier_end(loss, masses, step)
        # half of what a bin is off its point is taken away by each of its edges
        edges = edges + _centre(loss - points - origin, masses, edges, loss, step)
    second = masses * np.exp(-np.where(masses > 0, loss, 0.0))
    return exchange_law(masses, second, step, 8 * LAW_ERROR, origin)


def _opened(direction: DirectedPair, edges: np.ndarray) -> np.ndarray:
    """Outputs with these losses, the last one infinite: the last bin takes all losses beyond the
    grid, as its own is log(p / q), like that of any other ("Losses beyond the grid")."""
    t = direction.place(edges)
    t[-1] = -np.inf if direction.swapped else np.inf
    return t


def _collapsed(direction: DirectedPair, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Losses log(p / q) of the bins, and their masses, both rounded down; empty bins get loss
    -inf."""
    monotone = np.minimum.accumulate(t) if direction.swapped else np.maximum.accumulate(t)
    cells = direction.masses(monotone)
    masses = rounded_masses(cells.p, cells.p_error, "lower")
    # in the losses the error of the weights is part of the slack
    least = np.maximum(cells.p - cells.p_error - UNDERFLOW, 0.0)
    loss = collapsed_losses(least, cells.q + cells.q_error + TINY, roundings=4)
    # where q underflows, the loss of a bin is at least that of its lower edge ("Underflow")
    deep = np.flatnonzero((masses > 0) & (cells.q < _DEEP))
    if deep.size:
        at_edge = direction.loss(monotone, deep)
        at_edge -= LOSS_TOLERANCE * np.maximum(1.0, np.abs(at_edge))
        loss[deep] = np.maximum(loss[deep], at_edge)
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
    """Moves of edges to the right that lift each bin below its point onto it.

    The lowest part of one bin goes to the top of another, and both rise. Of the two edges of a bin
    the one with the greater density is taken.
    """
    usable = (masses > 0) & (np.abs(gaps) < step / 2)
    between = np.sqrt(masses[:-1] * masses[1:]) / step
    density = np.zeros(edges.size)
    density[1:-1] = np.where(usable[:-1] & usable[1:], between, 0.0)
    # P-mass times loss that a bin lacks, over what a move of an edge by one nat brings
    needed = -np.minimum(np.where(usable, gaps, 0.0), 0.0) * masses
    safe = np.where(usable, loss, edges[:-1] + step / 2)
    with np.errstate(divide="ignore", invalid="ignore"):
        by_left = needed / (density[:-1] * np.maximum(safe - edges[:-1], step / 4))
        by_right = needed / (density[1:] * np.maximum(edges[1:] - safe, step / 4))
    lifted = needed > 0
    leftwards = density[:-1] > density[1:]
    rightwards = ~leftwards & lifted & (density[1:] > 0)
    moves = np.zeros(edges.size)
    moves[:-1] += np.where(leftwards & lifted, np.minimum(by_left, step / 4), 0.0)
    moves[1:] = np.maximum(moves[1:], np.where(rightwards, np.minimum(by_right, step / 4), 0.0))
    return moves


def loss_indices(direction: DirectedPair, step: float, tail: float) -> np.ndarray:
    """Indices of the points that cells end at: all in the bulk, ever sparser in the tails. Any
    choice is valid."""
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
