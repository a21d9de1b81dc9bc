"""Every mechanism keeps its contract: density, distribution, noise and privacy profile belong to one law.

Each check is a function that the planted faults call as well, and must reject.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad

from dpsub import noise as mechanisms
from dpsub import noise as profiles
from dpsub.noise import Mechanism
from dpsub.streams import stream

ROOT = 7
DRAWS = 200_000
ALPHA = 1e-6  # for each of 6 p-values (the planted faults are not counted): 6e-6 of the suite's 1e-4
NAMES = mechanisms.MECHANISMS.names()
SCALES = [0.3, 1.0, 40.0]
TOO_SMALL = 0.95


def integral(function: Callable[[float], float], low: float, high: float, kinks: list[float]) -> float:
    """Adaptive quadrature piece by piece between the kinks."""
    edges = sorted({low, high, *(kink for kink in kinks if low < kink < high)})
    return math.fsum(quad(function, a, b, epsabs=1e-15, epsrel=1e-13, limit=200)[0] for a, b in pairwise(edges))


def hockey_stick(mechanism: Mechanism, shift: float, epsilon: float) -> float:
    """Integral of max(0, p(z - shift) - exp(epsilon) p(z)) by quadrature of the mechanism's density."""

    def positive_part(z: float) -> float:
        first = float(mechanism.log_density(z - shift))
        second = epsilon + float(mechanism.log_density(z))
        return math.exp(first) * -math.expm1(second - first) if first > second else 0.0

    reach = 40 * mechanism.scale + shift
    # The loss of a symmetric unimodal noise increases, so there is one crossing; bisection finds it.
    left, right = -reach, reach
    for _ in range(200):
        middle = (left + right) / 2
        gain = float(mechanism.log_density(middle - shift)) - float(mechanism.log_density(middle)) - epsilon
        left, right = (left, middle) if gain > 0 else (middle, right)
    grid = list(np.linspace(-reach, reach, 41))
    return integral(positive_part, -reach, reach, [0.0, shift, right, *grid])


def p_values(mechanism: Mechanism, noise: np.ndarray) -> tuple[float, float]:
    """Kolmogorov-Smirnov (finite-sample law) and a scale test, both with exact nulls for any continuous symmetric law.

    Under the null F(|Z|) is uniform after folding, so the sum of -log(2 (1 - F(|Z|))) is Gamma(draws).
    """
    shape = stats.kstest(noise, mechanism.cdf, method="exact").pvalue
    total = -np.log(2 * mechanism.cdf(-np.abs(noise))).sum()
    law = stats.gamma(len(noise))
    return float(shape), float(2 * min(law.cdf(total), law.sf(total)))


def draw(mechanism: Mechanism, test: str) -> np.ndarray:
    rng = stream(ROOT, experiment=test, cell={"mechanism": mechanism.name}, role="noise", replicate=0)
    return mechanism.release(np.zeros(DRAWS), rng)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("name", NAMES)
