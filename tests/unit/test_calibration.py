"""Scales of Gaussian noise: the classical formula, its condition, and the exact scale."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy.special import erfinv

from dpsub import sampling
from dpsub.amplification import amplify, base_epsilon
from dpsub.errors import ArgumentError
from dpsub.noise import GaussianProfile
from dpsub.noise.gaussian import analytic_gaussian_scale, classical_gaussian_scale, classical_is_valid

GRID = [(e, d) for e in (0.0, 1e-6, 0.01, 0.5, 1.0, 4.0, 30.0, 500.0) for d in (1e-300, 1e-20, 1e-5, 0.1, 0.5, 0.99)]


@pytest.mark.parametrize(("epsilon", "delta"), GRID)
def test_analytic_scale_is_safe_and_the_smallest(epsilon: float, delta: float) -> None:
    scale = analytic_gaussian_scale(epsilon, delta, 2.0)
    assert float(GaussianProfile(2.0 / scale).log_delta(epsilon)) <= math.log(delta)
    assert float(GaussianProfile(2.0 / (scale * (1 - 1e-11))).log_delta(epsilon)) > math.log(delta)


def test_planted_fault_a_scale_five_percent_too_small_breaks_the_target() -> None:
    for epsilon, delta in GRID:
        scale = 0.95 * analytic_gaussian_scale(epsilon, delta, 1.0)
        assert float(GaussianProfile(1 / scale).log_delta(epsilon)) > math.log(delta)


def test_analytic_scale_at_epsilon_zero_is_a_closed_form() -> None:
    for delta in (1e-12, 1e-3, 0.6):
        expected = 1 / (2 * math.sqrt(2) * float(erfinv(delta)))
        assert analytic_gaussian_scale(0.0, delta, 1.0) == pytest.approx(expected, rel=1e-13)


def test_analytic_scale_inverts_the_profile_both_ways() -> None:
    for ratio in (0.01, 0.3, 1.0, 5.0):
        for epsilon in (0.0, 0.2, 1.0, 6.0):
            delta = float(GaussianProfile(ratio).delta(epsilon))
            if 0 < delta < 1:
                assert analytic_gaussian_scale(epsilon, delta, 1.0) == pytest.approx(1 / ratio, rel=1e-12)


def test_scales_are_proportional_to_the_sensitivity() -> None:
    for scale in (analytic_gaussian_scale, classical_gaussian_scale):
        assert scale(0.5, 1e-3, 6.0) == pytest.approx(6 * scale(0.5, 1e-3, 1.0), rel=1e-14)


def test_less_epsilon_or_delta_needs_more_noise() -> None:
    by_epsilon = [analytic_gaussian_scale(e, 1e-5, 1.0) for e in np.linspace(0, 5, 30)]
    by_delta = [analytic_gaussian_scale(0.5, d, 1.0) for d in np.geomspace(1e-200, 0.9, 30)]
    assert (np.diff(by_epsilon) < 0).all()
    assert (np.diff(by_delta) < 0).all()


def test_classical_scale_is_its_formula_and_safe_where_valid() -> None:
    assert classical_gaussian_scale(0.5, 0.01, 3.0) == pytest.approx(3 * math.sqrt(2 * math.log(125)) / 0.5)
    for epsilon in (0.01, 0.3, 0.999):
        for delta in (1e-12, 1e-5, 1e-3, 0.1):
            assert classical_is_valid(epsilon)
            classical = classical_gaussian_scale(epsilon, delta, 1.0)
            assert classical >= analytic_gaussian_scale(epsilon, delta, 1.0)


def test_classical_condition_is_strict_and_matters() -> None:
    assert [classical_is_valid(e) for e in (0.5, math.nextafter(1.0, 0.0), 1.0, 1.46)] == [True, True, False, False]
    # Far beyond its condition the classical scale does break its promise: the flag is not a formality.
    scale = classical_gaussian_scale(40.0, 1e-5, 1.0)
    assert float(GaussianProfile(1 / scale).delta(40.0)) > 1e-5


def test_consistent_values_of_the_regression_experiment() -> None:
    """E3 and E5: delta' with one theta and one convention (n = 1000, b = 200, m = 100, C = 3)."""
    expected = {
        ("wor", 0.01): 5.0e-8,
        ("wor", 0.001): 5.0e-9,
        ("wr", 0.01): 3.55e-6,
        ("must_ow", 0.01): 2.87e-5,
        ("must_ww", 0.01): 3.89e-5,
        ("wr", 0.001): 3.54e-7,
        ("must_ow", 0.001): 2.86e-6,
        ("must_ww", 0.001): 3.87e-6,
    }
    for (scheme, target), value in expected.items():
        law = sampling.of_sizes(scheme, n=1000, b=200, m=100).multiplicity_law(1000)
        epsilon = float(base_epsilon(target, law.eta))
        sensitivity = 3 / 1000
        sigma = classical_gaussian_scale(epsilon, 1 / 1000, sensitivity)
        delta = float(amplify(law, GaussianProfile(sensitivity / sigma), epsilon).delta_amplified)
        assert float(f"{delta:.{1 if scheme == 'wor' else 2}e}") == value


@pytest.mark.parametrize("scale", [analytic_gaussian_scale, classical_gaussian_scale])
def test_bad_arguments_are_named(scale: Callable[[float, float, float], float]) -> None:
    with pytest.raises(ArgumentError, match="epsilon must be"):
        scale(-0.1, 0.1, 1.0)
    with pytest.raises(ArgumentError, match="delta must be below 1"):
        scale(0.1, 1.0, 1.0)
    with pytest.raises(ArgumentError, match="delta must be above 0"):
        scale(0.1, 0.0, 1.0)
    with pytest.raises(ArgumentError, match="sensitivity must be above 0"):
        scale(0.1, 0.1, 0.0)
    with pytest.raises(ArgumentError, match="epsilon must be finite"):
        scale(math.nan, 0.1, 1.0)


def test_classical_needs_a_positive_epsilon() -> None:
    with pytest.raises(ArgumentError, match="epsilon must be above 0"):
        classical_gaussian_scale(0.0, 0.1, 1.0)
    with pytest.raises(ArgumentError, match="epsilon must be above 0"):
        classical_is_valid(0.0)
