"""Losses of importance sampling, largest weights, rates and certified (epsilon, delta), each
computed in another way."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import mpmath as mp
import numpy as np
import pytest
from scipy import special, stats
from scipy.optimize import minimize
from scipy.special import lambertw

from dpsub.accounting.engine.fourier import ComposedLoss
from dpsub.divergences.hockey_stick import positive_part
from dpsub.errors import ArgumentError, NumericalError, UnsupportedError
from dpsub.importance import approximate, audit, samplers
from dpsub.importance.approximate import (
    LloydLoss,
    NormPair,
    gaussian_weights,
    sampled_gaussian_delta,
)
from dpsub.importance.calibrate import DataFacts, calibrate
from dpsub.importance.losses import Power, base_order, log_expm1, loss_when_added, loss_when_removed
from dpsub.importance.samplers import WeightedLaplaceSum, oracle_rates, uniform_rates
from dpsub.importance.weights import optimal_weights, released_weights
from dpsub.noise import GaussianProfile, LaplaceProfile


def test_random_finite_mechanisms_attain_both_losses_and_the_divergence() -> None:
    rng, orders, missed = np.random.default_rng(0), np.array([0.0, 0.1, 0.5, 1.5]), 0.0
    for _ in range(200):
        # outputs with and without the record
        present, absent = rng.dirichlet(np.ones(7)), rng.dirichlet(np.ones(7))
        q = float(rng.uniform(0.05, 1))
        mixed, loss = (1 - q) * absent + q * present, np.log(present / absent)
        assert np.log(mixed / absent).max() == pytest.approx(
            loss_when_removed(loss.max(), q), abs=1e-12
        )
        assert np.log(absent / mixed).max() == pytest.approx(
            loss_when_added(-loss.min(), q), abs=1e-12
        )
        assert loss_when_added(loss.max(), q) <= loss_when_removed(loss.max(), q)
        true = positive_part(mixed, absent, np.exp(orders))
        assert q * positive_part(present, absent, np.exp(base_order(orders, q))) == pytest.approx(
            true, abs=1e-12
        )
        missed = max(
            missed, float(np.abs(q * positive_part(present, absent, np.exp(orders)) - true).max())
        )
    # a planted fault: the order of the sampled mechanism, not of the base
    assert missed > 0.01


@pytest.mark.parametrize("epsilon", [1e-8, 0.3, 1.5, 29.0, 31.0, 900.0])
def test_losses_keep_their_digits_at_any_size(epsilon: float) -> None:
    with mp.workdps(60):
        for q in (1e-6, 0.3, 0.7, 1 - 1e-10, 1 - 1e-13, 1.0):
            e, rate = mp.mpf(epsilon), mp.mpf(q)
            assert loss_when_removed(epsilon, q) == pytest.approx(
                float(mp.log(1 + rate * mp.expm1(e))), rel=1e-13
            )
            assert loss_when_added(epsilon, q) == pytest.approx(
                float(-mp.log(1 - rate + rate * mp.exp(-e))), rel=1e-13
            )
        assert log_expm1(epsilon) == pytest.approx(float(mp.log(mp.expm1(epsilon))), rel=1e-14)


@pytest.mark.parametrize("scale", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("exponent", [0.0, 0.5, 1.0, 2.0])
def test_the_conditions_of_appendix_a_say_when_sampling_helps(
    scale: float, exponent: float
) -> None:
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


TARGETS = [1e-3, 0.1, 0.5, 3.0, 30.0, 300.0, 600.0, 1000.0]
# at slopes below 1e-16 of the target the derivative at the first guess is lost to rounding
RATIOS = np.concatenate(
    [
        np.geomspace(1e-26, 1e-4, 100),
        np.geomspace(1e-4, 0.99, 300),
        1 - np.geomspace(1e-12, 1e-2, 50),
    ]
)


def excess(a: np.ndarray, w: np.ndarray, target: float) -> np.ndarray:
    """Return a number that is at most 0 iff the weight is feasible."""
    return log_expm1(a * w) - np.log(w) - log_expm1(target)


def bracketed(a: np.ndarray, target: float, halvings: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the ends of a bracket of the root after halvings, from an upper end that is doubled
    until it is infeasible."""
    high = np.full(a.size, 2.0)
    while (excess(a, high, target) <= 0).any():
        high = np.where(excess(a, high, target) <= 0, 2 * high, high)
    low = np.ones(a.size) if halvings > 60 else high / 2
    for _ in range(halvings):
        middle = 0.5 * (low + high)
        feasible = excess(a, middle, target) <= 0
        low, high = np.where(feasible, middle, low), np.where(feasible, high, middle)
    return low, high


