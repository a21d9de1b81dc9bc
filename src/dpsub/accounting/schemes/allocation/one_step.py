"""Random allocation: every record takes part in one uniformly chosen step of t. Upper and lower
bounds on the loss of one epoch.

The likelihood ratio over an epoch is the mean of t independent terms X_j = exp(z_j / s^2 - 1 / (2
s^2)), log-normal of mean 1 under N(0, s^2 I), and both divergences are means of convex functions of
it. So the law of X is replaced by one on few points: for the *upper* end the mass of each cell is
moved to its ends, keeping the mean; for the *lower* end to its mean. Sums are formed pair by pair,
doubling their number of terms, and reduced to few points in the same way, at suitable places. All
sums are of positive terms: there is no aliasing, and errors are relative (docs/proofs/allocation.md
and numerics.md, "Random allocation").

`deviation` is the standard deviation of the noise in units of the record's effect on its step:
the noise multiplier s, or s / 2 if it takes a filler's place and moves its step by 2 C.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import NamedTuple, Protocol

import numpy as np
from scipy.special import ndtri

from dpsub.accounting.engine import work
from dpsub.accounting.engine.cell_masses import MassBounds, normal_masses
from dpsub.accounting.engine.fourier import ComposedLoss, TiltedSum
from dpsub.accounting.engine.lower_law import exchange_law
from dpsub.accounting.engine.outputs import EpochOutputs
from dpsub.accounting.engine.pld import (
    MAX_LOSS,
    PrivacyLossDistribution,
    Profile,
    RememberedProfile,
    symmetric_pld,
)
from dpsub.accounting.engine.privacy_events import AttackEvent, Event, order_grid
from dpsub.accounting.schemes.allocation.occupancy import Occupancy
from dpsub.errors import NumericalError, UnsupportedError
from dpsub.noise import GaussianProfile

_EPS = float(np.finfo(float).eps)
# smaller masses have lost their digits
_KEPT = 1e-290
_UNDERFLOW = 1e-300
_LARGEST = 1e290  # beyond it products of ratios and masses overflow
_SMALLEST = float(np.finfo(float).tiny)
# standard deviations: masses further out are no doubles
_DEEPEST = 37.0
# width of the widest cells of ratios, in standard deviations
COARSEST = 1 / 6
# cells of the law over steps of the grid of losses
FINE = 0.7
# of points that are summed for one law: a second or so
MOST_PAIRS = 4e7
# of a table of pairs that are summed together
_ROWS = 8
# of a table of pairs of one law with itself, each pair is counted once, twice off the diagonal
_TRIANGLE = 2 * np.triu(np.ones((_ROWS, _ROWS))) - np.eye(_ROWS)


@dataclass(frozen=True, eq=False)
class MeanLaw:
    """Law of the mean of `terms` likelihood ratios under Q, mass[i] at ratio[i], increasing; on the
    upper side the first ratio is 0.

    `lost`: P-mass of infinite losses. It bounds the true law once masses are multiplied by 1 +
    `mass_error` (lower: 1 - `mass_error`) and ratios by 1 +- `ratio_error`, whichever is safe.
    """

    terms: int
    ratio: np.ndarray
    mass: np.ndarray
    upper: bool
    lost: float
    mass_error: float
    ratio_error: float
    edges: np.ndarray
    """Lower side: where the cells of neighbouring ratios meet, shape (n - 1,); upper side:
    empty."""


class JoinedLaw(NamedTuple):
    """A law of likelihood ratios, and the places of the two in a list that it is made from, of
    their mean or of their product; None of a single ratio."""

    law: MeanLaw
    of: tuple[int, int] | None
    is_product: bool = False


def mean_law(t: int, deviation: float, fineness: float, tail: float, upper: bool) -> MeanLaw:
    """Return the law of the mean of t ratios from above or below: cells are about `fineness`
    standard deviations wide, and about `tail` is cut off at each end."""
    return mean_laws(t, deviation, fineness, tail, upper)[-1].law


@work.remembered(16)
def mean_laws(
    t: int, deviation: float, fineness: float, tail: float, upper: bool
) -> tuple[JoinedLaw, ...]:
    """Return the laws on the way to that of t ratios, each with the places of the two that it is
    made from; the first is that of a single ratio."""
    single = single_law(deviation, fineness, tail, upper)
    laws = [JoinedLaw(single, None)]
    # nothing is begun that is not finished: laws on the way have about as many points
    joins = t.bit_length() + t.bit_count() - 2
    work.ensure(work.TERM * joins * single.mass.size**2, "a mean of so many")

    def join(first: int, second: int) -> None:
        law = joined(laws[first].law, laws[second].law, deviation, fineness, tail)
        laws.append(JoinedLaw(law, (first, second)))

    # as t is read from its binary digits: each doubles the number of terms, and may add one
    for bit in f"{t:b}"[1:]:
        join(len(laws) - 1, len(laws) - 1)
        if bit == "1":
            join(len(laws) - 1, 0)
    return tuple(laws)


def single_law(deviation: float, fineness: float, tail: float, upper: bool) -> MeanLaw:
    """Return the law of one ratio, exp(sigma z - sigma^2 / 2), sigma = 1 / `deviation`."""
    sigma = 1 / deviation
    reach = min(-float(ndtri(max(tail / 8, _SMALLEST))), _DEEPEST)
    low, high = max(-reach, sigma - _DEEPEST), min(sigma + reach, _DEEPEST)
    first, last = sigma * low - sigma**2 / 2, sigma * high - sigma**2 / 2
    log_edges = _log_places(first, last, 1, deviation, fineness)
    # the cells end at these z, whatever was rounded
    z = log_edges / sigma + sigma / 2
    q, q_error = normal_masses(z, 0.0)
    p, p_error = normal_masses(z, sigma)
    edges = np.exp(sigma * z - sigma**2 / 2)
    floor = np.append(0.0, edges)
    # the largest share of a mass that its error is, and what an edge is off by
    error = float(np.max(q_error / q) + np.max(p_error / p))
    edge_error = 8 * _EPS * (1 + sigma * float(np.abs(z).max()) + sigma**2)
    excess = np.maximum(p - floor * q, 0.0)
    if not upper:
        return _collected(1, edges, q, excess, upper, 0.0, error, 2 * error + edge_error)
    mean_error = 1.01 * error + edge_error + 4 * _EPS
    # the share of a cell that goes to its upper end is a difference: ratios are charged for it
    # (Lemma 33)
    share = excess[1:-1] / (np.diff(edges) * q[1:-1])
    smaller = np.maximum(np.minimum(share, 1 - share), 0.0)
    with np.errstate(divide="ignore"):
        grown = float(np.max(edges[1:] / edges[:-1] / smaller))
    law = _collected(1, edges, q, excess, upper, 0.0, error, edge_error + mean_error * grown)
    # at the two ends, which reach to 0 and to infinity, all that their numbers may be off by is
    # charged as mass
    doubt = p_error + edge_error * p + floor * (q_error + edge_error * q)
    charged = law.mass.copy()
    charged[0] += q_error[0]
    charged[:2] += doubt[0] / edges[0]
    return replace(law, mass=charged, lost=law.lost + float(doubt[-1]))


def _log_places(
    low: float, high: float, terms: int, deviation: float, fineness: float
) -> np.ndarray:
    """Return logarithms of ratios from low to high: close together about 0, where means of many
    terms lie, ever further apart beyond."""
    bulk = min(1.0, math.sqrt(_variance(deviation) / terms))
    widest = max(1.0, 1 / (3 * deviation))
    bend = 3 * math.sqrt(widest**2 - bulk**2)

    def number(y: float) -> float:
        """Return how many cells of fineness 1 lie between 0 and y."""
        inside = min(abs(y), bend)
        return math.copysign(3 * math.asinh(inside / (3 * bulk)) + (abs(y) - inside) / widest, y)

    first, last = number(low), number(high)
    u = np.linspace(first, last, math.ceil((last - first) / fineness) + 2)
    last_inside = number(bend)
    inside = np.clip(u, -last_inside, last_inside)
    return 3 * bulk * np.sinh(inside / 3) + (u - inside) * widest


def _variance(deviation: float) -> float:
    """Return the variance of one ratio under Q."""
    return math.expm1(min(deviation**-2, 600.0))


def joined(
    a: MeanLaw, b: MeanLaw, deviation: float, fineness: float, tail: float, product: bool = False
) -> MeanLaw:
    """Return the law of the mean of the terms of both; or, of two terms, of their `product`, which
    is one. `deviation` tells how far ratios of one term are spread."""
    terms = 1 if product else a.terms + b.terms
    share = 1.0 if product else a.terms / terms
    left, right = share * a.ratio, b.ratio if product else (1 - share) * b.ratio
    combined = np.multiply if product else np.add
    first = 1 if a.upper else 0
    lowest = max(float(combined(left[first], right[first if product else 0])), _SMALLEST)
    highest = float(combined(left[-1], right[-1]))
    if not highest < _LARGEST:
        raise NumericalError(f"a likelihood ratio of {highest:.3g} is too large for its sums")
    log_edges = _log_places(math.log(lowest), math.log(highest), terms, deviation, fineness)
    edges = np.exp(log_edges)
    floor = np.append(0.0, edges)
    mass, excess = np.zeros(floor.size), np.zeros(floor.size)
    twice = a is b
    for start in range(0, left.size, _ROWS):
        work.spend(work.TERM * 2 * _ROWS * right.size)
        rows = slice(start, start + _ROWS)
        columns = slice(start if twice else 0, None)
        means = combined.outer(left[rows], right[columns])
        weights = np.multiply.outer(a.mass[rows], b.mass[columns])
        if twice:
            # of a law with itself, pairs (i, j) and (j, i) are one
            weights[:, :_ROWS] *= _TRIANGLE[: weights.shape[0], : weights.shape[1]]
            weights[:, _ROWS:] *= 2
        means, weights = means.ravel(), weights.ravel()
        cells = edges.searchsorted(means, side="right")
        mass += np.bincount(cells, weights, minlength=floor.size)
        # means above the lower ends of cells: what stays of a cell near 1 keeps its digits
        means -= floor[cells]
        weights *= means
        excess += np.bincount(cells, weights, minlength=floor.size)
    # sums of n terms in blocks are off by at most (8 n + n/8 + 8) eps of themselves
    longest = max(left.size, right.size)
    rounding = _EPS * (_ROWS * longest + longest / _ROWS + 8)
    # products that underflow, at most so many, may be missing
    missing = left.size * right.size * _SMALLEST * (float(edges[-1]) + 1e10)
    lost = share * a.lost + (b.lost if product else (1 - share) * b.lost) + missing
    # errors of masses add up, as masses are multiplied; that of a mean of ratios is the larger one,
    # that of a product both, plus what forming them rounds
    mass_error = a.mass_error + b.mass_error + rounding
    ratio_error = max(a.ratio_error, b.ratio_error)
    if product:
        ratio_error = a.ratio_error + b.ratio_error + a.ratio_error * b.ratio_error
    ratio_error += 8 * _EPS if a.upper else 2 * rounding
    law = _collected(terms, edges, mass, excess, a.upper, lost, mass_error, ratio_error, rounding)
    return _trimmed(law, tail)


def _collected(
    terms: int,
    edges: np.ndarray,
    mass: np.ndarray,
    excess: np.ndarray,
    upper: bool,
    lost: float,
    mass_error: float,
    ratio_error: float,
    rounding: float = 0.0,
) -> MeanLaw:
    """Return the mass of the cells that end at the edges, the first from 0 and the last to
    infinity, with means of `excess` / mass above their lower ends, moved to their ends, or to their
    means; both are off by `rounding` of themselves (Theorem 26)."""
    floor = np.append(0.0, edges)
    if not upper:
        filled = mass > _KEPT
        mass, ratio = mass[filled], floor[filled] + excess[filled] / mass[filled]
        above = np.flatnonzero(filled)[:-1]
        return MeanLaw(terms, ratio, mass, upper, 0.0, mass_error, ratio_error, edges[above])
    up = np.minimum(excess[:-1] / np.diff(floor), mass[:-1])
    # what stays at the lower end may cancel, so its error is that of all
    kept = mass * (1 + 2 * rounding + 4 * _EPS)
    kept[:-1] -= up
    kept[1:] += up
    # the last cell has no upper end: its P-mass above the lower one is infinite loss
    lost += float(excess[-1])
    return MeanLaw(terms, floor, kept, upper, lost, mass_error, ratio_error, np.zeros(0))


def _trimmed(law: MeanLaw, tail: float) -> MeanLaw:
    """Remove points at the ends that hold less than a share of `tail`: Q-mass at the low end,
    P-mass at the high one, moved as that of cells is."""
    share = tail / 64
    below = np.cumsum(law.mass) <= share
    above = np.cumsum((law.mass * law.ratio)[::-1])[::-1] <= share
    first, last = int(np.count_nonzero(below)), law.mass.size - 1 - int(np.count_nonzero(above))
    if last - first < 2:
        return law
    ratio, mass = law.ratio, law.mass
    low, high = slice(None, first), slice(last + 1, None)
    inner_ratio, inner_mass = ratio[first : last + 1].copy(), mass[first : last + 1].copy()
    if law.upper:
        # P-mass above the last point is infinite, mass below the first one goes to it and to 0
        excess = float(np.sum(mass[high] * (ratio[high] - ratio[last])))
        inner_mass[-1] += float(mass[high].sum())
        if first > 0:
            moved = float(np.sum(mass[low] * ratio[low])) / float(ratio[first])
            zero = max(float(mass[low].sum()) - moved, 0.0) + 1e-12 * moved
            inner_mass[0] += moved
            inner_ratio, inner_mass = np.append(0.0, inner_ratio), np.append(zero, inner_mass)
        return replace(law, ratio=inner_ratio, mass=inner_mass, lost=law.lost + excess)
    # points at the ends are united with the last one that is kept, at their common mean
    for end, part in ((0, low), (-1, high)):
        together = float(inner_mass[end] + mass[part].sum())
        total = inner_ratio[end] * inner_mass[end] + np.sum(mass[part] * ratio[part])
        inner_ratio[end] = total / together
        inner_mass[end] = together
    return replace(law, ratio=inner_ratio, mass=inner_mass, edges=law.edges[first:last])


def upper_pld(law: MeanLaw, step: float, swapped: bool) -> PrivacyLossDistribution:
    """Return the law of the loss under P, of its negative under Q if `swapped`, from above: mass of
    each ratio under both is moved to the grid losses on either side of it, totals kept, as for
    pairs."""
    grown = 1 + 2 * law.mass_error + 16 * _EPS
    ratio, mass = law.ratio[1:], law.mass[1:]
    loss, first = np.log(ratio), mass * ratio
    infinity = law.lost
    if swapped:
        # of Q-mass at ratio 0 the swapped loss is infinite
        loss, first, infinity = -loss, mass, law.lost + float(law.mass[0])
    # what ratios may be off by raises losses, and masses that are products with ratios
    loss = loss + 2 * law.ratio_error + 4 * _EPS * (1 + np.abs(loss))
    return on_grid(loss, first * (grown + 2 * law.ratio_error), infinity * grown, step)


def on_grid(
    loss: np.ndarray, first: np.ndarray, infinity: float, step: float
) -> PrivacyLossDistribution:
    """Return an upper law on a grid: masses at losses, rounded up, are moved to the grid losses on
    either side, with both totals kept."""
    infinite = loss > MAX_LOSS - step
    beyond = float(first[infinite].sum()) * (1 + 16 * _EPS)
    infinity = min(1.0, infinity + beyond + _UNDERFLOW)
    loss, first = np.maximum(loss[~infinite], -MAX_LOSS), first[~infinite]
    below = np.floor(loss / step)
    up = np.expm1(np.minimum(below * step - loss, 0.0)) / math.expm1(-step)
    up = np.minimum(up, 1.0) * (1 + 8 * _EPS)
    # the share that stays is a difference: its error is that of all
    stays = first * np.maximum(1 - up, 0.0) + 8 * _EPS * first
    places = np.concatenate([below, below + 1]).astype(int)
    masses = np.concatenate([stays, first * up])
    return PrivacyLossDistribution(step, places, masses, "upper", infinity=infinity)


def lower_pld(law: MeanLaw, step: float, swapped: bool) -> PrivacyLossDistribution:
    """Return the law of the loss from below: both measures shrink alike, so that their ratios stay;
    errors of ratios are charged in the losses."""
    shrunk = max(0.0, 1 - 2 * law.mass_error - 2 * law.ratio_error)
    first, second = law.mass * law.ratio * shrunk, law.mass * shrunk
    if swapped:
        first, second = second, first
    return exchange_law(first, second, step, 2 * law.ratio_error)


class RatioEvent(Event):
    """An event whose likelihood ratio has a law that is made step by step from that of one step."""

    @abstractmethod
    def laws(self, step: float, tail: float, upper: bool) -> tuple[JoinedLaw, ...]:
        """The laws on the way to that of the whole ratio, from which `upper` or `lower` is made."""

    def upper(self, step: float, tail: float, swapped: bool) -> PrivacyLossDistribution:
        return upper_pld(self.laws(step, tail, True)[-1].law, step, swapped)

    def lower(self, step: float, tail: float, swapped: bool) -> PrivacyLossDistribution:
        return lower_pld(self.laws(step, tail, False)[-1].law, step, swapped)

    @property
    def symmetric(self) -> bool:
        return False

    @property
    def exact(self) -> bool:
        return True


@dataclass(frozen=True)
class AllocationEvent(RatioEvent):
    """One epoch of 1 of t: the mean of N(e_j, s^2 I) over the t steps against N(0, s^2 I), and the
    other way round; s = `deviation`."""

    t: int
    deviation: float

    def laws(self, step: float, tail: float, upper: bool) -> tuple[JoinedLaw, ...]:
        return mean_laws(self.t, self.deviation, self._fineness(step), tail, upper)

    def _fineness(self, step: float) -> float:
        wanted = min(COARSEST, FINE * step / self.spread())
        return max(_finest(self.t, self.deviation), wanted)

    @property
    def outputs(self) -> EpochOutputs:
        return EpochOutputs(self.t, 1, 1.0, 0.0, self.deviation)

    def spread(self) -> float:
        return _spread(self.t, self.deviation)


def _finest(t: int, deviation: float) -> float:
    """Cells so fine that sums take a second or so."""
    joins = t.bit_length() + t.bit_count()
    points = single_law(deviation, COARSEST, 1e-18, False).mass.size
    return COARSEST * points * math.sqrt(joins / MOST_PAIRS)


@work.remembered(64)
def _spread(t: int, deviation: float) -> float:
    """Standard deviation of the loss under P."""
    return spread_of(mean_law(t, deviation, COARSEST, 1e-12, False))


def spread_of(law: MeanLaw) -> float:
    """Return the standard deviation of the loss under P, from a law of the likelihood ratio under
    Q."""
    weights = law.mass * law.ratio
    weights /= weights.sum()
    loss = np.log(law.ratio)
    return math.sqrt(float(np.sum(weights * (loss - np.sum(weights * loss)) ** 2)))


def mixed_with_one(law: MeanLaw, share: float) -> MeanLaw:
    """Return the law of 1 - q + q R, q = `share`, R the likelihood ratio of this law: of a record
    that takes part with this probability."""
    if share == 1:
        return law
    # what a mean of R and 1 is off by is no more than R is, and its rounding
    ratio, mass = 1 - share + share * law.ratio, law.mass
    if law.upper:
        # its first ratio is 0
        ratio, mass = np.append(0.0, ratio), np.append(0.0, mass)
    edges = 1 - share + share * law.edges
    # what was lost counts whole, in both directions
    error = law.ratio_error + 8 * _EPS
    return replace(law, ratio=ratio, mass=mass, edges=edges, ratio_error=error)


@dataclass(frozen=True)
class DroppedEvent(Event):
    """An epoch from which the record is dropped with probability 1 - `in_steps`.

    Without it the outputs are the same under both.
    """

    epoch: AllocationEvent
    in_steps: float

    def upper(self, step: float, tail: float, swapped: bool) -> PrivacyLossDistribution:
        law = self.epoch.laws(step, tail, True)[-1].law
        return upper_pld(mixed_with_one(law, self.in_steps), step, swapped)

    def lower(self, step: float, tail: float, swapped: bool) -> PrivacyLossDistribution:
        law = self.epoch.laws(step, tail, False)[-1].law
        return lower_pld(mixed_with_one(law, self.in_steps), step, swapped)

    @property
    def symmetric(self) -> bool:
        return False

    @property
    def exact(self) -> bool:
        return True

    def spread(self) -> float:
        return self.epoch.spread()


def sizes_of_blocks(t: int, k: int) -> list[tuple[int, int]]:
    """Return the sizes of k nearly equal blocks of t steps, and how many there are of each."""
    size, more = divmod(t, k)
    sizes = [(size, k - more), (size + 1, more)]
    return [(each, times) for each, times in sizes if times]


@dataclass(frozen=True)
class SelectionEvent(Event):
    """One epoch of k of t.

    Upper bound: the steps are cut at random into k nearly equal blocks, which are revealed; the
    record is then in 1 step of each block (Theorem 27). Lower bound: all others at 0, and a test by
    a sum of functions of the steps.
    """

    t: int
    k: int
    deviation: float

    @cached_property
    def blocks(self) -> list[tuple[AllocationEvent, int]]:
        """Allocations to one step of a block, and how many there are of each size."""
        return [
            (AllocationEvent(size, self.deviation), times)
            for size, times in sizes_of_blocks(self.t, self.k)
        ]

    def uppers(
        self, step: float, tail: float, swapped: bool
    ) -> list[tuple[PrivacyLossDistribution, int]]:
        return [(event.upper(step, tail, swapped), times) for event, times in self.blocks]

    def upper(self, step: float, tail: float, swapped: bool) -> PrivacyLossDistribution:
        raise UnsupportedError("an epoch with k of t steps has several upper laws; use uppers")

    def lower(self, step: float, tail: float, swapped: bool) -> PrivacyLossDistribution:
        return self.sums.lower(step, tail, swapped)

    @property
    def sums(self) -> SumEvent:
        """The sums that make its lower bound."""
        # where k is 1 or t the likelihood ratio itself is a function of such a sum
        weight = (self.k - 1) / (self.t - self.k + 1)
        return SumEvent(self.t, self.k, self.deviation, weight, 1.0, 0.0)

    @property
    def outputs(self) -> EpochOutputs:
        return EpochOutputs(self.t, self.k, 1.0, 0.0, self.deviation)

    @property
    def symmetric(self) -> bool:
        return False

    def spread(self) -> float:
        return min(event.spread() for event, _ in self.blocks)


# largest reach of a sum, in steps of its grid
_MOST_PLACES = 2**17
# the best bound of each mass is that of one of these tilts
_TILTS = (-1.0, -0.5, 0.0, 0.5, 1.0)


class SumLaws(NamedTuple):
    """Bounds of the masses of a sum over the steps, for two means of the record's steps; a step
    adds how many of the `edges` its output exceeds, in deviations, and a constant."""

    edges: np.ndarray
    first: MassBounds
    second: MassBounds


@work.remembered(8)
def statistic(
    t: int, k: int, deviation: float, weights: tuple[float, float], x: float, y: float
) -> SumLaws:
    """The law, where k < t of t steps have the mean x > 0 and where they have y < x, others 0, of T
    = sum over the steps of the integer nearest to (l(x, z_j) - l(y, z_j)) / h, the second term only
    if y < 0: l(x, z) is ln(1 + c r), r the likelihood ratio of one step of mean x, with a weight c
    for x and another one for y."""
    sigma = 1 / deviation
    z = np.linspace(-12.0 + min(y, 0.0) * sigma, 12.0 + x * sigma, 20_001)
    up, down = (
        np.logaddexp(0.0, math.log(c) + mean * sigma * z - (mean * sigma) ** 2 / 2)
        for c, mean in zip(weights, (x, y), strict=True)
    )
    value = up - down if y < 0 else up
    return laws_of_sums(z, value, Occupancy.of_one(t, k), (x * sigma, y * sigma))


LawsOfSum = Callable[
    [float, np.ndarray, np.ndarray, Occupancy, float], list[tuple[ComposedLoss, ComposedLoss]]
]
"""Function of a step, integers, edges, an occupancy and a shift: the law of the sum for each row,
rounded down and up."""


def laws_of_sums(
    z: np.ndarray,
    value: np.ndarray,
    held: Occupancy,
    shifts: tuple[float, float],
    laws_of: LawsOfSum | None = None,
) -> SumLaws:
    """For each shift masses of a sum of values of N(0, 1), one for each step; those of a step that
    holds i records are shifted by i times as much. Values are tabulated at increasing z, rise with
    it, and are rounded to a grid. `laws_of` gives the laws of the sum where `held` says no more
    than how far apart they are."""
    laws_of = laws_of or _laws_of_rows

    @cache
    def moments(mean: float) -> tuple[float, float]:
        return _moments(value, np.exp(-0.5 * (z - mean) ** 2))

    deviation = moments(0.0)[1]
    spread, moved = math.sqrt(held.steps) * deviation, 0.0
    for row in held.rows:
        there = [(i, count) for i, count in enumerate(row) if i and count]
        widest = max((moments(i * shifts[0])[1] for i, _ in there), default=0.0)
        at_row = math.sqrt(sum(count for _, count in there)) * widest
        spread = max(spread, math.sqrt(held.steps) * deviation + at_row)
        apart = ((moments(i * shifts[0])[0] - moments(i * shifts[1])[0], c) for i, c in there)
        moved = max(moved, sum(count * distance for distance, count in apart))
    width = 24 * spread + moved + float(value[-1] - value[0])
    h = max(deviation / 12, width / _MOST_PLACES)
    while True:
        integers = np.arange(round(float(value[0]) / h), round(float(value[-1]) / h) + 1)
        if integers.size < 2:
            # so many steps that a grid of this size tells nothing
            return SumLaws(np.zeros(0), (np.ones(1), np.ones(1)), (np.ones(1), np.ones(1)))
        # any edges are right, as long as they are the same for all shifts: what is computed is a
        # number of the output, whose loss is a lower bound (F2)
        edges = np.interp((integers[:-1] + 0.5) * h, value, z)
        laws = [laws_of(h, integers, edges, held, shift) for shift in shifts]
        losses = [loss for rows in laws for law in rows for loss in law]
        reaches = [loss.cumulants.reach(tilt, -30.0) for loss in losses for tilt in _TILTS]
        if max(high - low for low, high in reaches) <= 2 * h * _MOST_PLACES:
            break
        h *= 4
    # nothing is begun that is not finished
    size = round(max(high - low for low, high in reaches) / h)
    for_each = 2 * work.transform(size) + 30 * work.NUMBER * size
    work.ensure(len(reaches) * for_each, "the sums of an epoch")
    sums = [
        [[[loss.masses(tilt) for tilt in _TILTS] for loss in law] for law in rows] for rows in laws
    ]
    every = [total for rows in sums for law in rows for loss in law for total in loss]
    places = np.arange(min(s.start for s in every), max(s.start + s.values.size for s in every))
    bounds = [[_best_masses(down, up, places) for down, up in rows] for rows in sums]
    # without a shift all rows have one law
    return SumLaws(
        edges,
        *(
            _of_all_rows(rows, held) if shift else rows[0]
            for rows, shift in zip(bounds, shifts, strict=True)
        ),
    )


def _laws_of_rows(
    h: float, integers: np.ndarray, edges: np.ndarray, held: Occupancy, shift: float
) -> list[tuple[ComposedLoss, ComposedLoss]]:
    """Return the law of the sum for each row, rounded down and up; a single one without a shift."""
    masses = cache(lambda mean: normal_masses(edges, mean))
    if not shift:
        return [_sums(h, integers, [(masses(0.0), held.steps)])]
    return [
        _sums(
            h, integers, [(masses(i * shift), row[i]) for i in reversed(range(len(row))) if row[i]]
        )
        for row in held.rows
    ]


def _of_all_rows(laws: list[MassBounds], held: Occupancy) -> MassBounds:
    """Return bounds of the masses of a sum whose row is drawn; the rows that are left out may put
    all they have anywhere."""
    least = sum(share * law[0] for share, law in zip(held.least, laws, strict=True))
    most = sum(share * law[1] for share, law in zip(held.most, laws, strict=True))
    return np.asarray(least), np.minimum(most + held.rest, 1.0)


def _best_masses(down: list[TiltedSum], up: list[TiltedSum], places: np.ndarray) -> MassBounds:
    """Return the best bounds of each mass, from all tilts."""
    at_least = np.max([_masses(total, places, -1) for total in down], axis=0)
    at_most = np.min([_masses(total, places, 1) for total in up], axis=0)
    return at_least, np.minimum(at_most, 1.0)


def _moments(values: np.ndarray, weights: np.ndarray) -> tuple[float, float]:
    """Return mean and standard deviation."""
    mean = float(np.average(values, weights=weights))
    return mean, math.sqrt(float(np.average((values - mean) ** 2, weights=weights)))


def loss_deviation(p: np.ndarray, q: np.ndarray) -> float:
    """Return the standard deviation of ln(p/q) under the masses p, where both are above 0."""
    seen = (p > 0) & (q > 0)
    if not seen.any():
        return 1.0
    _, deviation = _moments(np.log(p[seen]) - np.log(q[seen]), p[seen])
    return max(deviation, 1e-9)


def _sums(
    h: float, integers: np.ndarray, terms: list[tuple[tuple[np.ndarray, np.ndarray], int]]
) -> tuple[ComposedLoss, ComposedLoss]:
    """Return the law of a sum of independent terms at h integers, each with masses and their errors
    and how many there are, rounded down and up."""
    times = [count for _, count in terms]

    def rounded(side: str, sign: int) -> ComposedLoss:
        laws = [
            PrivacyLossDistribution(h, integers, np.maximum(masses + sign * error, 0.0), side)
            for (masses, error), _ in terms
        ]
        return ComposedLoss(laws, times)

    return rounded("lower", -1), rounded("upper", 1)


def _masses(total: TiltedSum, places: np.ndarray, sign: int) -> np.ndarray:
    """Return bounds of the masses of a sum at these places, from above, or from below where `sign`
    is -1: beyond each end of its window there is tilted mass of at most `tail`, and that of both
    may have been added to one place inside."""
    exponent = total.log_scale - total.tilt * total.step * places
    rounding = 64 * _EPS * (4 + abs(total.log_scale) + np.abs(exponent))
    factor = np.exp(np.minimum(exponent, 700.0)) * (1 + sign * rounding)
    charge = total.round_off + (0.0 if sign > 0 else 2 * total.tail)
    bounds = np.full(places.size, total.tail if sign > 0 else 0.0)
    start = total.start - int(places[0])
    bounds[start : start + total.values.size] = np.maximum(total.values + sign * charge, 0.0)
    return np.maximum(bounds * factor, _UNDERFLOW if sign > 0 else 0.0)


class UpperLaws(Protocol):
    """An event that bounds by the composition of laws."""

    def uppers(
        self, step: float, tail: float, swapped: bool
    ) -> list[tuple[PrivacyLossDistribution, int]]: ...

    def spread(self) -> float: ...


class SumAttack(AttackEvent):
    """An attack on an epoch by a sum of functions of its steps, which the record moves by `x` or by
    `y`."""

    x: float
    y: float

    @property
    def symmetric(self) -> bool:
        # z -> -z takes one law to the other: each direction has the mirror image of the other one's
        # statistic
        return self.y == -self.x

    @property
    @abstractmethod
    def laws(self) -> SumLaws:
        """Return the laws of the sum."""

    def edges(self, swapped: bool) -> np.ndarray:
        """Places where the number that a step adds changes, in deviations of its output."""
        edges = self.laws.edges
        return -edges[::-1] if swapped and self.symmetric else edges

    def lower(self, step: float, tail: float, swapped: bool) -> PrivacyLossDistribution:
        exchanged = swapped and not self.symmetric
        # the law that comes first from below, the other one from above
        (at_least, _), (_, at_most) = self.laws[:0:-1] if exchanged else self.laws[1:]
        return exchange_law(at_least, at_most, step, 0.0)

    def spread(self) -> float:
        _, (p, _), (q, _) = self.laws
        return loss_deviation(p, q)


@dataclass(frozen=True)
class SumEvent(SumAttack):
    """Lower bound of one epoch of k of t, k < t, by a sum of functions of the steps with the weight
    c; the record moves its steps by x or by y. Where y < 0, its term has the weight `c_of_y`, by
    default c."""

    t: int
    k: int
    deviation: float
    c: float
    x: float
    y: float
    c_of_y: float | None = None

    @property
    def outputs(self) -> EpochOutputs:
        return EpochOutputs(self.t, self.k, self.x, self.y, self.deviation)

    @property
    def laws(self) -> SumLaws:
        weights = self.c, self.c if self.c_of_y is None else self.c_of_y
        return statistic(self.t, self.k, self.deviation, weights, self.x, self.y)


@dataclass(frozen=True)
class ReplacedEvent(Event):
    """One epoch where a record is replaced.

    Upper bound: from v to no record and on to v', or the deterministic schedule, whichever is
    smaller at an order. The lower bound is that of v' = 0, or of v' = -v.
    """

    removed: RatioEvent | SelectionEvent
    opposite: tuple[SumEvent, ...]
    profile: Profile

    def upper(self, step: float, tail: float, swapped: bool) -> PrivacyLossDistribution:
        return symmetric_pld(self.profile, step, order_grid(self.profile, step, tail))

    def lower(self, step: float, tail: float, swapped: bool) -> PrivacyLossDistribution | None:
        return self.removed.lower(step, tail, swapped)

    @property
    def symmetric(self) -> bool:
        return False

    @property
    def upper_symmetric(self) -> bool:
        return True

    @property
    def attack_choices(self) -> tuple[Event, ...]:
        # what is quickly told comes first
        return self.removed, *self.opposite

    def spread(self) -> float:
        return self.removed.spread()


def replaced(event: RatioEvent | SelectionEvent, distance: float) -> Profile:
    """Return the smaller of the bound by way of no record and that of two Gaussians at the
    distance."""

    # where it is asked for: a budget that does not suffice for it leaves closed forms
    @cache
    def without_record() -> Profile:
        return by_reference(event, event)

    def profile(log_order: np.ndarray) -> np.ndarray:
        x = np.asarray(log_order, dtype=float)
        revealed = GaussianProfile(distance).delta(x)
        return np.minimum(np.minimum(without_record()(x), revealed * (1 + 1e-9)), 1.0)

    return RememberedProfile(profile)


def by_reference(first: UpperLaws, second: UpperLaws) -> Profile:
    """Return upper bounds of H_a(P || P'), a >= 1, by way of a common reference Q: the smallest of
    H_u(P || Q) + u H_(a/u)(Q || P'), u between 1 and a. `first` bounds P and Q, `second` P' and
    Q."""

    def composed(event: UpperLaws, swapped: bool) -> ComposedLoss:
        laws = event.uppers(*reference_grid(event), swapped)
        return ComposedLoss([pld for pld, _ in laws], [times for _, times in laws])

    removing, adding = composed(first, swapped=False), composed(second, swapped=True)

    def profile(log_order: np.ndarray) -> np.ndarray:
        x = np.asarray(log_order, dtype=float)
        # every split of the order into u and a / u is valid: the best one counts
        first = np.multiply.outer(np.linspace(0.0, 1.0, _SPLITS), x)
        rest = np.maximum(x - first, 0.0)
        # profiles fall: smaller orders are safe
        below = 8 * _EPS * (1 + x)
        at_first = removing.curve((first - below).ravel(), 0.0).reshape(first.shape)
        at_rest = adding.curve((rest - below).ravel(), 0.0).reshape(rest.shape)
        group = (at_first + np.exp(np.minimum(first, MAX_LOSS)) * at_rest) * (1 + 1e-9)
        return np.asarray(group.min(axis=0))

    return profile


def reference_grid(event: UpperLaws) -> tuple[float, float]:
    """Return step and tail of the laws from which a bound by way of a reference is computed."""
    return event.spread() / 24, _PROFILE_TAIL


_PROFILE_TAIL, _SPLITS = 1e-18, 33
# weights of both terms, times k / t: where losses are large, as with small noise, the record's
# steps have large ratios on the one data set and small ones on the other, which smaller and larger
# weights tell best; where 1 of t steps has the record there are closer attacks
_SMALL_NOISE = 0.5
_WEIGHTS = ((1.0, 2.0), (1.0, 1.0), (1 / 2, 2.0), (1 / 2, 4.0), (1 / 2, 32.0))
_WEIGHTS_SMALL_NOISE = ((1 / 2, 4.0), (1 / 8, 16.0), (1 / 64, 128.0), (8.0, 128.0))
_WEIGHTS_OF_ONE = ((1.0, 1.0), (8.0, 8.0), (1 / 2, 1.0))
_WEIGHTS_OF_ONE_SMALL_NOISE = ((1 / 16, 8.0), (1 / 256, 128.0))


def _weights(k: int, deviation: float) -> tuple[tuple[float, float], ...]:
    if deviation < _SMALL_NOISE:
        return _WEIGHTS_OF_ONE_SMALL_NOISE if k == 1 else _WEIGHTS_SMALL_NOISE
    return _WEIGHTS_OF_ONE if k == 1 else _WEIGHTS


def replaced_event(t: int, k: int, deviation: float) -> ReplacedEvent:
    """Return the event of one epoch in which a record is replaced that is in k of t steps, k <
    t."""
    removed = AllocationEvent(t, deviation) if k == 1 else SelectionEvent(t, k, deviation)
    opposite = tuple(
        SumEvent(t, k, deviation, up * k / t, 1.0, -1.0, down * k / t)
        for up, down in _weights(k, deviation)
    )
    # all steps of the record revealed: Gaussians at this distance
    distance = 2 * math.sqrt(k) / deviation
    return ReplacedEvent(removed, opposite, replaced(removed, distance))
