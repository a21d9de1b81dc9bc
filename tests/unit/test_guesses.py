"""Guesses of a secret value with a stated prior: the bounds of `Curve.reconstruction` against all
attackers on small mechanisms, and against the best one by quadrature."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

import dpsub
from dpsub.accounting.questions.curve import Curve
from dpsub.cli import main
from dpsub.errors import ArgumentError

EPSILONS = np.linspace(0.0, 6.0, 2001)
PRIORS = np.array([0.01, 0.1, 0.25, 0.5, 0.7, 0.95])
ANY = dpsub.curve(dpsub.Poisson(1.0), noise_multiplier=1.0, epsilon=[1.0])


def curve_of(pairs: list[tuple[np.ndarray, np.ndarray]], charged: float = 1.0) -> Curve:
    """Return the curve of laws of outputs on neighbouring data sets: delta from its definition."""
    delta = np.max(
        [
            np.maximum(one - np.exp(EPSILONS)[:, None] * other, 0.0).sum(axis=1)
            for first, second in pairs
            for one, other in ((first, second), (second, first))
        ],
        axis=0,
    )
    account = replace(ANY.account, lower=delta * charged, upper=delta * charged)
    return Curve(EPSILONS, account, ANY.mu, ANY.mu_within)


def best_success(laws: np.ndarray, prior: np.ndarray, right: np.ndarray) -> float:
    """Return the largest success of all attackers, who see an output and name a guess;
    right[guess, value] says whether a guess is right."""
    guesses, outputs = range(len(right)), range(laws.shape[1])
    joint = right @ (prior[:, None] * laws)  # of a right guess and an output
    return max(
        sum(joint[guess, output] for guess, output in zip(attacker, outputs, strict=True))
        for attacker in itertools.product(guesses, repeat=len(outputs))
    )


def drawn(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return laws of the outputs for each of some values and without the record, a prior, and the
    values that each guess is right for: one, or two neighbouring ones."""
    values, outputs = int(rng.integers(2, 5)), int(rng.integers(2, 5))
    laws = rng.dirichlet(np.full(outputs, 0.7), size=values + 1)
    prior = rng.dirichlet(np.ones(values))
    right = np.eye(values)
    if rng.random() < 0.5:
        right = np.maximum(right, np.roll(right, 1, axis=1))
    return laws[:-1], laws[-1], prior, right


@pytest.mark.parametrize(("is_replaced", "share"), [(False, 0.5), (True, 0.2)])
def test_no_attacker_guesses_more_often_than_is_proved(is_replaced: bool, share: float) -> None:
    rng, close, exceeded = np.random.default_rng(44), 0, 0
    for _ in range(150):
        laws, without, prior, right = drawn(rng)
        known = float((right @ prior).max())
        if known > 0.999:
            continue
        pairs = (
            list(itertools.combinations(laws, 2))
            if is_replaced
            else [(law, without) for law in laws]
        )
        success = best_success(laws, prior, right)
        proved = curve_of(pairs).reconstruction(known).upper
        assert known - 1e-12 <= success <= proved + 1e-9
        close += success > 0.9 * proved
        exceeded += success > curve_of(pairs, share).reconstruction(known).upper
    # the bound is no idle one, and one from a share of delta is found out
    assert close > 20 and exceeded > 3


@pytest.mark.parametrize(("values", "share"), [(2, 0.7), (4, 0.6), (10, 0.3)])
def test_the_upper_bound_is_attained_by_a_mechanism(values: int, share: float) -> None:
    """One that tells the value with a probability, and otherwise another one."""
    without = np.full(values, 1 / values)
    laws = np.full((values, values), (1 - share) / (values - 1))
    np.fill_diagonal(laws, share)
    found = curve_of([(law, without) for law in laws]).reconstruction(1 / values)
    assert share <= found.upper + 1e-9 and found.upper == pytest.approx(share, rel=5e-3)