def lambert(a: np.ndarray, target: float) -> np.ndarray:
    """Return max(1, -W_{-1}(-c e^{-c}) / a - 1/E), c = a/E."""
    c = a / math.expm1(target)
    with np.errstate(invalid="ignore"):
        w = -lambertw(-c * np.exp(-c), k=-1).real / a - 1 / math.expm1(target)
    return np.maximum(np.where(np.isfinite(w), w, 1.0), 1.0)


@pytest.mark.parametrize("target", TARGETS)
def test_solvers_agree_and_weights_are_feasible_and_largest(target: float) -> None:
    a = target * RATIOS
    w = optimal_weights(a, target)
    assert (Power(a).sampled(1 / w) <= target * (1 + 1e-12)).all() and (w >= 1).all()
    a, w = a[:400], w[:400]
    assert w == pytest.approx(bracketed(a, target, 2500)[0], rel=1e-8)
    if target <= 700:
        assert w == pytest.approx(lambert(a, target), rel=1e-8)
        assert w[:100] == pytest.approx(lambert(a[:100], target), rel=1e-9)
    # one step further is infeasible
    assert (excess(a, w * (1 + 1e-9), target) > 0).all()
    # without any room the weight is 1
    assert optimal_weights([target], target)[0] == 1.0 and optimal_weights([], target).size == 0


@pytest.mark.parametrize("target", [0.5, 3.0, 1000.0])
def test_released_weights_are_middles_after_eleven_halvings(target: float) -> None:
    a = target * np.concatenate([np.geomspace(1e-3, 0.999, 4000), [1.0]])
    low, high = bracketed(a, target, 11)
    assert (released_weights(a, target) == 0.5 * (low + high)).all()


RNG = np.random.default_rng(7)
SIZES = RNG.gamma(2.0, 1.0, 40)


def variance(q: np.ndarray, sizes: np.ndarray = SIZES) -> float:
    return float((1 / q - 1) @ sizes**2)


@pytest.mark.parametrize("m", [0.5, 10.0, 25.0, 39.5, 40.0])
def test_rates_have_the_size_that_was_asked_for(m: float) -> None:
    for q in (uniform_rates(40, m), oracle_rates(SIZES, m)):
        assert q.sum() == pytest.approx(m, rel=1e-12)
        assert (q > 0).all() and (q <= 1).all()
    if m <= 1:
        q = samplers.coreset_rates(SIZES, m, n=40, mean_square=float((SIZES**2).mean()))
        assert q.sum() == pytest.approx(m, rel=1e-12)


@pytest.mark.parametrize("floored", [False, True])
def test_water_filling_has_the_least_variance(floored: bool) -> None:
    sizes = SIZES[:8]
    floors = np.linspace(0.05, 0.5, 8) if floored else np.zeros(8)
    m = 4.0
    ours = samplers.filled_rates(floors, sizes, m)
    found = minimize(
        lambda q: variance(q, sizes),
        np.full(8, 0.5),
        method="SLSQP",
        bounds=[(max(low, 1e-6), 1.0) for low in floors],
        options={"maxiter": 1000, "ftol": 1e-13},
        constraints=[{"type": "eq", "fun": lambda q: q.sum() - m}],
    )
    assert ours.sum() == pytest.approx(m)
    assert (ours >= floors).all()
    assert variance(ours, sizes) == pytest.approx(found.fun, rel=1e-6)
    # a planted fault: moving mass from one record to another costs variance
    one, other = np.flatnonzero((ours > floors + 0.02) & (ours < 0.98))[:2]
    for step in (0.02, -0.02):
        assert variance(ours + step * (np.eye(8)[one] - np.eye(8)[other]), sizes) > variance(
            ours, sizes
        )


def test_at_equal_size_private_rates_have_the_least_loss_and_the_oracle_the_least_error() -> None:
    """The comparison is that of Figure 2; water-filling above the private floors keeps every loss
    below the target."""
    rng = np.random.default_rng(1)
    points = rng.standard_normal((400, 10)) / np.sqrt(10)
    system = WeightedLaplaceSum(3.0)
    profile = Power(system.slopes(points))
    target = float(profile.scales.max())
    private = samplers.optimal_rates(profile.scales, target)
    m, norms = float(private.sum()), np.linalg.norm(points, axis=1)

    def error(q: np.ndarray) -> float:
        return system.mean_squared_error(points, q)

    assert (
        min(profile.sampled(q).max() for q in (uniform_rates(400, m), oracle_rates(norms, m)))
        > target
    )
    assert error(oracle_rates(norms, m)) < error(private)
    more = min(400.0, 1.3 * m)
    filled = samplers.filled_rates(private, norms, more)
    assert filled.sum() == pytest.approx(more)
    assert profile.sampled(filled).max() <= target * (1 + 1e-12)
    assert error(oracle_rates(norms, more)) <= error(filled) < error(uniform_rates(400, more))