def test_density_integrates_to_one_and_to_the_variance(name: str, scale: float) -> None:
    mechanism = mechanisms.MECHANISMS.get(name)(scale)
    kinks = list(scale * np.linspace(-40, 40, 41))
    mass = integral(lambda z: math.exp(mechanism.log_density(z)), -60 * scale, 60 * scale, kinks)
    second = integral(lambda z: z * z * math.exp(mechanism.log_density(z)), -60 * scale, 60 * scale, kinks)
    assert mass == pytest.approx(1, rel=1e-12)
    assert second == pytest.approx(mechanism.variance, rel=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_cdf_is_the_integral_of_the_density(name: str) -> None:
    mechanism = mechanisms.MECHANISMS.get(name)(1.5)
    for z in (-6.0, -1.0, 0.0, 0.4, 3.0):
        mass = integral(lambda u: math.exp(mechanism.log_density(u)), -90.0, z, [0.0, *np.linspace(-90, 3, 60)])
        assert float(mechanism.cdf(z)) == pytest.approx(mass, rel=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_noise_is_symmetric(name: str) -> None:
    mechanism = mechanisms.MECHANISMS.get(name)(0.7)
    z = np.linspace(0, 12, 50)
    np.testing.assert_array_equal(mechanism.log_density(z), mechanism.log_density(-z))
    np.testing.assert_allclose(mechanism.cdf(-z), 1 - mechanism.cdf(z), atol=1e-15)


@pytest.mark.parametrize("epsilon", [-4.0, -1.0, -0.2, 0.0, 0.05, 0.5, 1.0, 2.5, 4.0])
@pytest.mark.parametrize(("scale", "sensitivity"), [(1.0, 0.25), (1.0, 1.0), (0.3, 1.2), (40.0, 90.0)])
@pytest.mark.parametrize("name", NAMES)
def test_profile_is_the_hockey_stick_of_the_densities(
    name: str, scale: float, sensitivity: float, epsilon: float
) -> None:
    delta = hockey_stick(mechanisms.MECHANISMS.get(name)(scale), sensitivity, epsilon)
    assert float(profiles.of(name, sensitivity / scale).delta(epsilon)) == pytest.approx(delta, rel=1e-9, abs=1e-14)


@pytest.mark.parametrize("name", NAMES)
def test_the_worst_shift_is_the_sensitivity(name: str) -> None:
    mechanism, profile = mechanisms.MECHANISMS.get(name)(1.0), profiles.of(name, 1.0)
    for shift in (0.2, 0.6, 0.9):
        assert hockey_stick(mechanism, shift, 0.3) < float(profile.delta(0.3))


@pytest.mark.parametrize("name", NAMES)
def test_planted_fault_a_scale_five_percent_too_small_breaks_the_profile(name: str) -> None:
    faulty = mechanisms.MECHANISMS.get(name)(TOO_SMALL)
    assert hockey_stick(faulty, 1.0, 0.5) > float(profiles.of(name, 1.0).delta(0.5)) * 1.01


@pytest.mark.parametrize("name", NAMES)
def test_noise_follows_its_law(name: str) -> None:
    mechanism = mechanisms.MECHANISMS.get(name)(2.5)
    shape, scale = p_values(mechanism, draw(mechanism, "test_noise"))
    assert shape > ALPHA
    assert scale > ALPHA


@pytest.mark.parametrize("name", NAMES)
def test_planted_fault_noise_five_percent_too_small_is_rejected(name: str) -> None:
    mechanism = mechanisms.MECHANISMS.get(name)(2.5)
    shape, scale = p_values(mechanism, TOO_SMALL * draw(mechanism, "test_faulty_noise"))
    assert shape < ALPHA
    assert scale < ALPHA


@pytest.mark.parametrize("name", NAMES)
def test_planted_fault_noise_of_the_other_mechanism_is_rejected(name: str) -> None:
    mechanism = mechanisms.MECHANISMS.get(name)(1.0)
    other = next(member for member in mechanisms.MECHANISMS.members().values() if member.name != name)
    same_variance = other(math.sqrt(mechanism.variance / other(1.0).variance))
    shape, _ = p_values(mechanism, draw(same_variance, "test_other_noise"))
    assert shape < ALPHA


@pytest.mark.parametrize("name", NAMES)
def test_coordinates_are_independent(name: str) -> None:
    """Signs of neighbouring coordinates agree with probability 1/2: an exact binomial null."""
    noise = draw(mechanisms.MECHANISMS.get(name)(1.0), "test_independence").reshape(-1, 2) > 0
    agreements = int((noise[:, 0] == noise[:, 1]).sum())
    assert stats.binomtest(agreements, len(noise)).pvalue > ALPHA


@pytest.mark.parametrize("name", NAMES)
def test_planted_fault_a_reused_stream_is_rejected(name: str) -> None:
    mechanism = mechanisms.MECHANISMS.get(name)(1.0)
    noise = np.stack([draw(mechanism, "test_reused"), draw(mechanism, "test_reused")], axis=1) > 0
    agreements = int((noise[:, 0] == noise[:, 1]).sum())
    assert stats.binomtest(agreements, len(noise)).pvalue < ALPHA
