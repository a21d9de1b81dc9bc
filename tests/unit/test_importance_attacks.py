"""Attacks on importance sampling: exact mixtures over samples, ends of grids, rounding, inputs at the edge."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.special import logsumexp

from dpsub.accounting.compose import ComposedLoss
from dpsub.errors import ArgumentError
from dpsub.importance import approximate, audit, lloyd, samplers
from dpsub.importance.approximate import LloydLoss, NormPair
from dpsub.importance.calibrate import SAMPLERS, DataFacts, calibrate
from dpsub.importance.lloyd import Lloyd, norm_noise, row_norms
from dpsub.importance.losses import Power, loss_when_removed
from dpsub.importance.samplers import WeightedSample
from dpsub.importance.weights import optimal_weights
from dpsub.noise import LaplaceProfile

Transcript = list[tuple[np.ndarray, np.ndarray]]
ONES, SPOILT = (WeightedSample(np.arange(3), np.array([1.0, middle, 1.0])) for middle in (1.0, math.nan))
ROWS = np.random.default_rng(0).uniform(-0.5, 0.5, (3, 2))


def log_density(plan: Lloyd, rows: np.ndarray, q: np.ndarray, seen: Transcript, first: np.ndarray) -> float:
    """log density of noisy counts and sums of all rounds: the mixture over all samples of the rows."""
    terms = []
    for taken in itertools.product((False, True), repeat=len(rows)):
        inside = np.array(taken, dtype=bool)
        chance, centres = float(np.prod(np.where(inside, q, 1 - q))), first
        if chance == 0:
            continue
        total = math.log(chance)
        for noisy_counts, noisy_sums in seen:
            counts, sums = lloyd.clusters(rows[inside], centres[None], 1 / q[inside])
            total -= float(np.abs(noisy_counts - counts[0]).sum()) / plan.beta_count
            total -= float(np.linalg.norm(noisy_sums - sums[0], axis=1).sum()) / plan.beta_sum
            centres = plan.update(noisy_sums, noisy_counts, centres)
        terms.append(total)
    return float(logsumexp(terms))


@pytest.mark.parametrize(("d", "k", "rounds"), [(1, 1, 1), (2, 2, 2), (10, 2, 2)])
@pytest.mark.parametrize("sampler", SAMPLERS)
def test_transcripts_of_sampled_lloyd_keep_the_target(sampler: str, d: int, k: int, rounds: int) -> None:
    """All three records sampled, adaptive rounds, repaired updates; both directions, noise pushed to where it tells."""
    rng = np.random.default_rng([d, k, SAMPLERS.index(sampler)])
    rows = rng.standard_normal((3, d))
    rows *= (np.array([1.0, 0.3, 0.6]) / np.linalg.norm(rows, axis=1))[:, None]
    facts, first = DataFacts(3, d, 1.0, 0.5), rng.standard_normal((k, d))
    target = 2.0
    found = calibrate(sampler, facts, target=target, m=1.0, norms=np.linalg.norm(rows, axis=1), n_iterations=rounds)
    q = found.rates(np.linalg.norm(rows, axis=1))
    promised = float(loss_when_removed(found.slopes(1.0) / q[0], q[0]))
    assert promised <= target * (1 + 1e-12)
    plan, most = Lloyd(k, found.beta_sum, found.beta_count, "repaired", 1.0, rounds), 0.0
    for trial in range(16):
        push = 60 * (1 if trial % 2 else -1)
        seen = []
        for _ in range(rounds):
            counts, sums = plan.noise(d, rng)
            seen.append((counts + push * found.beta_count, sums + push * found.beta_sum * rows[0]))
        loss = log_density(plan, rows, q, seen, first) - log_density(plan, rows[1:], q[1:], seen, first)
        assert abs(loss) <= promised * (1 + 1e-9)
        most = max(most, loss)
    # a promise that is smaller by a tenth is broken
    assert most > 0.9 * promised


def test_grids_that_end_just_inside_of_the_law_are_widened() -> None:
    shift = 0.5 * (1 + 1.9e-12)
    bound = ComposedLoss([NormPair(1, shift).upper_law(0.001)], [1]).delta(shift - 2e-13)
    assert bound >= float(LaplaceProfile(shift).delta(shift - 2e-13))


@pytest.mark.parametrize("d", [1, 2, 10])
@pytest.mark.parametrize("shift", [1e-9, 1e-30, 1e-170, 5e-324])
def test_tiny_shifts_are_bounded_without_a_warning(d: int, shift: float) -> None:
    loss = LloydLoss(d, shift, 0.3, 2, 50)
    assert LloydLoss(d, 0.0, 0.3, 2, 50).epsilon(0.2) * (1 - 1e-9) <= loss.epsilon(0.2) <= loss.pure


@pytest.mark.parametrize("delta", [0.3, 0.1, 0.01, 1e-4])
def test_a_largest_loss_that_is_likely_is_no_excuse_for_the_pure_bound(delta: float) -> None:
    """One noisy count: its largest loss has probability 1/2, beyond any delta that is asked for."""
    exact = float(LaplaceProfile(1.0).epsilon(delta))
    for cells in (300, 1000, 4000):
        assert exact <= LloydLoss(1, 0.0, 1.0, 1, cells).epsilon(delta) <= exact + 2e-3


@pytest.mark.parametrize("order", [1.5, 50.0, 1000.0])
def test_noise_of_any_order_fills_its_ball(order: float) -> None:
    """|z_1| / |z|_p has the second moment of its law: coordinates do not underflow to 0 at large p."""
    d, p = 5, order
    z = norm_noise((20_000, d), 1.0, np.random.default_rng(4), order=order)
    assert (z != 0).all()
    share = (np.abs(z[:, 0]) / row_norms(z, order)) ** 2
    # u = direction times |u|_p, which are independent: E u_1^2 over E |u|_p^2
    exact = math.exp(math.lgamma(3 / p) - math.lgamma(1 / p) + math.lgamma(d / p) - math.lgamma((d + 2) / p))
    assert abs(share.mean() - exact) < 6 * share.std() / math.sqrt(share.size)
    assert np.isfinite(norm_noise((50, 1), 1.0, np.random.default_rng(5), order=order)).all()


def test_what_a_record_adds_to_float32_sums_is_its_own_share() -> None:
    rng = np.random.default_rng(6)
    rows = (np.array([1.0, 0.3]) + 0.01 * rng.standard_normal((9000, 2))).astype(np.float32)
    weights = rng.uniform(1, 30, 9000)
    centres = np.array([[[0.0, 0.0], [-50.0, -50.0]]])
    both, others = (lloyd.clusters(rows[i:], centres, weights[i:])[1][0, 0] for i in (0, 1))
    assert both - others == pytest.approx(weights[0] * rows[0].astype(float), abs=1e-9)


def test_rows_beyond_the_radius_are_found_in_float32_and_in_the_norm_of_the_plan() -> None:
    rows = np.full((2, 600), 1 / math.sqrt(600), dtype=np.float32)
    first, rng = np.zeros((1, 600)), np.random.default_rng(0)
    assert np.isfinite(lloyd.run_full(rows, Lloyd(1, 1.0, 1.0, "repaired", 1.0), first, rng)).all()
    with pytest.raises(ArgumentError, match="rows must have norms of at most"):
        lloyd.run_full(rows * np.float32(1 + 2e-6), Lloyd(1, 1.0, 1.0, "repaired", 1.0), first, rng)
    with pytest.raises(ArgumentError, match="at most 1, got 24"):
        lloyd.run_full(rows, Lloyd(1, 1.0, 1.0, "repaired", 1.0, order=1.0), first, rng)


def test_the_core_set_distribution_of_float32_rows_is_that_of_their_values() -> None:
    rows = (1000 + np.random.default_rng(7).standard_normal((20_000, 2))).astype(np.float32)
    single, double = (audit.coreset_distribution(values) for values in (rows, rows.astype(float)))
    np.testing.assert_allclose(single, double, rtol=1e-6)


def test_gaussian_weights_of_many_records_are_those_of_each() -> None:
    mu = np.random.default_rng(8).uniform(0.1, 0.3, 2100)
    few = approximate.gaussian_weights(mu[:50], 1.0, 1e-3)
    assert approximate.gaussian_weights(mu, 1.0, 1e-3)[:50] == pytest.approx(few, rel=1e-12)


def test_a_bound_above_the_target_is_not_hidden_by_the_noise_being_absent() -> None:
    assert (Lloyd(2, 0, 0, "repaired", 1.0).slopes(np.ones(2)) == math.inf).all()
    found = calibrate("full", DataFacts(9, 2, 1.0, 0.5), target=math.inf)
    assert approximate.certified_epsilon(found, 1e-6) == math.inf


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_no_sampler_has_a_rate_for_a_norm_beyond_the_radius(sampler: str) -> None:
    found = calibrate(sampler, DataFacts(3, 2, 1.0, 0.5), target=2.0, m=1.0, norms=[0.5, 0.7, 1.0])
    with pytest.raises(ArgumentError, match="norms must be at most the radius 1"):
        found.rates([1.01])


def test_water_filling_keeps_its_size_over_many_orders_of_magnitude() -> None:
    rng = np.random.default_rng(9)
    for n in (40, 20_000):
        for _ in range(5):
            sizes, floors = rng.lognormal(0, 6, n), rng.uniform(0, 0.5, n)
            m = float(floors.sum()) + float(n - floors.sum()) * float(rng.uniform(0, 1))
            assert samplers.filled_rates(floors, sizes, m).sum() == pytest.approx(m, rel=1e-12)


PLAN = Lloyd(1, 1.0, 1.0, "repaired", 5.0, 1)
START, FACTS = np.zeros((1, 1, 2)), DataFacts(3, 2, 1.0, 0.5)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda rng: lloyd.run(np.ones((3, 2), dtype=int), ONES, [PLAN], START, [rng]), "float32 or float64, got int"),
        (lambda rng: lloyd.costs(np.ones((3, 2), dtype=int), START), "rows must be float32 or float64"),
        (lambda rng: lloyd.run_full(ROWS, PLAN, START[0, :, :1], rng), "initial centres must have the shape"),
        (lambda rng: lloyd.run(ROWS, SPOILT, [PLAN], START, [rng]), "weights must be at least 1, got nan"),
        (lambda rng: DataFacts.of(np.full((2, 2), math.nan)), "points must be finite"),
        (lambda rng: DataFacts.of(np.ones((4, 2))), "data must be centred"),
        (lambda rng: samplers.filled_rates([1.5, 0.1], [1.0, 1.0], 1.9), "floors must be at most 1, got 1.5"),
        (lambda rng: samplers.filled_rates([0.5, 0.1], [1.0], 1), "floors and sizes must be one number a record"),
        (lambda rng: samplers.optimal_rates([1e-310], 1.0), "slopes must be above 0"),
        (lambda rng: DataFacts.of(np.zeros((3, 2))), "radius must be above 0"),
        (lambda rng: audit.audit_noise("stated", rng, d=0), "d must be at least 1"),
        (lambda rng: audit.audit_noise("stated", rng, norm=-1.0), "norm must be above 0"),
        (lambda rng: DataFacts(3, 10**400, 1.0, 0.5), "d must be at most 1000000000"),
        (lambda rng: DataFacts(3, 2, 1e200, 0.5), r"radius must be at most 1e\+30"),
        (lambda rng: calibrate("core", FACTS, target=5e-324, m=1), "target epsilon must be at least 1e-30"),
        (lambda rng: calibrate("opt", FACTS, target=1e308, m=1, norms=np.ones(3)), "target epsilon must be at most"),
        (lambda rng: calibrate("unif", FACTS, target=1.0, m=5e-324), "m must be at least 1e-06"),
        (lambda rng: calibrate("core", FACTS, target=1.0, m=1, mixing=5e-324), "mixing must be at least 1e-09"),
        (lambda rng: calibrate("full", FACTS, target=1.0, n_iterations=10**400).beta_sum, "n_iterations must be at"),
        (lambda rng: Power(1e308).sampled(0.5), r"scales must be at most 1e\+30"),
        (lambda rng: Power(1.0, 1e5).sampled(0.5), "epsilon must be finite"),
        (lambda rng: Power(1.0).sampled(5e-324), "sampled never or below 1e-100"),
        (lambda rng: approximate.sampled_gaussian_delta(1.0, 5e-324, 0.3), "sampled never or below 1e-100"),
        (lambda rng: samplers.uniform_rates("a", 1), "n must be a whole number"),  # type: ignore[arg-type]
        (lambda rng: samplers.coreset_rates([1e200], 1, n=3, mean_square=1.0), r"norms must be at most 1e\+30"),
        (lambda rng: samplers.oracle_rates([5e-324, 1.0], 1), "sizes above 0 must be at least 1e-30"),
        (lambda rng: samplers.WeightedLaplaceSum(1.0).slopes([[1e200]]), r"entries of points must be at most 1e\+30"),
        (lambda rng: samplers.WeightedLaplaceSum(1.0).squared_errors(ROWS, 0.5, 10**30, rng), "runs must be at most"),
        (lambda rng: lloyd.fixed_centres(FACTS, 10**30, rng), "n_clusters must be at most"),
        (lambda rng: lloyd.run_full(ROWS, PLAN, np.full((1, 2), math.nan), rng), "initial centres must be finite"),
        (lambda rng: lloyd.costs(np.array([[math.inf, 1.0]]), START), "points must have finite squares"),
        (lambda rng: LloydLoss(2, 1.0, 1.0, 1, 10**9), "cells must be at most"),
        (lambda rng: audit.audit_noise("stated", rng, d=10**30), "d must be at most"),
        (lambda rng: audit.audit_first_centres("stated", rng, n=-1), "n must be at least 2"),
        (lambda rng: audit.audit_first_centres("stated", rng, d=0), "d must be at least 1"),
        (lambda rng: audit.audit_first_centres("stated", rng, draws=10**30), "draws must be at most"),
        (lambda rng: audit.coreset_sample(ROWS, 10**30, "independent", rng), "m must be at most"),
    ],
)
def test_inputs_at_the_edge_and_absurd_numbers_are_refused_in_a_sentence(call, message: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ArgumentError, match=message):
        call(np.random.default_rng(0))


def test_numbers_at_the_edge_are_answered_without_a_warning() -> None:
    assert optimal_weights([1e-30], 1.0)[0] > 7e31
    assert samplers.uniform_rates(3.0, 1).tolist() == [1 / 3] * 3  # type: ignore[arg-type]
    assert audit.audit_noise("stated", np.random.default_rng(0), d=2.0, draws=100.0).draws == 50  # type: ignore[arg-type]
    # the noise on counts is fine, that on sums beyond doubles: the pure loss is what is left
    assert LloydLoss(3, 1e5, 0.2, 3, 20).epsilon(1e-5) == pytest.approx(3e5 + 0.6)
    for found in (calibrate(s, DataFacts(3, 2, 1e30, 1e59), target=1e-6, m=0.1, norms=[1e30] * 3) for s in SAMPLERS):
        assert found.feasible and (found.rates([1e30]) <= 1).all()
