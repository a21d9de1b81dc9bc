"""One time limit a call: whatever comes up within it ends with it, and what was reached holds.

The clock of these tests is their own: it ticks where it is read, so that no test depends on a
machine.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import dpsub
from dpsub.accounting import account, allocation, shuffling
from dpsub.accounting.bracket import BothEnds, End, LossGrid, OneEnd, Target
from dpsub.accounting.cell_masses import mixture_masses
from dpsub.accounting.compose import ComposedLoss, damped_sums
from dpsub.accounting.discretise import lower_pld, upper_pld
from dpsub.accounting.game import Copies, best_half_line
from dpsub.accounting.pairs import FillerPair, PoissonPair, WorPair
from dpsub.accounting.pld import OutOfTimeError, check_time, deadline_after, time_limited
from dpsub.accounting.proofs import GroupLemma
from dpsub.cli import calibrate as command
from dpsub.cli import main
from dpsub.cli.answers import Answer
from dpsub.errors import NumericalError
from dpsub.sampling.laws import MultiplicityLaw
from tests.few import few


class Clock:
    """Seconds that pass by one each time somebody looks, and by what a test adds."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 1.0
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr(time, "monotonic", found)
    return found


def test_a_question_within_another_has_no_more_time_than_that(clock: Clock) -> None:
    with time_limited(100.0):
        assert deadline_after(1000.0) == 100.0 == deadline_after(None)
        assert deadline_after(10.0) == clock.now + 10
        with time_limited(1e9):
            clock.now = 200.0
            with pytest.raises(OutOfTimeError, match="time limit"):
                check_time()
    check_time()


LAW = upper_pld(PoissonPair(0.1, 1.0), 0.01, tail=1e-12)
COMPOSED = ComposedLoss([LAW], [100])
FILLERS = FillerPair(MultiplicityLaw(np.log([0.5, 0.3, 0.2])), 1.0)
SUM = COMPOSED.masses(0.5)
WORK: dict[str, Callable[[], Any]] = {
    "the cumulants of a law": lambda: LAW.log_mgf(0.5),
    "its moments": lambda: LAW.moments(0.5),
    "a transform": lambda: COMPOSED.masses(0.5),
    "sums along a grid": lambda: damped_sums(np.ones(10), 0.5),
    "delta at many points": lambda: SUM.delta(np.zeros(10)),
    "epsilon at many points": lambda: SUM.epsilons(np.full(10, 1e-3)),
    "cells of a mixture": lambda: mixture_masses(np.arange(5.0), np.zeros(1), np.ones(1), 1.0),
    "losses that are inverted": lambda: FILLERS.inverse_loss(np.linspace(-0.1, 0.1, 5)),
    "a law from below": lambda: lower_pld(WorPair(0.1, 1.0), 0.01, tail=1e-12),
    "the largest of many steps": lambda: shuffling.LargestStep(50, 2.0, 0.0, 1.0).lower_pld(
        0.01, tail=1e-12
    ),
    "ratios of an epoch": lambda: allocation.mean_laws.__wrapped__(50, 1.0, 0.2, 1e-9, True),
    "a supremum over tests": lambda: GroupLemma(np.array([0.5, 0.3, 0.2]), 1.0)(np.zeros(3)),
    "a half-line": lambda: best_half_line((np.zeros(3), 1.0), (np.zeros(3), 2.0)),
    "places that draws fill": lambda: Copies.of_draws([0.5, 0.5], 0.5, 10, 5),
}


@pytest.mark.parametrize("work", WORK.values(), ids=WORK.keys())
def test_what_may_take_long_looks_at_the_clock(work: Callable[[], Any], clock: Clock) -> None:
    with time_limited(clock.now - 1), pytest.raises(OutOfTimeError):
        work()
    work()


@pytest.mark.parametrize(
    "work",
    few(
        [
            lambda size: damped_sums(np.ones(size), 0.5),
            lambda size: SUM.delta(np.linspace(0.0, 1.0, size)),
            lambda size: shuffling.LargestStep(50, 2.0, 0.0, 1.0).lower_pld(10 / size, tail=1e-12),
        ],
        most=2,
    ),
)
def test_long_arrays_are_worked_on_in_pieces(work: Callable[[int], Any], clock: Clock) -> None:
    looks = []
    for size in (10, 2**20):
        before = clock.now
        with time_limited(1e9):
            work(size)
        looks.append(clock.now - before)
    assert looks[1] >= looks[0] + 7


BUDGET: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-5}
LIMIT = 1.2  # of what the first question of several takes
UNWINDING = 12  # looks at the clock after the time is up, in which nothing is computed


def ledger() -> dpsub.Ledger:
    return dpsub.Ledger().add(dpsub.Wor(20), 1000, noise_multiplier=4.0, steps=10)


def ticks(clock: Clock, work: Callable[[], Any]) -> tuple[float, Any]:
    before = clock.now
    found = work()
    return clock.now - before, found


