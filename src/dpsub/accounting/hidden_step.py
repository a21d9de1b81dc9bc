"""Shuffled epochs: an upper bound that does not reveal the record's step (docs/accounting.md,
Lemmas 48, 52 and 60, Theorems 49 and 61).

A uniform order of T records, one a step, is one in which the differing record stands at step J and
the record that was there at step 1, J uniform. Were it not for step 1, the epoch would be a random
allocation of one vector to 1 of T - 1 steps. What step 1 tells of J changes the weights of the
steps. Where none is above 1/k, the allocation is to 1 of k steps or better; the mean excess above
1/k (`leak`) is charged. The two data sets are compared by way of an epoch in which another record
stands in for the differing one, or directly, whichever gives less.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import NamedTuple

import numpy as np

from dpsub.accounting import work
from dpsub.accounting.allocation import AllocationEvent, by_reference
from dpsub.accounting.differences import CELLS, Differences
from dpsub.accounting.pld import MAX_LOSS, Profile
from dpsub.accounting.privacy_events import DominatedEvent
from dpsub.accounting.proofs import gaussian_profile

_CELLS = 32  # of each of the two numbers over which the supremum in Lemma 52 is taken
_FLOORS = (1e-4, 1e-5, 3e-6, 1e-6, 1e-7, 1e-8, 1e-10, 1e-12)
"""Charges of one epoch at order 1 for which numbers of steps k are looked for; any k is valid."""
_RARE_FLOORS = (1e-14, 1e-17, 1e-21)
"""The same for rare losses, where data sets are compared directly."""
_COUNTS = 80  # numbers of steps that are tried
_NODES = 700  # orders at which the allocations are computed
_REACH = 8.0  # deviations of the loss of a revealed step, or of a mean, that they go to
# orders at which data sets are compared directly: how far apart they are in deviations of a mean of
# the most steps, up to where, and by which factor from there on
_APART, _FINE, _FACTOR = 0.3, 6.0, 1.05
_UNSEEN = 1e-5  # of what is charged: a mean that may be cut from the law of one difference
# for a certificate: every second one of these orders, some beyond them, and coarser grids
_FAR_NODES, _CERTIFIED_CELLS = 12, 8
_FEWEST = 4  # steps of an allocation from which on it is worth its time
_ROUNDING = 1 + 1e-9


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
    """Theorem 61 at one order: the number of steps k, the unit of the grid of Z, and the bound with
    and without what is charged for floating point."""

    log_order: float
    steps: int
    unit: float
    value: float
    uncharged: float


class HiddenStep:
    """One epoch of T steps that hold a record each: Theorems 49 and 61, for a >= 1 and both orders
    of the data sets, or the bound of the revealed step where that is smaller.

    Parameters
    ----------
    steps : int
        T.
    s : float
        Noise multiplier.
    distance : float
        Of the differing record's two vectors: 2 under `substitute`, 1 under `zero_out`.
    """

    def __init__(self, steps: int, s: float, distance: float) -> None:
        self.steps, self.s, self.distance = steps, s, distance
        # total variation between two places of a vector of length 2
        between = gaussian_profile(np.zeros(1), np.array([2 * math.sqrt(2) / s]))
        self._variation = float(between[0])

    def charge(self, k: int) -> float:
        """What an allocation to 1 of k steps is charged at order a, divided by 1 + a."""
        return leak((self.steps - 1) / k, self.s) * self._variation * _ROUNDING

    @cached_property
    def choices(self) -> tuple[tuple[int, float], ...]:
        """Numbers of steps k, with their charges: for each of `_FLOORS` the largest of some that is
        charged less at order 1."""
        if self.steps <= _FEWEST or 2 * self.charge(_FEWEST) > _FLOORS[0]:
            return ()
        return self._charged_less(_FLOORS)

    @cached_property
    def _direct_choices(self) -> tuple[tuple[int, float], ...]:
        """The same with fewer steps for rare losses, by increasing k."""
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

    @property
    def _last_order(self) -> float:
        """ln a beyond which the revealed step alone bounds."""
        apart = self.distance / self.s
        return min(apart * (apart / 2 + _REACH), MAX_LOSS)

    @cached_property
    def _nodes(self) -> np.ndarray:
        """Log orders at which the allocations are computed."""
        last = self._last_order
        return np.append(0.0, np.geomspace(1e-4 * last, last, _NODES))

    def revealed(self, log_order: np.ndarray) -> np.ndarray:
        """Theorem 19."""
        apart = np.full(1, self.distance / self.s)
        bound: np.ndarray = np.minimum(gaussian_profile(log_order, apart), 1.0)
        return bound

    def profile(self, log_order: np.ndarray) -> np.ndarray:
        """Upper bounds at ln a >= 0, increasing."""
        x = np.asarray(log_order, dtype=float)
        best = self.revealed(x)
        if self._direct_orders.size > 1:
            best = np.minimum(best, _falling(x, self._direct_orders, self._direct))
        if not self.covers:
            for by_reference in self._referenced.values():
                best = np.minimum(best, _falling(x, self._nodes, by_reference))
        bound: np.ndarray = best * _ROUNDING
        return bound

    @cached_property
    def _direct_orders(self) -> np.ndarray:
        """Log orders at which data sets are compared directly, up to some deviations of a mean of
        the fewest steps."""
        if not self.choices:
            return np.zeros(0)
        fewest, most = (self._deviation(self._direct_choices[i][0]) for i in (0, -1))
        end = min(self._last_order, _REACH * fewest)
        fine = np.arange(0.0, _FINE, _APART) * most
        number = math.ceil(max(math.log(end / (_FINE * most)) / math.log(_FACTOR), 0.0)) + 1
        far = np.geomspace(min(_FINE * most, end), end, number)
        return self._covered(np.concatenate([fine[fine < far[0]], far]))

    def _deviation(self, k: int) -> float:
        """Of a mean of k differences, about."""
        return math.sqrt(math.expm1((self.distance / self.s) ** 2) / k)

    def _covered(self, log_orders: np.ndarray) -> np.ndarray:
        """Those whose laws are covered: laws of larger orders are wider."""
        covered = [
            all(law.is_covered for law in self._differences(math.exp(x))) for x in log_orders
        ]
        return log_orders[covered]

    @property
    def covers(self) -> bool:
        """Whether data sets are compared directly wherever Theorem 49 might say something: there it
        says less."""
        if not self.choices:
            return True
        reach = _REACH * self._deviation(min(k for k, _ in self.choices))
        end = np.array([min(self._last_order, reach)])
        return bool(self._covered(end).size)

    def _differences(self, order: float, cells: int = CELLS) -> tuple[Differences, ...]:
        """Laws of Lemma 60, of both orders of the data sets where they are not alike."""
        short, long = self.distance / self.s, 2 / self.s
        if self.distance > 1:
            return (Differences(order, long, long, long, cells),)
        # the record is up to 2 from another one in the one data set, and up to 1 in the other
        lengths = (short, long, short), (short, short, long)
        return tuple(Differences(order, *each, cells) for each in lengths)

    @cached_property
    def certified(self) -> list[DirectBound]:
        """Theorem 61 at orders of the profile and at some beyond them, up to where the revealed
        step bounds more; without what is charged for floating point, which the verifier has none
        of."""
        near = self._direct_orders[::2]
        if near.size < 2:
            return []
        bounds = self._compared_at(near, _CERTIFIED_CELLS)
        for x in np.geomspace(near[-1], self._last_order, _FAR_NODES + 1)[1:]:
            if not self._covered(np.array([x])).size:
                break
            bounds += self._compared_at(np.array([x]), _CERTIFIED_CELLS)
            if bounds[-1].uncharged >= self.revealed(np.array([x]))[0]:
                break
        return bounds

    @cached_property
    def references(self) -> tuple[int, ...]:
        """Numbers of steps k with which Theorem 49 is computed."""
        return () if self.covers else tuple(k for k, _ in self.choices)

    def certified_profile(self, log_order: np.ndarray, references: Sequence[int]) -> np.ndarray:
        """The profile, or what Theorem 49 with these numbers of steps and Theorems 61 and 19 give
        alone where others are smaller."""
        x = np.asarray(log_order, dtype=float)
        alone = self.revealed(x)
        bounds = [(self._nodes, self._referenced[k]) for k in references]
        if self.certified:
            nodes = np.array([bound.log_order for bound in self.certified])
            bounds.append((nodes, np.array([bound.uncharged for bound in self.certified])))
        for nodes, values in bounds:
            alone = np.minimum(alone, _falling(x, nodes, values))
        bound: np.ndarray = np.maximum(alone, self.profile(x))
        return bound

    @cached_property
    def _direct(self) -> np.ndarray:
        """Theorem 61 at its log orders."""
        return np.array([bound.value for bound in self._compared_at(self._direct_orders)])

    def _compared_at(self, log_orders: np.ndarray, cells: int = CELLS) -> list[DirectBound]:
        """Theorem 61 at these log orders, increasing, with the best of some numbers of steps."""
        bounds = []
        # any number of steps is valid. The best one falls with the order, as a mean of fewer
        # differences is seldom above 0, too, and charged less
        choices = self._direct_choices
        for x in log_orders.tolist():
            # the first law decides which choice it is, and is the larger one
            law, *others = self._differences(math.exp(x), cells)
            best = _compared(law, choices[-1])
            while len(choices) > 1 and (less := _compared(law, choices[-2])).value < best.value:
                best, choices = less, choices[:-1]
            best = max([best, *(_compared(other, choices[-1]) for other in others)], key=_value)
            unit = max(law.step for law in (law, *others))
            bounds.append(best._replace(log_order=x, unit=unit))
        return bounds

    @cached_property
    def _referenced(self) -> dict[int, np.ndarray]:
        """Theorem 49 at the nodes, with each of these numbers of steps."""
        bounds, charges = {}, dict(self.choices)
        for k in self.references:
            work.spend(work.TERM * self._nodes.size * 64)
            bounds[k] = self.allocated(k)(self._nodes) + (1 + np.exp(self._nodes)) * charges[k]
        return bounds

    def allocated(self, k: int) -> Profile:
        """By way of an epoch in which another record stands in for the differing one, if that were
        in 1 of k steps, and the step is unknown."""
        replaced, *emptied = self.stand_ins(k).values()
        if not emptied:
            return by_reference(replaced, replaced)
        forward = by_reference(replaced, emptied[0])
        backward = by_reference(emptied[0], replaced)
        return lambda log_order: np.maximum(forward(log_order), backward(log_order))

    def stand_ins(self, k: int) -> dict[str, AllocationEvent]:
        """One in 1 of k steps that takes the place of another: of a record, from which it is up to
        2 apart, and, under `zero_out`, of one that contributes 0, at distance 1."""
        record = AllocationEvent(k, self.s / 2)
        if self.distance > 1:
            return {"record": record}
        return {"record": record, "empty": AllocationEvent(k, self.s)}


def _compared(law: Differences, choice: tuple[int, float]) -> DirectBound:
    """Theorem 61 with one law and one number of steps."""
    k, charge = choice
    charged = (1 + law.order) * charge
    mean = law.mean_above_zero(k, _UNSEEN * charged)
    value = min((mean.value + charged) * _ROUNDING, 1.0)
    return DirectBound(math.log(law.order), k, law.step, value, value - mean.charge)


def _value(bound: DirectBound) -> float:
    return bound.value


def _falling(x: np.ndarray, nodes: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Chords between bounds of H_a at nodes, and beyond the last one that, as H_a falls with a; by
    the same reason no bound need exceed one before it."""
    falling = np.minimum.accumulate(values)
    beyond = np.full(x.shape, falling[-1])
    return np.where(x <= nodes[-1], _chords(x, nodes, falling), beyond)


