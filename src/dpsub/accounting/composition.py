"""Compositions of privacy events, and both ends of what is asked about them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from dpsub.accounting.bracket import (
    LEAST_TAIL,
    Bracket,
    End,
    Evaluation,
    SingleGridBound,
    Target,
    bracket,
    sharpened,
)
from dpsub.accounting.compose import ComposedLoss, check_step
from dpsub.accounting.pld import OutOfTimeError, PrivacyLossDistribution, check_time, time_limited
from dpsub.accounting.privacy_events import Event
from dpsub.errors import ArgumentError, NumericalError

_MOST_COARSENINGS = 6
# steps of one kind from which on what rounding takes from each loss decides how fine a grid must be
_MANY = 20_000
# of the width: what may be charged for a transform at the tilt of another target
_UNSEEN = 1e-2
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
        while tail > LEAST_TAIL:
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
            tail = max(min(least * 1e-16, tail**2), LEAST_TAIL)
        return tail


def answers_of(composed: ComposedLoss, targets: Sequence[Target]) -> np.ndarray:
    """The answers of one composition to targets in order, of one quantity, shape (targets,)."""
    share = _UNSEEN * min(target.width for target in targets)
    if targets[0].delta is not None:
        return composed.epsilons(np.array([target.delta for target in targets]), share)
    return composed.deltas(np.array([target.epsilon for target in targets]), share)
