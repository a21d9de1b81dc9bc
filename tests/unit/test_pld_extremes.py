"""Extreme but legal questions: no crash, no warning, no loss of a proof, and honest statements of accuracy."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from mpmath import mp, mpf
from scipy.special import ndtr

import dpsub
from dpsub.accounting.account import Proof, Release
from dpsub.accounting.attacks import AdaptiveAttack
from dpsub.accounting.bracket import PairEvent, Target, bracket
from dpsub.accounting.compose import ComposedLoss
from dpsub.accounting.discretise import upper_pld
from dpsub.accounting.laplace import LaplacePair
from dpsub.accounting.pairs import PoissonPair, WorPair
from dpsub.accounting.pld import PrivacyLossDistribution, order_indices
from dpsub.accounting.proofs import GroupLemma
from dpsub.errors import ArgumentError, NumericalError
from dpsub.sampling import Poisson, of_sizes


def laplace_mass(left: float, right: float, centre: float) -> mpf:
    def below(t: float) -> mpf:
        t = mpf(t) - mpf(centre)
        return mp.exp(t) / 2 if t <= 0 else 1 - mp.exp(-t) / 2

    return below(right) - below(left)


@pytest.mark.parametrize("mirrored", [False, True])
@pytest.mark.parametrize("theta", [1e-3, 0.1, 1.0, 20.0])
@pytest.mark.parametrize("relative_width", [1e-1, 1e-3, 1e-5])
def test_masses_of_narrow_laplace_cells_are_within_their_stated_errors(
    theta: float, relative_width: float, mirrored: bool
) -> None:
    rate = 0.3
    left = np.random.default_rng(5).uniform(0, theta, 6)
    edges = np.sort(np.concatenate([left, left + relative_width * theta]))
    cells = LaplacePair(rate, theta, mirrored).masses(edges)
    with mp.workdps(50):
        for i, (a, b) in enumerate(pairwise(edges)):
            base = (1 - mpf(rate)) * laplace_mass(a, b, 0)
            first = base + mpf(rate) * laplace_mass(a, b, theta)
            second = base + mpf(rate) * laplace_mass(a, b, -theta) if mirrored else laplace_mass(a, b, 0)
            assert abs(mpf(cells.p[i]) - first) <= cells.p_error[i]
            assert abs(mpf(cells.q[i]) - second) <= cells.q_error[i]


@pytest.mark.parametrize(("n", "m", "noise"), [(10**6, 1, 0.0501), (10_000, 2, 0.3)])
def test_a_rare_inclusion_with_little_noise_is_attacked_without_a_crash(n: int, m: int, noise: float) -> None:
    proof = Proof.of([Release(of_sizes("wor", n=n, m=m), n, noise, 1000)])
    assert proof.cases[0].flipped is not None
    found = AdaptiveAttack(proof.cases[0].flipped, 1000).answer(Target(epsilon=1e6))
    assert 0 <= found <= 1000 * m / n  # the chance that the record is drawn at all


@pytest.mark.parametrize("rate", [1e-130, 1e-250, 1e-300])
def test_losses_of_tiny_rates_are_inverted(rate: float) -> None:
    pair, x = WorPair(rate, 0.06), np.array([-600.0, -30.0, -1e-3, 0.0, 1e-3, 1.0, 600.0])
    t = pair.inverse_loss(x)
    assert np.all(np.abs(pair.loss(t) - x) <= 1e-12 * np.maximum(1, np.abs(x)))


def test_a_tiny_rate_is_answered() -> None:
    sampler = Poisson(1e-250)
    account = dpsub.account(sampler, noise_multiplier=0.06, steps=10, epsilon=1, adjacency="substitute")
    assert 0 <= account.lower <= account.upper <= 1e-10


def test_noise_beyond_all_doubles_is_refused() -> None:
    with pytest.raises(ArgumentError, match="noise_multiplier must be at most"):
        Release(of_sizes("wor", n=4, m=2), 4, 1e300, 1)


def test_wide_laws_get_wider_cells_and_stay_above_the_supremum() -> None:
    weights = np.full(401, 1 / 401)
    lemma = GroupLemma(weights, 0.5)
    assert all(table.size <= 2**23 for table in lemma._tables)
    # at order 1 one test, c = 0, is the best one for every count
    supremum = float((1 - 2 * ndtr(-np.arange(1, 401) / 0.5)).sum()) / 401
    assert supremum * (1 - 1e-12) <= lemma(np.array([0.0]))[0] <= supremum * (1 + 1e-3)


def test_losses_that_cannot_be_inverted_on_a_grid_are_taken_from_a_coarser_one() -> None:
    account = dpsub.account(of_sizes("must_ww", n=1, m=3, b=3), 1, noise_multiplier=0.05, steps=10, delta=0.1)
    assert 5000 < account.lower < account.upper == math.inf
    assert not account.width_met


def test_little_noise_is_refuted_on_the_first_coarse_grid() -> None:
    """Two inclusions of ten, each of probability 1/3 and worth 555 nats, are far more likely than delta."""
    account = dpsub.account(of_sizes("wor", n=3, m=1), 3, noise_multiplier=0.06, steps=10, delta=1e-40)
    assert account.lower > 2 * 500
    assert not account.width_met


def test_no_grid_is_coarser_than_doubles_can_hold() -> None:
    law = PrivacyLossDistribution(800.0, np.array([0, 1]), np.array([0.5, 0.5]), "upper")
    with pytest.raises(NumericalError, match="step of 800"):
        ComposedLoss([law], [1])


def test_a_negligible_profile_has_two_orders() -> None:
    assert list(order_indices(0.1, 0.0, 0.0)) == [0, 1]


def test_refinement_stops_where_the_upper_answer_stays_infinite() -> None:
    steps = []

    def upper(step: float, tail: float, swapped: bool) -> float:
        steps.append(step)
        pld = PrivacyLossDistribution(step, np.array([0]), np.array([0.5]), "upper", infinity=0.5)
        return ComposedLoss([pld], [1]).epsilon(0.1)

    def lower(step: float, tail: float, swapped: bool) -> float:
        return ComposedLoss([PrivacyLossDistribution(step, np.array([0]), np.array([0.5]), "lower")], [1]).epsilon(0.1)

    answer, _ = bracket(Target(delta=0.1), lower, upper, (False,), 0.1, 1e-18)
    assert answer.upper == math.inf
    assert not answer.width_met
    assert len(steps) <= 3


@pytest.mark.parametrize("rate", [2e-4, 5e-4])
def test_the_spread_of_a_rare_inclusion_with_little_noise_is_estimated_on_few_points(rate: float) -> None:
    """Its tail of 1e-4 lies hundreds of nats away, its bulk within 1e-9: a grid of the second never ended."""
    spread = PairEvent(PoissonPair(rate, 0.06)).spread()
    assert 0.1 < spread < 100


def test_a_grid_with_too_many_points_is_refused_in_a_sentence() -> None:
    with pytest.raises(NumericalError, match="grid points"):
        upper_pld(PoissonPair(5e-4, 0.06), 1e-9, tail=1e-18)
