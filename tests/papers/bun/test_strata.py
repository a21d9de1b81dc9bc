"""Guarantees a stratum, variances of allocations, and private weights of strata."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpsub.amplification.survey import rates
from dpsub.papers.bun import strata


def test_sampling_variances_of_two_allocations() -> None:
    scenario = strata.Scenario((400, 300, 200, 100), (1.0, 2.0, 5.0, 20.0))
    assert scenario.sampling_variance((10, 15, 25, 50)) == pytest.approx(0.1134, abs=5e-5)
    assert scenario.sampling_variance((40, 30, 20, 10)) == pytest.approx(0.4194, abs=5e-5)


def test_certificate_by_hand_its_inverse_and_public_base() -> None:
    # one of one record drawn per stratum: log(1 + (exp(2 base) - 1)/2), and base for each unit of
    # change
    for change in (0, 3):
        expected = math.log((1 + math.e) / 2) + 0.5 * change
        assert strata.certificate((1, 0), (1, 3), change, 0.5) == pytest.approx(expected, rel=1e-12)
    base = strata.base_for_certificate((5, 8), (50, 40), 2, 1.0)
    assert strata.certificate((5, 8), (50, 40), 2, base) == pytest.approx(1.0, abs=1e-9)
    assert base >= 1.0 / 4
    assert rates.amplified(0.2, strata.base_for_public((5, 8), (50, 40), 1.0)) == pytest.approx(1.0)


def test_the_sensitivity_of_private_weights_is_attained_and_never_exceeded() -> None:
    """N S moves by at most B sqrt(N) when one value in [0, B] is substituted; from all equal to one
    at B it does."""

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
    counts, deviations = (400, 100), (50.0, 2000.0)
    rng = np.random.default_rng(7)
    drawn = np.array(
        [strata.private_weights(counts, deviations, 3.0, 0.5, rng) for _ in range(4000)]
    )
    scale = np.array([120.0, 60.0])  # B sqrt(N) / epsilon
    assert (drawn >= scale).all()
    # mean absolute deviation of Laplace noise is its scale; standard error 1/sqrt(4000)
    assert np.abs(drawn - [20_000.0, 200_000.0]).mean(axis=0) / scale == pytest.approx(
        1.0, abs=0.08
    )
    starved = strata.private_weights((400,), (0.0,), 3.0, 0.5, np.random.default_rng(1))
    assert starved[0] >= 120.0
