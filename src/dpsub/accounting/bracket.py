"""From a question to both ends of its answer, on finer and finer grids."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dpsub import checks
from dpsub.accounting.pld import OutOfTimeError
from dpsub.errors import ArgumentError, NumericalError

_TAIL, LEAST_TAIL = 1e-18, 1e-250
_UNDERFLOW = 1e-300  # what is cut off is charged as at least this
_MOST_ROUNDS = 12
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
    return target.delta is None and found[0] <= 0 < found[1] < 1e-10 and tail > LEAST_TAIL


def _refined(
    target: Target, gap: float, found: tuple[float, float], step: float, tail: float
) -> tuple[float, float]:
    if target.delta is None:
        if 0 < found[0] < tail * 1e12 and tail > LEAST_TAIL:
            # what is cut off must not be seen beside the answer
            return step, found[0] * 1e-14
        if _vanishing(target, found, tail):
            return step, max(tail**2, LEAST_TAIL)
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
