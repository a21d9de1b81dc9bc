"""Faults in answers of other accountants, shown by asking them and by data sets."""

from __future__ import annotations

import math

import dp_accounting as dp
import pytest
from dp_accounting.pld import PLDAccountant
from dp_accounting.rdp import RdpAccountant
from prv_accountant import PRVAccountant
from prv_accountant.privacy_random_variables import LaplaceMechanism
from scipy.optimize import brentq
from scipy.stats import norm

import dpsub
from dpsub.papers.practice.experiments import recorded_for
from dpsub.papers.practice.packages import kind_of
from dpsub.papers.practice.settings import QUESTIONS, AccountingQuestion
from dpsub.reproduce import published

REPLACE = dp.NeighboringRelation.REPLACE_ONE


def asked(kind: type, event: dp.DpEvent, delta: float) -> float:
    """Return epsilon under replacement."""
    return float(kind(neighboring_relation=REPLACE).compose(event).get_epsilon(delta))


def test_p1_noise_over_the_norm_bound_is_taken_as_noise_over_the_sensitivity() -> None:
    def sampled(noise: float) -> dp.DpEvent:
        sample = dp.SampledWithoutReplacementDpEvent(1000, 16, dp.GaussianDpEvent(noise))
        return dp.SelfComposedDpEvent(sample, 128)

    ours = dpsub.account(
        dpsub.Wor(16), 1000, noise_multiplier=1, steps=128, delta=1e-6, adjacency="substitute"
    )
    assert asked(RdpAccountant, sampled(1.0), 1e-6) < 2.65 < 10.9 < ours.lower
    assert ours.upper < asked(RdpAccountant, sampled(0.5), 1e-6)
    # one sum of all records: N(1, 25) against N(-1, 25), by the distribution function alone
    epsilon = asked(RdpAccountant, dp.GaussianDpEvent(5.0), 1e-5)
    cut = 25 * epsilon / 2
    attained = norm.sf((cut - 1) / 5) - math.exp(epsilon) * norm.sf((cut + 1) / 5)
    assert attained > 1e-3
    assert asked(PLDAccountant, dp.GaussianDpEvent(5.0), 1e-5) == pytest.approx(1.555, abs=1e-3)


def test_p2_estimates_of_composed_laplace_noise_lie_below_what_is_attained() -> None:
    accountant = PRVAccountant(
        LaplaceMechanism(mu=1 / 50), max_self_compositions=1000, eps_error=0.01, delta_error=1e-9
    )
    lower, estimate, upper = accountant.compute_epsilon(1e-6, 1000)
    ours = dpsub.account(
        dpsub.Poisson(1), noise_multiplier=50, steps=1000, delta=1e-6, mechanism="laplace"
    )
    assert lower < estimate < ours.lower <= ours.upper < upper


def recorded(question: AccountingQuestion, accountant: str) -> float:
    """Return the answer of an accountant's newest version, which is recorded first."""
    answers = recorded_for(question, published.load("practice", "packages"))
    return float(answers.query("accountant == @accountant")["printed"].iloc[0])


def epsilon_of_mu(mu: float, delta: float) -> float:
    """Return epsilon of N(mu, 1) against N(0, 1)."""

    def excess(epsilon: float) -> float:
        above, below = mu / 2 - epsilon / mu, -mu / 2 - epsilon / mu
        return norm.cdf(above) - math.exp(epsilon) * norm.cdf(below) - delta

    return float(brentq(excess, 0, 50))


def test_p3_the_limit_lies_below_what_is_attained() -> None:
    question = QUESTIONS[0]
    mu = question.rate * math.sqrt(question.steps * math.expm1(question.noise_multiplier**-2))
    in_the_limit = epsilon_of_mu(mu, question.delta)
    known = recorded(question, "Opacus GDP")
    assert known == pytest.approx(in_the_limit, rel=1e-6)
    ours = dpsub.account(dpsub.Poisson(0.2), noise_multiplier=3, steps=50, delta=1 / 48_000)
    assert known < 1.84 < 1.96 < ours.lower


def test_p4_poisson_samples_at_half_the_noise_do_not_bound_batches_of_fixed_size() -> None:
    question = next(one for one in QUESTIONS if kind_of(one) == "wor gaussian substitute")
    event = dp.PoissonSampledDpEvent(16 / 1000, dp.GaussianDpEvent(1 / 2))
    half = dp.pld.PLDAccountant().compose(event, 128).get_epsilon(1e-6)
    known = recorded(question, "JAX Privacy PLD")
    assert known == pytest.approx(half, rel=1e-5)
    asked_for = {"noise_multiplier": 1.0, "steps": 128, "delta": 1e-6}
    replaced = dpsub.account(dpsub.Wor(16), 1000, adjacency="substitute", **asked_for)
    assert known < 10.86 < 10.9 < replaced.lower
    for adjacency in ("zero_out", "add_remove"):
        ours = dpsub.account(dpsub.Wor(16), 1000, adjacency=adjacency, **asked_for)
        assert ours.upper < known


def test_p5_the_tolerance_is_as_large_as_delta() -> None:
    question = next(one for one in QUESTIONS if one.delta == 1e-10)
    known = recorded(question, "Fourier Accountant")
    asked_for = {"noise_multiplier": question.noise_multiplier, "steps": question.steps}
    poisson = dpsub.Poisson(question.rate)
    assert known < 1.87 < 1.89 < dpsub.account(poisson, delta=1e-10, **asked_for).lower
    # its iteration stops where delta is known to within 1e-10
    found = dpsub.account(poisson, epsilon=known, **asked_for)
    assert 1e-10 < found.lower <= found.upper < 2e-10


def test_p6_the_distribution_of_the_other_order_has_a_surplus() -> None:
    pld = dp.pld.privacy_loss_distribution.from_gaussian_mechanism(1.0, sampling_prob=0.01)
    composed = pld.self_compose(1000)
    assert sum(composed._pmf_add.to_dense_pmf()._probs) - 1 > 1e-5
    assert abs(sum(composed._pmf_remove.to_dense_pmf()._probs) - 1) < 1e-9


def test_p7_one_reading_of_the_noise_is_refuted_and_the_other_is_not() -> None:
    question = next(one for one in QUESTIONS if kind_of(one) == "wor gaussian substitute")
    ours = dpsub.account(
        dpsub.Wor(16), 1000, noise_multiplier=1, steps=128, delta=1e-6, adjacency="substitute"
    )
    known = {}
    for noise, unit in ((1.0, "C"), (0.5, "2 C")):
        # the event that fixed_dpsgd_event makes of its arguments
        sample = dp.SampledWithoutReplacementDpEvent(1000, 16, dp.GaussianDpEvent(noise))
        answer = asked(RdpAccountant, dp.SelfComposedDpEvent(sample, 128), 1e-6)
        known[unit] = recorded(question, f"JAX Privacy events RDP, noise over {unit}")
        assert known[unit] == pytest.approx(answer, rel=1e-5)
    assert known["C"] < ours.lower <= ours.upper < known["2 C"]
