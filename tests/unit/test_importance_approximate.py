"""Certified (epsilon, delta): the closed form of the loss by quadrature, the bound's side, sampling, the gain."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import mpmath as mp
import numpy as np
import pytest
from scipy import special, stats

from dpsub.accounting.compose import ComposedLoss
from dpsub.errors import ArgumentError, NumericalError, UnsupportedError
from dpsub.importance import approximate
from dpsub.importance.approximate import LloydLoss, NormPair, gaussian_weights, sampled_gaussian_delta
from dpsub.importance.calibrate import DataFacts, calibrate
from dpsub.noise import GaussianProfile, LaplaceProfile

DELTA = 1e-6
PAIRS = [(2, 0.8), (3, 2.0), (10, 0.3), (90, 0.3), (518, 0.3), (90, 5.0)]


def divergence(x: float, d: int, shift: float) -> float:
    """H at order e^x from |z| ~ Gamma(d) and the angle, by quadrature, without coordinates."""
    a = (d - 1) / 2
    low, high = stats.gamma.ppf(1e-14, d), stats.gamma.isf(1e-14, d)
    nodes, weights = np.polynomial.legendre.leggauss(150)

    def survival(u: float) -> float:
        # the angle's law has corners where the noise and the shift are in line
        ends = np.unique(np.clip([low, (shift - u) / 2, (shift + u) / 2, high], low, high))
        total = 0.0
        for left, right in itertools.pairwise(ends):
            radius = left + (right - left) * (nodes + 1) / 2
            angle = u / shift - (shift**2 - u * u) / (2 * radius * shift)
            above = special.betainc(a, a, np.clip((1 - angle) / 2, 0, 1))
            total += (right - left) / 2 * float(weights @ (stats.gamma.pdf(radius, d) * above))
        return total

    places = x + (shift - x) * (nodes + 1) / 2
    return float((shift - x) / 2 * (weights @ [math.exp(x - u) * survival(u) for u in places]))


def delta_when_added(epsilon: float, q: float, curve: Callable[[np.ndarray], np.ndarray]) -> float:
    """c delta(log(q e^eps / c)), c = 1 - e^eps (1 - q): absent from present (docs/importance.md, Theorem 2)."""
    c = 1 - math.exp(epsilon) * (1 - q)
    return c * float(curve(np.array([epsilon + math.log(q / c)]))[0]) if c > 0 else 0.0


def upper(d: int, shift: float, x: float, cells: int = 2000) -> float:
    return ComposedLoss([NormPair(d, shift).upper_law(shift / cells)], [1]).delta(x)


@pytest.mark.parametrize(("d", "shift"), PAIRS)
def test_the_closed_form_is_the_loss_of_gamma_radii_and_angles(d: int, shift: float) -> None:
    for x in (0.0, 0.1 * shift, 0.3 * shift):
        other = divergence(x, d, shift)
        assert upper(d, shift, x) == pytest.approx(other, rel=1e-6, abs=1e-12)


@pytest.mark.parametrize("d", [1, 2, 8, 518])
def test_parts_keep_the_relative_error_that_is_charged(d: int) -> None:
    for shift in (1e-3, 0.3, 50.0):
        pair = NormPair(d, shift)
        allowed = pair.rounding(1000)
        with mp.workdps(40):
            z, half = mp.mpf(shift) / 2, mp.mpf(d) / 2
            odds = d * mp.besselk(half, z) / (z * mp.besselk(half - 1, z))
            share = odds / (1 + odds)
            total = share * mp.hyp0f1(half, z * z / 4) + (1 - share) * mp.hyp0f1(half + 1, z * z / 4)
            assert abs(pair.flat_share / share - 1) < allowed
            assert abs(pair.log_normaliser - mp.log(total)) < allowed
            for x in (0.01, 0.3, 0.5):
                y, a = mp.mpf(x), mp.mpf(d + 1) / 2
                front = (y * (1 - y)) ** (a + 1) / (a * (a + 1) * mp.beta(a, a))
                exact = front * mp.hyp2f1(2 * a + 1, 2, a + 2, y)
                if exact > 1e-290:
                    assert abs(approximate._beta_shortfall(np.array([x]), float(a))[0] / exact - 1) < allowed / 4


@pytest.mark.parametrize("shift", [1e-3, 0.5, 5.0, 60.0])
def test_one_dimension_is_the_laplace_law_and_the_bound_is_above_it(shift: float) -> None:
    exact = LaplaceProfile(shift)
    for x in np.linspace(0, 0.95, 6) * shift:
        bound, true = upper(1, shift, float(x)), float(exact.delta(x))
        assert true <= bound <= true * (1 + 2e-4) + 1e-9


@pytest.mark.parametrize(("d", "shift"), [*PAIRS, (518, 100.0), (4000, 30.0), (7, 1e-6)])
def test_masses_are_a_law_that_shrinks_with_the_step(d: int, shift: float) -> None:
    coarse, fine = (NormPair(d, shift).upper_law(shift / cells) for cells in (500, 2000))
    for law in (coarse, fine):
        assert law.masses.sum() >= 1 - 1e-12
        # P's masses at losses x and Q's, e^-x times them, are mirror images
        assert law.masses @ np.exp(-law.losses) == pytest.approx(law.masses.sum(), rel=1e-9)
    assert fine.masses.sum() <= coarse.masses.sum() * (1 + 1e-10)
    for x in (0.0, 0.2 * shift, 0.6 * shift):
        assert ComposedLoss([fine], [3]).delta(x) <= ComposedLoss([coarse], [3]).delta(x) * (1 + 1e-9) + 1e-12


def test_a_step_that_is_no_divisor_bounds_as_well() -> None:
    for step in (0.037, 0.29, 0.8, 3.0):
        law = NormPair(1, 0.8).upper_law(step)
        assert ComposedLoss([law], [1]).delta(0.2) >= float(LaplaceProfile(0.8).delta(0.2))


def test_a_planted_mean_below_the_cells_breaks_the_bound() -> None:
    """Masses moved down to the grid, instead of spread to both sides, say too little."""
    law = NormPair(1, 2.0).upper_law(0.5)
    down = type(law)(law.step, law.indices - 1, law.masses, "upper")
    assert ComposedLoss([down], [1]).delta(0.3) < float(LaplaceProfile(2.0).delta(0.3))


def test_draws_of_the_noise_show_the_same_divergence() -> None:
    rng, d, shift, n = np.random.default_rng(5), 20, 1.5, 100_000
    z = rng.standard_normal((n, d))
    radius = rng.gamma(d, 1.0, n)
    z *= (radius / np.linalg.norm(z, axis=1))[:, None]
    z[:, 0] += shift
    loss = np.linalg.norm(z, axis=1) - radius
    for x in (0.0, 0.4):
        hits = -np.expm1(np.minimum(x - loss, 0.0))
        # six standard errors: a chance of 1e-9, and the bound is within 1e-6 of the value
        assert abs(hits.mean() - upper(d, shift, x)) < 6 * hits.std() / math.sqrt(n)


@pytest.mark.parametrize(("d", "prototype"), [(10, 1.25), (90, 0.40), (518, 0.17)])
def test_the_gain_over_pure_privacy_grows_with_the_dimension(d: int, prototype: float) -> None:
    """Sums alone, T = 10, 3.0 pure: a prototype by quadrature found these, up to a tenth; here they are proved."""
    coarse, fine = (LloydLoss(d, 0.3, 1e-12, 10, cells).epsilon(DELTA) for cells in (1000, 4000))
    assert fine <= coarse <= fine * (1 + 1e-4)
    assert prototype * 0.9 < fine < prototype
    assert LloydLoss(d, 0.3, 1e-12, 10).pure == pytest.approx(3.0)


def test_the_count_query_gains_little() -> None:
    loss = LloydLoss(90, 0.0, 0.3, 10)
    assert 2.99 < loss.epsilon(DELTA) <= loss.pure
    assert loss.epsilon(0.1) < 2.5
    with pytest.raises(NumericalError, match="at most 600 nats"):
        assert NormPair(3, 601.0)
    assert LloydLoss(3, 601.0, 0.1, 2).epsilon(DELTA) == pytest.approx(1202.2)


@pytest.mark.parametrize("q", [0.02, 0.4, 1.0])
def test_removing_a_record_is_the_worse_direction(q: float) -> None:
    loss = LloydLoss(10, 0.5, 0.2, 4)
    epsilon = loss.sampled_epsilon(q, 1e-4)
    assert delta_when_added(epsilon, q, loss.composition.curve) <= 1e-4 * (1 + 1e-9)
    assert epsilon < loss.pure


def test_what_is_proved_for_the_ball_holds_for_every_record_and_is_below_the_pure_loss() -> None:
    norms = np.sqrt(np.random.default_rng(0).uniform(0.01, 1, 2000))
    facts = DataFacts(2000, 90, 1.0, float((norms**2).mean()))
    for sampler in ("full", "unif", "core", "opt"):
        found = calibrate(sampler, facts, target=3.0, m=200, norms=norms)
        everyone = approximate.certified_epsilon(found, DELTA, cells=300)
        some = [approximate._proved_between(found, DELTA, 300, z, z) for z in (0.0, 0.2, 0.5, 0.9, 1.0)]
        assert max(some) <= everyone <= 3.0
        if sampler in ("full", "unif", "core"):
            assert everyone < 1.0
    with pytest.raises(UnsupportedError, match="exponential radius"):
        approximate.certified_epsilon(calibrate("full", facts, target=3.0, mode="released"), DELTA)


def test_rare_records_need_no_epsilon() -> None:
    assert LloydLoss(2, 1.0, 1.0, 1).sampled_epsilon(1e-7, DELTA) == 0.0
    with pytest.raises(ArgumentError, match="delta must be below 1"):
        LloydLoss(2, 1.0, 1.0, 1).sampled_epsilon(0.5, 1.0)


def test_gaussian_weights_are_the_largest_ones() -> None:
    mu = np.array([0.005, 0.2])
    w = gaussian_weights(mu, 1.0, DELTA)
    assert w == pytest.approx([324, 1.52], rel=0.005)
    assert (sampled_gaussian_delta(1.0, 1 / w, w * mu) <= DELTA).all()
    assert (sampled_gaussian_delta(1.0, 1 / (w * (1 + 1e-6)), w * (1 + 1e-6) * mu) > DELTA).all()
    grid = np.geomspace(1, 2000, 4000)
    feasible = sampled_gaussian_delta(1.0, 1 / grid, grid * mu[0]) <= DELTA
    # no gap, up to sizes far beyond
    assert np.flatnonzero(feasible).max() + 1 == np.count_nonzero(feasible)


def test_gaussian_sampling_by_quadrature_in_both_directions() -> None:
    q, mu, epsilon = 0.2, 1.3, 0.4
    t = np.linspace(-12, 14, 400_001)
    base, moved = stats.norm.pdf(t), stats.norm.pdf(t - mu)
    mixed = (1 - q) * base + q * moved
    forward = np.trapezoid(np.maximum(mixed - math.exp(epsilon) * base, 0), t)
    backward = np.trapezoid(np.maximum(base - math.exp(epsilon) * mixed, 0), t)
    assert sampled_gaussian_delta(epsilon, q, mu) == pytest.approx(forward, rel=1e-6)
    assert delta_when_added(epsilon, q, GaussianProfile(mu).delta) == pytest.approx(backward, rel=1e-6)
    assert backward < forward


def test_unprotected_gaussian_records_are_refused() -> None:
    with pytest.raises(ArgumentError, match="which no sampling attains"):
        gaussian_weights([2.0], 1.0, DELTA)
    with pytest.raises(ArgumentError, match="mu must be above 0"):
        sampled_gaussian_delta(1.0, 0.5, 0.0)
