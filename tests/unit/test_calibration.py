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
from dpsub.noise import Gaussian, GaussianProfile, Laplace
from dpsub.noise.gaussian import CLASSICAL_BELOW

GRID = [(e, d) for e in (0.0, 1e-6, 0.01, 0.5, 1.0, 4.0, 30.0, 500.0) for d in (1e-300, 1e-20, 1e-5, 0.1, 0.5, 0.99)]


@pytest.mark.parametrize(("epsilon", "delta"), GRID)
def test_analytic_scale_is_safe_and_the_smallest(epsilon: float, delta: float) -> None:
    scale = Gaussian.calibrated(epsilon, delta, 2.0).scale
    assert float(GaussianProfile(2.0 / scale).log_delta(epsilon)) <= math.log(delta)
    assert float(GaussianProfile(2.0 / (scale * (1 - 1e-11))).log_delta(epsilon)) > math.log(delta)


def test_planted_fault_a_scale_five_percent_too_small_breaks_the_target() -> None:
    for epsilon, delta in GRID:
        scale = 0.95 * Gaussian.calibrated(epsilon, delta, 1.0).scale
        assert float(GaussianProfile(1 / scale).log_delta(epsilon)) > math.log(delta)


def test_analytic_scale_at_epsilon_zero_is_a_closed_form() -> None:
    for delta in (1e-12, 1e-3, 0.6):
        expected = 1 / (2 * math.sqrt(2) * float(erfinv(delta)))
        assert Gaussian.calibrated(0.0, delta, 1.0).scale == pytest.approx(expected, rel=1e-13)


def test_analytic_scale_inverts_the_profile_both_ways() -> None:
    for ratio in (0.01, 0.3, 1.0, 5.0):
        for epsilon in (0.0, 0.2, 1.0, 6.0):
            delta = float(GaussianProfile(ratio).delta(epsilon))
            if 0 < delta < 1:
                assert Gaussian.calibrated(epsilon, delta, 1.0).scale == pytest.approx(1 / ratio, rel=1e-12)


def test_scales_are_proportional_to_the_sensitivity() -> None:
    for noise in (Gaussian.calibrated, Gaussian.classical, Laplace.calibrated):
        assert noise(0.5, 1e-3, 6.0).scale == pytest.approx(6 * noise(0.5, 1e-3, 1.0).scale, rel=1e-14)


def test_the_laplace_scale_is_safe_and_the_smallest() -> None:
    for epsilon, delta in ((0.0, 1e-3), (0.5, 0.0), (1.0, 1e-5), (30.0, 0.9)):
        scale = Laplace.calibrated(epsilon, delta, 2.0).scale
        assert float(Laplace(scale).profile(2.0).delta(epsilon)) <= delta
        assert float(Laplace(scale * (1 - 1e-11)).profile(2.0).delta(epsilon)) > delta
    with pytest.raises(ArgumentError, match="epsilon = 0 and delta = 0; raise one of them"):
        Laplace.calibrated(0.0, 0.0, 1.0)


def test_less_epsilon_or_delta_needs_more_noise() -> None:
    by_epsilon = [Gaussian.calibrated(e, 1e-5, 1.0).scale for e in np.linspace(0, 5, 30)]
    by_delta = [Gaussian.calibrated(0.5, d, 1.0).scale for d in np.geomspace(1e-200, 0.9, 30)]
    assert (np.diff(by_epsilon) < 0).all()
    assert (np.diff(by_delta) < 0).all()


def test_classical_scale_is_its_formula_and_safe_where_valid() -> None:
    assert Gaussian.classical(0.5, 0.01, 3.0).scale == pytest.approx(3 * math.sqrt(2 * math.log(125)) / 0.5)
    for epsilon in (0.01, 0.3, math.nextafter(CLASSICAL_BELOW, 0.0)):
        for delta in (1e-12, 1e-5, 1e-3, 0.1):
            classical = Gaussian.classical(epsilon, delta, 1.0).scale
            assert classical >= Gaussian.calibrated(epsilon, delta, 1.0).scale


def test_the_classical_condition_matters() -> None:
    # far beyond its condition the classical scale does break its promise
    scale = Gaussian.classical(40.0, 1e-5, 1.0).scale
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
        sigma = Gaussian.classical(epsilon, 1 / 1000, sensitivity).scale
        delta = float(amplify(law, GaussianProfile(sensitivity / sigma), epsilon).delta_amplified)
        assert float(f"{delta:.{1 if scheme == 'wor' else 2}e}") == value


@pytest.mark.parametrize("scale", [Gaussian.calibrated, Gaussian.classical])
def test_bad_arguments_are_named(scale: Callable[[float, float, float], Gaussian]) -> None:
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
        Gaussian.classical(0.0, 0.1, 1.0)
