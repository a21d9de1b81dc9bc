"""From a question to its answer: bounds on finer and finer grids, until they are sharp enough.

A question is a `Target`: delta at an epsilon, or epsilon at a delta. One grid of losses gives one
upper and one lower bound of the answer, and both hold whatever the grid; the best ones are kept.
So grids decide only how close the bounds come and how long that takes. A `Refinement` chooses them:
`BothEnds` where both bounds are about one number, so that their distance is the error; `OneEnd`
where they are not, so that the error is estimated from how far the last grid moved the bound
(docs/proofs/numerics.md, "When refinement stops").
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from dpsub import checks
from dpsub.accounting.engine import work
from dpsub.accounting.engine.work import OutOfWorkError
from dpsub.errors import ArgumentError, NumericalError

# mass cut off at the ends of grids at first, and at least: "Losses beyond the grid", "Tails and
# underflow"
_FIRST_TAIL, LEAST_TAIL = 1e-18, 1e-250
LEAST_DELTA = 1e-300
"""Least charge for all mass that underflows: no upper delta is below it, but 0 beyond the largest
loss."""
_MOST_ROUNDS = 12
# factor of the step after a grid that takes too much work
_CHEAPER = 4.0

# Both bounds: errors fall with the square of the step, and the next grid aims a little inside the
# width; a gap that falls by less than a fifth in a round has stalled, and one that does not move at
# all is not due to the grid
_INSIDE, _STALLED, _UNMOVED, _MOST_STALLS = 0.85, 0.8, 0.98, 3
_MILDEST_CUT, _SHARPEST_CUT, _BLIND_CUT = 0.7, 1 / 8, 1 / 4  # factor of the step for the next grid

# One end: by how much errors of upper bounds fall, at least, where the step is halved. Measured are
# 3.9 to 4.1, and 3 to 4 where few losses are large; less is relied on
_FALL = 3.0
_FINEST_SHARE = 1 / 32  # of the first step, below which no grid is tried
# a direction whose lower bound is below this share of the best one on the first grid is left out
_FAR_BEHIND = 0.7
PERCENT = 0.01
"""Share of ends: those that more work would move by no more than this share are settled."""


@dataclass(frozen=True)
class Target:
    """delta at an epsilon, or epsilon at a delta.

    Parameters
    ----------
    epsilon : float, optional
        Nats, >= 0; exactly one of both is given.
    delta : float, optional
        In (0, 1).
    width : float
        How far apart the two bounds of the answer may be: absolute for epsilon, relative for delta.
    """

    epsilon: float | None = None
    delta: float | None = None
    width: float = 1e-3

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
        """Trivial upper bound: 1 for delta, infinity for epsilon."""
        return 1.0 if self.delta is None else math.inf

    @property
    def tail(self) -> float:
        """Mass that may be cut off at first."""
        if self.delta is None:
            return _FIRST_TAIL
        # the mass cut off is charged as infinite loss: it must be negligible next to delta
        return max(min(_FIRST_TAIL, self.delta * 1e-12), LEAST_DELTA)

    @property
    def underflows(self) -> bool:
        """Whether the charge for mass that underflows exceeds delta on every grid."""
        return self.delta is not None and self.delta <= LEAST_DELTA

    def gap(self, lower: float, upper: float) -> float:
        """Distance of two bounds in units of the width: at most 1 is sharp enough."""
        if upper == lower:
            return 0.0
        if not math.isfinite(upper):
            return math.inf
        unit = self.width * (abs(upper) if self.delta is None else 1.0)
        return (upper - lower) / unit


class Bracket(NamedTuple):
    """Both bounds of an answer, and whether they are as close as the target wants.

    They hold in any case; `width_met` is False where a limit of numbers or of work came first.
    """

    lower: float
    upper: float
    width_met: bool


class End(NamedTuple):
    """One end of an answer, and whether finer grids would move it by less than the width, or by
    less than a percent, as far as the last two tell."""

    value: float
    width_met: bool
    settled: bool = False


class LossGrid(NamedTuple):
    """A grid of losses: its step, in nats, and the mass that is cut off at its ends."""

    step: float
    tail: float


class Evaluation(NamedTuple):
    """One bound from one grid, of the side "upper" or "lower": a certificate is made from it."""

    side: str
    step: float
    tail: float
    swapped: bool
    target: Target
    answer: float


SingleGridBound = Callable[[LossGrid, bool, Sequence[Target]], np.ndarray]
"""Function (grid, swapped, targets) -> the bounds of one side in one direction; the largest one
counts."""

Precision = TypeVar("Precision")


class Refinement(ABC, Generic[Precision]):
    """Bounds at one precision after another, until more would not help.

    A precision is a grid of losses, or a width for a caller who chooses the grids.
    """

    out_of_work: OutOfWorkError | None = None
    """The reason the refinement ended, if that was the budget."""

    @abstractmethod
    def evaluate(self, precision: Precision) -> None:
        """Compute bounds at this precision and keep those that are better than before."""

    @abstractmethod
    def finer(self, precision: Precision) -> Precision | None:
        """Next precision, by the results at this one; None ends the refinement."""

    def coarser(self, precision: Precision, error: NumericalError) -> Precision | None:
        """Next precision after one that failed, by default none: the error is the caller's."""
        raise error

    def cheaper(self, precision: Precision) -> Precision | None:
        """Next precision after one that takes too much work, by default none."""
        return None

    def run(self, precision: Precision | None) -> None:
        """Refine from a first precision on; None where there is nothing to refine."""
        for _ in range(_MOST_ROUNDS):
            if precision is None:
                return
            try:
                self.evaluate(precision)
            except OutOfWorkError as error:
                self.out_of_work = error
                precision = self.cheaper(precision)
            except NumericalError as error:
                precision = self.coarser(precision, error)
            else:
                precision = self.finer(precision)


