"""Events and how often each of them happens: bounds of delta(epsilon), or epsilon(delta), of their composition."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from dpsub.accountants.composition import Composition
from dpsub.accountants.events import Event
from dpsub.accountants.refinement import DEFAULT_TAIL, Answer, End, Question, bracket, sharpened
from dpsub.errors import ArgumentError, NumericalError

_SMALLEST_TAIL = 1e-250
_MOST_COARSENINGS = 6


@dataclass(frozen=True, eq=False)
class Ledger:
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

    def upper(self, step: float, tail: float, swapped: bool) -> Composition:
        laws = [event.upper(step, tail, swapped) for event, _ in self.entries]
        return Composition(laws, [k for _, k in self.entries])

    def lower(self, step: float, tail: float, swapped: bool) -> Composition | None:
        """Events without an attack are left out, which only lowers the answer; None if there is no other."""
        fitted = min(event.fitting(step) for event, _ in self.entries)
        laws = [(event.lower(fitted, tail, swapped), k) for event, k in self.entries]
        known = [(law, k) for law, k in laws if law is not None]
        return Composition([law for law, _ in known], [k for _, k in known]) if known else None

    @property
    def one_number(self) -> bool:
        """Whether both ends are about one number: `exact` events, or a single step whose attack attains its profile."""
        event, times = self.entries[0]
        return self.exact or (len(self.entries) == 1 and times == 1 and event.attained_once)

    def answer(self, question: Question, rival: float = 0.0) -> Answer:
        """Both ends: where they are about one number as close as the question wants, else each as sharp as it wants.

        `rival` is another attack's lower answer: this one is refined only while it may overtake that.
        """
        if self.one_number:
            return bracket(question, self.lower, self.upper, self.directions, self.spread / 12, _tail(question))
        lower, upper = self.attack(question, rival), self.bound(question)
        return Answer(lower.value, upper.value, lower.width_met and upper.width_met)

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
