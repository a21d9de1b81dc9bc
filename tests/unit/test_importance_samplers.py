"""Inclusion probabilities: sizes, least variance by an independent computation, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from dpsub.errors import ArgumentError
from dpsub.importance import audit, samplers
from dpsub.importance.losses import Power
from dpsub.importance.samplers import WeightedLaplaceSum

RNG = np.random.default_rng(7)
SIZES = RNG.gamma(2.0, 1.0, 40)


def variance(q: np.ndarray, sizes: np.ndarray = SIZES) -> float:
    return float((1 / q - 1) @ sizes**2)


@pytest.mark.parametrize("m", [0.5, 10.0, 25.0, 39.5, 40.0])
def test_rates_have_the_size_that_was_asked_for(m: float) -> None:
    for q in (samplers.uniform_rates(40, m), samplers.oracle_rates(SIZES, m)):
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
        lambda q: variance(q, sizes), np.full(8, 0.5), method="SLSQP",
        bounds=[(max(low, 1e-6), 1.0) for low in floors], options={"maxiter": 1000, "ftol": 1e-13},
        constraints=[{"type": "eq", "fun": lambda q: q.sum() - m}],
    )  # fmt: skip
    assert ours.sum() == pytest.approx(m)
    assert (ours >= floors).all()
    assert variance(ours, sizes) == pytest.approx(found.fun, rel=1e-6)
    # a planted fault: moving mass from one record to another costs variance
    worse = ours + np.array([0.02, -0.02, 0, 0, 0, 0, 0, 0])
    assert variance(worse, sizes) > variance(ours, sizes) or (worse > 1).any() or (worse < floors).any()


def test_at_equal_size_private_rates_have_the_least_loss_and_the_oracle_the_least_error() -> None:
    """Figure 2's comparison; water-filling above the private floors keeps every loss below the target."""
    rng = np.random.default_rng(1)
    points = rng.standard_normal((400, 10)) / np.sqrt(10)
    system = WeightedLaplaceSum(3.0)
    profile = Power(system.slopes(points))
    target = float(profile.scales.max())
    private = samplers.optimal_rates(profile.scales, target)
    m, norms = float(private.sum()), np.linalg.norm(points, axis=1)
    rivals = {"unif": samplers.uniform_rates(400, m), "var": samplers.oracle_rates(norms, m)}
    for q in rivals.values():
        assert profile.sampled(q).max() > target
    assert system.mean_squared_error(points, rivals["var"]) < system.mean_squared_error(points, private)
    more = min(400.0, 1.3 * m)
    filled = samplers.filled_rates(private, norms, more)
    assert filled.sum() == pytest.approx(more)
    assert profile.sampled(filled).max() <= target * (1 + 1e-12)
    oracle = system.mean_squared_error(points, samplers.oracle_rates(norms, more))
    assert oracle <= system.mean_squared_error(points, filled)
    uniform = samplers.uniform_rates(400, more)
    assert system.mean_squared_error(points, filled) < system.mean_squared_error(points, uniform)


def test_the_core_set_distribution_sums_to_one_and_worst_deviations_fall_with_the_size() -> None:
    rng = np.random.default_rng(3)
    points = rng.standard_normal((1500, 4)) * np.exp(0.4 * rng.standard_normal((1500, 1)))
    assert audit.coreset_distribution(points).sum() == pytest.approx(1)
    for kind in audit.CORESET_KINDS:
        worst = {}
        for m in (40, 150):
            samples = (audit.coreset_sample(points, m, kind, rng) for _ in range(8))
            found = [audit.worst_coreset_deviation(points, sample, 3, rng, sets=4) for sample in samples]
            worst[m] = float(np.mean(found))
        assert worst[150] < 0.8 * worst[40]


def test_the_deviation_of_a_full_sample_is_none_and_a_planted_weight_shows() -> None:
    points = np.random.default_rng(4).standard_normal((300, 3))
    everything = samplers.WeightedSample(np.arange(300), np.ones(300))
    centres = points[:6].reshape(2, 3, 3)
    assert audit.coreset_deviation(points, everything, centres) == pytest.approx([0, 0], abs=1e-12)
    heavy = samplers.WeightedSample(np.arange(300), np.full(300, 1.1))
    assert (audit.coreset_deviation(points, heavy, centres) > 0.05).all()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: samplers.uniform_rates(10, 0), "m must be above 0"),
        (lambda: samplers.uniform_rates(10, 11), "m must be at most 10"),
        (lambda: samplers.uniform_rates(0, 1), "n must be at least 1"),
        (lambda: samplers.PoissonImportance(np.zeros(0)), "at least one record, got none"),
        (lambda: samplers.PoissonImportance(np.array([0.5, np.nan])), "must be finite"),
        (lambda: samplers.PoissonImportance(np.array([0.5, 0.0])), r"must be in \(0, 1\]"),
        (lambda: samplers.coreset_rates([3.0], 9, n=10, mean_square=1.0), "m must be at most 2 for q <= 1"),
        (lambda: samplers.coreset_rates([0.0], 1, n=10, mean_square=1.0, mixing=0), "norm 0 is never drawn"),
        (lambda: samplers.coreset_rates([1.0], 1, n=10, mean_square=0.0), "mean_square must be above 0"),
        (lambda: samplers.coreset_rates([1.0], 1, n=10, mean_square=1.0, mixing=1.5), "mixing must be at most 1"),
        (lambda: samplers.oracle_rates([1.0, 0.0], 1), "size 0 without a floor"),
        (lambda: samplers.filled_rates([0.5, 0.6], [1.0, 1.0], 1), "at least the sum of the floors"),
        (lambda: audit.coreset_distribution(np.ones((4, 2))), "must not all be alike"),
        (lambda: WeightedLaplaceSum(0.0), "scale must be above 0"),
        (
            lambda: WeightedLaplaceSum(1.0).release(
                np.ones((2, 1)), samplers.WeightedSample(np.array([0]), np.array([0.5])), np.random.default_rng(0)
            ),
            "weights must be at least 1",
        ),
    ],
)
def test_bad_inputs_are_refused_in_a_sentence(call, message: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ArgumentError, match=message):
        call()