class GridRefinement(Refinement[LossGrid]):
    """Bounds for several targets of one quantity, which share grids.

    Targets leave `unsettled` one by one; the others go on together, with the finest grid that any
    of them needs, so that many targets cost little more than the hardest of them.
    """

    coarsening: float
    """Factor of the step after a grid with too many points."""

    def __init__(self, targets: Sequence[Target], directions: Sequence[bool]) -> None:
        self.targets = targets
        self.directions = directions
        self.unsettled = list(range(len(targets)))

    @abstractmethod
    def is_answered(self, i: int) -> bool:
        """Whether target i has an answer that can stand if finer grids are out of reach."""

    @abstractmethod
    def next_grid(self, i: int, grid: LossGrid) -> LossGrid | None:
        """Grid that target i needs after this one; None if it is settled."""

    def finer(self, grid: LossGrid) -> LossGrid | None:
        next_grids = {i: self.next_grid(i, grid) for i in self.unsettled}
        needed = {i: following for i, following in next_grids.items() if following is not None}
        self.unsettled = list(needed)
        if not needed:
            return None
        step = min(following.step for following in needed.values())
        tail = min(following.tail for following in needed.values())
        return LossGrid(step, tail)

    def coarser(self, grid: LossGrid, error: NumericalError) -> LossGrid | None:
        self.unsettled = [i for i in self.unsettled if not self.is_answered(i)]
        return LossGrid(grid.step * self.coarsening, grid.tail) if self.unsettled else None

    def cheaper(self, grid: LossGrid) -> LossGrid | None:
        self.unsettled = [i for i in self.unsettled if not self.is_answered(i)]
        return LossGrid(grid.step * _CHEAPER, grid.tail) if self.unsettled else None

    def bounds_at(
        self, bound: SingleGridBound, grid: LossGrid, swapped: bool, places: Sequence[int]
    ) -> dict[int, float]:
        """Bounds for the targets at these places."""
        if not places:
            return {}
        bounds: list[float] = bound(grid, swapped, [self.targets[i] for i in places]).tolist()
        return dict(zip(places, bounds, strict=True))


