"""Many steps of samples of fixed size as a game: a proved upper bound that, without replacement,
converges to the exact value.

At each step an adversary picks vectors of the unit ball: v and v' of the differing record, and
those of the members that it replaces. The value of the game bounds the privacy of the steps
(docs/proofs/without_replacement.md, Theorem 11; chains.md, Lemma 20). Cells of triples, v, v' and
the first member replaced, cover all choices (Lemma 14), a pair dominates each cell (Theorems 15 and
22), and the largest mean of the value of the steps to come, over all cells, bounds the value one
step earlier. Any cover is valid; cells that matter for the answer are cut in two.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
from scipy import fft
from scipy.special import logsumexp, ndtr

from dpsub.accounting.engine import work
from dpsub.accounting.engine.bracket import Target
from dpsub.accounting.engine.pairs import complement, log_complement
from dpsub.accounting.engine.pld import PrivacyLossDistribution, Profile
from dpsub.accounting.engine.profiles import PROFILE_ERROR
from dpsub.accounting.games.half_lines import (
    MOST_CHARGED,
    STEEPEST,
    best_half_line,
    spread_charges,
    three_points,
)
from dpsub.errors import NumericalError

_EPS = float(np.finfo(float).eps)


def replaced_profile(
    rate: float, reach: float, apart: float, missed: float | None = None
) -> Profile:
    """Upper bounds of sup H_a((1 - q) N(0) + q N(x) || (1 - q) N(0) + q N(y)), a >= 1, over |x| <=
    `reach` and |x - y| <= `apart`, in units of the noise. The numbers x = reach and y = reach -
    apart, of either sign, attain it (docs/proofs/without_replacement.md, Lemma 12). `missed` is
    1 - q (`complement`)."""
    log_odds = log_complement(rate, missed) - math.log(rate)

    def profile(log_order: np.ndarray) -> np.ndarray:
        work.spend(work.TERM * np.size(log_order))
        with np.errstate(divide="ignore"):
            log_charge = np.log(np.expm1(log_order)) + log_odds
        bound = three_points(log_order, log_charge, reach, apart)
        return np.asarray(np.minimum(rate * bound * (1 + PROFILE_ERROR), 1.0))

    return profile


class Branch(NamedTuple):
    """One number of slots of the first sample that hold the record: the probability of it and l
    draws, l = 0, 1, ..., and the law of the base's weight on the points of all branches."""

    counts: tuple[float, ...]
    weights: tuple[float, ...]


