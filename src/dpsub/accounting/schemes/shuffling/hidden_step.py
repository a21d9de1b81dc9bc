"""Shuffled epochs: an upper bound that does not reveal the record's step (docs/proofs/shuffling.md,
Lemmas 48, 52 and 60, Theorems 49, 61, 76 and 89).

A uniform order of T records, one per step, is obtained from one that starts with the differing
record: it changes places with the record of a uniform step J. Without step 1, the epoch would be a
random allocation of one vector to 1 of T - 1 steps. The output of step 1 changes the weights of the
steps. Where no weight exceeds 1/k, the allocation is to 1 of k steps or better; the mean excess
above 1/k (`leak`) is charged; or each weight pays for itself (`weights`). The two data sets are
compared by way of an epoch in which another record stands in for the differing one, or directly,
whichever gives less. With less noise the record hides among those that look as if they contributed
nothing (`null_clones`).
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from itertools import zip_longest
from typing import NamedTuple

import numpy as np

from dpsub.accounting.engine import work
from dpsub.accounting.engine.chords import chords, convex, falling
from dpsub.accounting.engine.pld import MAX_LOSS, Profile
from dpsub.accounting.engine.privacy_events import DominatedEvent
from dpsub.accounting.engine.profiles import gaussian_profile
from dpsub.accounting.schemes.allocation.one_step import AllocationEvent, by_reference
from dpsub.accounting.schemes.shuffling.differences import (
    FINE,
    FOR_MOMENTS,
    Differences,
    Fineness,
)
from dpsub.accounting.schemes.shuffling.null_clones import (
    CertifiedClones,
    CloneBounds,
    NullClones,
    affordable,
)
from dpsub.accounting.schemes.shuffling.weights import WeighedBound, Weights

_CELLS = 32  # of each of the two numbers over which the supremum in Lemma 52 is taken
_FLOORS = (1e-4, 1e-5, 3e-6, 1e-6, 1e-7, 1e-8, 1e-10, 1e-12)
"""Charges of one epoch at order 1 for which numbers of steps k are looked for; any k is valid."""
_RARE_FLOORS = (1e-14, 1e-17, 1e-21)
"""Such charges for rare losses, where data sets are compared directly."""
_COUNTS = 80  # numbers of steps that are tried
_NODES = 700  # orders at which the allocations are computed
_REACH = 8.0  # deviations of the loss of a revealed step, or of a mean, that they go to
# orders at which data sets are compared directly: the first one after 1, in deviations of a mean of
# the most steps, by how much steps between them grow, and their smallest share of what they have
# come to; such that the logarithm of the bound
# falls by so much from one to the next, by more where it is rare
_FIRST, _GROWTH, _LEAST_STEP = 0.2, 1.4, 0.02
_FALL, _RARE, _RARE_FALL, _RAREST = 0.2, 1e-9, 0.8, 1e-25
# for bounds by weights: by how much their logarithm falls, the bound at which they end, the share
# of the bound before below which nothing is cut off, and the work of all orders for one law
_WEIGHED_FALL, _UNSEEN, _UNCUT, _WORK_OF_WEIGHTS = 0.6, 1e-20, 1e-4, 1.5e8
_MOST_WORK = 6e8  # of a comparison by Theorem 61
_WORK_BY_REFERENCE, _MOST_BY_REFERENCE = 4e8, 10**5  # of a law of Theorem 49, and steps
_SEEN = 0.03  # share of what is charged from which on fewer steps may give less
# of what is charged, and of the bound before: a mean that may be cut from the law of one difference
_UNSEEN_CHARGE, _UNSEEN_BOUND, _BOUND_AT_FIRST = 1e-5, 1e-3, 1e-3
# bounds by weights at which it is asked whether clones give less
_SEEN_LEAST, _SEEN_MOST = 1e-8, 1e-3
# for a certificate: with so many places of all grids together the verifier does all sums in a
# minute, and in two; with more there are coarser grids, and fewer orders
_SHORT, _LONG = 300_000, 600_000
_CERTIFIED_FALL, _CERTIFIED = 0.8, Fineness(8, 2**14, 1.0)
_CERTIFIED_ROUNDING = 1 + 1e-7
# by how much the logarithm of bounds by Theorem 89 falls from one order to the next, and the share
# of others that they are at most
_CLONED_FALL, _CLONED_GAIN = 0.3, 0.95
_FARTHEST = 12.0  # deviations between a record's vectors from which on nothing is hidden
_FEWEST = 4  # steps of an allocation from which on it is worth its time
_ROUNDING = 1 + 1e-9
_EPS = float(np.finfo(float).eps)


def leak(ratio: float, s: float) -> float:
    """Upper bound of the mean over j of H_c(N(r_j) || mean of all N(r_i)), for any number of
    vectors r_i of length at most 1 and noise N(0, s^2 I): Lemma 52.

    Parameters
    ----------
    ratio : float
        c >= 1.
    s : float
        Noise multiplier.
    """
    log_ratio = math.log(ratio)
    # H_c(N(r_j) || N(r_i)) is one of Gaussians at distance 2 or less, and (F1)
    by_pairs = float(gaussian_profile(np.array([log_ratio]), np.array([2 / s]))[0])
    # cells of R, the length of the mean vector; all that falls with R is taken at the left end, all
    # that grows with it at the right end
    edges = np.linspace(0.0, 1.0, _CELLS + 1)
    left, right = edges[:-1], edges[1:]
    spread = 1 - left**2
    log_order = log_ratio - spread / (2 * s * s)
    if log_order[0] <= 0:
        return by_pairs
    # cells of the distance from the mean, up to 1 + R
    distance = np.linspace(0.0, 1.0, _CELLS + 1)[1:] * (1 + right[:, None])
    value = gaussian_profile(log_order[:, None], distance / s)
    # the line through G at the first edge whose slope is the largest G / d^2 beyond it
    slope = np.max(value[:, 1:] / distance[:, :-1] ** 2, axis=1)
    return min(by_pairs, float(np.max(value[:, 0] + spread * slope)) * _ROUNDING)


class DirectBound(NamedTuple):
    """Theorem 61 at one order: the bound, the number of steps k, the unit of the grid of Z, and the
    bound without the charges for floating point."""

    value: float
    log_order: float
    steps: int
    unit: float
    uncharged: float


class OrderBound(NamedTuple):
    """Theorem 76 at one order: the bound, the unit of the grid of Z, and how it is proved for each
    law of Lemma 60."""

    log_order: float
    value: float
    unit: float
    proofs: list[WeighedBound]


_NONE_BEFORE = OrderBound(0.0, 1.0, 0.0, [])


class CertifiedBounds(NamedTuple):
    """Bounds by Theorems 61, 76 and 89 at increasing orders, the first ones without the charges for
    floating point."""

    direct: list[DirectBound]
    weighed: list[OrderBound]
    cloned: list[CertifiedClones]

    @property
    def every(self) -> list[DirectBound | OrderBound | CertifiedClones]:
        """All bounds, by their orders."""
        return sorted([*self.direct, *self.weighed, *self.cloned], key=_log_order)


class HiddenStep:
    """One epoch of T steps that hold a record each: Theorems 49, 61, 76 and 89, for a >= 1 and
    both orders of the data sets, or the bound of the revealed step where that is smaller.

    Parameters
    ----------
    steps : int
        T.
    s : float
        Noise multiplier.
    distance : float
        Of the differing record's two vectors: 2 under `substitute`, 1 under `zero_out`.
    in_steps : float
        Probability that a record is in a step. Below 1 a record whose place is taken is dropped and
        tells nothing (Theorem 78).
    is_kept : bool
        Whether the epoch stands for several in one order, `s` being that of Theorem 83. What the
        first steps tell of a place is not bounded then: null clones alone hide a step.
    """

    def __init__(
        self, steps: int, s: float, distance: float, in_steps: float = 1.0, is_kept: bool = False
    ) -> None:
        self.steps, self.s, self.distance, self.in_steps = steps, s, distance, in_steps
        self._is_kept = is_kept
        # total variation between two places of a vector of length 2
        between = gaussian_profile(np.zeros(1), np.array([2 * math.sqrt(2) / s]))
        self._variation = float(between[0])

    def charge(self, k: int) -> float:
        """Return the charge of an allocation to 1 of k steps at order a, divided by 1 + a."""
        if self.in_steps < 1:
            return 0.0
        return leak((self.steps - 1) / k, self.s) * self._variation * _ROUNDING

    @cached_property
    def choices(self) -> tuple[tuple[int, float], ...]:
        """Return numbers of steps k, with their charges: for each of `_FLOORS` the largest of some
        that is charged less at order 1."""
        if self.in_steps < 1:
            return ((self.steps, 0.0),)
        if self.steps <= _FEWEST or 2 * self.charge(_FEWEST) > _FLOORS[0]:
            return ()
        return self._charged_less(_FLOORS)

    @cached_property
    def _direct_choices(self) -> tuple[tuple[int, float], ...]:
        """Return such numbers with fewer steps for rare losses, by increasing k."""
        if self.in_steps < 1:
            return self.choices
        return tuple(sorted({*self.choices, *self._charged_less(_RARE_FLOORS)}))

    def _charged_less(self, floors: Sequence[float]) -> tuple[tuple[int, float], ...]:
        ratios = np.geomspace(1.0, (self.steps - 1) / _FEWEST, _COUNTS)
        counts = [*dict.fromkeys(max(_FEWEST, int((self.steps - 1) / ratio)) for ratio in ratios)]
        charge = cache(self.charge)
        found: dict[int, float] = {}
        for floor in floors:
            # along the list charges fall, as counts do
            place = bisect_left(counts, True, key=lambda k: 2 * charge(k) <= floor)
            if place < len(counts):
                found[counts[place]] = charge(counts[place])
        return tuple(found.items())

    @cached_property
    def _weights(self) -> Weights:
        levels = Weights.levels_of(self.steps)
        leaks = np.zeros(levels.size)
        if self.in_steps == 1:
            leaks[:] = [leak(max(level, 1.0), self.s) for level in levels.tolist()]
        return Weights(self.steps, levels, leaks)

    @property
    def amplifies(self) -> bool:
        """Whether the step may be hidden."""
        if self.distance / self.s > _FARTHEST:
            return False
        # both are asked: a budget that does not suffice for the one leaves neither
        return any([self.has_weights, self.has_clones])

    @cached_property
    def has_weights(self) -> bool:
        """Whether Theorem 61 has some number of steps, or Theorem 76 gives less than a revealed
        step at order 1."""
        if self._is_kept or (self.steps <= _FEWEST and self.in_steps == 1):
            return False
        return bool(self.choices) or self._at_order_1.value < self.revealed(np.zeros(1))[0]

    @cached_property
    def has_clones(self) -> bool:
        """Whether Theorem 89 may give less than a revealed step."""
        return self.in_steps == 1 and self._clones.gains

    @cached_property
    def _clones(self) -> NullClones:
        return NullClones(self.steps, self.s, self.distance, self._last_order)

    @cached_property
    def _cloned(self) -> CloneBounds | None:
        """Return bounds by Theorem 89; None where weights give less for less work."""
        if not self.has_clones:
            return None
        if self.has_weights and self.distance > 1:
            usual = [bound for bound in self._weighed if _SEEN_LEAST < bound.value < _SEEN_MOST]
            probes = usual[:1] + usual[-1:]
            if probes and all(self._clones.at(*each[:2]) > each.value for each in probes):
                return None
        return self._clones.bounds

    @property
    def _last_order(self) -> float:
        """Log order beyond which the revealed step alone bounds."""
        apart = self.distance / self.s
        return min(apart * (apart / 2 + _REACH), MAX_LOSS)

    @cached_property
    def _nodes(self) -> np.ndarray:
        """Log orders at which the allocations are computed."""
        last = self._last_order
        return np.append(0.0, np.geomspace(1e-4 * last, last, _NODES))

    def revealed(self, log_order: np.ndarray) -> np.ndarray:
        """Return bounds by Theorem 19."""
        apart = np.full(1, self.distance / self.s)
        bound: np.ndarray = np.minimum(gaussian_profile(log_order, apart), 1.0)
        return bound

    def profile(self, log_order: np.ndarray) -> np.ndarray:
        """Upper bounds at ln a >= 0, increasing."""
        x = np.asarray(log_order, dtype=float)
        best = self._in_a_step(x) * self.in_steps
        return np.minimum(best * (1 + 4 * _EPS), 1.0)

    def _in_a_step(self, x: np.ndarray) -> np.ndarray:
        """Upper bounds where the record is in a step."""
        best = self._without_clones(x)
        if self._cloned is not None:
            best = np.minimum(best, falling(x, *self._cloned))
        return best

    def _without_clones(self, x: np.ndarray) -> np.ndarray:
        """Return bounds by all theorems but 89."""
        best = self.revealed(x)
        for bounds in (self._direct, self._weighed) if self.has_weights else ():
            if len(bounds) > 1:
                best = np.minimum(best, falling(x, *_points(bounds)))
        if self._is_coarse:
            for by_reference in self._referenced.values():
                best = np.minimum(best, falling(x, self._nodes, by_reference))
        return best

    @property
    def _is_coarse(self) -> bool:
        """Whether nothing tells of a step, and sums of not too many differences that are seldom
        large need other grids: elsewhere Theorem 49 says less."""
        is_coarse = self.steps <= _MOST_BY_REFERENCE and not self._covers(FINE)
        return self.in_steps < 1 and is_coarse

    @cached_property
    def _direct(self) -> list[DirectBound]:
        """Return bounds by Theorem 61 up to the first order where weights give less, none where
        they take much work."""
        return self._compared(FINE, _FALL) if self.choices and self._work < _MOST_WORK else []

    @cached_property
    def _weighed(self) -> list[OrderBound]:
        """Return bounds by Theorem 76 at increasing orders from 1 on, while they fall."""
        # nothing is begun that is not finished
        each = _WORK_OF_WEIGHTS + (_WORK_BY_REFERENCE if self._is_coarse else 0.0)
        work.ensure(each * len(self._differences(1.0)), "bounds by weights")
        bounds = [self._at_order_1]
        step = _FIRST * self._deviation(self.steps)
        while bounds[-1].value > _UNSEEN and bounds[-1].log_order < self._last_order:
            before = bounds[-1]
            x = before.log_order
            x = min(x + max(step, _LEAST_STEP * x), self._last_order)
            found = self._weighed_at(x, before)
            if found.value > before.value:
                # the choices may have gone astray
                found = self._weighed_at(x, _NONE_BEFORE)
            if found.value > before.value:
                break
            bounds.append(found)
            step *= _faster(before.value, found.value, _WEIGHED_FALL)
        return bounds

    @cached_property
    def _at_order_1(self) -> OrderBound:
        return self._weighed_at(0.0, _NONE_BEFORE)

    def _weighed_at(self, x: float, before: OrderBound) -> OrderBound:
        """Return the bound at the order e^x, by choices about those at an order before."""
        laws = self._differences(math.exp(x), FOR_MOMENTS)
        proofs = [
            self._weights.bound(law.cut(_UNCUT * before.value), proof)
            for law, proof in zip_longest(laws, before.proofs)
        ]
        return OrderBound(x, max(proof.value for proof in proofs), laws[0].step, proofs)

    def _deviation(self, k: int) -> float:
        """Return the standard deviation of a mean of k differences, about."""
        return math.sqrt(math.expm1((self.distance / self.s) ** 2) / k)

    def _covers(self, fineness: Fineness) -> bool:
        """Whether grids are fine enough to compare data sets directly: then Theorem 49 says
        less."""
        return all(law.is_covered for law in self._differences(1.0, fineness))

    def _differences(self, order: float, fineness: Fineness = FINE) -> tuple[Differences, ...]:
        """Return laws of Lemma 60, of both orders of the data sets where they are not alike."""
        short, long = self.distance / self.s, 2 / self.s
        if self.distance > 1:
            return (Differences(order, long, long, long, fineness),)
        # the record is up to 2 from another one in the one data set, and up to 1 in the other
        lengths = (short, long, short), (short, short, long)
        return tuple(Differences(order, *each, fineness) for each in lengths)

    @cached_property
    def certified(self) -> CertifiedBounds:
        """Bounds that a certificate shows. Those of Theorem 61 are at fewer orders and on coarser
        grids where these are long."""
        if not self.has_weights:
            return self._needed([])
        found = self._needed(self._direct)
        if self._length(found.direct, FINE) <= _SHORT:
            return found
        if not self._covers(_CERTIFIED):
            return self._needed([])
        found = self._needed(self._compared(_CERTIFIED, _CERTIFIED_FALL))
        while self._length(found.direct, _CERTIFIED) > _LONG:
            found = self._needed(found.direct[::2])
        return found

    def _needed(self, direct: Sequence[DirectBound]) -> CertifiedBounds:
        """Return the bounds by Theorems 76 and 89 and these between which the lowest chords are."""
        # the verifier has no charges for floating point. Gamma of Theorem 76 falls with u_0, which
        # they raise, so that it may be larger there
        every: list[DirectBound | OrderBound | CertifiedClones] = [
            *(bound._replace(value=bound.uncharged) for bound in direct),
            *self._certified_clones,
        ]
        if self.has_weights:
            every += (
                each._replace(value=each.value * _CERTIFIED_ROUNDING) for each in self._weighed
            )
        # of two at one order the smaller one comes last, and is kept
        every.sort(key=lambda bound: (bound.log_order, -bound.value))
        points = [*{bound.log_order: bound for bound in every}.values()]
        if points:
            nodes, values = _points(points)
            points = [points[place] for place in convex(np.expm1(nodes), values)]
        return CertifiedBounds(
            [bound for bound in points if isinstance(bound, DirectBound)],
            [bound for bound in points if isinstance(bound, OrderBound) and bound.value < 1],
            [bound for bound in points if isinstance(bound, CertifiedClones)],
        )

    @cached_property
    def _certified_clones(self) -> list[CertifiedClones]:
        """Return bounds by Theorem 89 at some of the orders at which it gives less than others."""
        if self._cloned is None:
            return []
        nodes, values = self._cloned
        chosen: list[int] = []
        for place in np.flatnonzero(values < _CLONED_GAIN * self._without_clones(nodes)).tolist():
            if not chosen or values[place] < values[chosen[-1]] * math.exp(-_CLONED_FALL):
                chosen.append(place)
        found = (
            self._clones.certified_at(*each)
            for each in zip(nodes[chosen], values[chosen], strict=True)
        )
        return affordable([bound for bound in found if bound is not None])

    def _length(self, bounds: Sequence[DirectBound], fineness: Fineness) -> int:
        """Number of places of all grids together."""
        laws = (self._differences(math.exp(bound.log_order), fineness) for bound in bounds)
        return sum(law.length for both in laws for law in both)

    @cached_property
    def references(self) -> tuple[int, ...]:
        """Numbers of steps k with which a certificate uses Theorem 49, where the verifier cannot
        compare data sets directly."""
        if not self.has_weights:
            return ()
        return () if self._covers(_CERTIFIED) else tuple(k for k, _ in self.choices)

    def certified_profile(self, log_order: np.ndarray, references: Sequence[int]) -> np.ndarray:
        """Return the profile, or the bound that Theorem 49 with these numbers of steps and Theorems
        89, 76, 61 and 19 give at the orders of a certificate where others are smaller."""
        x = np.asarray(log_order, dtype=float)
        alone = self.revealed(x)
        bounds = [(self._nodes, self._referenced[k]) for k in references]
        if len(self.certified.every) > 1:
            bounds.append(_points(self.certified.every))
        for nodes, values in bounds:
            # the verifier knows of chords alone, not that bounds may be taken to fall
            least, inside = nodes[int(np.argmin(values))], x <= nodes[-1]
            by_chords = np.where(x <= least, falling(x, nodes, values), chords(x, nodes, values))
            alone[inside] = np.minimum(alone, by_chords)[inside]
        bound: np.ndarray = np.maximum(alone, self.profile(x))
        return bound

    def _compared(self, fineness: Fineness, fall: float) -> list[DirectBound]:
        """Return bounds by Theorem 61 at increasing orders, with the best of some numbers of steps,
        from 1 to the first one where weights give less, or the revealed step alone bounds."""
        bounds: list[DirectBound] = []
        # any number of steps is valid. The best one falls with the order, as a mean of fewer
        # differences is seldom above 0, too, and charged less
        choices = self._direct_choices
        x, step = 0.0, _FIRST * self._deviation(max(k for k, _ in choices or [(1, 0.0)]))
        while choices:
            before = bounds[-1].value if bounds else _BOUND_AT_FIRST
            # the first law decides which choice it is, and is the larger one
            laws = self._differences(math.exp(x), fineness)
            best = _bound(laws[0], choices[-1], before)
            while len(choices) > 1 and (1 + laws[0].order) * choices[-1][1] > _SEEN * best.value:
                less = _bound(laws[0], choices[-2], best.value)
                if less >= best:
                    break
                best, choices = less, choices[:-1]
            best = max([best, *(_bound(law, choices[-1], best.value) for law in laws[1:])])
            unit = max(law.step for law in laws)
            bounds.append(best._replace(log_order=x, unit=unit))
            if x >= self._last_order or self._is_beaten(bounds[-1]):
                break
            if best.value < _RAREST:
                step *= _GROWTH
            elif len(bounds) > 1:
                step *= _faster(before, best.value, fall)
            x = min(x + max(step, _LEAST_STEP * x), self._last_order)
        return bounds

    def _is_beaten(self, bound: DirectBound) -> bool:
        """Whether weights give less, as they then do at larger orders: there what a step tells
        counts more; or, where nothing tells of a step, give nearly as little for less work."""
        if self.in_steps < 1:
            return bound.value < _RARE
        (weighed,) = falling(np.array([bound.log_order]), *_points(self._weighed))
        return bound.value > weighed

    @property
    def _work(self) -> float:
        """Estimate the work of a direct comparison."""
        most = max(k for k, _ in self.choices)
        terms = round(150 * math.sqrt(most))
        laws = self._differences(1.0)
        of_one = work.TERM * 80 * laws[0].size + 12 * work.NUMBER * terms + work.transform(terms)
        return 150 * len(laws) * of_one

    @cached_property
    def _referenced(self) -> dict[int, np.ndarray]:
        """Return bounds by Theorem 49 at the nodes, with each of these numbers of steps."""
        bounds, charges = {}, dict(self.choices)
        for k in charges:
            work.spend(work.TERM * self._nodes.size * 64)
            bounds[k] = self.allocated(k)(self._nodes) + (1 + np.exp(self._nodes)) * charges[k]
        return bounds

    def allocated(self, k: int) -> Profile:
        """Return the bound by way of an epoch in which another record stands in for the differing
        one, as if that were in 1 of k steps, and the step is unknown."""
        replaced, *emptied = self.stand_ins(k).values()
        if not emptied:
            return by_reference(replaced, replaced)
        forward = by_reference(replaced, emptied[0])
        backward = by_reference(emptied[0], replaced)
        return lambda log_order: np.maximum(forward(log_order), backward(log_order))

    def stand_ins(self, k: int) -> dict[str, AllocationEvent]:
        """Return epochs in which the record takes the place of another in 1 of k steps: of a
        record, from which it is up to 2 apart, and, under `zero_out`, of one that contributes 0, at
        distance 1."""
        record = AllocationEvent(k, self.s / 2)
        if self.distance > 1:
            return {"record": record}
        return {"record": record, "empty": AllocationEvent(k, self.s)}


def _faster(before: float, value: float, fall: float) -> float:
    """Return the factor by which steps between orders grow, so that the logarithm of a bound falls
    by so much from one to the next."""
    wanted = fall if value > _RARE else max(fall, _RARE_FALL)
    fell = math.log(max(before / value, 1 + 1e-9))
    return min(max(wanted / fell, 1 / 4), _GROWTH)


def _bound(law: Differences, choice: tuple[int, float], before: float) -> DirectBound:
    """Return the bound of Theorem 61 with one law and one number of steps; about as large as a
    bound before."""
    k, charge = choice
    charged = (1 + law.order) * charge
    mean = law.mean_above_zero(k, max(_UNSEEN_CHARGE * charged, _UNSEEN_BOUND * before))
    value = min((mean.value + charged) * _ROUNDING, 1.0)
    return DirectBound(value, math.log(law.order), k, law.step, value - mean.charge)


def _log_order(bound: DirectBound | OrderBound | CertifiedClones) -> float:
    return bound.log_order


def _points(
    bounds: Sequence[DirectBound | OrderBound | CertifiedClones],
) -> tuple[np.ndarray, np.ndarray]:
    """Return log orders and bounds there."""
    nodes, values = np.array([(bound.log_order, bound.value) for bound in bounds]).T
    return nodes, values


@dataclass(frozen=True)
class HiddenStepEvent(DominatedEvent):
    """An epoch whose steps hide the record."""

    hidden: HiddenStep = field(kw_only=True)
    references: tuple[int, ...] = ()
    """Numbers of steps with which a certificate uses Theorem 49."""

    @classmethod
    def of(cls, hidden: HiddenStep) -> HiddenStepEvent:
        """Return the event whose profile Theorems 49, 61, 76 and 89 give."""
        return cls(lambda tail: (hidden.profile, None), None, hidden=hidden)

    @classmethod
    def certified(cls, hidden: HiddenStep, references: tuple[int, ...]) -> HiddenStepEvent:
        """Return the event that a certificate proves: by Theorem 49 with these numbers of steps,
        and by the bounds of Theorems 61, 76 and 89 in `hidden`."""

        def profile(log_order: np.ndarray) -> np.ndarray:
            return hidden.certified_profile(log_order, references)

        return cls(lambda tail: (profile, None), None, hidden=hidden, references=references)

    def without(self, k: int) -> HiddenStepEvent:
        """Return the event with one number of steps less."""
        left = tuple(each for each in self.references if each != k)
        return HiddenStepEvent.certified(self.hidden, left)


@work.remembered(64)  # of questions that are equal: a search asks again and again
def hidden_step(
    steps: int, s: float, distance: float, in_steps: float = 1.0, is_kept: bool = False
) -> HiddenStep | None:
    """Return the bound of one epoch, or of several in one order; None where a hidden step gives
    nothing."""
    hidden = HiddenStep(steps, s, distance, in_steps, is_kept)
    return hidden if hidden.amplifies else None