class BothEnds(GridRefinement):
    """Both bounds of numbers that upper and lower bounds approach alike.

    Their distance is the error itself, and is measured: no estimate enters.
    """

    coarsening = 4.0

    def __init__(
        self,
        targets: Sequence[Target],
        lower: SingleGridBound,
        upper: SingleGridBound,
        directions: Sequence[bool],
    ) -> None:
        super().__init__(targets, directions)
        self.lower, self.upper = lower, upper
        # best bounds so far: target -> direction -> (lower, upper)
        self._best = [dict.fromkeys(directions, (0.0, target.ceiling)) for target in targets]
        self._gaps = [math.inf] * len(targets)
        self._stalls = [0] * len(targets)
        self._last_step = math.inf

    def refined(self, grid: LossGrid) -> list[Bracket]:
        """Both bounds for each target, from this first grid on."""
        self.run(grid)
        brackets = []
        for i, target in enumerate(self.targets):
            lower, upper = self._interval(i)
            brackets.append(Bracket(lower, upper, target.gap(lower, upper) <= 1))
        return brackets

    def _interval(self, i: int) -> tuple[float, float]:
        """Bounds of the larger one of both directions."""
        lowers, uppers = zip(*self._best[i].values(), strict=True)
        return max(lowers), max(uppers)

    def evaluate(self, grid: LossGrid) -> None:
        for swapped in self.directions:
            # a direction whose upper bound lies below what the other one attains does not count
            contending = [i for i in self.unsettled if self._contends(i, swapped)]
            uppers = self.bounds_at(self.upper, grid, swapped, contending)
            reaching = [i for i in contending if not uppers[i] < self._interval(i)[0]]
            lowers = self.bounds_at(self.lower, grid, swapped, reaching)
            for i in contending:
                lower, upper = self._best[i][swapped]
                self._best[i][swapped] = max(lower, lowers.get(i, 0.0)), min(upper, uppers[i])

    def _contends(self, i: int, swapped: bool) -> bool:
        return len(self.directions) == 1 or self._best[i][swapped][1] > self._interval(i)[0]

    def is_answered(self, i: int) -> bool:
        lower, upper = self._interval(i)
        return lower > 0 and math.isfinite(upper)

    def next_grid(self, i: int, grid: LossGrid) -> LossGrid | None:
        target, (lower, upper) = self.targets[i], self._interval(i)
        gap = target.gap(lower, upper)
        # a gap that does not move at all is not the grid's: two rounds of it are as bad as three
        # of little; what is infinite is mass that no grid moves, and a second one shows that it
        # stays
        unmoved = math.isinf(upper) or (math.isfinite(gap) and gap > _UNMOVED * self._gaps[i])
        stalled = not gap < _STALLED * self._gaps[i] and not self._only_tail(i, grid)
        if grid.step != self._last_step:
            self._stalls[i] = self._stalls[i] + (2 if unmoved else 1) if stalled else 0
        if gap <= 1 or self._stalls[i] >= _MOST_STALLS:
            return None
        self._gaps[i] = gap
        if target.delta is None and 0 < lower < grid.tail * 1e12 and grid.tail > LEAST_TAIL:
            # the mass cut off must be negligible next to the answer
            return LossGrid(grid.step, lower * 1e-14)
        if self._only_tail(i, grid):
            return LossGrid(grid.step, max(grid.tail**2, LEAST_TAIL))
        cut = _INSIDE / math.sqrt(gap) if math.isfinite(gap) else _BLIND_CUT
        return LossGrid(grid.step * min(_MILDEST_CUT, max(cut, _SHARPEST_CUT)), grid.tail)

    def finer(self, grid: LossGrid) -> LossGrid | None:
        following = super().finer(grid)
        self._last_step = grid.step
        return following

    def _only_tail(self, i: int, grid: LossGrid) -> bool:
        """Whether delta may be so small that only the mass that is cut off is seen."""
        lower, upper = self._interval(i)
        tiny = lower <= 0 < upper < 1e-10
        return self.targets[i].delta is None and tiny and grid.tail > LEAST_TAIL


