"""Amplification: Table 2 by a second road, categories, inversion, refusals."""

from __future__ import annotations

import math
from math import comb

import numpy as np
import pytest

from dpsub import noise, sampling
from dpsub.amplification import amplified_epsilon, amplify, base_epsilon, category
from dpsub.errors import ArgumentError
from dpsub.noise import GaussianProfile, LaplaceProfile
from dpsub.sampling.laws import MultiplicityLaw

N, B, M = 20, 9, 6


def binomial(count: int, trials: int, rate: float) -> float:
    return comb(trials, count) * rate**count * (1 - rate) ** (trials - count)


# Table 2 as printed, term by term, with u copies.
PRINTED = {
    "poisson": lambda u: M / N if u == 1 else 0.0,
    "wor": lambda u: M / N if u == 1 else 0.0,
    "wr": lambda u: binomial(u, M, 1 / N),
    "must_wo": lambda u: sum(
        binomial(j, B, 1 / N) * comb(j, u) * comb(B - j, M - u) / comb(B, M) for j in range(u, B + 1)
    ),
    "must_ow": lambda u: B / N * binomial(u, M, 1 / B),
    "must_ww": lambda u: sum(binomial(j, B, 1 / N) * binomial(u, M, j / B) for j in range(1, B + 1)),
}


@pytest.mark.parametrize("mechanism", noise.REGISTRY.names())
@pytest.mark.parametrize("scheme", sorted(PRINTED))
def test_table_2_by_its_printed_sums(scheme: str, mechanism: str) -> None:
    law = sampling.of_sizes(scheme, n=N, m=M, b=B).multiplicity_law(N)
    profile = noise.of(mechanism, 0.8)
    weights = [PRINTED[scheme](u) for u in range(1, M + 1)]
    for epsilon in (0.0, 0.1, 1.0, 3.0):
        result = amplify(law, profile, epsilon)
        expected = sum(w * float(profile.group(u).delta(epsilon)) for u, w in enumerate(weights, start=1))
        assert float(result.delta_amplified) == pytest.approx(expected, rel=1e-12)
        assert float(result.epsilon_amplified) == pytest.approx(math.log(1 + sum(weights) * math.expm1(epsilon)))
        assert result.eta == pytest.approx(sum(weights), rel=1e-13)


def test_certain_inclusion_changes_nothing() -> None:
    law, epsilon = MultiplicityLaw(np.array([-np.inf, 0.0])), np.linspace(0, 6, 601)
    result = amplify(law, GaussianProfile(1.0), epsilon)
    np.testing.assert_array_equal(result.epsilon_amplified, epsilon)
    np.testing.assert_array_equal(result.log_delta_amplified, result.log_delta)
    np.testing.assert_array_equal(base_epsilon(epsilon, 1.0), epsilon)


def test_deep_tails_stay_finite_in_log_space() -> None:
    law = MultiplicityLaw.single(1e-3)
    result = amplify(law, GaussianProfile(0.1), 20.0)
    assert float(result.delta_amplified) == 0.0
    assert float(result.log_delta_amplified) == pytest.approx(float(result.log_delta) + math.log(1e-3), rel=1e-14)


def test_rare_large_groups_are_not_dropped() -> None:
    """One copy gives a delta of 1e-73, so 50 copies with probability 1e-60 decide."""
    log_pmf = np.full(51, -np.inf)
    log_pmf[0], log_pmf[1], log_pmf[50] = math.log(0.9), math.log(0.1), math.log(1e-60)
    result = amplify(MultiplicityLaw(log_pmf), GaussianProfile(0.25), 4.5)
    expected = 1e-60 * float(GaussianProfile(12.5).delta(4.5))
    assert float(result.delta_amplified) == pytest.approx(expected, rel=1e-12)


def test_a_late_term_of_relative_size_1e_10_still_counts() -> None:
    log_pmf = np.full(61, math.log(1e-30))  # all counts possible, so that the last one is in a later block
    log_pmf[0], log_pmf[1], log_pmf[60] = math.log(0.5), math.log(0.5), math.log(1e-10)
    profile = GaussianProfile(1.0)
    value = float(amplify(MultiplicityLaw(log_pmf), profile, 0.1).delta_amplified)
    late = float(profile.group(60).delta(0.1)) * 1e-10
    assert value - 0.5 * float(profile.delta(0.1)) == pytest.approx(late, rel=1e-5)


