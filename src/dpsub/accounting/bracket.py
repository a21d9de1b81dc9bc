"""What bounds one step from above and below, compositions of steps, and answers from finer and
finer grids."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np

from dpsub import checks
from dpsub.accounting import pairs
from dpsub.accounting.compose import ComposedLoss, check_step
from dpsub.accounting.discretise import (
    DirectedPair,
    Statistic,
    lower_pld,
    lower_pld_of_many,
    upper_pld,
)
from dpsub.accounting.pairs import FillerPair, GaussianPair, MixturePair
from dpsub.accounting.pld import (
    MAX_LOSS,
    OutOfTimeError,
    PrivacyLossDistribution,
    Profile,
    check_time,
    order_indices,
    symmetric_pld,
    time_limited,
    two_sided_pld,
)
from dpsub.errors import ArgumentError, NumericalError

ProfileMaker = Callable[[float], tuple[Profile, Profile | None]]
"""tail -> (H_a(P || Q), H_a(Q || P)) for a >= 1; None for the second where it equals the first."""

_RARE = 1e-6
_SEARCH = np.concatenate([[0.0], np.geomspace(1e-5, MAX_LOSS, 90)])


class Event(ABC):
    """A step of a composition."""

    @abstractmethod
    def upper(self, step: float, tail: float, swapped: bool) -> PrivacyLossDistribution:
        """A PLD that dominates the step, in one direction."""

    def uppers(
        self, step: float, tail: float, swapped: bool
    ) -> list[tuple[PrivacyLossDistribution, int]]:
        """PLDs, each with how often it is composed, that dominate the step together, in one
        direction."""
        return [(self.upper(step, tail, swapped), 1)]

    @abstractmethod
    def lower(self, step: float, tail: float, swapped: bool) -> PrivacyLossDistribution | None:
        """A PLD that an explicit pair of data sets attains, in one direction; None if none is
        known."""

    def lower_of_many(
        self, step: float, tail: float, swapped: bool
    ) -> PrivacyLossDistribution | None:
        """As `lower`, for a step that happens very often: what rounding takes from each loss then
        adds up."""
        return self.lower(step, tail, swapped)

    def fitting(self, step: float) -> float:
        """A step, at most the one given, that suits the lower PLD: any is valid."""
        return step

    @property
    @abstractmethod
    def symmetric(self) -> bool:
        """Whether both directions have the same PLDs."""

    @property
    def upper_symmetric(self) -> bool:
        """Whether both directions have the same upper PLD."""
        return self.symmetric

    @property
    def exact(self) -> bool:
        """Whether both bound the same loss."""
        return False

    @property
    def attacked(self) -> bool:
        """Whether an attack is known, so that `lower` gives PLDs."""
        return True

    @property
    def tight_for_one_step(self) -> bool:
        """Whether both bound the same loss if the step happens once, and alone."""
        return self.exact

    @property
    def attack_choices(self) -> tuple[Event, ...]:
        """What several choices of data sets attain, of which the best counts; of one, the event
        itself."""
        return (self,)

    @property
    def largest_loss(self) -> float:
        """Which no loss exceeds, in either direction; infinite where losses are not bounded."""
        return math.inf

    @abstractmethod
    def spread(self) -> float:
        """Standard deviation of the loss, roughly: the unit of grid steps."""


@dataclass(frozen=True)
class PairEvent(Event):
    """A step whose worst data sets are known; `one_direction`: X against X' only, as in the
    papers."""

    pair: GaussianPair
    one_direction: bool = False

    def upper(self, step: float, tail: float, swapped: bool) -> PrivacyLossDistribution:
        kept, lost = _dropped(self.pair, tail)
        return upper_pld(kept, step, tail=tail, swapped=swapped, lost=lost)

    def lower(self, step: float, tail: float, swapped: bool) -> PrivacyLossDistribution:
        return lower_pld(_capped(self.pair, tail), step, tail=tail, swapped=swapped)

    def lower_of_many(self, step: float, tail: float, swapped: bool) -> PrivacyLossDistribution:
        return lower_pld_of_many(_capped(self.pair, tail), step, tail=tail, swapped=swapped)

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
        lowest, highest = np.clip(DirectedPair(pair).range(1e-9), -MAX_LOSS, MAX_LOSS)
        # where an inclusion is rarer than 1e-3, nearly all losses lie close together, and a few far
        # away
        step = max(max(above - below, 1e-9) / 400, (highest - lowest) / 1e6)
        return float(np.sqrt(upper_pld(pair, step, tail=1e-9).moments(0.0)[1]))


@dataclass(frozen=True)
class DominatedEvent(Event):
    """A step with a proved profile, and an attack that may fall short of it; `attained`: it attains
    it in one step."""

    profile: ProfileMaker
    attack: GaussianPair | None
    attained: bool = False

    def upper(self, step: float, tail: float, swapped: bool) -> PrivacyLossDistribution:
        forward, backward = self.profile(tail)
        indices = order_grid(forward, step, tail)
        if backward is None:
            return symmetric_pld(forward, step, indices)
        first, second = (backward, forward) if swapped else (forward, backward)
        return two_sided_pld(first, second, step, indices)

    def lower(self, step: float, tail: float, swapped: bool) -> PrivacyLossDistribution | None:
        return None if self.attack is None else PairEvent(self.attack).lower(step, tail, swapped)

    def lower_of_many(
        self, step: float, tail: float, swapped: bool
    ) -> PrivacyLossDistribution | None:
        return (
            None
            if self.attack is None
            else PairEvent(self.attack).lower_of_many(step, tail, swapped)
        )

    @property
    def symmetric(self) -> bool:
        return self.upper_symmetric and (self.attack is None or self.attack.mirrored)

    @property
    def upper_symmetric(self) -> bool:
        return self.profile(1e-9)[1] is None

    @property
    def attacked(self) -> bool:
        return self.attack is not None

    @property
    def tight_for_one_step(self) -> bool:
        return self.attained

    def spread(self) -> float:
        forward, backward = self.profile(1e-9)
        values = forward(_SEARCH)
        if values[0] <= _RARE:
            # most steps have no loss: what counts is the loss of the others
            values = self.profile(values[0] * 1e-9)[0](_SEARCH)
            return float(_SEARCH[int(np.argmax(values <= values[0] * 1e-2))]) or MAX_LOSS
        rough = float(_SEARCH[int(np.argmax(values <= max(_RARE, values[0] * 1e-4)))]) or MAX_LOSS
        indices = np.concatenate([[0], np.unique(np.round(np.geomspace(1, 2e4, 150)).astype(int))])
        pld = two_sided_pld(forward, backward or forward, min(10 * rough, MAX_LOSS) / 2e4, indices)
        # where all losses are so large that they count as infinite, none are left that could differ
        return float(np.sqrt(pld.moments(0.0)[1])) or rough


@dataclass(frozen=True)
class StatisticEvent(Event):
    """What an attack attains by one number of the output; nothing is bounded from above."""

    statistic: Statistic

    def upper(self, step: float, tail: float, swapped: bool) -> PrivacyLossDistribution:
        return PrivacyLossDistribution(step, np.zeros(1), np.zeros(1), "upper", infinity=1.0)

    def lower(self, step: float, tail: float, swapped: bool) -> PrivacyLossDistribution:
        return self.statistic.lower_pld(step, tail=tail, swapped=swapped)

    @property
    def symmetric(self) -> bool:
        return False

    def spread(self) -> float:
        # what its cells are rounded by adds up, and they cost little
        return self.statistic.spread() / 8


@dataclass(frozen=True)
class EnclosedEvent(Event):
    """A step that one event bounds, and others attain, each by data sets of its own."""

    proved: Event
    attacks: tuple[Event, ...]

    def upper(self, step: float, tail: float, swapped: bool) -> PrivacyLossDistribution:
        return self.proved.upper(step, tail, swapped)

    def lower(self, step: float, tail: float, swapped: bool) -> PrivacyLossDistribution | None:
        return self.attacks[0].lower(step, tail, swapped)

    @property
    def symmetric(self) -> bool:
        return self.proved.symmetric and all(attack.symmetric for attack in self.attacks)

    @property
    def upper_symmetric(self) -> bool:
        return self.proved.upper_symmetric

    @property
    def attack_choices(self) -> tuple[Event, ...]:
        return self.attacks

    def spread(self) -> float:
        return self.proved.spread()


def order_grid(profile: Profile, step: float, tail: float, floor: float = 0.0) -> np.ndarray:
    """Indices of the orders that suit a profile which falls to `floor`, up to where less than
    `tail` is left."""
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
    return (
        replace(pair, law=pairs.capped(pair.law, tail))
        if isinstance(pair, FillerPair | MixturePair)
        else pair
    )


_TAIL, _LEAST_TAIL = 1e-18, 1e-250
_UNDERFLOW = 1e-300  # what is cut off is charged as at least this
_MOST_ROUNDS = 12
_UNSEEN = 1e-2  # of the width: what may be charged for a transform at the tilt of another target
_FALL = 3.0  # by how much errors of upper answers fall, at least, where the step is halved

SingleGridBound = Callable[[float, float, bool, Sequence["Target"]], np.ndarray]
"""(step, tail, swapped, targets) -> the answers of one side in one direction, on one grid; of all
directions the largest counts."""


@dataclass(frozen=True)
class Target:
    """delta at a given epsilon (nats, >= 0), or epsilon at a given delta in (0, 1). `width`: how
    far apart both answers may be, absolute for epsilon, relative for delta. At the `deadline`, of
    `time.monotonic`, what has been reached is the answer."""

    epsilon: float | None = None
    delta: float | None = None
    width: float = 1e-3
    deadline: float | None = None

    def __post_init__(self) -> None:
        if (self.epsilon is None) == (self.delta is None):
            raise ArgumentError(
                f"give either epsilon or delta, got epsilon = {self.epsilon}, delta = "
                f"{self.delta}; drop or add one"
            )
        if self.epsilon is not None:
            object.__setattr__(self, "epsilon", checks.real("epsilon", self.epsilon, at_least=0))
        else:
            object.__setattr__(self, "delta", checks.real("delta", self.delta, above=0, below=1))
        object.__setattr__(self, "width", checks.real("width", self.width, above=0))

    @property
    def quantity(self) -> str:
        return "delta" if self.delta is None else "epsilon"

    @property
    def ceiling(self) -> float:
        """The upper answer of which nothing is known."""
        return 1.0 if self.delta is None else math.inf

    @property
    def tail(self) -> float:
        """The mass that may be cut off at first."""
        return _TAIL if self.delta is None else max(min(_TAIL, self.delta * 1e-12), _UNDERFLOW)

    @property
    def hidden(self) -> bool:
        """Whether what is charged for a mass that underflows exceeds delta."""
        return self.delta is not None and self.delta <= _UNDERFLOW

    def gap(self, lower: float, upper: float) -> float:
        """The distance of two answers, in units of the width wanted; at most 1 is sharp enough."""
        if upper == lower:
            return 0.0
        if not math.isfinite(upper):
            return math.inf
        scale = self.width * (abs(upper) if self.delta is None else 1.0)
        return (upper - lower) / scale


class Bracket(NamedTuple):
    """Both ends, valid in any case, and whether they came out as sharp as wanted before a limit or
    the deadline."""

    lower: float
    upper: float
    width_met: bool


class End(NamedTuple):
    """One end, and whether it moved by less than the wanted width when the grid was last
    refined."""

    value: float
    width_met: bool


class Evaluation(NamedTuple):
    """One answer on one grid, of the side "upper" or "lower" in one direction: what a certificate
    is made from."""

    side: str
    step: float
    tail: float
    swapped: bool
    target: Target
    answer: float


def bracket(
    targets: Sequence[Target],
    lower: SingleGridBound,
    upper: SingleGridBound,
    directions: Sequence[bool],
    step: float,
    tail: float,
) -> list[Bracket]:
    """Both ends for one number for each target, at most the wanted width apart where the grid can
    be made that fine."""
    best = [dict.fromkeys(directions, (0.0, target.ceiling)) for target in targets]
    last_gaps, slow, last_step = [math.inf] * len(targets), [0] * len(targets), math.inf
    wanting = list(range(len(targets)))
    for _ in range(_MOST_ROUNDS):
        floors = {i: max(low for low, _ in best[i].values()) for i in wanting}
        try:
            for swapped in directions:
                asked = [
                    i for i in wanting if best[i][swapped][1] > floors[i] or len(directions) == 1
                ]
                highs = dict(
                    zip(asked, _of(upper, step, tail, swapped, targets, asked), strict=True)
                )
                reaching = [i for i in asked if not highs[i] < floors[i]]
                lows = dict(
                    zip(reaching, _of(lower, step, tail, swapped, targets, reaching), strict=True)
                )
                for i in asked:
                    low, high = best[i][swapped]
                    best[i][swapped] = (max(low, lows.get(i, 0.0)), min(high, highs[i]))
                    floors[i] = max(floors[i], lows.get(i, 0.0))
        except OutOfTimeError:
            break
        except NumericalError:
            wanting = [
                i for i in wanting if not (floors[i] > 0 and math.isfinite(_overall(best[i])[1]))
            ]
            if not wanting:
                break
            step *= 4
            continue
        kept, steps, tails = [], [], []
        for i in wanting:
            target, found = targets[i], _overall(best[i])
            gap = target.gap(*found)
            # a gap that does not move at all is not the grid's; where the lower answer is 0, the
            # upper one decides
            still = math.isfinite(gap) and gap > 0.98 * last_gaps[i]
            # what is infinite is mass that no grid moves: a second one shows that it stays
            still |= math.isinf(found[1])
            stuck = not gap < 0.8 * last_gaps[i] and not _vanishing(target, found, tail)
            if step != last_step:
                slow[i] = slow[i] + (2 if still else 1) if stuck else 0
            if gap <= 1 or slow[i] >= 3:
                continue
            last_gaps[i] = gap
            next_step, next_tail = _refined(target, gap, found, step, tail)
            kept.append(i)
            steps.append(next_step)
            tails.append(next_tail)
        if not kept:
            break
        # all that are left share the finest grid that any of them needs
        last_step, wanting, step, tail = step, kept, min(steps), min(tails)
    return [
        Bracket(*found, target.gap(*found) <= 1)
        for target, found in zip(targets, map(_overall, best), strict=True)
    ]


def _of(
    ask: SingleGridBound,
    step: float,
    tail: float,
    swapped: bool,
    targets: Sequence[Target],
    places: Sequence[int],
) -> list[float]:
    """The answers for the targets at these places."""
    answers: list[float] = (
        ask(step, tail, swapped, [targets[i] for i in places]).tolist() if places else []
    )
    return answers


def _overall(best: dict[bool, tuple[float, float]]) -> tuple[float, float]:
    return max(low for low, _ in best.values()), max(high for _, high in best.values())


def _vanishing(target: Target, found: tuple[float, float], tail: float) -> bool:
    """Whether delta may be so small that only the tail that is cut off is seen."""
    return target.delta is None and found[0] <= 0 < found[1] < 1e-10 and tail > _LEAST_TAIL


def _refined(
    target: Target, gap: float, found: tuple[float, float], step: float, tail: float
) -> tuple[float, float]:
    if target.delta is None:
        if 0 < found[0] < tail * 1e12 and tail > _LEAST_TAIL:
            # what is cut off must not be seen beside the answer
            return step, found[0] * 1e-14
        if _vanishing(target, found, tail):
            return step, max(tail**2, _LEAST_TAIL)
    ratio = 0.85 / math.sqrt(gap) if math.isfinite(gap) else 0.25
    return step * min(0.7, max(ratio, 1 / 8)), tail


def sharpened(
    targets: Sequence[Target],
    ask: SingleGridBound,
    directions: Sequence[bool],
    step: float,
    side: str,
    tail: float,
    known_lower: Sequence[float] | None = None,
    smallest: float = math.inf,
) -> list[End]:
    """The best answer of one side for each target, on finer and finer grids until those would
    change less than the width. Every answer is valid; how far it moved only tells when to stop, at
    a 32nd of the first step, or of a `smallest` one, at the latest. An upper answer needs all
    directions; a lower one leaves out those that are far behind on the first grid, and ends where
    it will not overtake the one of `known_lower`."""
    finest, ratio, out_of_time = min(step, smallest) / 32, 2.0, False
    known = known_lower or [0.0] * len(targets)
    kept = [list(directions) for _ in targets]
    best: list[float | None] = [None] * len(targets)
    ends: dict[int, bool] = {}
    irregular: set[int] = set()
    for _ in range(_MOST_ROUNDS):
        wanting = [i for i in range(len(targets)) if i not in ends]
        answers: dict[int, dict[bool, float]] = {i: {} for i in wanting}
        try:
            for swapped in directions:
                asked = [i for i in wanting if swapped in kept[i]]
                for i, answer in zip(
                    asked, _of(ask, step, tail, swapped, targets, asked), strict=True
                ):
                    answers[i][swapped] = answer
        except OutOfTimeError:
            out_of_time = True
            break
        except NumericalError:
            ends |= {i: False for i in wanting if best[i] is not None}
            if len(ends) == len(targets):
                break
            step *= 2
            continue
        ratios = []
        for i in wanting:
            before, found = best[i], max(answers[i].values())
            if side == "lower":
                kept[i] = [
                    swapped for swapped in kept[i] if answers[i][swapped] > 0.7 * found
                ] or kept[i]
            if before is None:
                best[i] = found
                if side == "upper" and targets[i].hidden and math.isinf(found):
                    ends[i] = False  # on every grid
                else:
                    ratios.append(2.0)
                continue
            left = abs(found - before) / (ratio**2 - 1)
            gap = targets[i].gap(min(before, found), max(before, found))
            best[i] = value = min(before, found) if side == "upper" else max(before, found)
            if side == "upper":
                if found > before and gap > 1:
                    irregular.add(i)  # a finer grid was looser: how errors fall is not known
                if i not in irregular:
                    # measured errors of upper answers fall by 4 for each halving; less is relied on
                    gap /= _FALL ** math.log2(ratio) - 1
            if gap <= 1 or step < finest:
                # no loss of the mechanism is infinite: an infinite epsilon is as loose as can be
                ends[i] = gap <= 1 and math.isfinite(value)
            elif value + left <= known[i]:
                ends[i] = True
            else:
                # steps are halved a whole number of times, so that orders recur and their profile
                # is known
                ratios.append(2.0 if gap < 1.5 else 4.0)
        if not ratios:
            break
        ratio = max(ratios)
        step /= ratio
    if side == "upper" and None in best and not out_of_time:
        raise NumericalError(
            f"no grid was coarse enough for the composed loss, last step {step:g}; take fewer steps"
        )
    trivial = [target.ceiling if side == "upper" else 0.0 for target in targets]
    return [
        End(nothing if value is None else value, ends.get(i, False))
        for i, (value, nothing) in enumerate(zip(best, trivial, strict=True))
    ]


_MOST_COARSENINGS = 6
# steps of one kind from which on what rounding takes from each loss decides how fine a grid must be
_MANY = 20_000
_KEPT = 8  # composed PLDs that are remembered: two grids, two sides, two directions


@dataclass(frozen=True, eq=False)
class Composition:
    """Events of several kinds with how often each of them happens, in any order chosen in advance.
    A grid that suits one target is tried first for the next, so those close to one another should
    be neighbours."""

    entries: Sequence[tuple[Event, int]]
    _built: dict[tuple[str, float, float, bool], ComposedLoss | None] = field(
        default_factory=dict, repr=False
    )
    evaluations: list[Evaluation] = field(default_factory=list, repr=False)
    """All answers that were computed, in that order."""

    def __post_init__(self) -> None:
        if not self.entries:
            raise ArgumentError("a composition needs at least one event, got none")

    @property
    def attacked(self) -> bool:
        """Whether an attack on any of the events is known."""
        return any(event.attacked for event, _ in self.entries)

    @property
    def largest_loss(self) -> float:
        """Which no loss of the composition exceeds, rounded up."""
        return sum(event.largest_loss * times for event, times in self.entries) * (1 + 1e-12)

    @cached_property
    def spread(self) -> float:
        """Standard deviation of the loss of one event: the unit of grid steps.

        Of several kinds it is their mean, weighted by what each of them adds to the deviation's
        sum: a step of h adds about k s h to the variance k s^2 of k events of deviation s, so that
        it adds the same share of all variances together, however many kinds there are. By the
        smallest one, small losses beside large ones would need grids that no memory holds.
        """
        total = sum(times * spread for spread, times in self._spreads)
        return sum(times * spread / total * spread for spread, times in self._spreads)

    @property
    def _smallest(self) -> float:
        return min(spread for spread, _ in self._spreads)

    @cached_property
    def _spreads(self) -> list[tuple[float, int]]:
        return [(event.spread(), times) for event, times in self.entries]

    @cached_property
    def directions(self) -> tuple[bool, ...]:
        """Directions to compose separately: one if all events are the same in both."""
        return (False,) if all(event.symmetric for event, _ in self.entries) else (False, True)

    @cached_property
    def proved_directions(self) -> tuple[bool, ...]:
        """Directions to bound: a dominated event that is symmetric from above need not be attacked
        symmetrically."""
        return (
            self.directions
            if any(not event.upper_symmetric for event, _ in self.entries)
            else (False,)
        )

    @property
    def is_exact(self) -> bool:
        """Whether both ends are about one number: exact events, or a single step whose attack
        attains its profile."""
        event, times = self.entries[0]
        return all(each.exact for each, _ in self.entries) or (
            len(self.entries) == 1 and times == 1 and event.tight_for_one_step
        )

    def upper(self, step: float, tail: float, swapped: bool) -> ComposedLoss:
        """The composed upper PLD of one direction."""
        composed = self._remembered("upper", step, tail, swapped and True in self.proved_directions)
        assert composed is not None
        return composed

    def lower(self, step: float, tail: float, swapped: bool) -> ComposedLoss | None:
        """Events without an attack are left out, which only lowers the answer; None if there is no
        other."""
        return self._remembered("lower", step, tail, swapped)

    def _remembered(
        self, side: str, step: float, tail: float, swapped: bool
    ) -> ComposedLoss | None:
        check_time()
        key = (side, step, tail, swapped)
        if key not in self._built:
            check_step(step)
            fitted = (
                step if side == "upper" else min(event.fitting(step) for event, _ in self.entries)
            )
            if side == "upper":
                made = [
                    (each, k)
                    for event, k in self.entries
                    for each in event.uppers(fitted, tail, swapped)
                ]
                known = [(pld, k * times) for (pld, times), k in made]
            else:
                known = [
                    (pld, k) for pld, k in self.attained(fitted, tail, swapped) if pld is not None
                ]
            while len(self._built) >= _KEPT:
                del self._built[next(iter(self._built))]
            self._built[key] = (
                ComposedLoss([pld for pld, _ in known], [k for _, k in known]) if known else None
            )
        return self._built[key]

    def forget(self) -> None:
        """Drop composed PLDs, which are large; what was evaluated stays known."""
        self._built.clear()
        if self.attack_choices != [self]:
            for choice in self.attack_choices:
                choice.forget()

    def attained(
        self, step: float, tail: float, swapped: bool
    ) -> list[tuple[PrivacyLossDistribution | None, int]]:
        """The lower PLD of each event on one grid, None where no attack is known, and how often the
        event happens."""
        return [
            (
                event.lower_of_many(step, tail, swapped)
                if k >= _MANY
                else event.lower(step, tail, swapped),
                k,
            )
            for event, k in self.entries
        ]

    def _single_grid_bound(self, side: str) -> SingleGridBound:
        build = self.upper if side == "upper" else self.lower

        def ask(step: float, tail: float, swapped: bool, targets: Sequence[Target]) -> np.ndarray:
            composed = build(step, tail, swapped)
            found = np.zeros(len(targets)) if composed is None else answers_of(composed, targets)
            self.evaluations.extend(
                Evaluation(side, step, tail, swapped, target, answer)
                for target, answer in zip(targets, found.tolist(), strict=True)
            )
            return found

        return ask

    def answer(self, target: Target) -> Bracket:
        """Both ends, as close as the target wants where they are about one number; else each as
        sharp as it wants."""
        return self.answers([target])[0]

    def answers(self, targets: Sequence[Target]) -> list[Bracket]:
        if self.is_exact:
            return self.brackets(targets)
        ends = zip(self.bounds(targets), self.attacks(targets), strict=True)
        return [
            Bracket(low.value, high.value, low.width_met and high.width_met) for high, low in ends
        ]

    def bound(self, target: Target) -> End:
        return self.bounds([target])[0]

    def attack(self, target: Target) -> End:
        """The lower answer; 0 if no attack is known."""
        return self.attacks([target])[0]

    def rough(self, target: Target, side: str, step: float) -> float:
        """An answer of one side from a single grid, which is coarser than `step` only if that is
        too fine."""
        if side == "lower" and self.attack_choices != [self]:
            return max(choice.rough(target, side, step) for choice in self.attack_choices)
        ask, directions = (
            self._single_grid_bound(side),
            self.proved_directions if side == "upper" else self.directions,
        )
        with time_limited(target.deadline):
            for _ in range(_MOST_COARSENINGS):
                try:
                    return max(
                        float(ask(step, target.tail, swapped, [target])[0])
                        for swapped in directions
                    )
                except OutOfTimeError:
                    break
                except NumericalError:
                    step *= 4
        return target.ceiling if side == "upper" else 0.0

    def brackets(
        self, targets: Sequence[Target], directions: Sequence[bool] | None = None
    ) -> list[Bracket]:
        """Both ends for each target where they are about one number, in all directions or in
        these."""
        lower, upper = self._single_grid_bound("lower"), self._single_grid_bound("upper")
        with time_limited(targets[0].deadline):
            try:
                step, tail = self.spread / 12, min(target.tail for target in targets)
                return bracket(targets, lower, upper, directions or self.directions, step, tail)
            except OutOfTimeError:
                return [Bracket(0.0, target.ceiling, False) for target in targets]

    def bounds(self, targets: Sequence[Target]) -> list[End]:
        """The upper answer for each target."""
        ask, tail = self._single_grid_bound("upper"), min(target.tail for target in targets)
        rough = np.array([target.ceiling for target in targets])
        with time_limited(targets[0].deadline):
            try:
                start = self.spread / 8
                if targets[0].delta is None:
                    tail = self._invisible(ask, start, tail, targets, rough)
                smallest = self._smallest / 8
                ends = sharpened(
                    targets, ask, self.proved_directions, start, "upper", tail, smallest=smallest
                )
            except OutOfTimeError:
                return [End(bound, False) for bound in rough.tolist()]
            # where the time ended before the first grid, what told how small the tail must be holds
            ends = [
                end if end.width_met or end.value <= bound else End(bound, False)
                for end, bound in zip(ends, rough.tolist(), strict=True)
            ]
            return [
                end
                if end.width_met or target.delta is not None
                else self._alone(target, end, start, tail)
                for target, end in zip(targets, ends, strict=True)
            ]

    def _alone(self, target: Target, found: End, start: float, tail: float) -> End:
        """The better one of an upper answer and of that with a tail which suits this target alone:
        the one that the smallest answer needs keeps rare losses of many nats, at whose tilt
        round-off is seen beside larger answers."""
        ask = self._single_grid_bound("upper")
        try:
            own = self._invisible(ask, start, target.tail, [target], np.array([target.ceiling]))
            if own <= tail:
                return found
            end = sharpened(
                [target],
                ask,
                self.proved_directions,
                start,
                "upper",
                own,
                smallest=self._smallest / 8,
            )[0]
        except OutOfTimeError:
            return found
        return min(found, end, key=lambda each: each.value)

    def attacks(
        self,
        targets: Sequence[Target],
        known_lower: Sequence[float] | None = None,
        directions: Sequence[bool] | None = None,
    ) -> list[End]:
        """The lower answer for each target, in all directions or in these, refined only while it
        may overtake the one already known, of an attack of another kind, which is not part of what
        is returned. Data sets are chosen once, for all steps."""
        if self.attack_choices != [self]:
            best, known = [End(0.0, True)] * len(targets), list(known_lower or [0.0] * len(targets))
            for choice in self.attack_choices:
                ends = choice.attacks(targets, known, directions)
                best = [
                    max(pair, key=lambda end: end.value) for pair in zip(best, ends, strict=True)
                ]
                known = [max(low, end.value) for low, end in zip(known, best, strict=True)]
            return best
        with time_limited(targets[0].deadline):
            try:
                start, tail = self.spread / 12, min(target.tail for target in targets)
                ways = directions or self.directions
                smallest = self._smallest / 12
                return sharpened(
                    targets,
                    self._single_grid_bound("lower"),
                    ways,
                    start,
                    "lower",
                    tail,
                    known_lower,
                    smallest,
                )
            except OutOfTimeError:
                return [End(0.0, False)] * len(targets)

    @cached_property
    def attack_choices(self) -> list[Composition]:
        """The composition that each choice of data sets attains, events with fewer choices
        repeating their last one; of one choice, the composition itself."""
        if all(event.attack_choices == (event,) for event, _ in self.entries):
            return [self]
        most = max(len(event.attack_choices) for event, _ in self.entries)
        return [
            Composition(
                [
                    (event.attack_choices[min(i, len(event.attack_choices) - 1)], k)
                    for event, k in self.entries
                ]
            )
            for i in range(most)
        ]

    def _invisible(
        self,
        ask: SingleGridBound,
        step: float,
        tail: float,
        targets: Sequence[Target],
        rough: np.ndarray,
    ) -> float:
        """A tail so small that what is cut off is not seen beside any answer, by `rough` answers,
        which it lowers; or the last one that still made them smaller, as longer laws lose more to
        rounding."""
        best, chosen = math.inf, tail
        while tail > _LEAST_TAIL:
            try:
                answers = [ask(step, tail, swapped, targets) for swapped in self.proved_directions]
            except OutOfTimeError:
                raise
            except NumericalError:
                return tail
            found = np.max(answers, axis=0)
            np.minimum(rough, found, out=rough)
            least = float(found.min())
            if least > best:
                return chosen
            best, chosen = least, tail
            if least >= tail * 1e12:
                return tail
            tail = max(min(least * 1e-16, tail**2), _LEAST_TAIL)
        return tail


def answers_of(composed: ComposedLoss, targets: Sequence[Target]) -> np.ndarray:
    """The answers of one composition to targets in order, of one quantity, shape (targets,)."""
    share = _UNSEEN * min(target.width for target in targets)
    if targets[0].delta is not None:
        return composed.epsilons(np.array([target.delta for target in targets]), share)
    return composed.deltas(np.array([target.epsilon for target in targets]), share)