def test_the_core_set_distribution_sums_to_one_and_worst_deviations_fall_with_the_size() -> None:
    rng = np.random.default_rng(3)
    points = rng.standard_normal((1500, 4)) * np.exp(0.4 * rng.standard_normal((1500, 1)))
    assert audit.coreset_distribution(points).sum() == pytest.approx(1)
    for kind in audit.CORESET_KINDS:
        worst = {}
        for m in (40, 150):
            samples = (audit.coreset_sample(points, m, kind, rng) for _ in range(8))
            found = [
                audit.worst_coreset_deviation(points, sample, 3, rng, sets=4) for sample in samples
            ]
            worst[m] = float(np.mean(found))
        assert worst[150] < 0.8 * worst[40]


def test_the_worst_deviation_is_the_largest_of_those_tried() -> None:
    points = np.random.default_rng(3).standard_normal((300, 3))
    sample = audit.coreset_sample(points, 40, "independent", np.random.default_rng(4))
    few, many = (
        audit.worst_coreset_deviation(points, sample, 3, np.random.default_rng(5), sets=n)[0]
        for n in (1, 8)
    )
    assert few < many


def test_the_deviation_of_a_full_sample_is_none_and_a_planted_weight_shows() -> None:
    points = np.random.default_rng(4).standard_normal((300, 3))
    everything = samplers.WeightedSample(np.arange(300), np.ones(300))
    centres = points[:6].reshape(2, 3, 3)
    assert audit.coreset_deviation(points, everything, centres) == pytest.approx([0, 0], abs=1e-12)
    heavy = samplers.WeightedSample(np.arange(300), np.full(300, 1.1))
    assert (audit.coreset_deviation(points, heavy, centres) > 0.05).all()


DELTA = 1e-6
PAIRS = [(2, 0.8), (3, 2.0), (10, 0.3), (90, 0.3), (518, 0.3), (90, 5.0)]


def divergence(x: float, d: int, shift: float) -> float:
    """Return H at order e^x from |z| ~ Gamma(d) and the angle, by quadrature, without
    coordinates."""
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
    """Return c delta(log(q e^eps / c)), c = 1 - e^eps (1 - q): absent from present
    (docs/importance.md, Theorem 2)."""
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
            total = share * mp.hyp0f1(half, z * z / 4) + (1 - share) * mp.hyp0f1(
                half + 1, z * z / 4
            )
            assert abs(pair.flat_share / share - 1) < allowed
            assert abs(pair.log_normaliser - mp.log(total)) < allowed
            for x in (0.01, 0.3, 0.5):
                y, a = mp.mpf(x), mp.mpf(d + 1) / 2
                front = (y * (1 - y)) ** (a + 1) / (a * (a + 1) * mp.beta(a, a))
                exact = front * mp.hyp2f1(2 * a + 1, 2, a + 2, y)
                if exact > 1e-290:
                    assert (
                        abs(approximate._beta_shortfall(np.array([x]), float(a))[0] / exact - 1)
                        < allowed / 4
                    )


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
        assert (
            ComposedLoss([fine], [3]).delta(x)
            <= ComposedLoss([coarse], [3]).delta(x) * (1 + 1e-9) + 1e-12
        )


JUST_ABOVE = 0.5 * (1 + 1.9e-12)


@pytest.mark.parametrize(
    ("shift", "step", "x"),
    [
        *((0.8, step, 0.2) for step in (0.037, 0.29, 0.8, 3.0)),
        (JUST_ABOVE, 0.001, JUST_ABOVE - 2e-13),
    ],
)
def test_steps_that_are_no_divisor_bound_as_well(shift: float, step: float, x: float) -> None:
    law, true = NormPair(1, shift).upper_law(step), float(LaplaceProfile(shift).delta(x))
    assert ComposedLoss([law], [1]).delta(x) >= true
    # a planted fault: masses moved down to the grid, instead of spread to both sides, say too
    # little
    if step == 0.29:
        down = type(law)(law.step, law.indices - 1, law.masses, "upper")
        assert ComposedLoss([down], [1]).delta(x) < true