@dataclass(frozen=True)
class Copies:
    """Law of how often a sample holds the record.

    It passes the stage before the last with probability `passed`, q, `missed` being 1 - q
    (`complement`), and is then drawn l times with probability counts[l]; `rest` is left out of
    these. Where it does not pass, the base has a random weight: `points` and `weights` of a law
    under which no falling convex function has a smaller mean; with several `branches`, each has its
    own (Theorem 65).
    """

    counts: tuple[float, ...]
    passed: float = 1.0
    points: tuple[float, ...] = (1.0,)
    weights: tuple[float, ...] = (1.0,)
    missed: float | None = None
    branches: tuple[Branch, ...] = ()
    rest: float = 0.0

    @property
    def odds(self) -> float:
        """(1 - q) / q, q = `passed`."""
        return complement(self.passed, self.missed) / self.passed

    @cached_property
    def log_bases(self) -> np.ndarray:
        """Logarithms of u at the points: the part of its charge that a base of this weight pays."""
        base = np.array(self.points)
        if not self.branches:
            base = (self.counts[0] + self.odds * base) / (self.counts[0] + self.odds)
        # the least may be 0 in doubles
        with np.errstate(divide="ignore"):
            return np.log(base)

    def weights_of(self, count: int | Sequence[int]) -> np.ndarray:
        """The law of the base's weight, given that the record is drawn so often; a row for each
        of several counts."""
        return np.asarray(self._weights[count])

    @cached_property
    def _weights(self) -> np.ndarray:
        """The law of the base's weight for each count, shape (counts, points)."""
        if not self.branches:
            return np.tile(self.weights, (len(self.counts), 1))
        laws = np.array([branch.weights for branch in self.branches])
        mixed = np.einsum("jl,jk->lk", self._chances, laws)
        # counts that do not occur have no law
        counts = np.maximum(self.counts, _TINY)[:, None]
        return np.asarray(mixed / counts * (1 + 8 * _EPS * len(laws)))

    @cached_property
    def _chances(self) -> np.ndarray:
        """Of counts, for each branch."""
        return np.array([branch.counts[: len(self.counts)] for branch in self.branches])

    def paid(
        self, log_order: np.ndarray, likely: Sequence[int], log_charges: np.ndarray
    ) -> np.ndarray:
        """The charges, shape (counts, n), lowered until the branches can pay them: each has its own
        base, where the record passed and was not drawn, and they share that of a record that did
        not pass."""
        if not self.branches:
            return log_charges
        with np.errstate(divide="ignore", invalid="ignore"):
            log_unit = np.log(np.expm1(log_order))
            charges = np.exp(np.where(log_order > 0, log_charges - log_unit, 0.0))
        owed = self._owed(likely, charges)
        with np.errstate(divide="ignore"):
            share = np.log(np.minimum(self.odds / owed, 1.0) * (1 - 4 * _LAW_ERROR))
        lowered = log_charges + share
        if likely[0] > 1:
            return lowered
        # a charge of 1 for one draw makes the bound the least where that draw moves x to the base
        with np.errstate(divide="ignore"):
            one = np.exp(np.where(log_order > 0, -log_unit, 0.0))
        first = np.minimum(charges[0], np.maximum(charges[0] * np.exp(share), one))
        # then the others are lowered: what is owed is convex in their share, so below its chord
        least, most = (
            self._owed(likely, np.vstack([first, others])) * (1 + 4 * _LAW_ERROR)
            for others in (np.zeros_like(charges[1:]), charges[1:])
        )
        enough = self.odds * (1 - 8 * _LAW_ERROR)
        with np.errstate(divide="ignore", invalid="ignore"):
            rest = np.log(np.minimum((enough - least) / (most - least), 1.0))
            kept = np.vstack([np.log(first) + log_unit, log_charges[1:] + rest])
        keeps = (first > charges[0] * np.exp(share)) & (least < enough) & (log_order > 0)
        return np.where(keeps, kept, lowered)

    def _owed(self, likely: Sequence[int], charges: np.ndarray) -> np.ndarray:
        """What all branches together owe the base of a record that did not pass, for charges over
        a - 1, shape (counts, n)."""
        asked = np.einsum("jl,ln->jn", self._chances[:, likely], charges)
        own = self._chances[:, :1] * (1 - 2 * _LAW_ERROR)
        return np.asarray(np.maximum(asked - own, 0.0).sum(axis=0))

    @classmethod
    def of_draws(
        cls,
        counts: Sequence[float],
        passed: float,
        slots: int,
        draws: int,
        missed: float | None = None,
    ) -> Copies:
        """Copies that a stage draws with replacement from the slots of a sample; one slot holds
        the record with probability `passed` (Lemma 20)."""
        ((weight, law),) = _base_weights(slots, draws, [1])
        ends = _ends_of_bins(weight, law)
        moved = tuple(_moved(weight, law, ends).tolist())
        return cls(tuple(counts), passed, tuple(ends.tolist()), moved, missed)

    @classmethod
    def of_draws_of_draws(
        cls, held: np.ndarray, counts_of: Callable[[int], np.ndarray], slots: int, draws: int
    ) -> Copies:
        """Copies that a stage draws with replacement from the slots of such a sample: j of them
        hold the record with probability held[j], and counts_of(j) is the law of the number of
        draws of those."""
        passed = min(1.0, float(held[1:].sum()) * (1 + _LAW_ERROR))
        shares = held / passed * (1 + 2 * _LAW_ERROR)
        listed = [j for j in range(1, held.size) if shares[j] > _RAREST]
        laws = _base_weights(slots, draws, listed)
        ends = np.append(_ends_of_bins(*laws[0]), min(weight[0] for weight, _ in laws))
        ends = np.unique(ends)
        branches = []
        for j, base in zip(listed, laws, strict=True):
            counts = np.zeros(draws + 1)
            law = counts_of(j)
            counts[: law.size] = shares[j] * law
            moved = _moved(*base, ends)
            branches.append(Branch(tuple(counts.tolist()), tuple(moved.tolist())))
        counts = np.sum([branch.counts for branch in branches], axis=0)
        rest = math.fsum(share for j, share in enumerate(shares) if j and j not in listed)
        missed, points = float(held[0]), tuple(ends.tolist())
        return cls(
            tuple(counts.tolist()), passed, points, (), missed, tuple(branches), rest + _RAREST
        )


