"""Exact losses and bounds of designs: against the linear programme, reference values, each other, and refusals."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsub.amplification.survey import auditor, clusters, rates, strata, unequal
from dpsub.amplification.survey.auditor import worst_ratio
from dpsub.amplification.survey.sizes import (
    log_sizes_of,
    random_size_exact,
    random_size_lower,
    random_size_upper,
    rounding_base,
    rounding_break_even,
    rounding_checked,
    rounding_exact,
    rounding_exact_at,
    rounding_printed,
    rounding_size_aware,
    tilted_mean,
    two_point_error,
)
from dpsub.errors import ArgumentError, NumericalError, UnsupportedError
from dpsub.sampling import allocation
from dpsub.sampling.allocation import exact_rate, rounded_sizes

sample_laws = pytest.importorskip("dpsub.papers.bun.experiments.laws")


@pytest.mark.parametrize(
    ("sigma", "share", "lower", "upper", "low", "high", "exact"),
    [
        (1, 0.500001, 0.00498751, 0.00501251, 0.00995002, 0.01005002, 0.01004998),
        (100, 0.51, 0.00508750, 0.00511249, 0.01015001, 0.01024997, 0.01015001),
        (400, 0.66, 0.00658877, 0.00661121, 0.01315502, 0.01324478, 0.01315502),
        (600, 0.858414, 0.00857805, 0.00859020, 0.01714386, 0.01719248, 0.01714386),
        (800, 0.967744, 0.00967587, 0.00967899, 0.01934859, 0.01936108, 0.01934859),
        (1000, 0.981398, 0.00981306, 0.00981489, 0.01962428, 0.01963159, 0.01962428),
    ],
)
def test_figure2_reference_values(
    sigma: float, share: float, lower: float, upper: float, low: float, high: float, exact: float
) -> None:
    law = allocation.log_normal_sizes(10_000, 5000, sigma)
    assert tilted_mean(law, 0.01) / 10_000 == pytest.approx(share, abs=1e-6)
    found = [f(law, 0.01, factor=factor) for factor in (1, 2) for f in (random_size_lower, random_size_upper)]
    assert found == pytest.approx([lower, upper, low, high], abs=6e-9)
    assert random_size_exact(law, 0.01) == pytest.approx(exact, abs=6e-9)


@settings(max_examples=25)
@given(st.integers(2, 6), st.integers(0, 10**6), st.floats(0.05, 2.0))
def test_random_sizes_equal_the_programme(n: int, seed: int, epsilon: float) -> None:
    t = np.random.default_rng(seed).dirichlet(np.ones(n + 1) * 0.5)
    law = log_sizes_of(t)
    found = auditor.audit(*sample_laws.substituted({m: float(p) for m, p in enumerate(t) if p > 0}, n), epsilon)
    exact = random_size_exact(law, epsilon)
    assert exact == pytest.approx(found.loss, abs=2e-6)
    assert found.lower <= exact + 1e-9
    assert random_size_lower(law, epsilon, factor=2) <= exact <= random_size_upper(law, epsilon, factor=2) + 1e-10


@settings(max_examples=25)
@given(st.sampled_from(["1/3", "1/7", "0.3", "0.9", "1/2"]), st.integers(1, 30), st.floats(0.05, 2.0))
def test_rounding_equals_the_programme_and_keeps_the_bound(rate: str, n: int, epsilon: float) -> None:
    p, q = (rounded_sizes(rate, size, "randomised") for size in (n, n + 1))
    exact = rounding_exact(p, q, n, epsilon)
    assert exact == pytest.approx(auditor.audit(*sample_laws.added(p, q, n), epsilon).loss, abs=2e-6)
    assert exact <= rounding_size_aware(rate, epsilon, n) + 1e-10
    assert rounding_size_aware(rate, epsilon, n) <= rounding_printed(rate, epsilon) + 1e-12 or exact_rate(rate) * n < 1


@settings(max_examples=20)
@given(st.lists(st.integers(1, 6), min_size=2, max_size=6), st.data(), st.floats(0.05, 1.5))
def test_unequal_clusters_equal_the_programme(sizes: list[int], data: Any, epsilon: float) -> None:
    drawn = data.draw(st.integers(1, len(sizes) - 1))
    design = clusters.ClusterDesign(tuple(sizes), drawn)
    exact = design.exact(epsilon, 0)
    assert exact == pytest.approx(auditor.audit(*sample_laws.cluster_laws(tuple(sizes), drawn), epsilon).loss, abs=2e-6)
    assert design.lower(epsilon, 0) <= exact + 1e-12 and exact <= design.upper(epsilon, 0) + 1e-12 <= epsilon + 2e-12


def test_log_symmetric_against_products() -> None:
    z = np.array([0.5, 2.0, 1.5, 0.25])
    np.testing.assert_allclose(np.exp(clusters.log_symmetric(np.log(z), 4)), np.poly(-z), rtol=1e-13)


def test_reference_values_of_clusters() -> None:
    for epsilon, expected in (
        (0.1, (0.125, 0.148, 0.241, 0.463, 0.864, 0.9996)), (1.0, (0.574, 0.906, 0.9997, 1, 1, 1))
    ):  # fmt: skip
        ratios = [clusters.loss(0.1, epsilon, 2 * size) / epsilon for size in (1, 2, 5, 10, 20, 50)]
        assert ratios == pytest.approx(expected, abs=6e-4)
    assert clusters.ClusterDesign((20,) * 10, 1, 0.05).worst(1.0, "exact") == pytest.approx(0.06246, abs=5e-6)
    assert clusters.ClusterDesign((3, 4), 2).exact(0.7, 0) == pytest.approx(0.7)


def test_reference_values_of_rounding() -> None:
    found = [rounding_break_even(e) for e in (0.01, 0.1, 0.5, 1, 2)]
    assert found == pytest.approx([0.16546, 0.1548, 0.11158, 0.06923, 0.02217], abs=5e-5)
    for text, base in (("0.1", 0.8453), ("0.05", 1.1436), ("0.01", 1.9059), ("0.001", 3.0472)):
        assert rounding_base(text, 1.0) == pytest.approx(base, abs=5e-5)
        assert rounding_printed(text, rounding_base(text, 1.0)) == pytest.approx(1.0, rel=1e-12)
    assert rounding_printed("0.01", 1 / 0.06) == pytest.approx(58.15, abs=5e-3)
    assert rounding_printed("0.01", 0.1) == pytest.approx(0.006630, abs=5e-7)
    worst = max(rounding_exact_at("0.01", 1.0, n, "randomised") for n in range(100, 1000))
    assert worst == pytest.approx(0.0773, abs=5e-5)


def test_ties_are_rounded_up_in_exact_arithmetic() -> None:
    assert rounded_sizes("1/10", 25, "half_up") == {3: 1.0}  # 2.5; round() gives 2
    assert rounded_sizes(0.35, 10, "half_up") == {4: 1.0}  # 3.5 exactly, although 0.35 * 10 is not a tie in binary
    assert rounded_sizes("1/10", 14, "randomised") == pytest.approx({1: 0.6, 2: 0.4})
    assert rounded_sizes("1/10", 20, "randomised") == {2: 1.0}


def test_random_size_at_large_epsilon_and_n() -> None:
    law = allocation.log_normal_sizes(20_000, 10_000, 100)
    for epsilon in (0.5, 5.0):
        exact = random_size_exact(law, epsilon)
        assert random_size_lower(law, epsilon, factor=2) - 1e-9 <= exact <= random_size_upper(law, epsilon, factor=2)


def test_path_programme_finds_the_worst_of_all_slopes() -> None:
    rng = np.random.default_rng(5)
    n, d = np.log(rng.random(7)), np.log(rng.random(7))
    best = max(
        math.log(np.exp(n) @ a / (np.exp(d) @ a))
        for bits in range(2**6)
        for a in [np.exp(0.8 * np.concatenate([[0], np.cumsum([1 if bits >> i & 1 else -1 for i in range(6)])]))]
    )
    assert worst_ratio(n, d, 0.8).log_ratio == pytest.approx(best, abs=1e-12)
    # planted fault: with slopes of one sign only, the optimum is missed
    assert worst_ratio(n, d, 1e-9).log_ratio < best - 0.01


def test_auditor_certifies_far_apart_samples() -> None:
    p, q = {(40, 0, 0): 0.4, (0, 60, 0): 0.6}, {(40, 0, 1): 41 / 101, (0, 60, 0): 60 / 101}
    found = auditor.audit(p, q, 1.0)
    assert found.loss == pytest.approx(unequal.pps_cluster((40, 60), 0, 1.0), abs=1e-6)
    assert found.lower <= found.loss <= found.lower + auditor.TOLERANCE


def test_auditor_event_is_feasible_and_attains_the_loss() -> None:
    p, q = sample_laws.cluster_laws((2, 1, 3), 2)
    found = auditor.audit(p, q, 0.6)
    for one, f in found.event.items():
        for other, g in found.event.items():
            steps = sum(abs(a - b) for a, b in zip(one, other, strict=True))
            assert f <= g * math.exp(0.6 * steps) * (1 + 1e-9)
    sums = [math.fsum(law.get(state, 0.0) * f for state, f in found.event.items()) for law in (p, q)]
    assert abs(math.log(sums[0] / sums[1])) == pytest.approx(found.lower, abs=1e-12)


@pytest.mark.parametrize("n", [4, 8, 12])
def test_insertion_bounds_bracket_the_programme(n: int) -> None:
    for place in range(n + 1):
        order = list(range(n))
        laws = [sample_laws.systematic_law(o, 2, n + 1) for o in (order, [*order[:place], n, *order[place:]])]
        low, high = unequal.systematic_insertion(n, 2, place, 0.5)
        assert low - 1e-9 <= auditor.audit(*laws, 0.5).loss <= high + 2e-6


def test_allocations_are_optimal() -> None:
    sizes, deviations = (400, 300, 200, 100), (1.0, 2.0, 5.0, 20.0)
    scenario = strata.Scenario(sizes, deviations)
    neyman, plain = allocation.neyman(sizes, deviations, 100), allocation.proportional(sizes, 100)
    assert neyman == (10, 15, 25, 50) and plain == (40, 30, 20, 10)
    assert scenario.sampling_variance(neyman) == pytest.approx(0.1134, abs=5e-5)
    assert scenario.sampling_variance(plain) == pytest.approx(0.4194, abs=5e-5)
    rng = np.random.default_rng(1)
    for _ in range(30):
        small = tuple(int(n) for n in rng.integers(1, 7, 3))
        weights = rng.random(3) * 10.0 ** rng.integers(-3, 3, 3)
        for m in range(3, sum(small) + 1):
            every = [(a, b, m - a - b) for a in range(1, small[0] + 1) for b in range(1, small[1] + 1)
                     if 1 <= m - a - b <= small[2]]  # fmt: skip
            cost = {a: float((weights**2 / np.array(a)).sum()) for a in every}
            assert cost[allocation.allocate(small, weights, m)] == pytest.approx(min(cost.values()), rel=1e-12)
    large = allocation.allocate((10**6,) * 5, np.array([1e-9, 1.0, 2.0, 3.0, 4.0]), 10_000)
    assert sum(large) == 10_000 and large[0] == 1 and large[4] == pytest.approx(4000, abs=2)
    assert allocation.neyman(sizes, deviations, 100, costs=(1, 1, 1, 100))[3] < 50


def test_certificate_inverse_and_public_base() -> None:
    base = strata.base_for_certificate((5, 8), (50, 40), 2, 1.0)
    assert strata.certificate((5, 8), (50, 40), 2, base) == pytest.approx(1.0, abs=1e-9)
    assert base >= 1.0 / 4
    assert rates.amplified(0.2, strata.base_for_public((5, 8), (50, 40), 1.0)) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: rates.amplified(0.1, 0), ArgumentError, "epsilon must be above 0"),
        (lambda: rates.amplified(0.1, math.inf), ArgumentError, "epsilon must be finite"),
        (lambda: rates.amplified(1.1, 1), ArgumentError, "rate must be at most 1"),
        (lambda: rates.amplified_delta(0.1, 1), ArgumentError, "delta must be below 1"),
        (lambda: rounding_printed(1, 1.0), UnsupportedError, "the theorem asks for a rate below 1"),
        (lambda: rounding_printed(0, 1.0), ArgumentError, "rate must be above 0 and at most 1"),
        (lambda: rounding_checked("1/10", 1.0, 9), UnsupportedError, "of at least 1, got 0.9 at n = 9; use"),
        (lambda: log_sizes_of([0.5, -0.1, 0.6]), ArgumentError, "probabilities of 0..n that sum to 1"),
        (lambda: log_sizes_of([0.5, 0.1]), ArgumentError, "that sum to 1, got a sum of 0.6"),
        (lambda: allocation.log_normal_sizes(10, 5, 0), ArgumentError, "sd must be above 0"),
        (lambda: clusters.ClusterDesign((3, 4), 3), ArgumentError, "drawn must be at most the clusters = 2"),
        (lambda: clusters.ClusterDesign((3, 0), 1), ArgumentError, "the size of a cluster must be at least 1"),
        (lambda: clusters.ClusterDesign((3,), 1), ArgumentError, "needs at least 2 clusters"),
        (lambda: rounding_exact({1: 1.0}, {9: 1.0}, 4, 1.0), ArgumentError, "population must be a law on 0..5"),
        (lambda: allocation.neyman((5, 5), (0, 0), 4), ArgumentError, "some must be above 0"),
        (lambda: allocation.neyman((5, 5), (1, 1), 11), ArgumentError, "m must lie between 1 a stratum = 2"),
        (lambda: allocation.neyman((5, 1), (1, 1), 4, at_least=2), ArgumentError, "of 2, got stratum 1"),
        (lambda: auditor.audit({(1,): 0.5}, {(0,): 1.0}, 1.0), ArgumentError, "must hold probabilities that sum to 1"),
        (lambda: auditor.audit({(1,): 1.0}, {(0, 1): 1.0}, 1.0), ArgumentError, "counts of the same types"),
        (lambda: auditor.audit({(1,): 1.0}, {(0,): 1.0}, 1.0, relation="x"), ArgumentError, "unknown relation 'x'"),
        (lambda: auditor.audit({(m,): 1 / 301 for m in range(301)}, {(0,): 1.0}, 1.0), ArgumentError, "at most 300"),
        (lambda: worst_ratio(np.zeros(2), np.zeros(3), 1.0), ArgumentError, "must have one length"),
        (lambda: worst_ratio(np.full(2, -np.inf), np.zeros(2), 1.0), ArgumentError, "not all -inf"),
        (lambda: unequal.pps_cluster((3,), 0, 1.0), ArgumentError, "at least 2 clusters"),
        (lambda: two_point_error(0, 1), ArgumentError, "step must be above 0"),
    ],
)  # fmt: skip
def test_refusals(call: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message.replace("..", r"\.\.") if ".." in message else message):
        call()


def test_auditor_tells_disjoint_samples_apart_and_refuses_what_it_cannot_resolve() -> None:
    assert auditor.audit({(1,): 1.0}, {(2,): 1.0}, 1.0, relation="substitute").loss == math.inf
    with pytest.raises(NumericalError, match="certified to 1e-06"):
        auditor.audit({(0,): 1.0}, {(60,): 1.0}, 1.0)


def test_the_sensitivity_of_private_weights_is_attained_and_never_exceeded() -> None:
    """N S moves by at most B sqrt(N) when one value in [0, B] is substituted; from all equal to one at B it does."""

    def weight(values: np.ndarray) -> float:
        return len(values) * float(values.std(ddof=1))

    rng = np.random.default_rng(5)
    largest = 0.0
    for n in (2, 3, 10):
        for _ in range(300):
            values = rng.choice([0.0, 1.0, 3.0, rng.uniform(0, 3)], size=n)
            other = values.copy()
            other[0] = 3.0 - values[0]
            largest = max(largest, abs(weight(values) - weight(other)) / (3 * math.sqrt(n)))
    assert largest == pytest.approx(1.0, rel=1e-12)


def test_private_weights_have_the_noise_of_that_sensitivity() -> None:
    sizes, deviations = (400, 100), (50.0, 2000.0)
    rng = np.random.default_rng(7)
    drawn = np.array([strata.private_weights(sizes, deviations, 3.0, 0.5, rng) for _ in range(4000)])
    scale = np.array([120.0, 60.0])  # B sqrt(N) / epsilon
    assert (drawn >= scale).all()
    # mean absolute deviation of Laplace noise is its scale; standard error 1/sqrt(4000)
    assert np.abs(drawn - [20_000.0, 200_000.0]).mean(axis=0) / scale == pytest.approx(1.0, abs=0.08)
    starved = strata.private_weights((400,), (0.0,), 3.0, 0.5, np.random.default_rng(1))
    assert starved[0] >= 120.0