class OneEnd(GridRefinement):
    """The upper or the lower bound alone.

    The move on the last grid tells when to stop. An upper bound needs all directions. A lower one
    leaves out a direction that is far behind on the first grid, and ends where it will not overtake
    `known_lower`, which another attack attains and which is not part of the answer.
    """

    coarsening = 2.0

    def __init__(
        self,
        targets: Sequence[Target],
        bound: SingleGridBound,
        directions: Sequence[bool],
        side: str,
        known_lower: Sequence[float] | None = None,
    ) -> None:
        super().__init__(targets, directions)
        self.bound, self.is_upper = bound, side == "upper"
        self.known_lower = [0.0] * len(targets) if known_lower is None else known_lower
        self._best: list[float | None] = [None] * len(targets)
        self._directions = [list(directions) for _ in targets]
        self._bounds: dict[int, dict[bool, float]] = {}  # on the last grid, in each direction
        self._width_met: dict[int, bool] = {}
        self._irregular: set[int] = set()
        self._settled: set[int] = set()
        self._grids_work: list[float] = []
        self._ratio = 2.0  # of the step before to the last one
        self._finest_step = 0.0
        self._last_step = math.inf

    def refined(self, grid: LossGrid, smallest_step: float = math.inf) -> list[End]:
        """End for each target, from this first grid on.

        The last grid has a 32nd of its step, or of `smallest_step` if that is less. NumericalError
        if no upper bound came out because all grids had too many points.
        """
        self._finest_step = min(grid.step, smallest_step) * _FINEST_SHARE
        self._last_step = grid.step
        self.run(grid)
        if self.is_upper and None in self._best and self.out_of_work is None:
            raise NumericalError(
                f"no grid was coarse enough for the composed loss, last step {self._last_step:g}; "
                "take fewer steps"
            )
        ends = []
        for i, target in enumerate(self.targets):
            trivial = target.ceiling if self.is_upper else 0.0
            best = self._best[i]
            value = trivial if best is None else best
            width_met = self._width_met.get(i, False)
            ends.append(End(value, width_met, width_met or i in self._settled))
        return ends

    def evaluate(self, grid: LossGrid) -> None:
        before = work.spent()
        self._bounds = {i: {} for i in self.unsettled}
        for swapped in self.directions:
            places = [i for i in self.unsettled if swapped in self._directions[i]]
            for i, value in self.bounds_at(self.bound, grid, swapped, places).items():
                self._bounds[i][swapped] = value
        self._grids_work.append(work.spent() - before)

    def is_answered(self, i: int) -> bool:
        return self._best[i] is not None

    def coarser(self, grid: LossGrid, error: NumericalError) -> LossGrid | None:
        self._last_step = grid.step * self.coarsening
        return super().coarser(grid, error)

    def finer(self, grid: LossGrid) -> LossGrid | None:
        following = super().finer(grid)
        if following is None:
            return None
        # the first grid includes work that is only done once
        if len(self._grids_work) > 1:
            half = LossGrid(grid.step / 2, following.tail)
            grids = (each for each in (following, half) if self._affords(each, grid))
            following = next(grids, None)
            if following is None:
                self.out_of_work = OutOfWorkError("the next grid takes too much; raise effort")
                return None
        self._ratio = grid.step / following.step
        return following

    def _affords(self, following: LossGrid, grid: LossGrid) -> bool:
        """Whether the work that is left is likely to suffice for a grid after this one."""
        return work.affords(self._grids_work[-1] * grid.step / following.step)

    def next_grid(self, i: int, grid: LossGrid) -> LossGrid | None:
        target, before = self.targets[i], self._best[i]
        value = max(self._bounds[i].values())
        if not self.is_upper:
            self._drop_directions(i, value)
        if before is None:
            self._best[i] = value
            if self.is_upper and target.underflows and math.isinf(value):
                return None  # as on every grid
            return LossGrid(grid.step / 2, grid.tail)
        best = min(before, value) if self.is_upper else max(before, value)
        self._best[i] = best
        moved = target.gap(min(before, value), max(before, value))
        error = self._error(i, moved, looser=self.is_upper and value > before)
        if abs(value - before) * error <= PERCENT * best * moved:
            self._settled.add(i)
        if error <= 1 or grid.step < self._finest_step:
            # no loss of the mechanism is infinite: an infinite epsilon is as loose as can be
            self._width_met[i] = error <= 1 and math.isfinite(best)
            return None
        # if errors fall by four a halving, this much is left to come
        left = abs(value - before) / (self._ratio**2 - 1)
        if best + left <= self.known_lower[i]:
            self._width_met[i] = True
            return None
        # steps are halved a whole number of times, so that orders recur and their profile is known
        return LossGrid(grid.step / (2.0 if error < 1.5 else 4.0), grid.tail)

    def _drop_directions(self, i: int, best: float) -> None:
        """Leave out directions that are far behind: the lower bound of any direction is one of the
        larger."""
        bounds = self._bounds[i]
        near = [swapped for swapped in self._directions[i] if bounds[swapped] > _FAR_BEHIND * best]
        self._directions[i] = near or self._directions[i]

    def _error(self, i: int, moved: float, looser: bool) -> float:
        """Estimate, in widths, how much finer grids would still change; it decides no bound."""
        if not self.is_upper:
            return moved  # errors of lower bounds are irregular: nothing is relied on
        if looser and moved > 1:
            self._irregular.add(i)  # a finer grid was looser: how errors fall is not known
        if i in self._irregular:
            return moved
        return moved / (_FALL ** math.log2(self._ratio) - 1)
