"""Draws of the importance sampler, of norm noise and of weighted sums against their laws; canaries
against claims."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from dpsub.importance.audit import audit_noise
from dpsub.importance.lloyd import norm_noise
from dpsub.importance.samplers import (
    PoissonImportance,
    WeightedLaplaceSum,
    oracle_rates,
    uniform_rates,
)
from tests.statistical import budget

CASES = 30
LEVEL = budget.level("importance draws", CASES)


def test_inclusions_are_independent_at_their_rates() -> None:
    rates, draws = np.array([0.05, 0.5, 0.9, 1.0]), 20_000
    rng, seen = budget.rng("importance draws"), np.zeros((draws, 4), dtype=bool)
    sampler = PoissonImportance(rates)
    for i in range(draws):
        sample = sampler.draw(rng)
        seen[i, sample.indices] = True
        assert (sample.weights == 1 / rates[sample.indices]).all()
    patterns = np.bincount(seen @ (1 << np.arange(4)), minlength=16)
    bits = (np.arange(16)[:, None] >> np.arange(4)) & 1
    law = np.prod(np.where(bits == 1, rates, 1 - rates), axis=1)
    assert budget.p_value(patterns, law, draws) > LEVEL
    planted = np.prod(np.where(bits == 1, [0.08, 0.5, 0.9, 1.0], [0.92, 0.5, 0.1, 0.0]), axis=1)
    assert budget.p_value(patterns, planted, draws) < LEVEL


@pytest.mark.parametrize(("d", "order"), [(1, 2.0), (8, 2.0), (5, 1.0), (3, 1.5), (4, np.inf)])
def test_lengths_of_the_noise_are_gamma(d: int, order: float) -> None:
    rng = budget.rng("importance draws", f"{d} {order}")
    z = norm_noise((20_000, d), 2.0, rng, order=order)
    lengths = np.linalg.norm(z, ord=order, axis=1)
    assert stats.kstest(lengths, stats.gamma(d, scale=2.0).cdf).pvalue > LEVEL
    # the coordinates are alike and symmetric
    assert stats.ks_2samp(z[:, 0], -z[:, -1]).pvalue > LEVEL
    if order == 1:
        assert stats.kstest(z[:, 0], stats.laplace(scale=2.0).cdf).pvalue > LEVEL
    short = norm_noise((20_000, d), 2.0, rng, order=order, radius="exponential")
    wrong = stats.kstest(
        np.linalg.norm(short, ord=order, axis=1), stats.gamma(d, scale=2.0).cdf
    ).pvalue
    assert (wrong < LEVEL) == (d > 1)


@pytest.mark.parametrize("name", ["unif", "var"])
def test_errors_of_weighted_sums_have_the_exact_mean(name: str) -> None:
    rng = budget.rng("importance draws", name)
    points = rng.standard_normal((200, 3)) / np.sqrt(3)
    system, norms = WeightedLaplaceSum(3.0), np.linalg.norm(points, axis=1)
    q = uniform_rates(200, 40) if name == "unif" else oracle_rates(norms, 40)
    errors = system.squared_errors(points, q, 20_000, rng)
    exact = system.mean_squared_error(points, q)
    z = (errors.mean() - exact) / (errors.std() / np.sqrt(errors.size))
    # a mean of 20,000 heavy-tailed terms: Student's tail at six standard errors is 2e-9
    assert abs(z) < 6
    assert abs(errors.mean() - exact * 1.1) > 6 * errors.std() / np.sqrt(errors.size)


def test_a_canary_comes_near_the_promise_where_noise_is_small() -> None:
    audited = audit_noise(
        "repaired",
        budget.rng("importance draws", "tight"),
        d=1,
        norm=1.0,
        beta_count=50.0,
        q=0.5,
        n_iterations=1,
        draws=100_000,
        confidence=1 - LEVEL,
    )
    assert 0.7 * audited.promised < audited.lower < audited.promised
