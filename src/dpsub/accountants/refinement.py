"""One question to a composition, asked on finer and finer grids until the answer is as sharp as wanted."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from dpsub import checks
from dpsub.accountants.composition import Composition
from dpsub.errors import ArgumentError, NumericalError

DEFAULT_TAIL = 1e-18
_LEAST_TAIL = 1e-250
_MOST_ROUNDS = 12
_FALL = 3.0
"""By how much errors of upper answers fall, at least, where the step is halved."""

Builder = Callable[[float, float, bool], Composition | None]
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

    def ask(self, composition: Composition | None) -> float:
        """The answer of one composition; 0 if there is none."""
        return 0.0 if composition is None else self._one(composition)

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


class Answer(NamedTuple):
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
) -> Answer:
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
    return Answer(*found, question.gap(*found) <= 1)


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
