"""Answers whose ends are brought together: how close, by which theorem, and why not closer."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import dpsub

WOR: dict[str, Any] = {"noise_multiplier": 4.0, "steps": 20, "delta": 1e-5}


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
    assert refined.theorem == "Theorem 15, docs/accounting.md 4.1"
    assert quick.theorem == "Theorem 2, docs/accounting.md 3.3"
    assert refined.lower_theorem == "Filler flip, docs/accounting.md 5"
    exact = dpsub.account(dpsub.Poisson(0.1), noise_multiplier=1.0, steps=2, delta=1e-3)
    assert exact.theorem == exact.lower_theorem == "Theorem 1, docs/accounting.md 3.2"


def test_a_quick_answer_says_that_it_is_one() -> None:
    quick = dpsub.account(dpsub.Wor(20), 1000, **WOR, quick=True)
    assert quick.width_met and quick.width_reason.startswith("quick")


def test_theory_is_named_where_it_keeps_the_ends_apart() -> None:
    apart = dpsub.account(
        dpsub.Shuffle(10), 100, noise_multiplier=2.0, epochs=3, delta=1e-5, quick=False
    )
    assert apart.relative_width > 0.1
    assert not apart.width_met and apart.width_reason.startswith("theory")


def test_time_is_named_where_it_ran_out() -> None:
    late = dpsub.account(dpsub.Wor(20), 1000, **WOR, quick=False, time_limit=1e-6)
    assert (late.upper, late.width_met) == (math.inf, False)
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
    assert both.theorem == "Theorem 15, docs/accounting.md 4.1"


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
        dpsub.check(dpsub.Wor(20), 1000, **asked, quick=quick, time_limit=3600).verdict
        for quick in (True, False)
    ]
    assert verdicts == ["open", "proved"]
