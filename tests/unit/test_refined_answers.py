"""Answers whose ends are brought together: how close, by which theorem, and why not closer."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import dpsub
import dpsub.accounting.questions.export
from dpsub.accounting.engine import work
from dpsub.accounting.engine.bracket import End, Target
from dpsub.accounting.engine.composition import Composition
from dpsub.accounting.questions.fast_search import needed, tightened
from dpsub.accounting.questions.proof import Proof
from dpsub.accounting.questions.search import Goal

WOR: dict[str, Any] = {"noise_multiplier": 4.0, "steps": 20, "delta": 1e-5}
WOR["adjacency"] = "substitute"


@pytest.fixture(scope="module")
def refined() -> dpsub.Account:
    """Return the answer for some samples without replacement."""
    return dpsub.account(dpsub.Wor(20), 1000, **WOR, quick=False)


def test_the_ends_are_brought_to_half_a_percent(refined: dpsub.Account) -> None:
    quick = dpsub.account(dpsub.Wor(20), 1000, **WOR, quick=True)
    assert quick.relative_width > 0.01
    assert quick.lower <= refined.lower <= refined.upper < quick.upper
    assert refined.relative_width <= 5e-3
    assert (refined.width_met, refined.width_reason) == (True, "")


def test_each_end_names_its_theorem(refined: dpsub.Account) -> None:
    quick = dpsub.account(dpsub.Wor(20), 1000, **WOR, quick=True)
    # the game proves what the game gave
    assert refined.theorem == "Theorem 15, docs/proofs/without_replacement.md"
    assert quick.theorem == "Theorem 2, docs/proofs/without_replacement.md"
    assert refined.lower_theorem == "Filler flip, docs/proofs/attacks.md"
    exact = dpsub.account(dpsub.Poisson(0.1), noise_multiplier=1.0, steps=2, delta=1e-3)
    assert exact.theorem == exact.lower_theorem == "Theorem 1, docs/proofs/poisson.md"


def test_a_quick_answer_says_that_it_is_one() -> None:
    quick = dpsub.account(dpsub.Wor(20), 1000, **WOR, quick=True)
    assert quick.width_met and quick.width_reason.startswith("quick")


def test_theory_is_named_where_it_keeps_the_ends_apart() -> None:
    apart = dpsub.account(
        dpsub.Shuffle(10), 100, noise_multiplier=2.0, epochs=3, delta=1e-5, quick=False
    )
    assert apart.relative_width > 0.1
    assert not apart.width_met and apart.width_reason.startswith("theory")


def test_ends_that_are_accurate_by_themselves_are_kept_apart_by_theory() -> None:
    """The ends are closer than first bounds are accurate, so that finer grids are tried."""
    asked: dict[str, Any] = {"noise_multiplier": 8.0, "steps": 5000, "delta": 1e-8}
    apart = dpsub.account(dpsub.Wr(256), 1_200_000, **asked, adjacency="zero_out", quick=False)
    assert 0.01 < apart.relative_width < 0.2
    assert apart.width_reason.startswith("theory")


@pytest.mark.thorough
def test_upper_ends_get_what_attacks_leave() -> None:
    """The theorem takes more than the first share of the budget, and less than all of it."""
    plan = dpsub.RandomAllocation(391, 5)
    found = dpsub.account(plan, noise_multiplier=0.52, epochs=1, delta=1.25e-5)
    assert found.relative_width < 0.01


@pytest.mark.parametrize(("later", "kept"), [(30.0, 20.0), (15.0, 15.0)])
def test_a_second_try_of_an_upper_end_is_kept_if_it_is_closer(
    later: float, kept: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = iter([20.0, later])

    def refused(*_: Any) -> list[End]:
        work.affords(math.inf)
        return [End(next(values), False)]

    monkeypatch.setattr(Composition, "bounds", refused)
    plan = dpsub.RandomAllocation(10, 3)
    release = dpsub.Release(plan, noise_multiplier=2.0, steps=10)
    with work.metered(1.0):
        found = Proof.of([release]).account(Target(None, 1e-5, 1e-3))
    assert found.upper == kept


def test_time_is_named_where_it_ran_out() -> None:
    late = dpsub.account(dpsub.Wor(20), 1000, **WOR, quick=False, time_limit=1e-6)
    assert 0 < late.lower < late.upper < math.inf and not late.width_met
    assert late.width_reason.startswith("time")


def test_exact_is_claimed_up_to_the_width_alone() -> None:
    asked: dict[str, Any] = {"noise_multiplier": 1.0, "steps": 20, "delta": 1e-5, "quick": False}
    assert dpsub.account(dpsub.Poisson(0.1), **asked).kind == "exact"
    apart = dpsub.account(dpsub.Poisson(0.1), **asked, time_limit=1e-6)
    assert apart.kind == "bounds" and apart.width_reason.startswith("time")


def test_several_deltas_are_brought_together_one_by_one() -> None:
    asked = WOR | {"delta": [1e-5, 1e-3]}
    both = dpsub.account(dpsub.Wor(20), 1000, **asked, quick=False)
    assert np.all(both.relative_width <= 5e-3)
    assert both.theorem == "Theorem 15, docs/proofs/without_replacement.md"


def test_tight_is_accepted_with_a_warning() -> None:
    asked = WOR | {"steps": 2}
    with pytest.warns(DeprecationWarning, match="quick=True"):
        old = dpsub.account(dpsub.Wor(20), 1000, **asked, tight=True)
    # what --quick gives
    with pytest.warns(DeprecationWarning):
        first = dpsub.account(dpsub.Wor(20), 1000, **asked, tight=False)
    assert old.upper <= first.upper


def test_a_quick_check_leaves_open_what_the_game_decides() -> None:
    asked = {**WOR, "claimed_epsilon": 0.99 * dpsub.account(dpsub.Wor(20), 1000, **WOR).upper}
    verdicts = [
        dpsub.check(dpsub.Wor(20), 1000, **asked, quick=quick, effort=None).verdict
        for quick in (True, False)
    ]
    assert verdicts == ["open", "proved"]


def test_a_curve_is_refined_by_a_few_games() -> None:
    asked: dict[str, Any] = {"noise_multiplier": 4.0, "steps": 20, "epsilon": [0.1, 0.2, 0.3]}
    asked["adjacency"] = "substitute"
    quick, refined = (
        dpsub.curve(dpsub.Wor(20), 1000, **asked, quick=quick, effort=None)
        for quick in (True, False)
    )
    assert quick.account.width_reason.startswith("quick")
    assert np.all(refined.delta.upper <= quick.delta.upper)
    assert refined.account.relative_width.max() < 0.05 < quick.account.relative_width.max()
    assert refined.account.theorem == "Theorem 15, docs/proofs/without_replacement.md"
    assert np.array_equal(refined.delta.lower, quick.delta.lower)


@pytest.fixture(scope="module")
def exported() -> dict[bool, dpsub.accounting.questions.export.Export]:
    """Return laws of samples without replacement, quick and refined."""
    ledger = dpsub.Ledger()
    ledger.record(dpsub.Wor(20), 1000, noise_multiplier=4.0, steps=20)
    return {
        quick: ledger.export(quick=quick, effort=None, adjacency="substitute")
        for quick in (True, False)
    }


def test_an_exported_law_holds_what_the_game_proves(
    exported: dict[bool, dpsub.accounting.questions.export.Export], refined: dpsub.Account
) -> None:
    quick, found = exported[True], exported[False]
    assert quick.width_reason.startswith("quick") and not quick.width_met
    assert found.relative_width < quick.relative_width / 2
    assert found.theorem == refined.theorem and "docs/proofs/attacks.md" in found.lower_theorem
    assert "width of delta" in str(found)
    by_side = {law.side: law for law in found.laws}
    for epsilon in (0.0, 0.1, 0.2, 0.3):
        upper, lower = by_side["upper"].delta(epsilon), by_side["lower"].delta(epsilon)
        assert lower <= upper <= quick.laws[0].delta(epsilon) * (1 + 1e-9)
    # two independent computations: by the law, and by the game of one epsilon
    attained = dpsub.account(dpsub.Wor(20), 1000, **{**WOR, "delta": 1e-6}, quick=True)
    assert by_side["upper"].delta(attained.lower) >= 1e-6 * (1 - 1e-6)
    assert by_side["upper"].masses.sum() + by_side["upper"].infinity == pytest.approx(1, abs=1e-6)


def test_a_law_is_evaluated_from_the_largest_loss_on(
    exported: dict[bool, dpsub.accounting.questions.export.Export],
) -> None:
    law = exported[True].laws[0]
    points = np.linspace(0.0, 0.4, 7)
    at_once = law.curve(points)
    one_by_one = np.array([law.delta(point) for point in points.tolist()])
    assert np.all(at_once >= one_by_one * (1 - 2e-12))
    assert at_once == pytest.approx(one_by_one, rel=1e-8)


def test_an_exact_export_reaches_its_width() -> None:
    ledger = dpsub.Ledger()
    ledger.record(dpsub.Poisson(0.1), noise_multiplier=1.0, steps=2)
    found = ledger.export(width=1e-3, effort=None, quick=False)
    first = ledger.export(width=1e-3, quick=True)
    assert found.relative_width <= max(1e-3, first.relative_width / 2)
    asked_for = ledger.export(width=1e-6, step=0.01, effort=None, quick=False)
    assert asked_for.step == 0.01 and asked_for.width_reason.startswith("numerics")


def test_a_recommendation_takes_less_noise_where_a_game_proves_it() -> None:
    goal = Goal(1.0, 1e-3, "substitute", 3e-3)
    release = dpsub.Release(dpsub.Wor(10), 50, 1.0, 5)
    first = needed(release, goal)
    found = tightened(release, goal, first)
    assert first.necessary <= found.necessary < found.noise_multiplier < first.noise_multiplier
    assert found.noise_multiplier < 1.05 * found.necessary
    assert found.epsilon_lower <= found.epsilon_upper <= 1.0
    # where both bounds are about one number there is no game
    poisson = dpsub.Release(dpsub.Poisson(0.2), 50, 1.0, 5)
    exact = needed(poisson, goal)
    assert tightened(poisson, goal, exact) == exact


def test_a_quick_answer_that_ran_out_of_time_says_so() -> None:
    late = dpsub.account(dpsub.Wor(20), 1000, **WOR, quick=True, time_limit=1e-6)
    assert not late.width_met and late.width_reason.startswith("time")