def test_two_values_attain_the_lower_bound() -> None:
    rng = np.random.default_rng(1)
    for _ in range(50):
        first, second = rng.dirichlet(np.full(4, 0.7), size=2)
        found = curve_of([(first, second)]).reconstruction(PRIORS)
        for prior, lower, upper in zip(PRIORS, *found, strict=True):
            # below 1/2 both values have this prior, and others are not guessed
            other = min(prior, 1 - prior)
            success = max(
                np.maximum(prior * one, other * two).sum()
                for one, two in ((first, second), (second, first))
            )
            assert lower <= success + 1e-12 and success <= upper + 1e-12
            assert lower == pytest.approx(success, rel=3e-3)


@pytest.mark.parametrize("rate", [1.0, 0.3])
@pytest.mark.parametrize("adjacency", ["zero_out", "substitute"])
def test_of_noisy_sums_the_best_guess_is_between_both_bounds(rate: float, adjacency: str) -> None:
    s = 0.8
    found = dpsub.curve(dpsub.Poisson(rate), noise_multiplier=s, adjacency=adjacency, width=1e-3)
    lower, upper = found.reconstruction(PRIORS)
    y = np.linspace(-9, 9, 200_001)
    laws = [
        rate * norm.pdf(y, place, s) + (1 - rate) * norm.pdf(y, 0, s)
        for place in (1.0, -1.0 if adjacency == "substitute" else 0.0)
    ]
    for prior, least, most in zip(PRIORS, lower, upper, strict=True):
        other = min(prior, 1 - prior)
        best = max(
            float(np.maximum(prior * one, other * two).sum() * (y[1] - y[0]))
            for one, two in (laws, laws[::-1])
        )
        assert least <= best + 1e-7 and best <= most + 1e-7
        assert least == pytest.approx(best, rel=5e-3)
    if rate == 1.0:
        apart = (2.0 if adjacency == "substitute" else 1.0) / s
        assert upper == pytest.approx(norm.cdf(norm.ppf(PRIORS) + apart), rel=5e-3)


def test_many_values_at_right_angles_are_guessed_more_often_than_two() -> None:
    """By simulation: a record is one of ten unit vectors, whose coordinates are released."""
    rng, values, s = np.random.default_rng(7), 10, 0.5
    outputs = s * rng.standard_normal((100_000, values))
    outputs[:, 0] += 1.0
    success = float((outputs.argmax(axis=1) == 0).mean())
    lower, upper = dpsub.curve(
        dpsub.Poisson(1.0), noise_multiplier=s, adjacency="zero_out"
    ).reconstruction(1 / values)
    assert lower + 0.1 < success < upper


@pytest.mark.parametrize("prior", [0.0, 1.0, [0.5, -0.1], np.nan])
def test_a_prior_is_a_probability(prior: Any) -> None:
    with pytest.raises(ArgumentError, match="prior"):
        ANY.reconstruction(prior)


def test_statements_name_what_is_guessed(capsys: pytest.CaptureFixture[str]) -> None:
    asked: dict[str, Any] = {"noise_multiplier": 2.0, "steps": 10, "delta": 1e-5}
    answer = dpsub.account(dpsub.Poisson(0.1), **asked)
    assert "reconstruction" not in answer.statement().fields
    said = answer.statement(prior=0.1).fields["reconstruction"]
    assert said.startswith("at most ") and "right where 10 % are without the releases" in said
    with pytest.raises(ArgumentError, match="prior must be below 1, got prior = 1"):
        answer.statement(prior=1.0)
    best = dpsub.select(dpsub.Poisson(0.1), runs_mean=3.0, **asked)
    with pytest.raises(ArgumentError, match=r"for one run, got prior = 0\.1"):
        best.statement(prior=0.1)
    words = "account poisson --rate 0.1 --noise-multiplier 2 --steps 10 --delta 1e-5 --prior 0.1"
    assert main([*words.split(), "--statement"]) in (None, 0)
    assert said in capsys.readouterr().out
    assert main(words.split()) == 2
    assert "--prior is the prior of guesses of --statement" in capsys.readouterr().err
