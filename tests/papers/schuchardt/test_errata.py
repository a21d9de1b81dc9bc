"""One test an erratum of Schuchardt et al.: what errata.md says, shown by a computation."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from fractions import Fraction

import pytest

import dpsub
from dpsub.papers.schuchardt import bounds, evidence
from dpsub.papers.schuchardt.experiments import posthoc, specific


def test_sc1_from_one_record_the_property_allows_far_more_than_100_steps() -> None:
    noise, rate, group, epsilon = 5.0, 1e-3, 16, 2.0
    assert posthoc(1, noise, rate, group, 18_000, epsilon)[1] < 1e-6
    assert posthoc(1, noise, rate, group, 20_000, epsilon)[0] > 1e-6
    # as the released code has it, from the pair of the group
    assert posthoc(group, noise, rate, group, 100, epsilon)[0] > 1e-6
    assert posthoc(group, noise, rate, group, 50, epsilon)[1] < 1e-6
    assert specific(noise, rate, group, 1000, epsilon)[1] < 1e-6


def test_sc1_the_training_need_not_end() -> None:
    noise, rate, group, epsilon = 0.6, 64 / 55_000, 2, 8.0
    assert posthoc(1, noise, rate, group, 6880, epsilon)[1] < 1e-5
    assert specific(noise, rate, group, 6880, epsilon)[1] < 1e-7


def test_sc2_the_printed_weights_add_up_to_less_than_one() -> None:
    n, batch = evidence.N, evidence.BATCH
    total = sum((evidence.printed_weight(i) for i in range(batch + 1)), Fraction(0))
    # a geometric series, exactly
    share = Fraction(1, n - 1)
    series = Fraction(n - 1, n) ** batch * (1 - share ** (batch + 1)) / (1 - share)
    assert total == series < 1
    assert sum(evidence.law_of_draws(i) for i in range(batch + 1)) == 1
    assert sum(evidence.law_of_multisets(i) for i in range(batch + 1)) == 1


def test_sc2_the_laws_are_those_of_all_samples() -> None:
    n, batch = 4, 3
    draws = Counter(sample.count(0) for sample in itertools.product(range(n), repeat=batch))
    multisets = Counter(
        sample.count(0) for sample in itertools.combinations_with_replacement(range(n), batch)
    )
    for copies in range(batch + 1):
        assert evidence.law_of_draws(copies, n, batch) == Fraction(draws[copies], draws.total())
        expected = Fraction(multisets[copies], multisets.total())
        assert evidence.law_of_multisets(copies, n, batch) == expected


def test_sc2_corrected_the_theorem_bounds_independent_draws_and_no_multisets() -> None:
    answer = dpsub.account(
        dpsub.Wr(8), 100, noise_multiplier=2.0, epsilon=5.0, adjacency="substitute"
    )
    assert answer.upper < evidence.corrected(5.0) < evidence.attacked_multisets(5.0)
    first = bounds.printed_components(100, 8)
    second = first * [-1, 1]
    assert bounds.delta(5.0, "gaussian", 1.0, first, second) < answer.lower


def test_sc2_figure_13_is_ten_times_smaller_from_slightly_above_2() -> None:
    weights = bounds.drawn(8, 1 / 100)
    for epsilon, more in ((2.0, False), (2.2, True), (4.0, True), (8.0, True)):
        other = bounds.agnostic(epsilon, "gaussian", 1.0, weights)
        assert (other > 10 * evidence.corrected(epsilon)) is more


@pytest.mark.parametrize("alpha", [2, 10, 50])
def test_sc3_the_divisor_of_the_code_gives_less_than_the_divergence(alpha: int) -> None:
    exact = bounds.renyi(alpha, 5.0, bounds.mixture([-math.inf, 0.0]), bounds.NOTHING)
    assert evidence.transported(alpha, alpha - 1) == pytest.approx(exact, rel=1e-9)
    assert evidence.transported(alpha, alpha + 1) == pytest.approx(
        exact * (alpha - 1) / (alpha + 1), rel=1e-9
    )
