"""One test an erratum of Balle et al.: what errata.md says, shown by a computation."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpsub import noise
from dpsub.amplification import (
    Bound,
    DeclaredProfile,
    amplified_epsilon,
    base_epsilon,
    theorem_14,
    translate,
)
from dpsub.divergences import hockey_stick, maximal_coupling, moment_from_profiles, tail_rate
from dpsub.noise import RandomisedResponseProfile
from dpsub.papers.balle.small_universes import BoundRow
from dpsub.papers.balle.universes import membership_loss, multinomial, sample_law
from dpsub.relations import Relation

S = Relation.SUBSTITUTE


def substituted(sampler: str, n: int, m: int) -> Bound:
    return translate(sampler, S, S, n=n, m=m)


def test_bl1_the_divisor_of_the_maximal_coupling_is_eta_squared() -> None:
    first, second = np.array([0.6, 0.3, 0.1]), np.array([0.1, 0.3, 0.6])
    common = np.minimum(first, second)
    eta = 1 - common.sum()
    rest = np.outer(first - common, second - common)
    assert (rest / eta).sum() == pytest.approx(eta)  # as printed
    assert (rest / eta**2).sum() == pytest.approx(1)
    parts = maximal_coupling(first, second)
    np.testing.assert_allclose(np.outer(parts.first, parts.second), rest / eta**2)
    np.testing.assert_allclose((1 - parts.eta) * parts.shared, common)


def test_bl2_the_printed_multinomial_law_is_zero() -> None:
    data = (1, 1, 0)
    for sample, probability in sample_law("wr", data, 2).items():
        assert multinomial(data, sample, printed=True) == 0 < probability
        assert multinomial(data, sample) == pytest.approx(probability)
    # right if the universe is the data set
    assert multinomial((1, 1), (1, 1), printed=True) == pytest.approx(0.5)


def test_bl3_a_sample_that_holds_a_record_is_no_smaller_sample_and_one_more() -> None:
    n, m = 4, 3
    described = [math.comb(m - 1, k) * n**-k * (1 - 1 / n) ** (m - 1 - k) for k in range(m)]
    assert described == pytest.approx([0.5625, 0.375, 0.0625])
    copies = np.zeros(m + 1)
    for sample, probability in sample_law("wr", (1,) * n, m).items():
        copies[sample[0]] += probability
    assert copies[1:] / copies[1:].sum() == pytest.approx([0.7297, 0.2432, 0.0270], abs=5e-5)


def test_bl4_the_printed_divergence_of_randomised_response_fails_below_one_half() -> None:
    p = 0.2
    assert float(hockey_stick([p, 1 - p], [1 - p, p], 1.0)) == pytest.approx(0.6)
    assert max(0.0, p - (1 - p)) == 0
    assert float(RandomisedResponseProfile(p).delta(0)) == pytest.approx(0.6)


def test_bl5_lemma_12_needs_an_inclusion_probability_of_eta() -> None:
    x, other = (1, 1, 0), (1, 0, 1)
    one, two, three = (1, 0, 0), (0, 1, 0), (0, 0, 1)
    design = {x: {one: 0.5, two: 0.5}, other: {three: 0.99, one: 0.01}}
    loss = membership_loss(design, [(x, other)], 1, 0.75, 0.2)
    assert loss.natural
    assert (loss.eta, loss.inclusion) == (pytest.approx(0.99), 0.5)
    assert (round(loss.exact, 3), round(loss.claimed, 3)) == (0.195, 0.440)


def test_bl6_the_largest_moment_is_below_the_moment_of_the_largest_profile() -> None:
    laplace, gaussian = noise.of("laplace", 1.0), noise.of("gaussian", 0.62)

    def largest(epsilon: np.ndarray) -> np.ndarray:
        return np.maximum(laplace.log_delta(epsilon), gaussian.log_delta(epsilon))

    moment = moment_from_profiles(
        largest, largest, 1.0, end=12.0, rate=tail_rate(gaussian.log_delta, 12.0)
    )
    moments = max(math.exp(profile.log_moment(1.0)) for profile in (laplace, gaussian))
    assert moments == pytest.approx(1.8573, abs=5e-5)
    assert moment.lower == pytest.approx(1.9027, abs=5e-5)
    assert moments < moment.lower


def test_bl7_theorem_14_looks_below_epsilon_0() -> None:
    base = float(theorem_14(0.1, 4).epsilon_base(0.03))
    orders = [base + math.log(1 / 9 * (4 / k - 1)) for k in (1, 2, 3)]
    assert min(orders) < -2.5
    # the formula for the Laplace mechanism with theta = 1, at epsilon = -3
    printed = -math.expm1((-3 - 1) / 2)
    assert printed == pytest.approx(0.8647, abs=5e-5)
    assert float(noise.of("laplace", 1.0).delta(-3.0)) == pytest.approx(0.9502, abs=5e-5)


def test_bl8_at_m_equal_n_nothing_is_shared() -> None:
    row = BoundRow("Theorem 9", 3, 3.0)
    first, second = (laws[0] for laws in row.laws)
    parts = maximal_coupling(first, second)
    assert parts.eta == 1
    assert not parts.shared.any()
    bound = substituted("wor", 3, 3).delta(DeclaredProfile.of(noise.of("laplace", 1.0), S), 0.3)
    assert float(bound) == float(noise.of("laplace", 1.0).delta(0.3))


def test_bl9_poisson_and_without_replacement_are_two_samplers() -> None:
    poisson, without = sample_law("poisson", (1, 1), 0.5), sample_law("wor", (1, 1), 1)
    assert poisson != without
    assert sum(1 for sample in poisson if sum(sample) == 1) == len(without)


def test_bl10_the_rate_is_near_eta_only_if_it_is_small() -> None:
    for rate, error in ((0.01, 0.005), (0.1, 0.048), (1.0, 0.368)):
        eta = substituted("wr", 1000, round(1000 * rate)).eta
        assert 1 - eta / rate == pytest.approx(error, abs=6e-4)
        assert abs(eta - rate) <= rate**2 / 2
    assert substituted("wr", 1000, 1000).eta == pytest.approx(0.6323, abs=5e-5)


def test_bl11_at_equal_base_epsilon_the_order_of_samplers_is_another_one() -> None:
    without, with_ = substituted("wor", 1000, 100), substituted("wr", 1000, 100)
    profile, epsilon = noise.of("gaussian", 1.0), 0.5
    declared = DeclaredProfile.of(profile, S)
    target = float(without.epsilon_amplified(epsilon))
    one, other = (float(b.delta(declared, b.epsilon_amplified(epsilon))) for b in (without, with_))
    assert one < other  # at the same base epsilon, but at two epsilon'
    assert float(with_.epsilon_amplified(epsilon)) < target
    at_zero = [float(b.delta(declared, 0.02)) for b in (without, with_)]
    assert at_zero[0] > at_zero[1]


def test_bl12_the_linear_rule_can_not_be_inverted() -> None:
    assert float(base_epsilon(1.0, 0.01)) == pytest.approx(5.15, abs=5e-3)  # not 1 / 0.01 = 100
    assert float(amplified_epsilon(0.01, 0.01)) == pytest.approx(1e-4, rel=0.006)
