"""Work is counted before it is done: a budget that does not suffice ends a piece of it, every bound
that was reached holds, and the same question ends at the same place.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpsub
from dpsub.accounting.engine import work
from dpsub.accounting.engine.bracket import BothEnds, End, LossGrid, OneEnd, Target
from dpsub.accounting.engine.cell_masses import mixture_masses
from dpsub.accounting.engine.discretise import lower_pld, upper_pld
from dpsub.accounting.engine.fourier import ComposedLoss, damped_sums
from dpsub.accounting.engine.pairs import FillerPair, PoissonPair, WorPair
from dpsub.accounting.engine.profiles import GroupLemma
from dpsub.accounting.engine.work import OutOfWorkError
from dpsub.accounting.games.game import Copies
from dpsub.accounting.games.half_lines import best_half_line
from dpsub.accounting.schemes.allocation import one_step
from dpsub.accounting.schemes.shuffling import largest_step
from dpsub.errors import ArgumentError
from dpsub.sampling.laws import MultiplicityLaw
from tests.few import few

SOURCES = Path(dpsub.__file__).parent


class TestTheMeter:
    def test_what_exceeds_the_budget_is_not_counted(self) -> None:
        with work.metered(1.0):
            whole = work.left()
            with pytest.raises(OutOfWorkError, match="raise effort"):
                work.spend(whole)
            assert work.left() == whole and work.refusals() == 1
            work.spend(whole / 2)
            assert 0 < work.left() < whole / 2
        assert work.left() == math.inf

    def test_a_question_within_another_spends_of_its_budget(self) -> None:
        with work.metered(1.0):
            whole = work.left()
            with work.metered(10.0):
                assert work.left() == whole
                work.spend(whole / 4)
            assert work.left() < 0.76 * whole
            with work.share(1 / 2):
                assert work.left() < 0.38 * whole
                assert not work.affords(0.5 * whole)
            assert work.affords(0.5 * whole)

    @pytest.mark.parametrize("value", [0, -1.0, math.nan, 1e9, "much"])
    def test_an_effort_is_a_number_above_0(self, value: Any) -> None:
        with pytest.raises(ArgumentError, match="effort must be"):
            work.effort(value)
        assert work.effort(None) == math.inf

    @pytest.mark.parametrize("effort", [0.05, 0.1, 1.0, 3.0, 10.0, 1e4])
    def test_rungs_begin_with_those_of_less_effort_and_cost_no_more_than_asked_for(
        self, effort: float
    ) -> None:
        rungs = list(work.rungs(effort))
        assert sum(rungs) <= effort
        assert rungs[: len(list(work.rungs(effort / 3)))] == list(work.rungs(effort / 3))

    def test_what_one_question_remembers_saves_another_one_no_work(self) -> None:
        calls = []

        @work.remembered(4)
        def squared(x: int) -> int:
            work.spend(1e6)
            calls.append(x)
            return x * x

        spent = []
        for _ in range(2):
            with work.metered(1.0):
                assert [squared(3), squared(3)] == [9, 9]
                spent.append(work.spent())
        assert spent[0] == spent[1] and len(calls) == 2
        assert [squared(3), squared(3), len(calls)] == [9, 9, 3]

    def test_a_time_limit_is_a_guard_that_says_when_it_struck(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        asked: dict[str, Any] = {"noise_multiplier": 4.0, "steps": 10, "delta": 1e-5}
        late = dpsub.account(dpsub.Wor(20), 1000, **asked, quick=False, time_limit=1e-9)
        assert late.width_reason.startswith("time: stopped by the time limit after 1e-09 s")
        assert "another run may end elsewhere" in late.width_reason
        monkeypatch.setattr(time, "monotonic", lambda: math.nan)
        whole = dpsub.account(dpsub.Wor(20), 1000, **asked, quick=False, effort=1.0)
        assert whole.width_met


def test_nothing_but_the_guard_reads_a_clock() -> None:
    """The folders whose answers are a function of their question import no clock."""
    reads = re.compile(r"^\s*(import|from) (time|datetime|timeit)\b", re.MULTILINE)
    found = {
        str(path.relative_to(SOURCES))
        for folder in ("accounting", "recycling", "importance", "amplification", "cli", "noise")
        for path in (SOURCES / folder).rglob("*.py")
        if reads.search(path.read_text(encoding="utf-8"))
    }
    # the second one shows on a terminal how long a command has run
    assert found == {"accounting/engine/work.py", "cli/__init__.py"}


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
    "the largest of many steps": lambda: largest_step.LargestStep(50, 2.0, 0.0, 1.0).lower_pld(
        0.01, tail=1e-12
    ),
    "ratios of an epoch": lambda: one_step.mean_laws.__wrapped__(50, 1.0, 0.2, 1e-9, True),
    "a supremum over tests": lambda: GroupLemma(np.array([0.5, 0.3, 0.2]), 1.0)(np.zeros(3)),
    "a half-line": lambda: best_half_line((np.zeros(3), 1.0), (np.zeros(3), 2.0)),
    "places that draws fill": lambda: Copies.of_draws([0.5, 0.5], 0.5, 10, 5),
}


@pytest.mark.parametrize("piece", WORK.values(), ids=WORK.keys())
def test_what_may_take_long_is_counted(piece: Callable[[], Any]) -> None:
    with work.metered(1e-9), pytest.raises(OutOfWorkError):
        piece()
    piece()


@pytest.mark.parametrize(
    "piece",
    few(
        [
            lambda size: damped_sums(np.ones(size), 0.5),
            lambda size: SUM.delta(np.linspace(0.0, 1.0, size)),
            lambda size: largest_step.LargestStep(50, 2.0, 0.0, 1.0).lower_pld(
                10 / size, tail=1e-12
            ),
        ],
        most=2,
    ),
)
def test_long_arrays_cost_more(piece: Callable[[int], Any]) -> None:
    spent = []
    for size in (10, 2**20):
        with work.metered():
            piece(size)
            spent.append(work.spent())
    assert spent[1] > 4 * spent[0]


BUDGET: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-5}


def ledger() -> dpsub.Ledger:
    return dpsub.Ledger().add(dpsub.Wor(20), 1000, noise_multiplier=4.0, steps=10)


class TestTheLedger:
    """Questions of a ledger ask others, which spend of the same budget."""

    def test_steps_left_with_little_work_are_proved(self) -> None:
        asked = {"noise_multiplier": 4.0, **BUDGET}
        little = ledger().steps_left(dpsub.Wor(20), 1000, **asked, effort=0.1)
        much = ledger().steps_left(dpsub.Wor(20), 1000, **asked, effort=None)
        assert 1 <= little <= much

    def test_what_was_not_proved_exceeds(self) -> None:
        more: dict[str, Any] = {"noise_multiplier": 4.0, "steps": 100}
        both = ledger().add(dpsub.Wor(20), 1000, **more).account(delta=1e-5, quick=True)
        budget = {"epsilon": 1.01 * both.upper, "delta": 1e-5}
        assert ledger().would_exceed(dpsub.Wor(20), 1000, **more, **budget, effort=1e-6)
        assert not ledger().would_exceed(dpsub.Wor(20), 1000, **more, **budget)


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


def test_a_rough_upper_end_holds_when_the_budget_is_spent(monkeypatch: pytest.MonkeyPatch) -> None:
    """For a small delta, rough answers say how much may be cut off: they are the bounds reached
    before the first grid."""

    def late(self: OneEnd, *_: Any) -> list[End]:
        return [End(target.ceiling if self.is_upper else 0.0, False) for target in self.targets]

    asked: dict[str, Any] = {"noise_multiplier": 4.0, "steps": 10, "epsilon": [1.0, 2.0]}
    asked["adjacency"] = "substitute"
    whole = dpsub.account(dpsub.Wor(20), 1000, **asked)
    monkeypatch.setattr(OneEnd, "refined", late)
    answer = dpsub.account(dpsub.Wor(20), 1000, **asked)
    assert not answer.width_met
    assert np.all((whole.lower <= answer.upper) & (answer.upper < 1e-3))
