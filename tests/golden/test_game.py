"""Answers for samples of fixed size against independent programs; and these against their files and
closed forms."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import ndtr

import dpsub
from dpsub.sampling import of_sizes
from tests.few import few
from tests.golden import game, samplers
from tests.golden.samplers import Setting


def stored(name: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(
        Path(__file__).with_name(name).read_text(encoding="utf-8")
    )["epsilons"]
    return rows


ROWS, OTHERS = stored("game.json"), stored("samplers.json")


def single(rate: float, s: float, x: float) -> float:
    """Return H_a of one release at a = e^x: q G(1 + (a - 1)/q, 2/s)."""
    a, d = 1 + math.expm1(x) / rate, 2 / s
    return float(rate * (ndtr(d / 2 - math.log(a) / d) - a * ndtr(-d / 2 - math.log(a) / d)))


def test_all_settings_are_there() -> None:
    assert len(ROWS) == len(game.SETTINGS) * len(game.DELTAS)
    assert len(OTHERS) == len(samplers.SETTINGS) * len(game.DELTAS)
    assert len(game.SETTINGS) + len(samplers.SETTINGS) >= 40
    assert all(0 < row["lower"] < row["upper"] < 1.45 * row["lower"] for row in ROWS + OTHERS)


@pytest.mark.parametrize("setting", game.SETTINGS, ids=str)
def test_both_ends_are_consistent(setting: tuple[int, int, float, int]) -> None:
    n, m, s, steps = setting
    rows = [
        row
        for row in ROWS
        if (row["n"], row["m"], row["noise_multiplier"], row["steps"]) == setting
    ]
    answer = dpsub.account(
        dpsub.Wor(m),
        n,
        noise_multiplier=s,
        steps=steps,
        delta=[row["delta"] for row in rows],
        adjacency="substitute",
    )
    for row, lower, upper in zip(rows, answer.lower, answer.upper, strict=True):
        assert lower <= row["upper"], row
        assert row["lower"] <= upper, row


def rows_of(setting: Setting) -> list[dict[str, Any]]:
    return [row for row in OTHERS if {**row, **setting._asdict()} == row]


def account(setting: Setting, noise: float = 1.0) -> dpsub.Account:
    """Return the answer for all deltas, with the noise multiplier `noise` times as large."""
    return dpsub.account(
        of_sizes(setting.sampler, n=setting.n, m=setting.m, b=setting.b or None),
        setting.n,
        noise_multiplier=noise * setting.noise_multiplier,
        steps=setting.steps,
        delta=game.DELTAS,
        adjacency=setting.adjacency,
        mechanism=setting.noise,
    )


@pytest.mark.parametrize("setting", samplers.SETTINGS, ids=str)
def test_other_samplers_are_consistent(setting: Setting) -> None:
    answer = account(setting)
    assert (answer.kind == "exact") == (setting.adjacency == "add_remove")
    for row, lower, upper in zip(rows_of(setting), answer.lower, answer.upper, strict=True):
        assert lower <= row["upper"], row
        assert row["lower"] <= upper, row
        if answer.kind == "exact":
            assert abs(upper - row["upper"]) <= 5e-3, row


@pytest.mark.parametrize(
    ("index", "noise"), [(0, 1.1), (9, 1.25), (11, 1.01), (14, 1.01), (15, 1.25), (17, 1.01)]
)
def test_planted_faults_in_the_noise_of_other_samplers_are_seen(index: int, noise: float) -> None:
    setting = samplers.SETTINGS[index]
    rows, less, more = rows_of(setting), account(setting, 1 / noise), account(setting, noise)
    assert all(wrong > row["upper"] for wrong, row in zip(less.lower, rows, strict=True))
    assert all(wrong < row["lower"] for wrong, row in zip(more.upper, rows, strict=True))


@pytest.mark.slow
@pytest.mark.parametrize(
    "row", [row for row in ROWS if 1 < row["steps"] <= 1000 and row["delta"] == 1e-5], ids=str
)
def test_all_tight_upper_ends_are_above_the_lower_ones(row: dict[str, Any]) -> None:
    asked = {
        "noise_multiplier": row["noise_multiplier"],
        "steps": row["steps"],
        "delta": row["delta"],
    }
    answer = dpsub.account(
        dpsub.Wor(row["m"]), row["n"], **asked, width=0.02 * row["lower"], quick=False
    )
    assert row["lower"] <= answer.upper <= 1.05 * row["upper"]


@pytest.mark.parametrize("steps", [100, 1000])
def test_a_tight_upper_end_lies_between_both(steps: int) -> None:
    row = next(
        row
        for row in ROWS
        if row["steps"] == steps and row["noise_multiplier"] == 4.0 and row["delta"] == 1e-5
    )
    asked = {
        "noise_multiplier": 4.0,
        "steps": steps,
        "delta": 1e-5,
        "width": 0.01 * row["lower"],
        "quick": False,
        "adjacency": "substitute",
    }
    assert (
        row["lower"] <= dpsub.account(dpsub.Wor(row["m"]), row["n"], **asked).upper <= row["upper"]
    )


@pytest.mark.parametrize(
    ("n", "m", "s"), [setting[:3] for setting in game.SETTINGS if setting[3] == 1]
)
def test_one_release_is_exact(n: int, m: int, s: float) -> None:
    rate = m / n
    for logs, value in (
        game.one_cell(rate, s, 1, 0.01, 20.0),
        game.lower_value(rate, s, 1, 0.01, 20.0),
    ):
        exact = [single(rate, s, x) for x in logs[logs >= 0]]
        np.testing.assert_allclose(value[logs >= 0], exact, rtol=1e-9, atol=3e-14)
    for row in ROWS:
        if (row["n"], row["m"], row["noise_multiplier"], row["steps"]) == (n, m, s, 1):
            epsilon = brentq(
                lambda x, delta: single(rate, s, x) - delta, 0.0, 50.0, args=(row["delta"],)
            )
            assert row["lower"] <= epsilon <= row["upper"] <= epsilon + 2e-5


def test_planted_fault_noise_5_percent_smaller_is_seen() -> None:
    row = next(row for row in ROWS if row["steps"] == 100 and row["delta"] == 1e-5)
    wrong = dpsub.account(
        dpsub.Wor(row["m"]),
        row["n"],
        noise_multiplier=row["noise_multiplier"] / 1.05,
        steps=100,
        delta=1e-5,
    )
    assert wrong.lower > row["upper"]


@pytest.mark.thorough
def test_more_fillers_than_two_change_little(monkeypatch: pytest.MonkeyPatch) -> None:
    # of the numbers in docs/proofs/attacks.md
    asked = (0.01, 1.0, 2, 0.0018, 14.0)
    logs, four = game.lower_value(*asked)
    monkeypatch.setattr(game, "PAIRS", game.PAIRS[:2])
    two = game.lower_value(*asked)[1]
    at = int(np.argmax(logs >= 0))
    assert 1.006 < four[at] / two[at] < 1.008
    for delta in (1e-3, 1e-5):
        assert (
            0.0
            <= game.epsilon_lower(logs, four, delta) / game.epsilon_lower(logs, two, delta) - 1
            < 1e-5
        )


def test_the_event_of_other_samplers_is_that_of_closed_forms() -> None:
    # one copy: q G(1 + (a - 1) / q, 2 / s), as a supremum over events and as a half-line
    logs, rate, s = np.linspace(0.0, 3.0, 7), 0.25, 1.3
    exact = [single(rate, s, x) for x in logs]
    np.testing.assert_allclose(
        samplers.one_event(np.array([1 - rate, rate]), s, logs, (2.0, 2.0, 2.0)), exact, 1e-9
    )
    setting = Setting("wor", 4, 0, 1, "gaussian", "substitute", s, 1)
    np.testing.assert_allclose(samplers.half_line(setting, logs, swapped=False), exact, 1e-9)


@pytest.mark.parametrize("setting", samplers.SETTINGS, ids=str)
def test_copies_have_a_law_with_the_right_mean(setting: Setting) -> None:
    law = samplers.copies(setting)
    assert law.sum() == pytest.approx(1)
    assert law @ np.arange(law.size) == pytest.approx(setting.m / setting.records)


@pytest.mark.parametrize("setting", few([samplers.SETTINGS[12], samplers.SETTINGS[9]]), ids=str)
def test_the_file_of_other_samplers_is_what_its_generator_writes(setting: Setting) -> None:
    assert [pytest.approx(row, abs=2e-6) for row in rows_of(setting)] == samplers.rows(setting)


@pytest.mark.thorough
def test_the_file_of_games_is_what_its_generator_writes() -> None:
    setting = (10, 5, 2.0, 5)
    found = [row for row in ROWS if (row["n"], row["steps"]) == (10, 5)]
    for new, old in zip(game.rows(*setting), found, strict=True):
        assert new == pytest.approx(old, abs=2e-6)
