"""One question to a composition, asked on finer and finer grids until the answer is as sharp as wanted."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dpsub import checks
from dpsub.accountants.composition import Composition
from dpsub.errors import ArgumentError, NumericalError

DEFAULT_TAIL = 1e-18
_MOST_ROUNDS = 12

Builder = Callable[[float, float], Sequence[Composition]]
"""(step, tail) -> compositions of one side; the largest of their answers counts (both directions of a pair)."""


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

    def ask(self, compositions: Sequence[Composition]) -> float:
        """The largest answer; a composition that needs too many points counts as no bound at all."""
        answers = [self._one(composition) for composition in compositions]
        return max(answers)

    def _one(self, composition: Composition) -> float:
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


def bracket(question: Question, lower: Builder, upper: Builder, step: float, smallest_tail: float) -> tuple[float, float]:
    """Lower and upper answers for one number, at most the wanted width apart where the grid can be made that fine.

    Parameters
    ----------
    question : Question
    lower, upper : callable
    step : float
        Where to start, in nats; errors fall with its square.
    smallest_tail : float
        Where to start with the mass that may be cut off.
    """
    best = (0.0, math.inf if question.delta is not None else 1.0)
    tail, last_gap, slow = smallest_tail, math.inf, 0
    for _ in range(_MOST_ROUNDS):
        try:
            found = (question.ask(lower(step, tail)), question.ask(upper(step, tail)))
        except NumericalError:
            if math.isfinite(best[1]) and best[0] > 0:
                return best
            step *= 4
            continue
        best = (max(best[0], found[0]), min(best[1], found[1]))
        gap = question.gap(*best)
        slow = slow + 1 if gap > 0.8 * last_gap else 0
        if gap <= 1 or slow == 3:
            return best
        last_gap = gap
        step, tail = _refined(question, gap, found, step, tail)
    return best


def _refined(question: Question, gap: float, found: tuple[float, float], step: float, tail: float) -> tuple[float, float]:
    size = question.delta if question.delta is not None else max(found[0], 0.0)
    if size is not None and 0 < size < tail * 1e12 and tail > 1e-250:
        # what is cut off must not be seen beside the answer
        return step, size * 1e-14
    if found[0] <= 0 and question.delta is None and found[1] < 1e-10 and tail > 1e-60:
        return step, tail * 1e-12
    ratio = 0.85 / math.sqrt(gap) if math.isfinite(gap) else 0.25
    return step * min(0.7, max(ratio, 1 / 8)), tail


def sharpened(question: Question, build: Builder, step: float, side: str, tail: float) -> float:
    """The best answer of one side, on grids halved until it moves by less than the wanted width.

    Every answer is valid; the movement only tells when to stop.
    """
    better = min if side == "upper" else max
    best: float | None = None
    for _ in range(_MOST_ROUNDS):
        try:
            found = question.ask(build(step, tail))
        except NumericalError:
            if best is not None:
                return best
            step *= 2
            continue
        if best is not None:
            moved = question.gap(min(best, found), max(best, found))
            best = better(best, found)
            if moved <= 1:
                return best
            # errors fall with the square of the step
            step *= min(0.5, max(0.85 / math.sqrt(moved), 1 / 4)) if math.isfinite(moved) else 0.5
        else:
            best = found
            step /= 2
    assert best is not None
    return best
