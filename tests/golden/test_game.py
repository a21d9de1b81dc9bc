"""Answers for sampling without replacement against an independent program; and the generator against its file."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import ndtr

import dpsub
from tests.golden import game

ROWS = json.loads(Path(__file__).with_name("game.json").read_text(encoding="utf-8"))["epsilons"]


def single(rate: float, s: float, x: float) -> float:
    """H_a of one release at a = e^x: q G(1 + (a - 1)/q, 2/s)."""
    a, d = 1 + math.expm1(x) / rate, 2 / s
    return float(rate * (ndtr(d / 2 - math.log(a) / d) - a * ndtr(-d / 2 - math.log(a) / d)))


def test_all_settings_are_there() -> None:
    assert len(ROWS) == len(game.SETTINGS) * len(game.DELTAS)
    assert all(0 < row["lower"] < row["upper"] for row in ROWS)


@pytest.mark.parametrize("setting", game.SETTINGS, ids=str)
def test_both_ends_are_consistent(setting: tuple[int, int, float, int]) -> None:
    n, m, s, steps = setting
    rows = [row for row in ROWS if (row["n"], row["m"], row["noise_multiplier"], row["steps"]) == setting]
    answer = dpsub.account(
        dpsub.Wor(m), n, noise_multiplier=s, steps=steps, delta=[row["delta"] for row in rows], adjacency="substitute"
    )
    for row, lower, upper in zip(rows, answer.lower, answer.upper, strict=True):
        assert lower <= row["upper"], row
        assert row["lower"] <= upper, row


@pytest.mark.parametrize("steps", [100, 1000])
def test_a_tight_upper_end_lies_between_both(steps: int) -> None:
    row = next(row for row in ROWS if row["steps"] == steps and row["noise_multiplier"] == 4.0 and row["delta"] == 1e-5)
    asked = {"noise_multiplier": 4.0, "steps": steps, "delta": 1e-5, "tight": True, "width": 0.03 * row["lower"]}
    assert row["lower"] <= dpsub.account(dpsub.Wor(row["m"]), row["n"], **asked).upper <= row["upper"]


@pytest.mark.parametrize(("n", "m", "s"), [setting[:3] for setting in game.SETTINGS if setting[3] == 1])
def test_one_release_is_exact(n: int, m: int, s: float) -> None:
    rate = m / n
    for logs, value in (game.one_cell(rate, s, 1, 0.01, 20.0), game.lower_value(rate, s, 1, 0.01, 20.0)):
        exact = [single(rate, s, x) for x in logs[logs >= 0]]
        np.testing.assert_allclose(value[logs >= 0], exact, rtol=1e-9, atol=3e-14)
    for row in ROWS:
        if (row["n"], row["m"], row["noise_multiplier"], row["steps"]) == (n, m, s, 1):
            epsilon = brentq(lambda x, delta: single(rate, s, x) - delta, 0.0, 50.0, args=(row["delta"],))
            assert row["lower"] <= epsilon <= row["upper"] <= epsilon + 2e-5


def test_planted_fault_noise_5_percent_smaller_is_seen() -> None:
    row = next(row for row in ROWS if row["steps"] == 100 and row["delta"] == 1e-5)
    wrong = dpsub.account(
        dpsub.Wor(row["m"]), row["n"], noise_multiplier=row["noise_multiplier"] / 1.05, steps=100, delta=1e-5
    )
    assert wrong.lower > row["upper"]


def test_the_file_is_what_its_generator_writes() -> None:
    setting = (10, 5, 2.0, 5)
    found = [row for row in ROWS if (row["n"], row["steps"]) == (10, 5)]
    for new, old in zip(game.rows(*setting), found, strict=True):
        assert new == pytest.approx(old, abs=2e-6)
