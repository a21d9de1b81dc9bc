"""One step of a composed mechanism: what bounds its loss from above and from below, in both directions.

Events and how often each of them happens: bounds of delta(epsilon), or epsilon(delta), of their composition.

One question to a composition, asked on finer and finer grids until the answer is as sharp as wanted.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np

from dpsub import checks
from dpsub.accounting import pairs
from dpsub.accounting.compose import ComposedLoss
from dpsub.accounting.discretise import DirectedPair, lower_law, upper_law
from dpsub.accounting.pairs import FillerPair, GaussianPair, MixturePair
from dpsub.accounting.pld import MAX_LOSS, PrivacyLossDistribution, Profile, order_indices, symmetric_law, two_sided_law
from dpsub.errors import ArgumentError, NumericalError

ProfileMaker = Callable[[float], tuple[Profile, Profile | None]]
"""tail -> (H_a(P || Q), H_a(Q || P)) for a >= 1; None for the second where it equals the first."""

_SEARCH = np.concatenate([[0.0], np.geomspace(1e-5, MAX_LOSS, 90)])


class Event(ABC):
    """A step of a composition."""

    @abstractmethod
    def upper(self, step: float, tail: float, swapped: bool) -> PrivacyLossDistribution:
        """A law that dominates the step, in one direction."""

    @abstractmethod
    def lower(self, step: float, tail: float, swapped: bool) -> PrivacyLossDistribution | None:
        """A law that an explicit pair of data sets attains, in one direction; None if none is known."""

    def fitting(self, step: float) -> float:
        """A step, at most the one given, that suits the lower law: any is valid."""
        return step

    @property
    @abstractmethod
    def symmetric(self) -> bool:
        """Whether both directions have the same laws."""

    @property
    def upper_symmetric(self) -> bool:
        """Whether both directions have the same upper law."""
        return self.symmetric

    @property
    @abstractmethod
    def exact(self) -> bool:
        """Whether both bound the same loss."""

    @property
    def attacked(self) -> bool:
        """Whether an attack is known, so that `lower` gives laws."""
        return True

    @property
    def attained_once(self) -> bool:
        """Whether both bound the same loss if the step happens once, and alone."""
        return self.exact

    @abstractmethod
    def spread(self) -> float:
        """Standard deviation of the loss, roughly: the unit of grid steps."""


@dataclass(frozen=True)
class PairEvent(Event):
    """A step whose worst data sets are known: the pair itself.

    Attributes
    ----------
    pair : GaussianPair
    one_direction : bool
        Use X against X' only, as the papers do for Poisson sampling.
    """

    pair: GaussianPair
    one_direction: bool = False

    def upper(self, step: float, tail: float, swapped: bool) -> PrivacyLossDistribution:
        kept, lost = _dropped(self.pair, tail)
        return upper_law(kept, step, tail=tail, swapped=swapped, lost=lost)

    def lower(self, step: float, tail: float, swapped: bool) -> PrivacyLossDistribution | None:
        return lower_law(_capped(self.pair, tail), step, tail=tail, swapped=swapped)

    @property
    def symmetric(self) -> bool:
        # a pair and its mirror image have one loss in both directions
        return self.pair.mirrored or self.one_direction

    @property
    def exact(self) -> bool:
        return True

    def spread(self) -> float:
        pair = _capped(self.pair, 1e-12)
        below, above = DirectedPair(pair).range(1e-3)
        return float(np.sqrt(upper_law(pair, max(above - below, 1e-9) / 400, tail=1e-9).moments(0.0)[1]))


@dataclass(frozen=True)
class DominatedEvent(Event):
    """A step with a proved profile, and an attack that may fall short of it.

    Attributes
    ----------
    profile : callable
        `ProfileMaker`.
    attack : GaussianPair or None
        Outputs on two explicit data sets.
    attained : bool
        Whether the attack attains the profile, so that both bound one number if there is one step only.
    """

    profile: ProfileMaker
    attack: GaussianPair | None
    attained: bool = False

    def upper(self, step: float, tail: float, swapped: bool) -> PrivacyLossDistribution:
        forward, backward = self.profile(tail)
        indices = order_grid(forward, step, tail)
        if backward is None:
            return symmetric_law(forward, step, indices)
        first, second = (backward, forward) if swapped else (forward, backward)
        return two_sided_law(first, second, step, indices)

    def lower(self, step: float, tail: float, swapped: bool) -> PrivacyLossDistribution | None:
        return None if self.attack is None else PairEvent(self.attack).lower(step, tail, swapped)

    @property
    def symmetric(self) -> bool:
        return self.profile(1e-9)[1] is None and (self.attack is None or self.attack.mirrored)

    @property
    def upper_symmetric(self) -> bool:
        return self.profile(1e-9)[1] is None

    @property
    def exact(self) -> bool:
        return False

    @property
    def attacked(self) -> bool:
        return self.attack is not None

    @property
    def attained_once(self) -> bool:
        return self.attained

    def spread(self) -> float:
        forward, backward = self.profile(1e-9)
        values = forward(_SEARCH)
        rough = float(_SEARCH[int(np.argmax(values <= max(1e-6, values[0] * 1e-4)))]) or MAX_LOSS
        indices = np.concatenate([[0], np.unique(np.round(np.geomspace(1, 2e4, 150)).astype(int))])
        step = min(10 * rough, MAX_LOSS) / 2e4
        if backward is None:
            law = symmetric_law(forward, step, indices)
        else:
            law = two_sided_law(forward, backward, step, indices)
        # where all losses are so large that they count as infinite, none are left that could differ
        return float(np.sqrt(law.moments(0.0)[1])) or rough


def order_grid(profile: Profile, step: float, tail: float, floor: float = 0.0) -> np.ndarray:
    """Indices of the orders that suit a profile which falls to `floor`, up to where less than `tail` is left."""
    values = profile(_SEARCH) - floor
    below, bulk = values <= tail, values <= values[0] * 1e-3
    last = float(_SEARCH[int(np.argmax(below))]) if below.any() else MAX_LOSS
    fine = float(_SEARCH[int(np.argmax(bulk))]) if bulk.any() else last
    return order_indices(step, min(fine, last), last)


@lru_cache(maxsize=32)
def _dropped(pair: GaussianPair, tail: float) -> tuple[GaussianPair, float]:
    if isinstance(pair, FillerPair | MixturePair):
        law, lost = pairs.dropped(pair.law, tail)
        return replace(pair, law=law), lost
    return pair, 0.0


@lru_cache(maxsize=32)
def _capped(pair: GaussianPair, tail: float) -> GaussianPair:
    if isinstance(pair, FillerPair | MixturePair):
        return replace(pair, law=pairs.capped(pair.law, tail))
    return pair


DEFAULT_TAIL = 1e-18
_LEAST_TAIL = 1e-250
_MOST_ROUNDS = 12
_FALL = 3.0
"""By how much errors of upper answers fall, at least, where the step is halved."""

Builder = Callable[[float, float, bool], ComposedLoss | None]
"""(step, tail, swapped) -> the composition of one side in one direction; the largest answer of all directions
counts."""


@dataclass(frozen=True)
class Question:
    """delta at a given epsilon, or epsilon at a given delta.

    Attributes
    ----------
    epsilon : float or None
        Nats, >= 0.
    delta : float or None
        In (0, 1); exactly one of the two is given.
    width : float
        How far apart lower and upper answers may be: absolute for epsilon, relative to the answer for delta.

    Raises
    ------
    ArgumentError
        If not exactly one of epsilon and delta is given, or a value is out of range.
    """

    epsilon: float | None = None
    delta: float | None = None
    width: float = 1e-3
    deadline: float | None = None

    def __post_init__(self) -> None:
        if (self.epsilon is None) == (self.delta is None):
            raise ArgumentError(
                f"give either epsilon or delta, got epsilon = {self.epsilon}, delta = {self.delta}; drop or add one"
            )
        if self.epsilon is not None:
            object.__setattr__(self, "epsilon", checks.real("epsilon", self.epsilon, at_least=0))
        else:
            object.__setattr__(self, "delta", checks.real("delta", self.delta, above=0, below=1))
        object.__setattr__(self, "width", checks.real("width", self.width, above=0))

    @property
    def quantity(self) -> str:
        return "delta" if self.delta is None else "epsilon"

    def ask(self, composition: ComposedLoss | None) -> float:
        """The answer of one composition; 0 if there is none."""
        return 0.0 if composition is None else self._one(composition)

    def _one(self, composition: ComposedLoss) -> float:
        if self.epsilon is not None:
            return composition.delta(self.epsilon)
        assert self.delta is not None
        return composition.epsilon(self.delta)

    def gap(self, lower: float, upper: float) -> float:
        """The distance of two answers, in units of the width wanted; at most 1 is sharp enough."""
        if upper == lower:
            return 0.0
        if not math.isfinite(upper):
            return math.inf
        scale = self.width * (abs(upper) if self.delta is None else 1.0)
        return (upper - lower) / scale


class Bracket(NamedTuple):
    """Both ends, and whether they came out as sharp as the question wants.

    Attributes
    ----------
    lower, upper : float
        Valid in any case.
    width_met : bool
        False if a numerical limit (size of the transform, number of rounds) stopped the refinement.
    """

    lower: float
    upper: float
    width_met: bool


class End(NamedTuple):
    """One end, and whether it moved by less than the wanted width when the grid was last refined."""

    value: float
    width_met: bool


def bracket(
    question: Question, lower: Builder, upper: Builder, directions: Sequence[bool], step: float, tail: float
) -> Bracket:
    """Lower and upper answers for one number, at most the wanted width apart where the grid can be made that fine.

    Parameters
    ----------
    question : Question
    lower, upper : callable
    directions : sequence of bool
    step : float
        Where to start, in nats; errors fall with its square.
    tail : float
        Where to start with the mass that may be cut off.
    """
    ceiling = math.inf if question.delta is not None else 1.0
    best = dict.fromkeys(directions, (0.0, ceiling))
    last_gap, slow = math.inf, 0
    for _ in range(_MOST_ROUNDS):
        floor = max(low for low, _ in best.values())
        open_directions = [swapped for swapped in directions if best[swapped][1] > floor or len(directions) == 1]
        try:
            for swapped in open_directions:
                high = question.ask(upper(step, tail, swapped))
                low = 0.0 if high < floor else question.ask(lower(step, tail, swapped))
                best[swapped] = (max(best[swapped][0], low), min(best[swapped][1], high))
                floor = max(floor, low)
        except NumericalError:
            if floor > 0 and math.isfinite(_overall(best)[1]):
                break
            step *= 4
            continue
        found = _overall(best)
        gap = question.gap(*found)
        # a gap that does not move at all is not the grid's; where the lower answer is 0, the upper one decides
        still = math.isfinite(gap) and gap > 0.98 * last_gap
        # an infinite gap does not shrink either
        stuck = not gap < 0.8 * last_gap and not _vanishing(question, found, tail)
        slow = slow + (2 if still else 1) if stuck else 0
        if gap <= 1 or slow >= 3:
            break
        last_gap = gap
        step, tail = _refined(question, gap, found, step, tail)
    found = _overall(best)
    return Bracket(*found, question.gap(*found) <= 1)


def _overall(best: dict[bool, tuple[float, float]]) -> tuple[float, float]:
    return max(low for low, _ in best.values()), max(high for _, high in best.values())


def _vanishing(question: Question, found: tuple[float, float], tail: float) -> bool:
    """Whether delta may be so small that only the tail that is cut off is seen."""
    return question.delta is None and found[0] <= 0 < found[1] < 1e-10 and tail > _LEAST_TAIL


def _refined(
    question: Question, gap: float, found: tuple[float, float], step: float, tail: float
) -> tuple[float, float]:
    if question.delta is None:
        if 0 < found[0] < tail * 1e12 and tail > _LEAST_TAIL:
            # what is cut off must not be seen beside the answer
            return step, found[0] * 1e-14
        if _vanishing(question, found, tail):
            return step, max(tail**2, _LEAST_TAIL)
    ratio = 0.85 / math.sqrt(gap) if math.isfinite(gap) else 0.25
    return step * min(0.7, max(ratio, 1 / 8)), tail


def sharpened(
    question: Question,
    build: Builder,
    directions: Sequence[bool],
    step: float,
    side: str,
    tail: float,
    rival: float = 0.0,
) -> End:
    """The best answer of one side, on finer and finer grids until what finer ones would change is below the width.

    Every answer is valid; how far it moved only tells when to stop.  For a lower answer one direction is enough: the
    one that is far behind on the first grid is left out.  An upper answer needs all.

    Parameters
    ----------
    question : Question
    build : callable
    directions : sequence of bool
    step : float
        Where to start, in nats.
    side : {"upper", "lower"}
    tail : float
        Mass that may be cut off.
    rival : float
        A lower answer that is known already: the search for another one ends where it will not overtake it.
    """
    coarsest, ratio = step, 2.0
    kept = list(directions)
    best: float | None = None
    for _ in range(_MOST_ROUNDS):
        try:
            answers = {swapped: question.ask(build(step, tail, swapped)) for swapped in kept}
        except NumericalError:
            if best is not None:
                return End(best, False)
            step *= 2
            continue
        found = max(answers.values())
        if side == "lower":
            kept = [swapped for swapped in kept if answers[swapped] > 0.7 * found] or kept
        if best is None:
            best = found
            step /= ratio
            continue
        left = abs(found - best) / (ratio**2 - 1)
        gap = question.gap(min(best, found), max(best, found))
        best = min(best, found) if side == "upper" else max(best, found)
        if side == "upper":
            # measured errors of upper answers fall by 4 for each halving; less is relied on
            gap /= _FALL ** math.log2(ratio) - 1
        if gap <= 1 or step < coarsest / 32:
            # no loss of the mechanism is infinite: an infinite epsilon is as loose as can be
            return End(best, gap <= 1 and math.isfinite(best))
        if best + left <= rival:
            return End(best, True)
        # steps are halved a whole number of times, so that orders recur and their profile is known
        ratio = 2.0 if gap < 1.5 else 4.0
        step /= ratio
    if best is None and side == "lower":
        return End(0.0, False)
    if best is None:
        raise NumericalError(f"no grid was coarse enough for the composed loss, last step {step:g}; take fewer steps")
    return End(best, False)


_SMALLEST_TAIL = 1e-250
_MOST_COARSENINGS = 6


@dataclass(frozen=True, eq=False)
class Composition:
    """A composition of k_t events of each of several kinds, in any order, chosen in advance.

    Attributes
    ----------
    entries : sequence of (Event, int)

    Raises
    ------
    ArgumentError
        If there is no entry.
    """

    entries: Sequence[tuple[Event, int]]

    def __post_init__(self) -> None:
        if not self.entries:
            raise ArgumentError("a ledger needs at least one event, got none")

    @property
    def exact(self) -> bool:
        """Whether upper and lower bounds bracket one number."""
        return all(event.exact for event, _ in self.entries)

    @property
    def attacked(self) -> bool:
        """Whether an attack on any of the events is known."""
        return any(event.attacked for event, _ in self.entries)

    @cached_property
    def spread(self) -> float:
        return min(event.spread() for event, _ in self.entries)

    @cached_property
    def directions(self) -> tuple[bool, ...]:
        """Directions to compose separately: one if all events are the same in both."""
        return (False,) if all(event.symmetric for event, _ in self.entries) else (False, True)

    def upper(self, step: float, tail: float, swapped: bool) -> ComposedLoss:
        laws = [event.upper(step, tail, swapped) for event, _ in self.entries]
        return ComposedLoss(laws, [k for _, k in self.entries])

    def lower(self, step: float, tail: float, swapped: bool) -> ComposedLoss | None:
        """Events without an attack are left out, which only lowers the answer; None if there is no other."""
        fitted = min(event.fitting(step) for event, _ in self.entries)
        laws = [(event.lower(fitted, tail, swapped), k) for event, k in self.entries]
        known = [(law, k) for law, k in laws if law is not None]
        return ComposedLoss([law for law, _ in known], [k for _, k in known]) if known else None

    @property
    def one_number(self) -> bool:
        """Whether both ends are about one number: `exact` events, or a single step whose attack attains its profile."""
        event, times = self.entries[0]
        return self.exact or (len(self.entries) == 1 and times == 1 and event.attained_once)

    def answer(self, question: Question, rival: float = 0.0) -> Bracket:
        """Both ends: where they are about one number as close as the question wants, else each as sharp as it wants.

        `rival` is another attack's lower answer: this one is refined only while it may overtake that.
        """
        if self.one_number:
            return bracket(question, self.lower, self.upper, self.directions, self.spread / 12, _tail(question))
        lower, upper = self.attack(question, rival), self.bound(question)
        return Bracket(lower.value, upper.value, lower.width_met and upper.width_met)

    def bracket(self, question: Question) -> tuple[float, float]:
        """Lower and upper answers."""
        answer = self.answer(question)
        return answer.lower, answer.upper

    def rough(self, question: Question, side: str, step: float) -> float:
        """An answer of one side from a single grid, which is coarser than `step` only if that is too fine."""
        build, directions = (self.upper, self._proved) if side == "upper" else (self.lower, self.directions)
        for _ in range(_MOST_COARSENINGS):
            try:
                return max(question.ask(build(step, _tail(question), swapped)) for swapped in directions)
            except NumericalError:
                step *= 4
        return math.inf if side == "upper" else 0.0

    def bound(self, question: Question) -> End:
        """The upper answer."""
        step, tail = self.spread / 8, _tail(question)
        if question.delta is None:
            tail = self._invisible(question, step, tail)
        return sharpened(question, self.upper, self._proved, step, "upper", tail)

    @property
    def _proved(self) -> tuple[bool, ...]:
        """Directions to bound: a dominated event that is symmetric from above need not be attacked symmetrically."""
        return self.directions if any(not event.upper_symmetric for event, _ in self.entries) else (False,)

    def _invisible(self, question: Question, step: float, tail: float) -> float:
        """A tail so small that what is cut off is not seen beside the answer, by rough answers."""
        while tail > _SMALLEST_TAIL:
            try:
                rough = max(question.ask(self.upper(step, tail, swapped)) for swapped in self._proved)
            except NumericalError:
                break
            if rough >= tail * 1e12:
                break
            tail = max(min(rough * 1e-16, tail**2), _SMALLEST_TAIL)
        return tail

    def attack(self, question: Question, rival: float = 0.0) -> End:
        """The lower answer; 0 if no attack is known."""
        return sharpened(question, self.lower, self.directions, self.spread / 12, "lower", _tail(question), rival)


def _tail(question: Question) -> float:
    return DEFAULT_TAIL if question.delta is None else min(DEFAULT_TAIL, question.delta * 1e-12)
