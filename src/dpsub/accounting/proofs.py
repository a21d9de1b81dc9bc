"""What an upper bound needs to know of a sampler: its stages, as facts, in a normal form.

The dominating profile of a chain of stages under substitution: reveal all stages but the last, one after another.

Setting.  Slots hold clipped records, |v| <= 1 in units of C.  Two slot vectors are compared that differ in j *marked*
slots, arbitrarily, and agree elsewhere.  B(a; N, j, stages) bounds H_a between the outputs of the remaining stages for
N slots of which j are marked, every order a >= 1; the wanted bound is B(a; n, 1, all stages).

*Base.*  A stage of m slots draws l marked ones with probability p_l.  Draw a *base* of m slots that knows nothing of l
and replace l of its entries by marked slots:

- with replacement: the base holds m independent uniform draws from the unmarked slots, and entries are replaced
  independently with probability j/N, each by an independent uniform marked slot;
- without replacement: the base holds the first m of a uniformly shuffled list of the unmarked slots, filled up with
  zero records if there are fewer than m; the last l entries are replaced by a uniform set of l marked slots.  As m - l
  unmarked slots are drawn in any case, no zero record is kept;
- Poisson: the base holds the unmarked slots that are drawn; l marked ones are *added*.

Given the base and l, the outputs on the two slot vectors are base + x and base + y, where |x|, |y|, |x - y| <= 2 l
(with Poisson |x|, |y| <= l), and the base's law does not depend on l.

*Last stage.*  Averaging over the base (joint convexity), B is the supremum of `group_lemma` at the law p.  The sum over
l >= 1 of p_l G(lift(a, eta), 2 l / s), eta = 1 - p_0, bounds it as well: by advanced joint convexity, since the output
for l = 0 is the base itself, at distance 2 l from the others; for one marked slot and no replacement it is exact.  With
Poisson the half-line argument gives the pair sum_l p_l N(l, s^2) against sum_l p_l N(-l, s^2).

*Earlier stages.*  Let J be the number of marked slots that the stage takes, pi_j its law, eta = 1 - pi_0.  The outputs
are P = pi_0 P_0 + sum pi_j P_j and Q with the same P_0 = Q_0.  By advanced joint convexity, with a' = lift(a, eta) and
b = a / a',

    H_a(P || Q) <= eta ( (1 - b) H_a'(P_1 || P_0) + b H_a'(P_1 || Q_1) ),   P_1 = sum_{j >= 1} (pi_j / eta) P_j.

P_j and Q_j come from the base with the same j entries replaced by marked slots; P_0 from the base itself. All three are
slot vectors that differ in j slots and agree elsewhere (positions do not matter: every stage treats slots alike), so
both divergences are at most sum_j (pi_j / eta) B(a'; m, j, later stages), and

    B(a; N, j0, stages) <= sum_{j >= 1} pi_j B(lift(a, eta); m, j, later stages).

Where pi_0 = 0 nothing is lifted and no base is needed.  For MUST.OW this is (b/n) h_{Bin(m, 1/b)}(lift(a, b/n)), for
MUST.WW eta_1 sum_j r_j h_{Bin(m, j/b)}(lift(a, eta_1)).

The profile of l substituted records among m, for each l of a law: a supremum over tests, certified.

Lemma.  Let |x|, |y|, |x - y| <= 2 l, a > 0, and let A be a test with N(0, s^2 I)(A) = Phi(-c/s).  With
f_l(z) = Phi((l - z)/s) - a Phi((-l - z)/s) and x*_l = s^2 ln(a) / (2 l), where f_l is largest,

    N(x)(A) - a N(y)(A) <= f_l(clip(x*_l, c - l, c + l)).

Inside the interval the right side is H_a(N(2l) || N(0)); outside it follows by comparison with the order at which the
optimum is at the edge, and convexity.  Applied for each l to one common test A, for a base independent of the number l
of replaced records,

    h_p(a) = sup over c of p_0 (1 - a) Phi(-c/s) + sum over l >= 1 of p_l f_l(clip(x*_l, c - l, c + l)).

The supremum is bounded on cells: for c in [c0, c1] the clip to [c0 - l, c1 + l] can only raise f_l, and for a >= 1 the
first term is at most p_0 (1 - a) Phi(-c1/s).  Edges of cells lie on one fixed grid, so that all normal tails are looked
up; only cells that can hold the supremum are cut further.  The supremand, which is differentiable (f_l' = 0 at x*_l)
with piecewise continuous g'', is also at most the larger of its values at the edges of a cell plus sup |g''| (c1 -
c0)^2 / 8, and sup |u phi(u)| over an interval bounds each term of g''.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from scipy.special import ndtr

from dpsub import checks
from dpsub.accounting.pairs import MixturePair
from dpsub.accounting.pld import check_time
from dpsub.errors import ArgumentError, UnsupportedError
from dpsub.noise.gaussian import GaussianProfile
from dpsub.sampling import laws
from dpsub.sampling.laws import MultiplicityLaw

MOST_SLOTS = 1_000_000
"""To which `discrete.log_binomial` is as accurate as the allowances of the bounds assume."""

_SMALLEST_LOG = -746.0
"""The exponential of it is below the smallest double."""

KINDS = ("without", "with", "poisson")


@dataclass(frozen=True)
class SlotStage:
    """One stage: `size` slots without or with replacement, or each slot with probability `rate`.

    Attributes
    ----------
    kind : {"without", "with", "poisson"}
    size : int
        Number of slots taken; 0 for "poisson".
    rate : float
        Probability of each slot; 0 for the others.
    """

    kind: str
    size: int = 0
    rate: float = 0.0

    def __post_init__(self) -> None:
        checks.one_of("kind", self.kind, KINDS)
        if self.kind == "poisson":
            checks.real("rate", self.rate, above=0, at_most=1)
        else:
            checks.integer("size", self.size, at_least=1)

    def count_law(self, n_slots: int, marked: int) -> np.ndarray:
        """P(l marked slots are drawn) for l = 0, 1, ..., `marked` of `n_slots` slots being marked.

        Counts whose probability is below the smallest double may be left out at the end.
        """
        if self.kind == "without" and marked == 1:
            # exact, so that the number of records is not limited
            inside = self.size / n_slots
            return np.array([(n_slots - self.size) / n_slots, inside])
        if self.kind == "without":
            most = min(marked, self.size)
            return np.exp(laws.log_hypergeometric(np.arange(most + 1), n_slots, marked, self.size))
        if self.kind == "with":
            counts = np.arange(_last_likely(self.size, marked / n_slots) + 1)
            return np.exp(laws.log_binomial(counts, self.size, marked / n_slots))
        return np.exp(laws.log_binomial(np.arange(marked + 1), marked, self.rate))


def _last_likely(size: int, rate: float) -> int:
    """The largest count of Binomial(size, rate) whose probability is not below the smallest double."""
    # probabilities fall from the mean on
    likely, beyond = min(size, int(size * rate) + 1), size + 1
    while beyond - likely > 1:
        middle = (likely + beyond) // 2
        if laws.log_binomial(middle, size, rate) > _SMALLEST_LOG:
            likely = middle
        else:
            beyond = middle
    return likely


@dataclass(frozen=True)
class SlotChain:
    """n records through a chain of stages.

    In the normal form no stage without replacement follows another one: a uniform subset of a uniform subset is one,
    and
    a uniform subset of independent draws are independent draws, so such a stage replaces the size of the stage before
    it.

    Attributes
    ----------
    n : int
        Number of records.
    stages : tuple of SlotStage
        First one first; a Poisson stage only as the last one.

    Raises
    ------
    ArgumentError
        If there is no stage, or one asks for more different slots than there are.
    UnsupportedError
        If a Poisson stage is not the last one, or more slots are drawn with replacement than are certified.
    """

    n: int
    stages: Sequence[SlotStage]

    def __post_init__(self) -> None:
        object.__setattr__(self, "n", checks.integer("n", self.n, at_least=1))
        if not self.stages:
            raise ArgumentError("a chain needs at least one stage, got none")
        slots = self.n
        normal: list[SlotStage] = []
        for position, stage in enumerate(self.stages):
            if stage.kind == "poisson" and position < len(self.stages) - 1:
                raise UnsupportedError(
                    f"a Poisson stage leaves a random number of slots and can only be the last stage, "
                    f"got it as stage {position + 1} of {len(self.stages)}"
                )
            if stage.kind == "without":
                checks.integer("size of a stage without replacement", stage.size, at_most=slots, at_most_name="slots")
            if stage.kind == "without" and normal:
                normal[-1] = SlotStage(normal[-1].kind, stage.size)
            else:
                normal.append(stage)
            if stage.kind == "with" and stage.size > MOST_SLOTS:
                raise UnsupportedError(
                    f"probabilities of counts are certified up to {MOST_SLOTS} slots drawn with replacement, "
                    f"got {stage.size}; take fewer"
                )
            slots = stage.size
        object.__setattr__(self, "stages", tuple(normal))

    @property
    def kinds(self) -> tuple[str, ...]:
        """Kinds of the stages, in normal form."""
        return tuple(stage.kind for stage in self.stages)

    @property
    def multiplicity(self) -> np.ndarray:
        """P(L = l), the law of the number of copies of one record in the sample."""
        return _multiplicity(self)


@lru_cache(maxsize=8)
def _multiplicity(chain: SlotChain) -> np.ndarray:
    """Kept for chains that are equal: a search for the noise asks for the same law again and again."""
    law, slots = np.array([0.0, 1.0]), chain.n
    for stage in chain.stages:
        rows = [(weight, stage.count_law(slots, j)) for j, weight in enumerate(law) if weight > 0]
        moved = np.zeros(max(row.size for _, row in rows))
        for weight, row in rows:
            moved[: row.size] += weight * row
        law, slots = moved, stage.size
    law.flags.writeable = False
    return law


PROFILE_ERROR = 1e-11
"""Relative error allowed for a profile: its own (1e-13) and that of its order, which enters through the slope."""


def gaussian_profile(log_order: np.ndarray, shifts: np.ndarray) -> np.ndarray:
    """Upper bounds of G(a, d) = Phi(d/2 - ln(a)/d) - a Phi(-d/2 - ln(a)/d), a >= 1, with broadcasting.

    Parameters
    ----------
    log_order : ndarray
        ln a >= 0.
    shifts : ndarray
        d > 0, shift in units of the noise.
    """
    log_delta = GaussianProfile(1.0).group_log_delta(log_order, shifts)
    # what underflows is not 0
    return np.asarray(np.maximum(np.exp(log_delta) * (1 + PROFILE_ERROR), np.finfo(float).tiny))


def log_lift(log_order: np.ndarray, eta: float) -> np.ndarray:
    """ln(1 + (a - 1) / eta): the order at the base for the order a >= 1 of a mechanism that includes with probability
    eta."""
    if eta == 1:
        return np.asarray(log_order, dtype=float)
    x = np.asarray(log_order, dtype=float)
    near = np.log1p(np.expm1(np.minimum(x, 1.0)) / eta)
    # for large orders in logs: (e^x - 1 + eta) / eta
    far = x + np.log1p(-(1 - eta) * np.exp(-np.maximum(x, 1.0))) - np.log(eta)
    return np.where(x <= 1, near, far)


_COARSEST = 128
"""Width of the first cells, in units of the grid of edges; they are bounded by the clip alone."""

_LEVELS = (16, 4, 1)
"""Widths of the cells that they are cut into, which are bounded to second order."""

_BLOCK = 8
"""Orders that share the choice among the first cells."""

_MOST_ENTRIES = 2**23
"""Of a table of normal tails, one for each edge and count: wide laws have wider cells."""

_LARGEST = 690.0

_ERROR = 4e-12
"""Relative error charged for the positive and the negative terms of a bound (normal tails to 40 deviations,
weights)."""

_PIECE = 1024
"""Orders that are worked on together."""


@dataclass(frozen=True, eq=False)
class GroupLemma:
    """h_p for one law, as a function of the order.

    Attributes
    ----------
    weights : ndarray, shape (m + 1,)
        p_0..p_m, nonnegative, of sum at most 1 (what a law lacks is charged by the caller).
    scale : float
        s, noise multiplier: standard deviation of the noise over the norm bound of one record.
    reach : float
        Normal tails beyond so many deviations are bounded by one cell each: about what the result cannot fall below.
    tolerance : float
        Relative accuracy at which cutting stops; the result is an upper bound whatever it is.
    resolution : int
        Edges a standard deviation of the noise, unless there are too many: cells that small are not cut further.
    """

    weights: np.ndarray
    scale: float
    reach: float = 9.0
    tolerance: float = 1e-4
    resolution: int = 100

    @cached_property
    def _counts(self) -> np.ndarray:
        return np.flatnonzero(self.weights[1:]) + 1

    @cached_property
    def _edges(self) -> np.ndarray:
        """Edges c of the cells; a multiple of the coarsest width, then +-infinity."""
        s, largest = self.scale, float(self._counts[-1])
        reach = self.reach * s
        cells = int(np.ceil((largest * 2 + 2 * reach) / (s / self.resolution) / _COARSEST)) * _COARSEST
        most = _MOST_ENTRIES // self._counts.size // _COARSEST * _COARSEST
        inner = np.linspace(-reach, 2 * largest + reach, max(min(cells, most), 4 * _COARSEST) - 2 * _COARSEST + 1)
        # one coarse cell of infinite extent at each end: all its inner edges are infinite as well
        ends = np.full(_COARSEST, np.inf)
        return np.concatenate([-ends, inner, ends])

    @cached_property
    def _tables(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Phi(-c/s), shape (e,); Phi((2l - c)/s) and Phi((-2l - c)/s), shape (e, counts)."""
        c = self._edges[:, None]
        s, apart = self.scale, 2 * self._counts[None, :]
        return ndtr(-self._edges / s), ndtr((apart - c) / s), ndtr((-apart - c) / s)

    @cached_property
    def _curvatures(self) -> dict[int, tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """What `_curvature` has computed, by width."""
        return {}

    def _curvature(self, width: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """sup |u| phi(u) on each cell of this width, for u = c/s, (2l - c)/s and (2l + c)/s."""
        if width not in self._curvatures:
            s, apart = self.scale, 2 * self._counts[None, :]
            c = np.clip(self._edges[::width], -1e6 * s, 1e6 * s)
            away = c[:, None]
            self._curvatures[width] = (
                _largest_slope(c / s), _largest_slope((apart - away) / s), _largest_slope((apart + away) / s)
            )  # fmt: skip
        return self._curvatures[width]

    def __call__(self, log_order: np.ndarray) -> np.ndarray:
        """Upper bounds of h_p at orders a = e^{log_order} >= 1, increasing, shape (n,).

        Raises
        ------
        ArgumentError
            If the orders do not increase, as the choice of cells relies on.
        """
        if np.any(np.diff(log_order) < -1e-9):
            raise ArgumentError("orders must increase, got a smaller one after a larger one; sort them")
        # beyond this order doubles overflow; the profile falls with the order
        x = np.minimum(np.asarray(log_order, dtype=float), _LARGEST)
        if not self._counts.size:
            return np.zeros_like(x)
        # few orders at a time stay in the caches
        pieces = []
        for start in range(0, x.size, _PIECE):
            check_time()
            pieces.append(self._suprema(x[start : start + _PIECE]))
        return np.minimum(np.concatenate(pieces), 1.0)

    def _suprema(self, x: np.ndarray) -> np.ndarray:
        a = np.exp(x)
        inner = gaussian_profile(x[:, None], 2 * self._counts[None, :] / self.scale)
        optimum = self.scale**2 * x[:, None] / (2 * self._counts[None, :])
        best, result = np.zeros(x.size), np.zeros(x.size)
        order, left = self._kept(a, inner, optimum, best, result)
        for width, finer in zip(_LEVELS, (*_LEVELS[1:], 0), strict=True):
            if not order.size:
                break
            bound = self._smooth(a, inner, optimum, order, left, width, best)
            large = np.flatnonzero(bound > best[order] * (1 + self.tolerance))
            clipped = self._bounds(a, inner, optimum, order[large], left[large], left[large] + width)
            bound[large] = np.minimum(bound[large], clipped)
            small = (bound <= best[order] * (1 + self.tolerance)) | (finer == 0)
            np.maximum.at(result, order[small], bound[small])
            order, left = _cut(order[~small], left[~small], width, finer or width)
        return result

    def _kept(
        self, a: np.ndarray, inner: np.ndarray, optimum: np.ndarray, best: np.ndarray, result: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Cells of the first level that must be cut, for each order; raises `best` to what is attained, `result` to the
        bounds of the others.

        All bounds and values fall with the order.  So those at the lower end of a block of orders bound its cells, and
        what is attained at the upper end is attained at all orders of the block.
        """
        few = np.append(np.arange(0, a.size - 1, _BLOCK), a.size - 1)
        coarsest = np.arange(0, self._edges.size - 1, _COARSEST)
        at, left = np.repeat(few, coarsest.size), np.tile(coarsest, few.size)
        right = left + _COARSEST
        bound = self._bounds(a, inner, optimum, at, left, right).reshape(few.size, -1)
        value = self._bounds(a, inner, optimum, at, right, right).reshape(few.size, -1).max(axis=1)
        following = np.minimum(np.arange(1, few.size + 1), few.size - 1)
        attained = np.maximum(value - 2 * _ERROR * np.abs(value), 0.0)[following]
        done = bound <= attained[:, None] * (1 + self.tolerance)
        block = np.minimum(np.arange(a.size) // _BLOCK, few.size - 1)
        best[:] = attained[block]
        result[:] = np.where(done, bound, 0.0).max(axis=1)[block]
        order, cell = np.nonzero(~done[block])
        return _cut(order, coarsest[cell], _COARSEST, _LEVELS[0])

    def _smooth(
        self,
        a: np.ndarray,
        inner: np.ndarray,
        optimum: np.ndarray,
        order: np.ndarray,
        left: np.ndarray,
        width: int,
        best: np.ndarray,
    ) -> np.ndarray:
        """Bounds of second order on cells sorted by order and place; raises `best` to what is attained at edges."""
        right = left + width
        at_right = self._bounds(a, inner, optimum, order, right, right)
        # the left edge of most cells is the right edge of the cell before
        alone = np.append(True, (order[1:] != order[:-1]) | (left[1:] != right[:-1]))
        at_left = np.append(0.0, at_right[:-1])
        at_left[alone] = self._bounds(a, inner, optimum, order[alone], left[alone], left[alone])
        value = np.maximum(at_left, at_right)
        np.maximum.at(best, order, value - 2 * _ERROR * np.abs(value))
        return value + self._bend(a, optimum, order, left, width)

    def _bend(self, a: np.ndarray, optimum: np.ndarray, order: np.ndarray, low: np.ndarray, width: int) -> np.ndarray:
        """sup |g''| (c1 - c0)^2 / 8 on cells; infinite on cells without end."""
        centre, plus, minus = self._curvature(width)
        counts, orders, cell = self._counts, a[order], low // width
        c_low, c_high = self._edges[low], self._edges[low + width]
        at_centre, falling = centre[cell], orders * centre[cell]
        total = self.weights[0] * (orders - 1) * at_centre
        for index, (weight, count) in enumerate(zip(self.weights[counts], counts, strict=True)):
            z = optimum[order, index]
            early = np.where(z < c_high - count, plus[cell, index] + falling, 0.0)
            late = np.where(z > c_low + count, at_centre + orders * minus[cell, index], 0.0)
            total = total + weight * np.maximum(early, late)
        with np.errstate(invalid="ignore"):
            extent = (c_high - c_low) / self.scale
        return np.where(np.isfinite(extent), total * np.minimum(extent, 1e3) ** 2 / 8 * (1 + 1e-9), np.inf)

    def _bounds(
        self,
        a: np.ndarray,
        inner: np.ndarray,
        optimum: np.ndarray,
        order: np.ndarray,
        low: np.ndarray,
        high: np.ndarray,
    ) -> np.ndarray:
        base, plus, minus = self._tables
        weights, counts = self.weights[self._counts], self._counts
        orders = a[order]
        below = self.weights[0] * (orders - 1) * base[high]
        positive, negative = np.zeros(order.size), below
        c_low, c_high = self._edges[low], self._edges[high]
        for index, (weight, count) in enumerate(zip(weights, counts, strict=True)):
            z = optimum[order, index]
            early = z < c_low - count
            late = z > c_high + count
            gain = np.where(early, plus[low, index], np.where(late, base[high], inner[order, index]))
            loss = np.where(early, orders * base[low], np.where(late, orders * minus[high, index], 0.0))
            positive = positive + weight * gain
            negative = negative + weight * loss
        return positive * (1 + _ERROR) - negative * (1 - _ERROR)


def _cut(order: np.ndarray, left: np.ndarray, width: int, finer: int) -> tuple[np.ndarray, np.ndarray]:
    """Cells cut into finer ones."""
    cuts = np.arange(0, width, finer)
    return np.repeat(order, cuts.size), (left[:, None] + cuts[None, :]).ravel()


def _largest_slope(u: np.ndarray) -> np.ndarray:
    """Bounds of |u| phi(u) between neighbouring edges along the first axis."""
    size = np.abs(u)
    least = np.where(u[1:] * u[:-1] <= 0, 0.0, np.minimum(size[1:], size[:-1]))
    most = np.maximum(size[1:], size[:-1])
    return np.asarray(most * np.exp(-0.5 * np.minimum(least, 60.0) ** 2) / math.sqrt(2 * math.pi))


_MINOR, _MINOR_OF_MANY = 1e-6, 1e-3
"""Branches of smaller probability, in chains of two and of more stages, get the bound without the supremum, which is
looser and much cheaper."""

MOST_TERMS = 6000
"""Combinations of counts, one for each stage, that a chain of many stages may have."""

_SPACING, _NEAREST, _LOG_LARGEST = 4e-3, 100, 750.0
"""Tables of the bound without the supremum: relative distance of their orders, points up to the smallest shift, end.

Chords raise it by parts in a thousand, deep in the tails by parts in a hundred; branches of small weight take it."""

_MOST_TAILS = 2**21
"""Normal tails that are worked on together."""

_LAW_ERROR = 1e-11
"""Relative error allowed for probabilities of counts."""


@dataclass(frozen=True, eq=False)
class ChainProfile:
    """H_a of a chain under substitution of one record, at orders a >= 1, rounded up.

    Attributes
    ----------
    chain : SlotChain
    scale : float
        s, noise multiplier.
    tail : float
        Counts of probability below this are charged as a sure loss.

    Raises
    ------
    UnsupportedError
        If a chain of three or more stages would take minutes.
    """

    chain: SlotChain
    scale: float
    tail: float = 1e-18

    def __post_init__(self) -> None:
        if len(self.chain.stages) > 2 and self._work(self.chain.n, 1, self.chain.stages, 1.0, 0) > MOST_TERMS:
            raise UnsupportedError(
                f"a chain of {len(self.chain.stages)} stages whose counts have more than {MOST_TERMS} likely "
                "combinations takes minutes a bound; take fewer stages or smaller ones"
            )

    def _work(self, n_slots: int, marked: int, stages: Sequence[SlotStage], weight: float, so_far: int) -> int:
        """Terms of the bound at one order; counting stops above `MOST_TERMS`."""
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
        bound = self._bound(x, self.chain.n, 1, tuple(self.chain.stages), 1.0)
        if self._group_coupling:
            bound = np.minimum(bound, self._group_bound(x))
        return np.minimum(bound * (1 + _LAW_ERROR), 1.0)

    @property
    def _group_coupling(self) -> bool:
        """Whether Theorem 5's group bound is proved at the level of the whole chain (MUST.WW with b <= n)."""
        kinds = self.chain.kinds
        return kinds == ("with", "with") and self.chain.stages[0].size <= self.chain.n

    def _group_bound(self, x: np.ndarray) -> np.ndarray:
        """sum_l p_l G(lift(a, eta), 2 l / s) with the law of the whole chain.

        The coupling replaces the l copies of the record by copies of one other record, or by fresh draws, with the
        probabilities that make the result the sample without the record: h_j = 1 - (1 - j/b)^m, eta <= h_1 as b <= n.
        """
        law = self.chain.multiplicity
        return self._lifted_sum(x, law, 1.0)

    def _lifted_sum(self, x: np.ndarray, law: np.ndarray, weight: float) -> np.ndarray:
        kept = np.flatnonzero(law[1:] * weight > self.tail) + 1
        lost = float(np.delete(law, np.append(kept, 0)).sum())
        eta = min(1.0, float(law[1:].sum()) * (1 + _LAW_ERROR)) if law[0] > 0 else 1.0
        piece = max(1, _MOST_TAILS // max(1, kept.size))
        lifted, shifts = log_lift(x, eta)[:, None], 2 * kept[None, :] / self.scale
        sums = []
        for at in range(0, x.size, piece):
            check_time()
            sums.append(gaussian_profile(lifted[at : at + piece], shifts) @ law[kept])
        return np.concatenate(sums) + lost

    def _looked_up(self, x: np.ndarray, law: np.ndarray) -> np.ndarray:
        """`_lifted_sum` by chords between the orders of a table, one for all branches with the same law.

        The sum is convex in a, so chords between its upper bounds are upper bounds; it falls, so the last one holds
        beyond the table.
        """
        key = law.tobytes()
        if key not in self._tables:
            shifts = 2 * np.array([1, law.size - 1]) / self.scale
            # with ten deviations to go, the profile of the largest shift is below every tail
            end = min(shifts[1] * (shifts[1] / 2 + 10), _LOG_LARGEST)
            near = np.linspace(0, min(shifts[0], end), _NEAREST)
            far = near[-1] * np.exp(np.arange(1, math.ceil(math.log(end / near[-1]) / _SPACING) + 1) * _SPACING)
            orders = np.concatenate([near, far])
            self._tables[key] = orders, self._lifted_sum(orders, law, 1.0)
        orders, values = self._tables[key]
        left = np.minimum(np.searchsorted(orders, x, side="right"), orders.size - 1) - 1
        share = np.expm1(np.minimum(x, orders[-1]) - orders[left]) / np.expm1(orders[left + 1] - orders[left])
        return np.asarray(values[left] + share * (values[left + 1] - values[left]))

    @cached_property
    def _tables(self) -> dict[bytes, tuple[np.ndarray, np.ndarray]]:
        """Orders and values by law, as `_looked_up` has computed them."""
        return {}

    def _bound(
        self, x: np.ndarray, n_slots: int, marked: int, stages: tuple[SlotStage, ...], weight: float
    ) -> np.ndarray:
        check_time()
        law = stages[0].count_law(n_slots, marked)
        if len(stages) == 1:
            return self._last(x, stages[0], law, weight)
        inside = law[1:]
        # lifted orders fall with eta, profiles fall with orders: eta is rounded up
        eta = 1.0 if law[0] == 0 else min(1.0, float(inside.sum()) * (1 + _LAW_ERROR))
        lifted = log_lift(x, eta)
        total = np.zeros_like(x)
        for j in np.flatnonzero(inside) + 1:
            share = float(law[j])
            if share * weight <= self.tail:
                total += share
                continue
            total += share * self._bound(lifted, stages[0].size, int(j), stages[1:], weight * share)
        return np.minimum(total, 1.0)

    def _last(self, x: np.ndarray, stage: SlotStage, law: np.ndarray, weight: float) -> np.ndarray:
        if stage.kind == "poisson":
            return self._added(x, law)
        lifted = self._lifted_sum(x, law, weight) if len(self.chain.stages) <= 2 else self._looked_up(x, law)
        minor = _MINOR if len(self.chain.stages) <= 2 else _MINOR_OF_MANY
        if weight < minor or (stage.kind == "without" and law.size == 2):
            return lifted
        kept = np.where(law > self.tail / weight, law, 0.0)
        # the normal tail beyond sqrt(2 ln(1 / tail)) deviations is below the tail
        reach = max(9.0, math.sqrt(-2 * math.log(self.tail)))
        lemma = GroupLemma(kept, self.scale, reach)(x) + float((law - kept).sum())
        return np.minimum(np.minimum(lemma, lifted), 1.0)

    def _added(self, x: np.ndarray, law: np.ndarray) -> np.ndarray:
        """H_a of sum_l p_l N(l) against sum_l p_l N(-l), by its optimal half-line.

        The half-line found is off by `LOSS_TOLERANCE` in loss, so its value by at most that share of its mass.
        """
        with np.errstate(divide="ignore"):
            pair = MixturePair(MultiplicityLaw(np.log(law)), self.scale)
        t = pair.inverse_loss(x)
        above = pair.sf(t)
        return np.asarray(above - np.exp(x) * pair.sf_prime(t) + PROFILE_ERROR * above)