class TestTheLedger:
    """Its questions ask others, which had the whole limit each."""

    def test_steps_left(self, clock: Clock) -> None:
        first, _ = ticks(
            clock,
            lambda: ledger().would_exceed(
                dpsub.Wor(20), 1000, noise_multiplier=4.0, steps=1, **BUDGET, time_limit=1e9
            ),
        )
        limit = LIMIT * first
        taken, found = ticks(
            clock,
            lambda: ledger().steps_left(
                dpsub.Wor(20), 1000, noise_multiplier=4.0, **BUDGET, time_limit=limit
            ),
        )
        # one step was proved to stay within the budget before the time was up
        assert found >= 1
        assert taken <= limit + UNWINDING

    def test_calibrate(self, clock: Clock) -> None:
        def asked(limit: float) -> dpsub.Calibration:
            return ledger().calibrate(dpsub.Wor(20), 1000, steps=10, **BUDGET, time_limit=limit)

        whole, _ = ticks(clock, lambda: asked(1e9))
        spent, _ = ticks(clock, lambda: ledger().account(delta=1e-5, time_limit=1e9))
        limit = max(LIMIT * spent, whole / 2)
        before = clock.now
        with pytest.raises(NumericalError):
            asked(LIMIT * spent / 10)
        assert clock.now - before <= LIMIT * spent / 10 + UNWINDING
        before = clock.now
        try:
            found = asked(limit)
        except NumericalError:
            pass
        else:
            assert found.account.upper <= BUDGET["epsilon"]
        assert clock.now - before <= limit + UNWINDING

    def test_what_was_not_proved_in_the_time_exceeds(self, clock: Clock) -> None:
        taken, found = ticks(
            clock,
            lambda: ledger().would_exceed(
                dpsub.Wor(20), 1000, noise_multiplier=40.0, steps=1, **BUDGET, time_limit=2.0
            ),
        )
        assert found
        assert taken <= 2 + UNWINDING

    def test_a_time_limit_is_not_said_to_be_an_excess(self, clock: Clock) -> None:
        with pytest.raises(NumericalError, match="time limit has passed"):
            ledger().calibrate(dpsub.Wor(20), 1000, steps=10, **BUDGET, time_limit=2.0)


def test_the_time_of_a_check_begins_with_the_call(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    proof = account.Proof.of

    def slow(*arguments: Any) -> account.Proof:
        clock.now += 1000.0
        return proof(*arguments)

    monkeypatch.setattr(account.Proof, "of", slow)
    asked: dict[str, Any] = {
        "noise_multiplier": 1.0,
        "steps": 10,
        "claimed_epsilon": 1.0,
        "delta": 1e-5,
    }
    assert not dpsub.check(dpsub.Poisson(0.01), **asked, time_limit=500.0).account.width_met
    assert dpsub.check(dpsub.Poisson(0.01), **asked, time_limit=5000.0).account.width_met


def test_questions_of_one_command_share_its_time_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    now, deadlines = [0.0], []

    def run(_: Any) -> Answer:
        deadlines.append(deadline_after(None))
        now[0] += 10.0
        return Answer({}, "", [])

    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(command, "run", run)
    question = (
        "calibrate poisson --rate 0.01 --steps 10 --epsilon 1,2,3 --delta 1e-5 --time-limit 90"
    )
    assert main(question.split()) == 0
    # what one question leaves is there for the others
    assert deadlines == [30.0, 50.0, 90.0]


class TestInfiniteEnds:
    """An epsilon is infinite for mass that no grid moves: to refine it takes long, and changes
    nothing."""

    def setup_method(self) -> None:
        self.steps: list[float] = []

    def infinite(self, grid: LossGrid, swapped: bool, targets: Sequence[Target]) -> np.ndarray:
        self.steps.append(grid.step)
        return np.full(len(targets), np.inf)

    def one(self, grid: LossGrid, swapped: bool, targets: Sequence[Target]) -> np.ndarray:
        return np.ones(len(targets))

    def test_a_second_grid_shows_that_it_stays(self) -> None:
        refinement = BothEnds([Target(delta=1e-290)], self.one, self.infinite, (False,))
        (found,) = refinement.refined(LossGrid(1.0, 1e-300))
        assert (found.lower, found.upper, found.width_met) == (1.0, np.inf, False)
        assert len(self.steps) == 2

    @pytest.mark.parametrize(("delta", "grids"), [(1e-300, 1), (1e-290, 2)])
    def test_no_second_one_is_asked_for_what_underflows(self, delta: float, grids: int) -> None:
        refinement = OneEnd([Target(delta=delta)], self.infinite, (False,), "upper")
        (found,) = refinement.refined(LossGrid(1.0, 1e-300))
        assert (found.value, found.width_met) == (np.inf, False)
        assert len(self.steps) == grids


def test_a_rough_upper_end_holds_when_the_time_is_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a small delta, rough answers tell what may be cut off: they are what was reached before
    the first grid."""

    def late(self: OneEnd, *_: Any) -> list[End]:
        return [End(target.ceiling if self.is_upper else 0.0, False) for target in self.targets]

    asked: dict[str, Any] = {"noise_multiplier": 4.0, "steps": 10, "epsilon": [1.0, 2.0]}
    whole = dpsub.account(dpsub.Wor(20), 1000, **asked)
    monkeypatch.setattr(OneEnd, "refined", late)
    answer = dpsub.account(dpsub.Wor(20), 1000, **asked)
    assert not answer.width_met
    assert np.all((whole.lower <= answer.upper) & (answer.upper < 1e-3))