@pytest.mark.parametrize(("d", "prototype"), [(10, 1.25), (90, 0.40), (518, 0.17)])
def test_the_gain_over_pure_privacy_grows_with_the_dimension(d: int, prototype: float) -> None:
    """With sums alone, T = 10, 3.0 pure, a prototype by quadrature found these, up to a tenth; here
    they are proved."""
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
        calibration = calibrate(sampler, facts, target=3.0, m=200, norms=norms)
        everyone = approximate.certified_epsilon(calibration, DELTA, cells=300)
        some = [
            approximate._proved_between(calibration, DELTA, 300, z, z)
            for z in (0.0, 0.2, 0.5, 0.9, 1.0)
        ]
        assert max(some) <= everyone <= 3.0
        if sampler in ("full", "unif", "core"):
            assert everyone < 1.0
    with pytest.raises(UnsupportedError, match="exponential radius"):
        approximate.certified_epsilon(calibrate("full", facts, target=3.0, mode="released"), DELTA)


def test_rare_records_need_no_epsilon() -> None:
    assert LloydLoss(2, 1.0, 1.0, 1).sampled_epsilon(1e-7, DELTA) == 0.0


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
    many = np.random.default_rng(8).uniform(0.1, 0.3, 2100)
    assert gaussian_weights(many, 1.0, 1e-3)[:50] == pytest.approx(
        gaussian_weights(many[:50], 1.0, 1e-3), rel=1e-12
    )


def test_gaussian_sampling_by_quadrature_in_both_directions() -> None:
    q, mu, epsilon = 0.2, 1.3, 0.4
    t = np.linspace(-12, 14, 400_001)
    base, moved = stats.norm.pdf(t), stats.norm.pdf(t - mu)
    mixed = (1 - q) * base + q * moved
    forward = np.trapezoid(np.maximum(mixed - math.exp(epsilon) * base, 0), t)
    backward = np.trapezoid(np.maximum(base - math.exp(epsilon) * mixed, 0), t)
    assert sampled_gaussian_delta(epsilon, q, mu) == pytest.approx(forward, rel=1e-6)
    assert delta_when_added(epsilon, q, GaussianProfile(mu).delta) == pytest.approx(
        backward, rel=1e-6
    )
    assert backward < forward


LIGHT = samplers.WeightedSample(np.array([0]), np.array([0.5]))


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: optimal_weights([0.5], 0.0), "target epsilon must be above 0"),
        (lambda: optimal_weights([0.5], math.nan), "target epsilon must be finite"),
        (lambda: optimal_weights([0.0], 1.0), "slopes must be above 0.*cap it"),
        (lambda: optimal_weights([2.0], 1.0), "at least the largest unsampled loss = 2"),
        (lambda: optimal_weights([math.inf], 1.0), "slopes must be finite"),
        *(
            (lambda q=q: loss_when_removed(1.0, q), "inclusion probabilities must")
            for q in (0.0, -0.1, 1.1, math.nan)
        ),
        (lambda: gaussian_weights([2.0], 1.0, DELTA), "which no sampling attains"),
        (lambda: sampled_gaussian_delta(1.0, 0.5, 0.0), "mu must be above 0"),
        (lambda: LloydLoss(2, 1.0, 1.0, 1).sampled_epsilon(0.5, 1.0), "delta must be below 1"),
        (lambda: uniform_rates(10, 0), "m must be above 0"),
        (lambda: uniform_rates(10, 11), "m must be at most 10"),
        (lambda: uniform_rates(0, 1), "n must be at least 1"),
        (lambda: samplers.PoissonImportance(np.zeros(0)), "at least one record, got none"),
        (lambda: samplers.PoissonImportance(np.array([0.5, np.nan])), "must be finite"),
        (lambda: samplers.PoissonImportance(np.array([0.5, 0.0])), r"must be in \(0, 1\]"),
        (
            lambda: samplers.coreset_rates([3.0], 9, n=10, mean_square=1.0),
            "m must be at most 2 for q <= 1",
        ),
        (
            lambda: samplers.coreset_rates([0.0], 1, n=10, mean_square=1.0, mixing=0),
            "norm 0 is never drawn",
        ),
        (
            lambda: samplers.coreset_rates([1.0], 1, n=10, mean_square=0.0),
            "mean_square must be above 0",
        ),
        (
            lambda: samplers.coreset_rates([1.0], 1, n=10, mean_square=1.0, mixing=1.5),
            "mixing must be at most 1",
        ),
        (lambda: oracle_rates([1.0, 0.0], 1), "size 0 without a floor"),
        (
            lambda: samplers.filled_rates([0.5, 0.6], [1.0, 1.0], 1),
            "at least the sum of the floors",
        ),
        (lambda: audit.coreset_distribution(np.ones((4, 2))), "must not all be equal"),
        (lambda: WeightedLaplaceSum(0.0), "scale must be above 0"),
        (
            lambda: WeightedLaplaceSum(1.0).release(
                np.ones((2, 1)), LIGHT, np.random.default_rng(0)
            ),
            "weights must be at least 1",
        ),
    ],
)
def test_what_is_refused(call, sentence: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ArgumentError, match=sentence):
        call()
