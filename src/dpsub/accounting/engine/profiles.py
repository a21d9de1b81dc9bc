"""The dominating profile of a chain of stages under substitution, from upper bounds that are
proved.

B(a; N, j, stages) bounds H_a, a >= 1, between the outputs of the stages for two vectors of N slots
that differ in j *marked* ones; the profile is B(a; n, 1, all stages). Last stage: the smaller of
h_p (`GroupLemma`) and of the sum over l >= 1 of p_l G(lift(a, eta), 2 l / s) (Theorem 4), Poisson
by Theorem 1; earlier stages: Theorem 6. Proofs: docs/proofs/chains.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from dpsub.accounting.engine import work
from dpsub.accounting.engine.pairs import MixturePair
from dpsub.errors import ArgumentError, UnsupportedError
from dpsub.noise.gaussian import GaussianProfile
from dpsub.sampling.base import Chain, Stage
from dpsub.sampling.laws import MultiplicityLaw


@work.remembered(8)  # of chains that are equal: a search for the noise asks again and again
def law_of(chain: Chain, group: int = 1) -> MultiplicityLaw:
    """Law of the number of copies of one record, or of a group of them, without counts whose
    probability underflows."""
    chain = chain.normal_form()
    if len(chain.stages) == 1:
        # of one stage the probabilities themselves, of which those of samples without replacement
        # are exact quotients
        with np.errstate(divide="ignore"):
            return MultiplicityLaw(np.log(chain.stages[0].count_law(chain.n, group)))
    law = chain.multiplicity_law(group)
    largest = int(np.flatnonzero(law.pmf)[-1])
    return MultiplicityLaw(law.log_pmf[: largest + 1])


PROFILE_ERROR = 1e-11
"""Relative error allowed for a profile: its own (1e-13) and that of its order, which enters through
the slope."""


def gaussian_profile(log_order: np.ndarray, shifts: np.ndarray) -> np.ndarray:
    """Upper bounds of G(a, d) = Phi(d/2 - ln(a)/d) - a Phi(-d/2 - ln(a)/d) at ln a >= 0 and shifts
    d > 0 in units of the noise, with broadcasting."""
    log_delta = GaussianProfile(1.0).group_log_delta(log_order, shifts)
    # what underflows is not 0
    return np.asarray(np.maximum(np.exp(log_delta) * (1 + PROFILE_ERROR), np.finfo(float).tiny))


def log_lift(log_order: np.ndarray, eta: float) -> np.ndarray:
    """ln(1 + (a - 1) / eta), a >= 1: the order at the base of a mechanism that includes with
    probability eta."""
    x = np.asarray(log_order, dtype=float)
    if eta == 1:
        return x
    near = np.log1p(np.expm1(np.minimum(x, 1.0)) / eta)
    # in logs, as e^x overflows: (e^x - 1 + eta) / eta
    far = x + np.log1p(-(1 - eta) * np.exp(-np.maximum(x, 1.0))) - np.log(eta)
    return np.where(x <= 1, near, far)


# width of the first cells, in units of the grid of edges; they are bounded by the clip alone
_COARSEST = 128
# widths of the cells that they are cut into, which are bounded to second order
_LEVELS = (16, 4, 1)
_BLOCK = 8  # orders that share the choice among the first cells
# of a table of normal tails, one for each edge and count: wide laws have wider cells
_MOST_ENTRIES = 2**23
# relative, charged for positive and negative terms of a bound (tails to 40 deviations, weights)
_ERROR = 4e-12
_PIECE = 1024  # orders that are worked on together
_TOGETHER = 2**13  # numbers that are worked on together, one for each cell and count


class _Orders(NamedTuple):
    """Orders a, shape (n,), and for each count l and each of them, shape (counts, n): the largest
    value of f_l, G(a, 2 l / s), and its place."""

    a: np.ndarray
    largest: np.ndarray
    optimum: np.ndarray


@dataclass(frozen=True, eq=False)
class GroupLemma:
    """h_p for one law, weights p_0..p_m of sum at most 1 (what it lacks is charged by the caller),
    s = `noise_multiplier`: what l substituted records may do, for each l of the law, by one common
    test.

    With f_l(z) = Phi((l - z)/s) - a Phi((-l - z)/s) and x*_l = s^2 ln(a) / (2 l), where f_l is
    largest,

        h_p(a) = sup over c of p_0 (1 - a) Phi(-c/s) + sum over l >= 1 of p_l f_l(clip(x*_l, c - l,
        c + l)),

    bounded on cells of c, by the clip to [c0 - l, c1 + l] or to second order; only cells that can
    hold it are cut further, to the relative `tolerance` or `resolution` edges a standard deviation.
    Tails beyond `reach` deviations are one cell each. The result is an upper bound whatever these
    are (docs/proofs/chains.md, Lemma 3, Theorem 4; numerics.md).
    """

    weights: np.ndarray
    noise_multiplier: float
    reach: float = 9.0
    tolerance: float = 1e-4
    resolution: int = 100

    @cached_property
    def _counts(self) -> np.ndarray:
        return np.flatnonzero(self.weights[1:]) + 1

    @cached_property
    def _edges(self) -> np.ndarray:
        """Edges c of the cells; a multiple of the coarsest width, then +-infinity."""
        s, largest = self.noise_multiplier, float(self._counts[-1])
        reach = self.reach * s
        # sup over c: tests beyond the reach on either side are those of the two outer cells
        width = 2 * largest + 2 * reach
        wanted = int(np.ceil(width / (s / self.resolution) / _COARSEST)) * _COARSEST
        affordable = _MOST_ENTRIES // self._counts.size // _COARSEST * _COARSEST
        cells = max(min(wanted, affordable), 4 * _COARSEST)
        inner = np.linspace(-reach, 2 * largest + reach, cells - 2 * _COARSEST + 1)
        # one coarse cell of infinite extent at each end: all its inner edges are infinite as well
        ends = np.full(_COARSEST, np.inf)
        return np.concatenate([-ends, inner, ends])

    @cached_property
    def _tables(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Phi(-c/s), shape (e,); Phi((2l - c)/s) and Phi((-2l - c)/s), shape (counts, e)."""
        c = self._edges
        s, apart = self.noise_multiplier, 2 * self._counts[:, None]
        return ndtr(-c / s), ndtr((apart - c) / s), ndtr((-apart - c) / s)

    def __call__(self, log_order: np.ndarray) -> np.ndarray:
        """Upper bounds of h_p at orders a = e^{log_order} >= 1, shape (n,), which must increase."""
        if np.any(np.diff(log_order) < -1e-9):
            raise ArgumentError(
                "orders must increase, got a smaller one after a larger one; sort them"
            )
        # beyond this order doubles overflow; the profile falls with the order
        x = np.minimum(np.asarray(log_order, dtype=float), 690.0)
        if not self._counts.size:
            return np.zeros_like(x)
        pieces = []  # few orders at a time stay in the caches
        for start in range(0, x.size, _PIECE):
            work.spend(0)
            pieces.append(self._suprema(x[start : start + _PIECE]))
        return np.minimum(np.concatenate(pieces), 1.0)

    def _suprema(self, x: np.ndarray) -> np.ndarray:
        counts = self._counts[:, None]
        at = _Orders(
            a=np.exp(x),
            largest=gaussian_profile(x, 2 * counts / self.noise_multiplier),
            optimum=self.noise_multiplier**2 * x / (2 * counts),
        )
        best, result = np.zeros(x.size), np.zeros(x.size)
        order, left = self._kept(at, best, result)
        for width, finer in zip(_LEVELS, (*_LEVELS[1:], 0), strict=True):
            if not order.size:
                break
            bound = self._smooth(at, order, left, width, best)
            # what is far above what is attained may be bounded better by the clip
            large = np.flatnonzero(bound > best[order] * (1 + self.tolerance))
            clipped = self._bounds(at, order[large], left[large], left[large] + width)
            bound[large] = np.minimum(bound[large], clipped)
            small = (bound <= best[order] * (1 + self.tolerance)) | (finer == 0)
            np.maximum.at(result, order[small], bound[small])
            order, left = _cut(order[~small], left[~small], width, finer or width)
        return result

    def _kept(
        self, at: _Orders, best: np.ndarray, result: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Cells of the first level that must be cut, for each order; raises `best` to what is
        attained, `result` to the bounds of the others. All bounds and values fall with the order.
        So those at the lower end of a block of orders bound its cells, and what is attained at the
        upper end is attained at all orders of the block."""
        size = at.a.size
        # the lower end of each block of orders, and the last order of all
        few = np.append(np.arange(0, size - 1, _BLOCK), size - 1)
        coarsest = np.arange(0, self._edges.size - 1, _COARSEST)
        order, left = np.repeat(few, coarsest.size), np.tile(coarsest, few.size)
        right = left + _COARSEST
        bound = self._bounds(at, order, left, right).reshape(few.size, -1)
        value = self._bounds(at, order, right, right).reshape(few.size, -1).max(axis=1)
        following = np.minimum(np.arange(1, few.size + 1), few.size - 1)
        attained = np.maximum(value - 2 * _ERROR * np.abs(value), 0.0)[following]
        done = bound <= attained[:, None] * (1 + self.tolerance)
        block = np.minimum(np.arange(size) // _BLOCK, few.size - 1)
        best[:] = attained[block]
        result[:] = np.where(done, bound, 0.0).max(axis=1)[block]
        order, cell = np.nonzero(~done[block])
        return _cut(order, coarsest[cell], _COARSEST, _LEVELS[0])

    def _smooth(
        self, at: _Orders, order: np.ndarray, left: np.ndarray, width: int, best: np.ndarray
    ) -> np.ndarray:
        """Bounds of second order on cells sorted by order and place; raises `best` to what is
        attained at edges."""
        right = left + width
        at_right = self._bounds(at, order, right, right)
        # the left edge of most cells is the right edge of the cell before
        alone = np.append(True, (order[1:] != order[:-1]) | (left[1:] != right[:-1]))
        at_left = np.append(0.0, at_right[:-1])
        at_left[alone] = self._bounds(at, order[alone], left[alone], left[alone])
        value = np.maximum(at_left, at_right)
        np.maximum.at(best, order, value - 2 * _ERROR * np.abs(value))
        return value + self._bend(at, order, left, width)

    def _bend(self, at: _Orders, order: np.ndarray, low: np.ndarray, width: int) -> np.ndarray:
        """sup |g''| (c1 - c0)^2 / 8 on cells; infinite on cells without end."""
        work.spend(work.TERM * order.size)
        cell = low // width
        used = np.zeros((self._edges.size - 1) // width, dtype=bool)
        used[cell] = True
        centre, plus, minus = self._curvatures(np.flatnonzero(used), width)
        place = (np.cumsum(used) - 1)[cell]
        bends = np.empty(order.size)
        for part in self._parts(order.size):
            at_centre, orders = centre[place[part]], at.a[order[part]]
            falling = orders * at_centre
            z = at.optimum.take(order[part], axis=1)
            counts = self._counts[:, None]
            c_low, c_high = self._edges[low[part]], self._edges[low[part] + width]
            rising = plus.take(place[part], axis=1) + falling
            early = np.where(z < c_high - counts, rising, 0.0)
            late = at_centre + orders * minus.take(place[part], axis=1)
            late = np.where(z > c_low + counts, late, 0.0)
            bends[part] = self._added(
                self.weights[0] * (orders - 1) * at_centre, np.maximum(early, late)
            )
        # the chord of g on a cell lies below its larger end, g above the chord by at most this
        with np.errstate(invalid="ignore"):
            extent = (self._edges[low + width] - self._edges[low]) / self.noise_multiplier
        above_chord = bends * np.minimum(extent, 1e3) ** 2 / 8 * (1 + 1e-9)
        return np.where(np.isfinite(extent), above_chord, np.inf)

    def _curvatures(
        self, cell: np.ndarray, width: int
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """sup |u| phi(u) on cells of a width, for u = c/s, shape (cells,), and for u = (2l - c)/s
        and (2l + c)/s, shape (counts, cells)."""
        s, apart = self.noise_multiplier, 2 * self._counts[:, None]
        edges = np.clip(self._edges, -1e6 * s, 1e6 * s)
        c0, c1 = edges[cell * width], edges[(cell + 1) * width]
        return (
            _largest_slope(c0 / s, c1 / s),
            _largest_slope((apart - c0) / s, (apart - c1) / s),
            _largest_slope((apart + c0) / s, (apart + c1) / s),
        )

    def _bounds(
        self, at: _Orders, order: np.ndarray, low: np.ndarray, high: np.ndarray
    ) -> np.ndarray:
        """Bounds by the clip on cells from edge `low` to edge `high`; where these are one, values
        up to rounding."""
        bounds = np.empty(order.size)
        for part in self._parts(order.size):
            bounds[part] = self._clipped(at, order[part], low[part], high[part])
        return bounds

    def _parts(self, size: int) -> Iterator[slice]:
        """Slices of so few cells that arrays with all counts stay in the caches."""
        piece = max(1, _TOGETHER // self._counts.size)
        for start in range(0, size, piece):
            work.spend(work.NUMBER * 20 * _TOGETHER)
            yield slice(start, start + piece)

    def _clipped(
        self, at: _Orders, order: np.ndarray, low: np.ndarray, high: np.ndarray
    ) -> np.ndarray:
        base, plus, minus = self._tables
        counts, orders = self._counts[:, None], at.a[order]
        # f_l at its clipped optimum: gain Phi((l - z)/s), loss a Phi((-l - z)/s)
        z = at.optimum.take(order, axis=1)
        early = z < self._edges[low] - counts
        late = z > self._edges[high] + counts
        late_or_inside = np.where(late, base[high], at.largest.take(order, axis=1))
        gain = np.where(early, plus.take(low, axis=1), late_or_inside)
        # inside, G(a, 2 l / s) holds gain and loss
        late_loss = np.where(late, orders * minus.take(high, axis=1), 0.0)
        loss = np.where(early, orders * base[low], late_loss)
        positive = self._added(np.zeros(order.size), gain)
        negative = self._added(self.weights[0] * (orders - 1) * base[high], loss)
        # both parts are charged apart: their difference may be far smaller than either
        return positive * (1 + _ERROR) - negative * (1 - _ERROR)

    def _added(self, start: np.ndarray, terms: np.ndarray) -> np.ndarray:
        """start + sum over counts of p_l terms_l."""
        weighted = self.weights[self._counts][:, None] * terms
        weighted[0] += start
        return np.asarray(np.add.reduce(weighted))


def _cut(
    order: np.ndarray, left: np.ndarray, width: int, finer: int
) -> tuple[np.ndarray, np.ndarray]:
    """Cells cut into finer ones."""
    cuts = np.arange(0, width, finer)
    return np.repeat(order, cuts.size), (left[:, None] + cuts[None, :]).ravel()


def _largest_slope(first: np.ndarray, last: np.ndarray) -> np.ndarray:
    """Bounds of |u| phi(u) between two ends."""
    sizes = np.abs(first), np.abs(last)
    # |u| is at most its larger end, phi(u) at most its value at the end nearer to 0
    smallest = np.where(last * first <= 0, 0.0, np.minimum(*sizes))
    tallest = np.exp(-0.5 * np.minimum(smallest, 60.0) ** 2)
    return np.asarray(np.maximum(*sizes) * tallest / math.sqrt(2 * math.pi))


# rarer branches (of 2, of more stages) get a looser, cheaper bound: no supremum
_MINOR, _MINOR_OF_MANY = 1e-6, 1e-3

MOST_TERMS = 6000
"""Combinations of counts, one for each stage, that a chain of many stages may have."""

_SPACING, _NEAREST, _LOG_LARGEST = 4e-3, 100, 750.0
"""Tables of the bound without the supremum: relative distance of their orders, points up to the
smallest shift, end. Chords raise it by parts in a thousand, deep in the tails by parts in a
hundred; branches of small weight take it."""

_MOST_TAILS = 2**21  # normal tails that are worked on together
_LAW_ERROR = 1e-11  # relative error allowed for probabilities of counts


@dataclass(frozen=True, eq=False)
class ChainProfile:
    """H_a of a chain under substitution of `group` records, at orders a >= 1, rounded up. Counts of
    probability below `tail` are charged as a sure loss. A chain of three or more stages that would
    take minutes is refused."""

    chain: Chain
    noise_multiplier: float
    tail: float = 1e-18
    group: int = 1

    def __post_init__(self) -> None:
        stages = self.chain.stages
        if len(stages) > 2 and self._work(self.chain.n, self.group, stages, 1.0, 0) > MOST_TERMS:
            raise UnsupportedError(
                f"a chain of {len(self.chain.stages)} stages whose counts have more "
                f"than {MOST_TERMS} likely combinations takes minutes per bound; take "
                "fewer or smaller stages"
            )

    def _work(
        self, n_slots: int, marked: int, stages: Sequence[Stage], weight: float, so_far: int
    ) -> int:
        """Number of terms of the bound at one order; counting stops above `MOST_TERMS`."""
        law = stages[0].count_law(n_slots, marked)
        likely = np.flatnonzero(law[1:] * weight > self.tail) + 1
        if len(stages) == 1:
            return so_far + likely.size
        for j in likely:
            if so_far > MOST_TERMS:
                break
            so_far = self._work(stages[0].size, int(j), stages[1:], weight * float(law[j]), so_far)
        return so_far

    def __call__(self, log_order: np.ndarray) -> np.ndarray:
        """Upper bounds at the given ln a >= 0, increasing, shape (n,)."""
        x = np.asarray(log_order, dtype=float)
        bound = self._bound(x, self.chain.n, self.group, self.chain.stages, 1.0)
        fits = self.chain.stages[0].size <= self.chain.n
        if self.group == 1 and self.chain.kinds == ("wr", "wr") and fits:
            # Theorem 7: the group bound holds for the law of the whole chain as well
            bound = np.minimum(bound, self._lifted_sum(x, law_of(self.chain).pmf, 1.0))
        return np.minimum(bound * (1 + _LAW_ERROR), 1.0)

    def removed(self, log_order: np.ndarray) -> np.ndarray:
        """Upper bounds at the given ln a >= 0, increasing, shape (n,), of H_a(Q || P) where P has
        `group` records more than Q: with eta the probability that the first stage draws any of
        them, (1 - a (1 - eta)) / eta times what H_a'(P || Q) is bounded by at a' = 1 + eta (a - 1)
        / (1 - a (1 - eta)), and 0 from a = 1 / (1 - eta) on."""
        x = np.asarray(log_order, dtype=float)
        law = self.chain.stages[0].count_law(self.chain.n, self.group)
        eta = 1.0 if law[0] == 0 else min(1.0, float(law[1:].sum()) * (1 + _LAW_ERROR))
        # 1 - a (1 - eta): that eta is rounded up raises it, and lowers the order, by far more than
        # the difference loses
        left = eta - np.expm1(x) * (1 - eta)
        inside, bound = left > 0, np.zeros_like(x)
        if not inside.any():
            return bound
        order = np.log1p(eta * np.expm1(x[inside]) / left[inside])
        # profiles fall with the order, which is rounded down
        with_record = self._bound(
            order * (1 - _LAW_ERROR), self.chain.n, self.group, self.chain.stages, 1.0
        )
        bound[inside] = left[inside] / eta * with_record * (1 + _LAW_ERROR)
        return np.minimum(bound * (1 + _LAW_ERROR), 1.0)

    def _lifted_sum(self, x: np.ndarray, law: np.ndarray, weight: float) -> np.ndarray:
        """Upper bounds of t_p = sum_l p_l G(lift(a, eta), 2 l / s) of Theorem 4."""
        kept = np.flatnonzero(law[1:] * weight > self.tail) + 1
        # counts that are left out are charged as a sure loss
        lost = float(np.delete(law, np.append(kept, 0)).sum())
        # lifted orders fall with eta, profiles fall with orders: eta is rounded up
        eta = min(1.0, float(law[1:].sum()) * (1 + _LAW_ERROR)) if law[0] > 0 else 1.0
        piece = max(1, _MOST_TAILS // max(1, kept.size))
        lifted, shifts = log_lift(x, eta)[:, None], 2 * kept[None, :] / self.noise_multiplier
        sums = []
        for start in range(0, x.size, piece):
            work.spend(work.TERM * min(piece, x.size - start) * kept.size)
            profiles = gaussian_profile(lifted[start : start + piece], shifts)
            sums.append(np.einsum("ij,j", profiles, law[kept]))
        return np.concatenate(sums) + lost

    def _looked_up(self, x: np.ndarray, law: np.ndarray) -> np.ndarray:
        """`_lifted_sum` by chords between the orders of a table, one for all branches with the same
        law. The sum is convex in a, so chords between its upper bounds are upper bounds; it falls,
        so the last one holds beyond."""
        key = law.tobytes()
        if key not in self._tables:
            shifts = 2 * np.array([1, law.size - 1]) / self.noise_multiplier
            # with ten deviations to go, the profile of the largest shift is below every tail
            end = min(shifts[1] * (shifts[1] / 2 + 10), _LOG_LARGEST)
            near = np.linspace(0, min(shifts[0], end), _NEAREST)
            distances = np.arange(1, math.ceil(math.log(end / near[-1]) / _SPACING) + 1)
            far = near[-1] * np.exp(distances * _SPACING)
            orders = np.concatenate([near, far])
            self._tables[key] = orders, self._lifted_sum(orders, law, 1.0)
        orders, values = self._tables[key]
        left = np.minimum(np.searchsorted(orders, x, side="right"), orders.size - 1) - 1
        # chords in a = e^x, not in x
        width = np.expm1(orders[left + 1] - orders[left])
        share = np.expm1(np.minimum(x, orders[-1]) - orders[left]) / width
        return np.asarray(values[left] + share * (values[left + 1] - values[left]))

    @cached_property
    def _tables(self) -> dict[bytes, tuple[np.ndarray, np.ndarray]]:
        return {}

    def _bound(
        self, x: np.ndarray, n_slots: int, marked: int, stages: Sequence[Stage], weight: float
    ) -> np.ndarray:
        """B(a; n_slots, marked, stages) on a branch of this weight."""
        work.spend(work.TERM * x.size)
        law = stages[0].count_law(n_slots, marked)
        if len(stages) == 1:
            return self._last(x, stages[0], law, weight)
        inside = law[1:]
        # lifted orders fall with eta, profiles fall with orders: eta is rounded up
        eta = 1.0 if law[0] == 0 else min(1.0, float(inside.sum()) * (1 + _LAW_ERROR))
        lifted = log_lift(x, eta)
        total = np.zeros_like(x)
        for marked_after in np.flatnonzero(inside) + 1:
            share = float(law[marked_after])
            if share * weight <= self.tail:
                # a branch below the tail is charged as a sure loss
                total += share
                continue
            slots, later = stages[0].size, stages[1:]
            branch = self._bound(lifted, slots, int(marked_after), later, weight * share)
            total += share * branch
        return np.minimum(total, 1.0)

    def _last(self, x: np.ndarray, stage: Stage, law: np.ndarray, weight: float) -> np.ndarray:
        if stage.kind == "poisson":
            return self._added(x, law)
        few = len(self.chain.stages) <= 2
        lifted = self._lifted_sum(x, law, weight) if few else self._looked_up(x, law)
        minor = _MINOR if few else _MINOR_OF_MANY
        # of one marked slot without replacement t_p is Theorem 2, which is attained
        if weight < minor or (stage.kind == "wor" and law.size == 2):
            return lifted
        kept = np.where(law > self.tail / weight, law, 0.0)
        # the normal tail beyond sqrt(2 ln(1 / tail)) deviations is below the tail
        reach = max(9.0, math.sqrt(-2 * math.log(self.tail)))
        common_test = GroupLemma(kept, self.noise_multiplier, reach)(x) + float((law - kept).sum())
        return np.minimum(np.minimum(common_test, lifted), 1.0)

    def _added(self, x: np.ndarray, law: np.ndarray) -> np.ndarray:
        """H_a of sum_l p_l N(l) against sum_l p_l N(-l), by its optimal half-line, which is off by
        `LOSS_TOLERANCE` in loss, so that its value is by at most that share of its mass."""
        with np.errstate(divide="ignore"):
            pair = MixturePair(MultiplicityLaw(np.log(law)), self.noise_multiplier)
        t = pair.inverse_loss(x)
        above = pair.sf(t)
        return np.asarray(above - np.exp(x) * pair.sf_prime(t) + PROFILE_ERROR * above)