def _base_weights(
    slots: int, draws: int, held: Sequence[int]
) -> list[tuple[np.ndarray, np.ndarray]]:
    """For each j of `held`: values, increasing, and masses of (1 - j/b)^m C(b, j) / C(n_0, j), n_0
    the number of b `slots` that m `draws` from b - j of them leave empty (Lemmas 20 and 65); 1
    where the record holds all slots. Rounded to the side where falling functions are larger."""
    others = slots - np.array(held)[:, None]
    filled = np.arange(min(draws, int(others.max())) + 1)
    # how many of the other slots are drawn: a recurrence of positive terms, a row for each j
    some = np.maximum(others, 1)
    stays, grows = filled / some, np.maximum(some - filled, 0) / some
    laws = np.zeros(stays.shape)
    laws[:, 0] = 1.0
    for _ in range(draws):
        work.spend(work.NUMBER * 2 * laws.size)
        fresh = laws[:, :-1] * grows[:, :-1]
        laws *= stays
        laws[:, 1:] += fresh
    return [_base_weight(slots, draws, j, law) for j, law in zip(held, laws, strict=True)]


def _base_weight(
    slots: int, draws: int, held: int, law: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Values and masses of the base's weight for one number of slots that the record holds, from
    the law of how many others are drawn."""
    others = slots - held
    if not others:
        return np.ones(1), np.ones(1)
    filled = np.arange(1, min(draws, others) + 1)
    # covers its rounding (docs/proofs/numerics.md, "The base's weight"): functions that fall are
    # larger where the weight is rounded down, and means where the law is rounded up
    log_missed = math.log1p(-held / slots)
    error = 8 * _EPS * (draws * max(1.0, -log_missed) + 8 * held)
    expected = np.exp(math.log(slots) + draws * log_missed)
    weight = expected / (slots - filled)
    for i in range(1, held):
        weight = weight * ((slots - i) / (slots - i - filled))
    return weight * (1 - error), law[filled] * (1 + error)


def _ends_of_bins(weight: np.ndarray, law: np.ndarray) -> np.ndarray:
    """Few of them, about the mean."""
    spread = math.sqrt(np.einsum("i,i", law, (weight - 1) ** 2))
    inner = 1 + spread * np.array(_BETWEEN)
    inner = inner[(inner > weight[0]) & (inner < weight[-1])]
    return np.unique(np.concatenate([weight[[0, -1]], inner]))


def _moved(weight: np.ndarray, law: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Masses at the ends of bins, moved there with the mean kept, which raises means of convex
    functions; from beyond the last one to it, which raises those of falling ones."""
    if ends.size == 1:
        return np.array([math.fsum(law)])
    weight = np.minimum(weight, ends[-1])
    right = np.clip(np.searchsorted(ends, weight), 1, ends.size - 1)
    share = (weight - ends[right - 1]) / (ends[right] - ends[right - 1])
    to_right = np.bincount(right, law * share, ends.size)
    to_left = np.bincount(right - 1, law * (1 - share), ends.size)
    return np.asarray(to_right + to_left)


# of the probability that the record passes the first stage: rarer numbers of its slots are charged
# as a sure loss
_RAREST = 1e-20
# relative error allowed for probabilities of counts
_LAW_ERROR = 1e-11
# standard deviations of the base's weight, from its mean, where bins end
_BETWEEN = (-4.0, -1.3, 1.3, 4.0, 9.0)


@dataclass(frozen=True)
class CellProfile:
    """sup of H_a over a cell, a >= 1, in one direction, for the lengths of one copy.

    These are |x| <= `radius`, |x - y| <= `apart`, and the product of x - y and x is at most `foot`
    times that (all over C). The bound is that of Theorem 15 or 22.
    """

    copies: Copies
    noise_multiplier: float
    tail: float
    apart: float
    radius: float
    foot: float

    def __call__(self, log_order: np.ndarray) -> np.ndarray:
        """Upper bounds at the given ln a >= 0, shape (n,)."""
        counts, passed = self.copies.counts, self.copies.passed
        likely = [count for count in range(1, len(counts)) if counts[count] > self.tail] or [1]
        work.spend(_FEW_ORDERS + work.TERM * 6 * log_order.size * len(likely))
        # counts that are left out are charged as a whole (docs/proofs/numerics.md, "Trimming")
        left_out = set(range(1, len(counts))).difference(likely)
        lost = math.fsum([*(counts[count] for count in left_out), self.copies.rest])
        radii = self._radii(likely)
        log_base = self.copies.log_bases
        total = np.full(log_order.shape, lost)
        charges = self.copies.paid(log_order, likely, self._charges(log_order, likely, radii))
        # few counts at a time stay in the caches
        together = max(1, _TOGETHER // (log_order.size * log_base.size))
        for start in range(0, len(likely), together):
            some = slice(start, start + together)
            apart = np.array(likely[some])[:, None, None] * self.apart / self.noise_multiplier
            charge = charges[some, :, None] + log_base
            reach = np.array(radii[some])[:, None, None]
            by_weight = best_half_line((log_order[:, None], apart), (charge, reach), added=_ADDED)
            weights = self.copies.weights_of(likely[some])
            # neither this nor the sums below wait for threads, as a dot product would
            bounds = np.einsum("lij,lj->li", by_weight, weights)
            if start == 0 and likely[0] == 1:
                by_height = self._by_height(log_order, charges[0], weights[0])
                bounds[0] = np.minimum(bounds[0], by_height)
            chances = np.array([counts[count] for count in likely[some]])
            total += np.einsum("l,li->i", chances, bounds)
        return np.asarray(np.minimum(passed * total * (1 + PROFILE_ERROR), 1.0))

    def _radii(self, counts: Sequence[int]) -> list[float]:
        """Bounds of |x| for these counts: the other members that are replaced may be anywhere."""
        return [(self.radius + 2 * (count - 1)) / self.noise_multiplier for count in counts]

    @property
    def height(self) -> float:
        """The distance of the origin from the line through x and y, of three points with these
        lengths."""
        # the squares are rounded
        return math.sqrt(max(0.0, self.radius**2 - self.foot**2) + 64 * _EPS)

    def _by_height(
        self, log_order: np.ndarray, log_charge: np.ndarray, base_weights: np.ndarray
    ) -> np.ndarray:
        """The bound of one copy by foot and height in place of the radius (Lemma 91)."""
        height = self.height / self.noise_multiplier
        if height > STEEPEST:
            return np.ones(log_order.shape)
        reach = max(8.5, math.sqrt(-2 * math.log(self.tail)))
        log_points, weights = spread_charges(height, reach, self.copies.log_bases, base_weights)
        apart, foot = self.apart / self.noise_multiplier, self.foot / self.noise_multiplier
        # mass left of the first point is charged as 1 (docs/proofs/numerics.md, "W")
        bounds = np.full(log_order.shape, float(ndtr(-reach)))
        # few orders at a time stay in the caches
        together = max(1, _TOGETHER // log_points.size)
        for start in range(0, log_order.size, together):
            some = slice(start, start + together)
            charge = log_charge[some, None] + log_points
            values = best_half_line((log_order[some, None], apart), (charge, foot), added=_ADDED)
            bounds[some] += np.einsum("ij,j->i", values, weights)
        return bounds

    def _charges(
        self, log_order: np.ndarray, likely: Sequence[int], radii: Sequence[float]
    ) -> np.ndarray:
        """ln tau_l for each likely count l, shape (counts, n); any tau_l >= 0 of mean
        (a - 1) (p_0 + (1 - q) / q), q = `passed`, are valid (Theorem 22). On a line with these
        radii one half-line {t > c} is the best for all l, as far as charges are above 0."""
        counts, widest = self.copies.counts, 2 / self.noise_multiplier
        with np.errstate(divide="ignore"):
            budget = np.log(np.expm1(log_order)) + math.log(counts[0] + self.copies.odds)
        if len(likely) == 1:
            return np.asarray(budget - math.log(counts[likely[0]]))[None]
        chances = np.array([counts[count] for count in likely])[:, None, None]
        near = np.array(radii)[:, None, None]
        far = near - np.array(likely)[:, None, None] * self.apart / self.noise_multiplier

        def tilted(place: np.ndarray, c: np.ndarray, x: np.ndarray | float) -> np.ndarray:
            exponent = (x - place * place / 2) + place * c
            # exponentials that underflow take long, and count for nothing
            return np.exp(np.minimum(np.maximum(exponent, -MOST_CHARGED), MOST_CHARGED))

        def paid(c: np.ndarray, x: np.ndarray) -> np.ndarray:
            """p_l tau_l where c, shape (places, n), is the best at orders e^x."""
            work.spend(work.TERM * 3 * chances.size * c.size)
            return np.asarray(chances * np.maximum(tilted(near, c, 0.0) - tilted(far, c, x), 0.0))

        # which c spends the budget: by ever closer tables of it at some orders, most of these where
        # losses are, by interpolation in the last one and between orders
        few = _spread_places(log_order.size)
        orders, enough, column = log_order[few], budget[few], np.arange(few.size)

        def log_owed(c: np.ndarray) -> np.ndarray:
            return np.asarray(np.log(np.maximum(paid(c, orders).sum(axis=0), _TINY)))

        low = np.full(few.size, -10.0)
        high = radii[-1] + (np.maximum(enough, 0.0) + 40) / max(radii[0], 0.25 * widest)
        places = np.linspace(0.0, 1.0, _PLACES + 2)[:, None]
        for _ in range(_TABLES):
            ends = low + places * (high - low)
            above = (log_owed(ends[1:-1]) <= enough).sum(axis=0)
            low, high = ends[above, column], ends[above + 1, column]
        least, most = log_owed(np.array([low, high]))
        share = np.clip((enough - least) / np.maximum(most - least, _EPS), 0.0, 1.0)
        best = np.interp(log_order, orders, low + share * (high - low))
        shares = paid(best[None], log_order)[:, 0]
        shares[0] = np.maximum(shares[0], _TINY)
        # shares of the whole budget, so that the mean is right wherever c lies
        log_total = np.log(shares.sum(axis=0))
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(shares / chances[:, 0]) - log_total + budget)


@cache
def _spread_places(size: int) -> np.ndarray:
    """Few of so many places, most of them early."""
    return np.unique(np.geomspace(1, size, _THRESHOLDS).astype(int)) - 1


# share of a normal tail that stands for Newton steps that are not made: far below what cells add
_ADDED = 1e-9
_THRESHOLDS, _TABLES, _PLACES = 50, 6, 3
_FEW_ORDERS = 4e5  # work of a profile, however few its orders
_TOGETHER = 2**14  # numbers that are worked on together, one for each count, order and base


class GameCells(Protocol):
    """Cells of the choices of one step: the one that holds all, and the extreme ones."""

    @property
    def whole(self) -> Any: ...

    @property
    def extremes(self) -> Sequence[Any]: ...

    @property
    def mirrored(self) -> bool:
        """Whether the choices hold the mirror image of each, so that both orders of the data sets
        have one value."""

    def profiles(self, cell: Any, tail: float) -> tuple[Profile, Profile]:
        """Upper bounds of H_a in both directions over the cell."""

    def halves(self, cell: Any) -> list[Any]:
        """Smaller cells that cover it."""

    def middle(self, cell: Any) -> Any:
        """One choice of the cell, as a cell of its own: no cover costs less than these do."""


class GaussianCell(NamedTuple):
    """Triples v, v', g on the unit circle, the axis of symmetry of v and v' vertical: the angle of
    v and v' from its foot is between `low` and `high`, that of g from its top between `left` and
    `right` (radians), and no larger."""

    low: float
    high: float
    left: float
    right: float

    def cuts(self) -> tuple[list[GaussianCell], list[GaussianCell]]:
        """The halves of the cell, cut across either side, as far as they hold triples."""
        low, high, left, right = self
        half, middle = (low + high) / 2, (left + right) / 2
        by_angle = [GaussianCell(low, half, left, right), GaussianCell(half, high, left, right)]
        by_member = [GaussianCell(low, high, left, middle), GaussianCell(low, high, middle, right)]
        return _with_triples(by_angle), _with_triples(by_member)


def _with_triples(cells: Sequence[GaussianCell]) -> list[GaussianCell]:
    """The cells that hold triples, |psi| <= C (Lemma 14), with sides no longer than that."""
    return [
        GaussianCell(low, high, max(left, -high), min(right, high))
        for low, high, left, right in cells
        if left < high and right > -high
    ]


@dataclass(frozen=True)
class GaussianCells:
    """Cells of triples for Gaussian noise and samples that hold a record with the law `copies`."""

    copies: Copies
    noise_multiplier: float
    mirrored: ClassVar[bool] = True
    whole: ClassVar[GaussianCell] = GaussianCell(0.0, math.pi / 2, -math.pi / 2, math.pi / 2)
    extremes: ClassVar[Sequence[GaussianCell]] = [
        GaussianCell(math.pi / 2, math.pi / 2, g, g) for g in (-math.pi / 2, math.pi / 2)
    ]
    """v and v' antipodal, g, the member replaced, at one of them: those of the filler flip."""

    def profiles(self, cell: GaussianCell, tail: float) -> tuple[CellProfile, CellProfile]:
        """The suprema of H_a(P || Q) and H_a(Q || P) over the cell, by the largest lengths and
        products in it (Theorem 15)."""
        low, high, left, right = cell
        # |psi| <= C
        low = max(low, left, -right)
        apart = 2 * math.sin(high)

        def profile(far: float, near: float) -> CellProfile:
            foot = min(math.sin(high) + math.sin(far), apart)
            radius = 2 * math.cos(max(0.0, near) / 2)
            return CellProfile(self.copies, self.noise_multiplier, tail, apart, radius, foot)

        return profile(-left, low + left), profile(right, low - right)

    def halves(self, cell: GaussianCell) -> list[GaussianCell]:
        """Two cells that cover it, cut where that tightens its bounds more, roughly."""
        return min(cell.cuts(), key=lambda parts: sum(map(self._looseness, parts)))

    def middle(self, cell: GaussianCell) -> GaussianCell:
        """The triple in the middle of the cell, as a cell."""
        low, high, left, right = cell
        angle = (low + high) / 2
        member = min(max((left + right) / 2, -angle), angle)
        return GaussianCell(angle, angle, member, member)

    def _looseness(self, cell: GaussianCell) -> float:
        first, second = self.profiles(cell, 1e-9)
        shifts = first.foot + second.foot + first.radius + second.radius
        return shifts / self.noise_multiplier + 4 * math.log(first.apart)


@dataclass(frozen=True, eq=False)
class Game:
    """k steps, each with one of several dominating pairs, chosen from the past: upper bounds of
    delta(epsilon) for epsilon in [0, `end`].

    PLDs are of one step, side "upper", without offsets; their set holds the mirror image of each,
    or `swapped` are those of the other order of the data sets, cell by cell.
    Losses of mass at most `lost` may count as infinite. Kept is A(x) = e^(tilt x - r kappa) V_r(x),
    V_r(x) + r infinity a bound of the value of r steps at order e^x, on the grid from 0 to `end`;
    kappa is the largest log mean of e^(tilt loss), so that no kernel has a sum above 1. Errors:
    docs/proofs/numerics.md, "The game".
    """

    plds: Sequence[PrivacyLossDistribution]
    steps: int
    tilt: float
    end: float
    lost: float = 0.0
    swapped: Sequence[PrivacyLossDistribution] = ()

    def played(self) -> GameValue:
        """The value of all steps; NumericalError if the grid is too long."""
        step, tilt, k = self.plds[0].step, self.tilt, self.steps
        size, n, kernels = self._size, self._length, self._kernels
        left, right, kappa = kernels.left, kernels.right, kernels.kappa
        count = len(kernels.masses)
        check_points(n * count)
        # orders move down by a loss: places are taken modulo the length of the transform
        padded = np.pad(kernels.masses, ((0, 0), (0, n - left - right - 1)))
        spectra = fft.rfft(np.roll(padded, -right, axis=1))
        # values of each order of the data sets: one, or that of `plds` and that of `swapped`
        orders = count // len(self.plds)
        spectra = spectra.reshape(orders, len(self.plds), -1)
        x, inside = np.arange(size) * step, slice(left, left + size)
        beyond = x[-1] + np.arange(1, right + 1) * step
        # V_0 = 0 at orders above 1; below, V(1/a) = 1 - 1/a + V(a)/a, as for the truth that V
        # bounds, the data sets in the other order ("Orders below 1")
        value = np.zeros((orders, size))
        near = x[left:0:-1]
        mirrored = np.exp(-(1 + 2 * tilt) * near)
        identity = -np.expm1(-near) * np.exp(-tilt * near)
        # whatever is played, V_r is at most largest e^(r kappa - tilt x), at most 1, and falls
        # ("Tilt")
        largest = largest_of_tilted(tilt)
        growth = np.exp(tilt * (beyond - x[-1]))
        # a share of the norm of what is transformed, added at every point ("Round-off")
        round_off = 16 * _EPS * math.log2(n)
        # what forming the padded values rounds, relative to themselves
        grown = 1 + 4 * _EPS * (8 + (2 + 2 * tilt) * float(beyond[-1]) + abs(k * kappa))
        padded = np.zeros((orders, n))
        for r in range(k):
            work.spend(self.work / k)
            others = value[::-1, left:0:-1]
            padded[:, :left] = identity * math.exp(-r * kappa) + mirrored * others
            padded[:, inside] = value
            bounds = np.minimum(largest, np.exp(np.minimum(tilt * beyond - r * kappa, 700.0)))
            past = slice(left + size, left + size + right)
            padded[:, past] = np.minimum(value[:, -1:] * growth, bounds)
            moved = fft.irfft(spectra * fft.rfft(padded)[:, None], n=n)[:, :, inside]
            value = moved.max(axis=1)
            np.maximum(value, 0.0, out=value)
            value *= grown
            norms = np.sqrt(np.einsum("ij,ij->i", padded, padded))
            value += round_off * norms[:, None]
        # the larger one of two convex functions is convex
        larger = value.max(axis=0)
        infinity = k * kernels.infinity
        return GameValue(x, larger, tilt, k * kappa, infinity)

    @property
    def work(self) -> float:
        """Return the work of a play."""
        orders = 2 if self.swapped else 1
        transforms = orders + len(self._kernels.masses)
        return self.steps * transforms * (work.transform(self._length) + 4 * self._length)

    @property
    def _size(self) -> int:
        """Points of the grid."""
        return math.ceil(self.end / self.plds[0].step) + 1

    @property
    def _length(self) -> int:
        """The length of the transforms."""
        points = self._kernels.left + self._size + self._kernels.right
        return int(fft.next_fast_len(points, real=True))

    @cached_property
    def _kernels(self) -> Kernels:
        laws = (*self.plds, *self.swapped)
        misplaced = MISPLACED / self.steps
        return tilted_kernels(laws, self.tilt, self.lost, self._size - 1, misplaced)


def largest_of_tilted(tilt: float) -> float:
    """The largest e^(tilt x) (1 - e^x) over x <= 0."""
    return (tilt / (1 + tilt)) ** tilt / (1 + tilt) if tilt > 0 else 1.0


@dataclass(frozen=True, eq=False)
class Kernels:
    """Tilted masses of several pairs at the losses -right, ..., left of the grid, over e^kappa,
    with sums of at most 1, and the largest mass of an infinite loss."""

    step: float
    masses: np.ndarray
    left: int
    right: int
    infinity: float
    kappa: float

    @cached_property
    def losses(self) -> np.ndarray:
        return np.arange(-self.right, self.left + 1) * self.step

    @cached_property
    def sums(self) -> np.ndarray:
        return np.asarray(self.masses.sum(axis=1))

    @cached_property
    def deviation(self) -> float:
        """The standard deviation of the law with the largest sum."""
        law = self.masses[self.sums.argmax()] / self.sums.max()
        mean = float(np.einsum("i,i", law, self.losses))
        return math.sqrt(np.einsum("i,i", law, (self.losses - mean) ** 2))

    def log_mgfs(self, slopes: np.ndarray) -> np.ndarray:
        """ln of the largest mean of e^(slope loss), for each slope, rounded up."""
        work.spend((work.NUMBER * self.masses.size + work.TERM * self.losses.size) * slopes.size)
        return np.array([self._log_mgf(slope) for slope in slopes.tolist()])

    def _log_mgf(self, slope: float) -> float:
        largest = max(slope * self.losses[0], slope * self.losses[-1])
        means = np.einsum("ij,j->i", self.masses, np.exp(slope * self.losses - largest))
        total = largest + math.log(means.max())
        return float(total + 1e-12 * (1 + abs(largest) + abs(total)))

    def reach(self, steps: int, tail: float, fall: float = 0.0) -> tuple[int, int]:
        """Return how far so many losses of one of these laws, or fewer, take an order down and up
        but for mass of at most `tail`, in points; downwards mass counts e^(-fall) for each nat."""
        slopes, down, up = self._growths
        reached = []
        for growth, more, most in ((down, fall, self.left), (up, 0.0, self.right)):
            ends = (steps * np.maximum(growth, 0.0) - math.log(tail)) / (slopes + more)
            end = float(ends.min(initial=math.inf))
            reached.append(min(steps * most, math.ceil(min(end / self.step, 1e15))))
        return reached[0], reached[1]

    @cached_property
    def _growths(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Slopes, and `log_mgfs` of them and of their negatives."""
        slopes = _REACHES / self.deviation
        slopes = slopes[slopes * max(self.left, self.right) * self.step < 600.0]
        return slopes, self.log_mgfs(slopes), self.log_mgfs(-slopes)


# slopes of Chernoff's bounds, times the standard deviation of a loss: that of many steps, and rare
# losses far out, ask for small ones
_REACHES = np.geomspace(2.0**-20, 64.0, 61)


def divided(pld: PrivacyLossDistribution, most: int) -> PrivacyLossDistribution:
    """The law whose losses above so many points are divided between this one and an infinite one,
    such that both data sets keep their masses: it dominates, with equality at orders below."""
    beyond = pld.indices > most
    masses = pld.masses[beyond]
    shares = np.exp((most - pld.indices[beyond]) * pld.step)
    kept = float(np.einsum("i,i", masses, shares)) * (1 + 1e-12)
    lost = float(np.einsum("i,i", masses, -np.expm1((most - pld.indices[beyond]) * pld.step)))
    indices = np.append(pld.indices[~beyond], most)
    infinity = min(1.0, pld.infinity + lost * (1 + 1e-12))
    return PrivacyLossDistribution(
        pld.step, indices, np.append(pld.masses[~beyond], kept), pld.side, infinity
    )


def tilted_kernels(
    plds: Sequence[PrivacyLossDistribution],
    tilt: float,
    lost: float,
    most: int | None = None,
    misplaced: float = 1e-13,
) -> Kernels:
    """The laws under a tilt, on one grid. Losses above a reach, beyond which there is mass of at
    most `lost`, or beyond `most` points, are divided between it and an infinite one; those below
    another one, of mass at most `misplaced`, are moved up to it ("Ends of kernels")."""
    step = plds[0].step
    left = right = 1
    for pld in plds:
        order = np.argsort(pld.indices)
        places, masses = pld.indices[order], pld.masses[order]
        above = np.append(np.cumsum(masses[::-1])[::-1][1:], 0.0)
        left = max(left, int(places[np.argmax(above <= lost)]))
        tilted = np.exp(tilt * step * np.minimum(places, 0))
        below = np.append(0.0, np.cumsum(masses)[:-1]) * tilted
        lowest = max(0, int(np.argmax(below > misplaced)) - 1)
        right = max(right, -int(places[lowest]))
    if most is not None:
        left, right = min(left, most), min(right, most)
    kept, infinity, kappa, largest = [], 0.0, -math.inf, 0.0
    for pld in plds:
        cut = divided(pld, left)
        infinity = max(infinity, cut.infinity)
        places = np.maximum(cut.indices, -right)
        masses = np.maximum(cut.masses, _TINY)
        exponents = tilt * step * places + np.log(masses)
        # one sum in pairs: term by term its error would grow with their number
        kappa = max(kappa, float(logsumexp(exponents)))
        largest = max(largest, float(np.abs(exponents).max()))
        kept.append((places, exponents))
    # some 60 eps are left by the sum; kappa may be any number that is no smaller ("Tilt")
    kappa += 1e-13 * (1 + abs(kappa))
    rounding = 1 + 16 * _EPS * (2 + largest + abs(kappa))
    rows = [
        np.bincount(places + right, np.exp(exponents - kappa) * rounding, left + right + 1)
        for places, exponents in kept
    ]
    return Kernels(step, np.stack(rows), left, right, infinity * (1 + 1e-9), kappa)


_TINY = 1e-300
# mass that all steps together may move up to the least loss of a kernel, relative to A there
MISPLACED = 1e-7
MOST_POINTS = 2**23
"""Of the grid of a game, those of all pairs together."""


def check_points(points: int) -> None:
    """Raise NumericalError for a game whose grid is too long."""
    if points > MOST_POINTS:
        raise NumericalError(f"the game needs {points} grid points, more than {MOST_POINTS}")


@dataclass(frozen=True, eq=False)
class GameValue:
    """V(x) <= value e^(log_scale - tilt x) + infinity on a grid of x >= 0 (nats), for the truth V,
    which is convex in e^x."""

    x: np.ndarray
    value: np.ndarray
    tilt: float
    log_scale: float
    infinity: float
    by_widest: int = 0
    """How many steps were played with one law for all choices, as the budget ended."""

    @cached_property
    def bounds(self) -> np.ndarray:
        """Upper bounds of V at the points, untilted and rounded up."""
        exponent = self.log_scale - self.tilt * self.x
        rounding = 1 + 16 * _EPS * (4 + abs(self.log_scale) + np.abs(exponent))
        untilted = self.value * np.exp(np.minimum(exponent, 700.0)) * rounding
        # V does not rise
        return np.minimum.accumulate(np.minimum(untilted + self.infinity, 1.0))

    def answer(self, target: Target) -> float:
        """delta at epsilon, or epsilon at delta: chords in e^x between points of the grid lie above
        V, which is convex there."""
        if target.epsilon is not None:
            return float(self.curve(np.array([target.epsilon]))[0])
        above = np.flatnonzero(self.bounds > target.delta)
        if not above.size:
            return 0.0
        place = int(above[-1])
        if place == self.x.size - 1:
            return math.inf
        low, high = self.bounds[place : place + 2]
        share = (low - target.delta) / (low - high)
        width = math.expm1(self.x[place + 1] - self.x[place])
        return float(self.x[place] + math.log1p(share * width)) * (1 + 8 * _EPS)

    def curve(self, epsilons: np.ndarray) -> np.ndarray:
        """delta at many epsilons, shape (e,); beyond the grid that at its end, as delta falls."""
        places = np.searchsorted(self.x, epsilons, side="right") - 1
        places = np.minimum(places, self.x.size - 2)
        left = self.x[places]
        low, high = self.bounds[places], self.bounds[places + 1]
        inside = np.minimum(epsilons - left, self.x[places + 1] - left)
        share = np.expm1(inside) / np.expm1(self.x[places + 1] - left)
        chord = np.where(high < low, low + share * (high - low), low)
        return np.where(epsilons < self.x[-1], chord, self.bounds[-1])


class GamePlayed(NamedTuple):
    """The question to a game and the bound that it proves, with all that another program needs to
    play it again: the points of its grid of losses, from 0 on, its cells, a dominating law of
    each, and one of each for the other order of the data sets, where that has a value of its
    own."""

    target: Target
    answer: float
    points: int
    cells: Sequence[Any]
    plds: Sequence[PrivacyLossDistribution]
    swapped: Sequence[PrivacyLossDistribution]
