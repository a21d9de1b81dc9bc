"""Calibration to the advantage of membership inference."""

from __future__ import annotations

import json

import pytest
from scipy.stats import norm

import dpsub
from dpsub.cli import main
from dpsub.errors import ArgumentError


@pytest.mark.parametrize("advantage", [0.01, 0.1, 0.6])
def test_the_noise_for_an_advantage_in_closed_form(advantage: float) -> None:
    """k sums of all records are N(mu, 1) against N(0, 1), mu = sqrt(k) / s, whose total variation
    is 2 Phi(mu / 2) - 1."""
    found = dpsub.calibrate(dpsub.Poisson(1.0), advantage=advantage, steps=9)
    exact = 3 / (2 * norm.isf((1 - advantage) / 2))
    assert exact * (1 - 1e-9) <= found.noise_multiplier <= exact * 1.002
    assert found.refuted is not None and exact * 0.99 <= found.refuted <= exact
    assert found.account.upper <= advantage == found.target


def test_the_noise_for_an_advantage_is_that_of_the_curve() -> None:
    plan, question = dpsub.Wor(50), {"n": 1000, "steps": 20, "adjacency": "substitute"}
    found = dpsub.calibrate(plan, advantage=0.2, **question, effort=0.25)
    curve = dpsub.curve(
        plan, noise_multiplier=found.noise_multiplier, epsilon=[0.0], **question, effort=0.25
    )
    assert curve.advantage.lower <= 0.2 and found.account.upper <= 0.2
    assert found.account.lower <= curve.advantage.upper
    assert found.refuted is not None
    less = dpsub.curve(
        plan, noise_multiplier=found.refuted / 1.01, epsilon=[0.0], **question, effort=0.25
    )
    assert less.advantage.upper >= 0.2


@pytest.mark.parametrize(
    "target",
    [{}, {"epsilon": 1.0}, {"epsilon": 1.0, "delta": 1e-5, "advantage": 0.1}, {"advantage": 1.0}],
    ids=str,
)
def test_a_target_is_given_once(target: dict[str, float]) -> None:
    with pytest.raises(ArgumentError, match=r"advantage"):
        dpsub.calibrate(dpsub.Poisson(0.1), steps=3, **target)


def test_the_command_takes_an_advantage(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["calibrate", "poisson", "--rate", "0.1", "--steps", "5"]
    assert main([*command, "--advantage", "0.1", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["target_advantage"] == 0.1 and told["upper"] <= 0.1 and told["quantity"] == "delta"
    assert main([*command, "--advantage", "0.1", "--epsilon", "1"]) == 2
    assert "give one target" in capsys.readouterr().err
    sized = ["--solve", "size", "--sigma", "2", "--advantage", "0.1"]
    assert main([*command, *sized]) == 2
    assert "--advantage needs --solve noise" in capsys.readouterr().err
