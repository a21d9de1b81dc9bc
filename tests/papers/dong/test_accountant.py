"""The accountant's draws, by enumeration and by quadrature, and planted faults."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import integrate, stats

from dpsub.papers.dong import accountant
from dpsub.papers.dong.claims import DongClaims
from dpsub.papers.dong.experiments import Noise, TwoSteps


@pytest.mark.parametrize(("steps", "chosen"), [(1, 1), (4, 1), (5, 3), (6, 6)])
def test_the_likelihood_ratio_is_that_of_all_sets_of_steps(steps: int, chosen: int) -> None:
    noise = 0.7
    log_w = accountant.log_weights(np.random.default_rng(3), 5, steps, chosen, noise)
    outputs = log_w * noise**2 + 0.5
    for row, found in zip(outputs, accountant.log_ratio(log_w, chosen), strict=True):
        with_record = [
            math.prod(stats.norm.pdf(y, i in places, noise) for i, y in enumerate(row))
            for places in itertools.combinations(range(steps), chosen)
        ]
        without = math.prod(stats.norm.pdf(row, 0, noise))
        assert found == pytest.approx(math.log(np.mean(with_record) / without), rel=1e-10)


def test_both_screens_enclose_the_likelihood() -> None:
    for steps, chosen, noise in ((30, 7, 0.3), (12, 12, 1.0), (50, 1, 4.0)):
        log_w = accountant.log_weights(np.random.default_rng(1), 200, steps, chosen, noise)
        below, above = accountant.screens(log_w, chosen)
        exact = accountant.log_ratio(log_w, chosen)
        assert (below <= exact + 1e-9).all() and (exact <= above + 1e-9).all()


def by_quadrature(law: accountant.Law, noise: float, epsilon: float, *, forward: bool) -> float:
    """Return delta of two steps by a sum over a square of outputs."""
    y = np.linspace(-9 * noise, 1 + 9 * noise, 1501)
    at = [stats.norm.pdf(y, mean, noise) for mean in (0, 1)]
    without = np.multiply.outer(at[0], at[0])
    pairs = ((0, 0), (1, 0), (0, 1), (1, 1))
    with_record = sum(
        p * np.multiply.outer(at[i], at[j]) for p, (i, j) in zip(law, pairs, strict=True)
    )
    first, second = (with_record, without) if forward else (without, with_record)
    excess = np.maximum(first - math.exp(epsilon) * second, 0.0)
    return float(integrate.trapezoid(integrate.trapezoid(excess, y), y))


@pytest.mark.parametrize("law", [(0, 0.5, 0.5, 0), (0.25, 0.25, 0.25, 0.25), (0.0, 0.8, 0.2, 0.0)])
@pytest.mark.parametrize("forward", [True, False])
def test_delta_of_two_steps_is_that_of_the_double_integral(
    law: tuple[float, ...], forward: bool
) -> None:
    for noise, epsilon in ((0.5, 1.0), (1.0, 0.1)):
        found = accountant.of_two_steps(accountant.Law(*law), noise, epsilon, forward=forward)
        # the double sum has a kink along a curve
        expected = by_quadrature(accountant.Law(*law), noise, epsilon, forward=forward)
        assert found == pytest.approx(expected, rel=1e-4, abs=1e-7)


@pytest.mark.parametrize("forward", [True, False])
def test_estimates_agree_with_the_integral(forward: bool) -> None:
    rng = np.random.default_rng(7)
    law = accountant.Law(0.0, 0.5, 0.5, 0.0)
    found = accountant.estimate(rng, 40_000, 2, 1, 0.7, [1.0, 2.0], forward=forward)
    for at, epsilon in enumerate((1.0, 2.0)):
        expected = accountant.of_two_steps(law, 0.7, epsilon, forward=forward)
        assert abs(found.delta[at] - expected) < 5 * found.error[at] < 0.02
    # the screen loses no draw that counts
    assert found.left >= 40_000 * found.delta[0]


def test_the_procedure_keeps_delta() -> None:
    draws, delta = 2_000_000, 1.25e-5
    base = accountant.base_delta(draws, delta)
    assert 0 < base < delta
    assert accountant.overall_delta(draws, base) == pytest.approx(delta, rel=1e-6)
    # a mechanism with yes-or-no losses: how often it passes, times its delta, by the binomial law
    for worse in np.geomspace(base, 10 * delta, 40):
        passed = stats.binom.cdf(math.floor(draws * base), draws, worse)
        assert passed * worse <= delta


def test_planted_numbers_turn_the_verdicts() -> None:
    asks = {
        claim.claim: claim.ask
        for claim in DongClaims.claims
        if hasattr(claim, "ask") and claim.variants == ("rigorous",)
    }
    settings = {"noises": [1.0], "epsilons": [2.0]}
    frame = TwoSteps().compute(settings, variant="stated").assign(variant="stated", data="")
    assert asks["stronger"]({"dong_two_steps": frame}).holds == 1.0
    planted = frame.assign(one_lower=frame["poisson_upper"] * 1.01)
    assert asks["stronger"]({"dong_two_steps": planted}).holds == 0.0
    open_one = frame.assign(one_upper=frame["poisson_upper"] * 1.01)
    assert math.isnan(asks["stronger"]({"dong_two_steps": open_one}).holds)


def test_noise_is_refuted_below_where_it_is_proved() -> None:
    small = {"steps": 4, "chosen": 2, "epsilon": 4.0, "delta": 1e-4}
    names = ("example", "cluster", "benchmark", "short")
    frame = Noise().compute(dict.fromkeys(names, small), variant="stated")
    assert (frame["noise_lower"] < frame["noise_upper"]).all()
    assert (frame["noise_upper"] < 1.1 * frame["noise_lower"]).all()
