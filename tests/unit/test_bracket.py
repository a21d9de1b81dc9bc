"""Refinements on planted bounds: their questions, their stop, and that the best bound is kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
import pytest

from dpsub.accounting.engine.bracket import BothEnds, LossGrid, OneEnd, Refinement, Target
from dpsub.accounting.engine.work import OutOfWorkError
from dpsub.errors import NumericalError

FIRST = LossGrid(1.0, 1e-18)
Error = Callable[[float], float]


class Planted:
    """Bounds of a known epsilon that are off by an error of the step, on one side."""

    def __init__(self, truth: float, error: Error, finest: float = 0.0) -> None:
        self.truth, self.error, self.finest = truth, error, finest
        self.grids: list[tuple[LossGrid, bool, int]] = []

    def __call__(self, grid: LossGrid, swapped: bool, targets: Sequence[Target]) -> np.ndarray:
        if grid.step < self.finest:
            raise NumericalError("the grid has too many points")
        self.grids.append((grid, swapped, len(targets)))
        return np.full(len(targets), self.truth + self.error(grid.step))

    @property
    def steps(self) -> list[float]:
        return [grid.step for grid, _, _ in self.grids]


def above(step: float) -> float:
    return step**2


def below(step: float) -> float:
    return -(step**2)


@pytest.mark.parametrize("width", [0.5, 1e-2, 1e-4])
def test_both_ends_end_within_the_width_and_on_no_finer_grid_than_it_takes(width: float) -> None:
    lower, upper = Planted(3.0, below), Planted(3.0, above)
    (bracket,) = BothEnds([Target(delta=0.1, width=width)], lower, upper, (False,)).refined(FIRST)
    assert bracket.width_met
    assert 3 - width <= bracket.lower <= 3.0 <= bracket.upper <= 3 + width
    assert upper.steps == lower.steps
    # the last grid but one was too coarse, and each was cut to an eighth at most
    assert 2 * upper.steps[-2] ** 2 > width
    assert all(after >= before / 8 for before, after in pairwise(upper.steps))


def test_a_gap_that_no_grid_closes_ends_the_refinement() -> None:
    lower, upper = Planted(3.0, below), Planted(3.5, above)
    (bracket,) = BothEnds([Target(delta=0.1, width=1e-3)], lower, upper, (False,)).refined(FIRST)
    assert not bracket.width_met
    assert bracket.lower <= 3.0 and bracket.upper >= 3.5
    assert len(upper.steps) <= 6


def test_a_direction_that_does_not_count_is_not_refined() -> None:
    asked: list[bool] = []

    def lower(grid: LossGrid, swapped: bool, targets: Sequence[Target]) -> np.ndarray:
        asked.append(swapped)
        return np.full(len(targets), (1.0 if swapped else 3.0) - grid.step**2)

    def upper(grid: LossGrid, swapped: bool, targets: Sequence[Target]) -> np.ndarray:
        return np.full(len(targets), (1.0 if swapped else 3.0) + grid.step**2)

    refinement = BothEnds([Target(delta=0.1, width=1e-4)], lower, upper, (False, True))
    (bracket,) = refinement.refined(LossGrid(0.1, 1e-18))
    assert bracket.width_met and bracket.lower <= 3.0 <= bracket.upper
    # its upper bound, 1.01, is below what the other direction attains, 2.99
    assert True not in asked and len(asked) > 1


@pytest.mark.parametrize("factor", [1.0, 3.0])
def test_what_fails_is_tried_on_coarser_grids_and_what_came_out_stands(factor: float) -> None:
    finest = 0.2 * factor
    lower, upper = Planted(3.0, below, finest), Planted(3.0, above, finest)
    (bracket,) = BothEnds([Target(delta=0.1, width=1e-6)], lower, upper, (False,)).refined(FIRST)
    assert not bracket.width_met
    assert bracket.upper == 3.0 + min(upper.steps) ** 2
    too_fine = LossGrid(finest / 100, 1e-18)
    lower, upper = Planted(3.0, below, finest), Planted(3.0, above, finest)
    (bracket,) = BothEnds([Target(delta=0.1)], lower, upper, (False,)).refined(too_fine)
    assert bracket.lower < 3.0 < bracket.upper < np.inf


def test_an_upper_end_without_any_grid_is_an_error_and_a_lower_one_is_zero() -> None:
    never = Planted(3.0, above, finest=1e9)
    target = Target(delta=0.1)
    with pytest.raises(NumericalError, match="no grid was coarse enough"):
        OneEnd([target], never, (False,), "upper").refined(FIRST)
    (end,) = OneEnd([target], never, (False,), "lower").refined(FIRST)
    assert (end.value, end.width_met) == (0.0, False)


def test_a_lower_end_that_will_not_overtake_is_left_alone() -> None:
    bounds = [Planted(3.0, below) for _ in range(2)]
    target = Target(delta=0.1, width=1e-6)
    for known, bound in zip((0.0, 4.0), bounds, strict=True):
        (end,) = OneEnd([target], bound, (False,), "lower", [known]).refined(FIRST)
        assert end.value <= 3.0
    free, hopeless = bounds
    assert len(hopeless.steps) == 2 < len(free.steps)


def test_targets_share_grids_and_leave_one_by_one() -> None:
    bound = Planted(3.0, above)
    targets = [Target(delta=0.1, width=width) for width in (1.0, 1e-2)]
    ends = OneEnd(targets, bound, (False,), "upper").refined(FIRST)
    assert all(end.width_met for end in ends)
    asked = [n_targets for _, _, n_targets in bound.grids]
    assert asked[0] == 2 and asked[-1] == 1
    for end, target in zip(ends, targets, strict=True):
        assert 3.0 <= end.value <= 3.0 + target.width


class Counting(Refinement[int]):
    """Counts of precisions; a planted error comes at one of them."""

    def __init__(self, error: Exception | None = None, at: int = 0) -> None:
        self.error, self.at = error, at
        self.asked: list[int] = []

    def evaluate(self, precision: int) -> None:
        self.asked.append(precision)
        if self.error is not None and precision == self.at:
            raise self.error

    def finer(self, precision: int) -> int | None:
        return None if precision == 5 else precision + 1


def test_a_refinement_ends_by_its_rule_by_the_budget_or_by_an_error() -> None:
    done = Counting()
    done.run(0)
    assert done.asked == [0, 1, 2, 3, 4, 5] and done.out_of_work is None
    late = Counting(OutOfWorkError("the budget does not suffice"), at=2)
    late.run(0)
    assert late.asked == [0, 1, 2] and late.out_of_work is late.error
    failed = Counting(NumericalError("bounds must not cross"), at=3)
    with pytest.raises(NumericalError, match="must not cross"):
        failed.run(0)
    endless = Counting()
    endless.run(6)  # beyond what ends it: the number of rounds does
    assert len(endless.asked) == 12
    nothing = Counting()
    nothing.run(None)
    assert nothing.asked == []