def _chords(x: np.ndarray, nodes: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Upper bounds of H_a at x = ln a: H_a is convex in a, so that chords of upper bounds are upper
    bounds."""
    left = np.clip(np.searchsorted(nodes, x, side="right") - 1, 0, nodes.size - 2)
    share = np.expm1(x - nodes[left]) / np.expm1(nodes[left + 1] - nodes[left])
    share = np.clip(share, 0.0, 1.0)
    chord: np.ndarray = (values[left] * (1 - share) + values[left + 1] * share) * _ROUNDING
    return chord


@dataclass(frozen=True)
class HiddenStepEvent(DominatedEvent):
    """An epoch whose steps hide the record."""

    hidden: HiddenStep = field(kw_only=True)
    references: tuple[int, ...] = ()
    """Numbers of steps with which a certificate uses Theorem 49."""

    @classmethod
    def of(cls, hidden: HiddenStep) -> HiddenStepEvent:
        """By Theorems 49 and 61."""
        return cls(lambda tail: (hidden.profile, None), None, hidden=hidden)

    @classmethod
    def certified(cls, hidden: HiddenStep, references: tuple[int, ...]) -> HiddenStepEvent:
        """As a certificate proves it, by Theorem 49 with these numbers of steps, and by what
        `hidden` has of Theorem 61."""

        def profile(log_order: np.ndarray) -> np.ndarray:
            return hidden.certified_profile(log_order, references)

        return cls(lambda tail: (profile, None), None, hidden=hidden, references=references)

    def without(self, k: int) -> HiddenStepEvent:
        """The same with one number of steps less."""
        left = tuple(each for each in self.references if each != k)
        return HiddenStepEvent.certified(self.hidden, left)


@work.remembered(64)  # of questions that are equal: a search asks again and again
def hidden_step(steps: int, s: float, distance: float) -> HiddenStep | None:
    """One epoch; None where Theorem 49 gives nothing."""
    hidden = HiddenStep(steps, s, distance)
    return hidden if hidden.choices else None