@pytest.mark.parametrize("mechanism", noise.REGISTRY.names())
def test_blocks_do_not_matter(mechanism: str) -> None:
    """Many orders (narrow blocks), one order (wide blocks) and one plain sum agree."""
    law = sampling.of_sizes("wr", n=1000, m=900).multiplicity_law(1000)
    profile, epsilon = noise.of(mechanism, 0.25), np.linspace(0, 6, 601)
    together = amplify(law, profile, epsilon).log_delta_amplified
    alone = np.array([float(amplify(law, profile, item).log_delta_amplified) for item in epsilon])
    np.testing.assert_allclose(together, alone, rtol=1e-14)
    occurrences = np.arange(1, law.log_pmf.size)
    for item, value in zip(epsilon[::100], together[::100], strict=True):
        terms = law.log_pmf[1:] + profile.group_log_delta(item, occurrences)
        assert value == pytest.approx(np.logaddexp.reduce(terms), rel=1e-13)


def test_printed_numbers_of_table_3_last_row() -> None:
    """E9: the last row's delta' as it should read (n = 1000, b = 500, m = 400, Gaussian, ratio 1, MUST.WW)."""
    law = sampling.of_sizes("must_ww", n=1000, b=500, m=400).multiplicity_law(1000)
    result = amplify(law, GaussianProfile(1.0), np.array([0.05, 0.5, 1, 2, 3, 4.5]))
    assert np.round(result.delta_amplified, 3).tolist() == [0.129, 0.105, 0.083, 0.053, 0.037, 0.023]
    laplace = amplify(law, LaplaceProfile(1.0), np.array([0.05, 0.5, 1, 2, 3, 4.5]))
    assert np.round(laplace.delta_amplified, 3).tolist() == [0.123, 0.094, 0.052, 0.018, 0.006, 0.001]


def test_epsilon_round_trip_at_extremes() -> None:
    for eta in (1e-12, 1e-3, 0.5, 1 - 1e-12, 1.0):
        for epsilon in (0.0, 1e-9, 1e-3, 1.0, 29.9, 30.1, 699.0, 701.0, 5000.0):
            back = float(base_epsilon(amplified_epsilon(epsilon, eta), eta))
            assert back == pytest.approx(epsilon, rel=1e-12)


def test_large_epsilons_neither_overflow_nor_jump() -> None:
    around = amplified_epsilon(np.array([700 - 1e-9, 700 + 1e-9]), 1e-3)
    assert np.diff(around)[0] == pytest.approx(2e-9, rel=1e-3)
    assert float(amplified_epsilon(5000.0, 0.5)) == pytest.approx(5000 + math.log(0.5))
    assert float(base_epsilon(5000.0, 0.5)) == pytest.approx(5000 - math.log(0.5))
    lift = math.exp(730 + math.log(1e-320))
    assert float(amplified_epsilon(730.0, 1e-320)) == pytest.approx(math.log1p(lift), rel=1e-12)
    assert float(base_epsilon(1e-3, 1e-320)) == pytest.approx(math.log(math.expm1(1e-3)) - math.log(1e-320))


CASES = [
    ((1.0, 0.1, 0.5, 0.05), "strong"),
    ((1.0, 0.1, 0.5, 0.1), "weak_type_1"),
    ((1.0, 0.1, 0.5, 0.2), "weak_type_1"),
    ((1.0, 0.0, 0.5, 0.2), "weak_type_1"),
    ((1.0, 0.1, 1.0, 0.05), "weak_type_2"),
    ((1.0, 0.1, 1.5, 0.05), "weak_type_2"),
    ((1.0, 0.1, 1.0, 0.1), "dilution"),
    ((1.0, 0.1, 2.0, 0.2), "dilution"),
    ((1.0, 0.0, 1.0, 0.0), "dilution"),
    ((1.0, 0.0, 0.5, 0.0), "boundary"),
]


@pytest.mark.parametrize(("point", "expected"), CASES)
def test_categories(point: tuple[float, float, float, float], expected: str) -> None:
    assert category(*point) == expected


def test_bad_arguments_are_named() -> None:
    law, profile = MultiplicityLaw.single(0.4), GaussianProfile(1.0)
    with pytest.raises(ArgumentError, match="epsilon must be at least 0"):
        amplify(law, profile, [0.1, -0.1])
    with pytest.raises(ArgumentError, match="epsilon must be finite"):
        amplify(law, profile, math.inf)
    with pytest.raises(ArgumentError, match="include a record with positive probability"):
        amplify(MultiplicityLaw(np.array([0.0, -np.inf])), profile, 1.0)
    with pytest.raises(ArgumentError, match="eta must be above 0"):
        base_epsilon(0.1, 0.0)
    with pytest.raises(ArgumentError, match="eta must be at most 1"):
        amplified_epsilon(0.1, 1.1)
    with pytest.raises(ArgumentError, match="delta must be at most 1"):
        category(1.0, 1.5, 0.5, 0.1)
