"""What importance sampling does to losses: against explicit mixtures, in both directions, and where it can help."""

from __future__ import annotations

import itertools
import math

import mpmath as mp
import numpy as np
import pytest

from dpsub.divergences.hockey_stick import positive_part
from dpsub.errors import ArgumentError
from dpsub.importance.losses import Power, base_order, log_expm1, loss_when_added, loss_when_removed


def laplace_mixture(values: np.ndarray, q: np.ndarray, scale: float, t: np.ndarray) -> np.ndarray:
    """Density of the noisy weighted sum over all samples of n <= 4 records, at t."""
    density = np.zeros(t.size)
    for taken in itertools.product((0, 1), repeat=values.size):
        inside = np.array(taken, dtype=bool)
        chance = float(np.prod(np.where(inside, q, 1 - q)))
        centre = float((values / q)[inside].sum())
        density += chance * np.exp(-np.abs(t - centre) / scale) / (2 * scale)
    return density


@pytest.mark.parametrize("n", [1, 2, 4])
def test_laplace_sums_keep_both_losses_exactly(n: int) -> None:
    rng = np.random.default_rng(n)
    for _ in range(10):
        values, q, scale = rng.uniform(-2, 2, n), rng.uniform(0.2, 1, n), float(rng.uniform(0.5, 3))
        t = np.concatenate([np.linspace(-60, 60, 4001), values / q])
        ratio = np.log(laplace_mixture(values, q, scale, t) / laplace_mixture(values[1:], q[1:], scale, t))
        unsampled = abs(values[0]) / q[0] / scale
        removed, added = loss_when_removed(unsampled, q[0]), loss_when_added(unsampled, q[0])
        assert ratio.max() <= removed + 1e-9
        assert -ratio.min() <= added + 1e-9
        assert added <= removed
        if n == 1:
            assert ratio.max() == pytest.approx(removed, abs=1e-9)
            assert -ratio.min() == pytest.approx(added, abs=1e-9)


def test_random_finite_mechanisms_keep_both_losses_and_the_divergence() -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        present, absent = rng.dirichlet(np.ones(7)), rng.dirichlet(np.ones(7))  # outputs with and without the record
        q = float(rng.uniform(0.05, 1))
        mixed = (1 - q) * absent + q * present
        epsilon = float(np.abs(np.log(present / absent)).max())
        assert np.log(mixed / absent).max() <= loss_when_removed(epsilon, q) + 1e-12
        assert np.log(absent / mixed).max() <= loss_when_added(epsilon, q) + 1e-12
        orders = np.array([0.0, 0.1, 0.5, 1.5])
        delta = q * positive_part(present, absent, np.exp(base_order(orders, q)))
        assert delta == pytest.approx(positive_part(mixed, absent, np.exp(orders)), abs=1e-12)


def test_a_planted_fault_in_the_order_shows() -> None:
    present, absent = np.array([0.7, 0.2, 0.1]), np.array([0.2, 0.3, 0.5])
    true = positive_part(0.5 * absent + 0.5 * present, absent, math.exp(0.2))
    wrong = 0.5 * positive_part(present, absent, math.exp(0.2))  # the order of the sampled mechanism, not of the base
    right = 0.5 * positive_part(present, absent, np.exp(base_order(np.array(0.2), 0.5)))
    assert right == pytest.approx(true)
    assert abs(wrong - true) > 0.01


@pytest.mark.parametrize("epsilon", [1e-8, 0.3, 1.5, 29.0, 31.0, 900.0])
def test_losses_keep_their_digits_at_any_size(epsilon: float) -> None:
    with mp.workdps(60):
        for q in (1e-6, 0.3, 0.7, 1 - 1e-10, 1 - 1e-13, 1.0):
            e, rate = mp.mpf(epsilon), mp.mpf(q)
            assert loss_when_removed(epsilon, q) == pytest.approx(float(mp.log(1 + rate * mp.expm1(e))), rel=1e-13)
            assert loss_when_added(epsilon, q) == pytest.approx(float(-mp.log(1 - rate + rate * mp.exp(-e))), rel=1e-13)
        assert log_expm1(epsilon) == pytest.approx(float(mp.log(mp.expm1(epsilon))), rel=1e-14)


def test_profiles_that_ignore_weights_reduce_to_proposition_3() -> None:
    q = np.array([0.01, 0.2, 1.0])
    psi = Power(np.full(3, 2.0), 0.0).sampled(q)
    assert psi == pytest.approx(np.log(1 + q * (math.exp(2) - 1)), rel=1e-14)
    assert (psi[:2] < 2).all()


@pytest.mark.parametrize("scale", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("exponent", [0.0, 0.5, 1.0, 2.0])
def test_the_conditions_of_appendix_a_say_when_sampling_helps(scale: float, exponent: float) -> None:
    profile = Power(np.array([scale]), exponent)
    q = np.geomspace(1e-3, 1, 400)
    psi = np.array([profile.sampled(np.array([rate]))[0] for rate in q])
    if profile.sampling_never_helps():
        assert (psi >= scale * (1 - 1e-12)).all()
        assert (np.diff(psi) <= 1e-12 * psi[1:]).all()
    if profile.sampling_helps()[0]:
        assert psi.min() < scale
    assert not (profile.sampling_never_helps() and profile.sampling_helps()[0])


def test_resampling_is_never_the_worse_one() -> None:
    def both(total: np.ndarray, q: np.ndarray, rounds: int = 10) -> tuple[np.ndarray, np.ndarray]:
        return loss_when_removed(total / q, q), rounds * loss_when_removed(total / (rounds * q), q)

    once, resampled = both(np.array([0.5, 30.0]), np.array(0.1))
    assert once == pytest.approx([2.76, 298], rel=0.005)
    assert resampled == pytest.approx([0.63, 277], rel=0.005)
    all_once, all_resampled = both(np.geomspace(1e-3, 1e3, 50)[:, None], np.geomspace(1e-4, 1, 20))
    assert (all_resampled <= all_once * (1 + 1e-12)).all()
    assert all_once[:, -1] == pytest.approx(all_resampled[:, -1])


@pytest.mark.parametrize("q", [0.0, -0.1, 1.1, math.nan])
def test_probabilities_outside_of_their_range_are_refused(q: float) -> None:
    with pytest.raises(ArgumentError, match="inclusion probabilities must be"):
        loss_when_removed(1.0, q)
