"""Every mechanism keeps its contract: density, distribution, noise and privacy profile belong to
one law.

Each check is a function that the planted faults call as well, and must reject.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad

from dpsub import noise
from dpsub.amplification import amplify
from dpsub.noise import Mechanism
from dpsub.registry import Registry
from dpsub.sampling import Wr
from dpsub.streams import stream

ROOT = 7
DRAWS = 200_000
# for each of 6 p-values (the planted faults are not counted): 6e-6 of the suite's 1e-4
ALPHA = 1e-6
NAMES = noise.REGISTRY.names()
SCALES = [0.3, 1.0, 40.0]
TOO_SMALL = 0.95


def integral(
    function: Callable[[float], float], low: float, high: float, kinks: list[float]
) -> float:
    """Adaptive quadrature, piece by piece between the kinks."""
    edges = sorted({low, high, *(kink for kink in kinks if low < kink < high)})
    return math.fsum(
        quad(function, a, b, epsabs=1e-15, epsrel=1e-13, limit=200)[0] for a, b in pairwise(edges)
    )


def hockey_stick(mechanism: Mechanism, shift: float, epsilon: float) -> float:
    """Integral of max(0, p(z - shift) - exp(epsilon) p(z)) by quadrature of the mechanism's
    density."""

    def positive_part(z: float) -> float:
        first = float(mechanism.log_density(z - shift))
        second = epsilon + float(mechanism.log_density(z))
        return math.exp(first) * -math.expm1(second - first) if first > second else 0.0

    reach = 40 * mechanism.scale + shift
    # The loss of a symmetric unimodal noise increases, so there is one crossing; bisection finds
    # it.
    left, right = -reach, reach
    for _ in range(200):
        middle = (left + right) / 2
        gain = (
            float(mechanism.log_density(middle - shift))
            - float(mechanism.log_density(middle))
            - epsilon
        )
        left, right = (left, middle) if gain > 0 else (middle, right)
    grid = list(np.linspace(-reach, reach, 41))
    return integral(positive_part, -reach, reach, [0.0, shift, right, *grid])


def p_values(mechanism: Mechanism, drawn: np.ndarray) -> tuple[float, float]:
    """Kolmogorov-Smirnov (finite-sample law) and a scale test, both with exact nulls for any
    continuous symmetric law.

    Under the null F(|Z|) is uniform after folding, so the sum of -log(2 (1 - F(|Z|))) is
    Gamma(draws).
    """
    shape = stats.kstest(drawn, mechanism.cdf, method="exact").pvalue
    total = -np.log(2 * mechanism.cdf(-np.abs(drawn))).sum()
    law = stats.gamma(len(drawn))
    return float(shape), float(2 * min(law.cdf(total), law.sf(total)))


def draw(mechanism: Mechanism, test: str) -> np.ndarray:
    rng = stream(
        ROOT, experiment=test, cell={"mechanism": mechanism.name}, role="noise", replicate=0
    )
    return mechanism.release(np.zeros(DRAWS), rng)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("name", NAMES)
def test_density_integrates_to_one_and_to_the_variance(name: str, scale: float) -> None:
    mechanism = noise.REGISTRY.get(name)(scale)
    kinks = list(scale * np.linspace(-40, 40, 41))
    mass = integral(lambda z: math.exp(mechanism.log_density(z)), -60 * scale, 60 * scale, kinks)
    second = integral(
        lambda z: z * z * math.exp(mechanism.log_density(z)), -60 * scale, 60 * scale, kinks
    )
    assert mass == pytest.approx(1, rel=1e-12)
    assert second == pytest.approx(mechanism.variance, rel=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_cdf_is_the_integral_of_the_density(name: str) -> None:
    mechanism = noise.REGISTRY.get(name)(1.5)
    for z in (-6.0, -1.0, 0.0, 0.4, 3.0):
        mass = integral(
            lambda u: math.exp(mechanism.log_density(u)), -90.0, z, [0.0, *np.linspace(-90, 3, 60)]
        )
        assert float(mechanism.cdf(z)) == pytest.approx(mass, rel=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_noise_is_symmetric(name: str) -> None:
    mechanism = noise.REGISTRY.get(name)(0.7)
    z = np.linspace(0, 12, 50)
    np.testing.assert_array_equal(mechanism.log_density(z), mechanism.log_density(-z))
    np.testing.assert_allclose(mechanism.cdf(-z), 1 - mechanism.cdf(z), atol=1e-15)


@pytest.mark.parametrize("epsilon", [-4.0, -1.0, -0.2, 0.0, 0.05, 0.5, 1.0, 2.5, 4.0])
@pytest.mark.parametrize(
    ("scale", "sensitivity"), [(1.0, 0.25), (1.0, 1.0), (0.3, 1.2), (40.0, 90.0)]
)
@pytest.mark.parametrize("name", NAMES)
def test_profile_is_the_hockey_stick_of_the_densities(
    name: str, scale: float, sensitivity: float, epsilon: float
) -> None:
    mechanism = noise.REGISTRY.get(name)(scale)
    delta = hockey_stick(mechanism, sensitivity, epsilon)
    assert float(mechanism.profile(sensitivity).delta(epsilon)) == pytest.approx(
        delta, rel=1e-9, abs=1e-14
    )


@pytest.mark.parametrize("name", NAMES)
def test_the_worst_shift_is_the_sensitivity(name: str) -> None:
    mechanism, profile = noise.REGISTRY.get(name)(1.0), noise.of(name, 1.0)
    for shift in (0.2, 0.6, 0.9):
        assert hockey_stick(mechanism, shift, 0.3) < float(profile.delta(0.3))


@pytest.mark.parametrize("name", NAMES)
def test_planted_fault_a_scale_five_percent_too_small_breaks_the_profile(name: str) -> None:
    faulty = noise.REGISTRY.get(name)(TOO_SMALL)
    assert hockey_stick(faulty, 1.0, 0.5) > float(noise.of(name, 1.0).delta(0.5)) * 1.01


@pytest.mark.parametrize("name", NAMES)
def test_noise_follows_its_law(name: str) -> None:
    mechanism = noise.REGISTRY.get(name)(2.5)
    shape, scale = p_values(mechanism, draw(mechanism, "test_noise"))
    assert shape > ALPHA
    assert scale > ALPHA


@pytest.mark.parametrize("name", NAMES)
def test_planted_fault_noise_five_percent_too_small_is_rejected(name: str) -> None:
    mechanism = noise.REGISTRY.get(name)(2.5)
    shape, scale = p_values(mechanism, TOO_SMALL * draw(mechanism, "test_faulty_noise"))
    assert shape < ALPHA
    assert scale < ALPHA


@pytest.mark.parametrize("name", NAMES)
def test_planted_fault_noise_of_the_other_mechanism_is_rejected(name: str) -> None:
    mechanism = noise.REGISTRY.get(name)(1.0)
    other = next(member for member in noise.REGISTRY.members().values() if member.name != name)
    same_variance = other(math.sqrt(mechanism.variance / other(1.0).variance))
    shape, _ = p_values(mechanism, draw(same_variance, "test_other_noise"))
    assert shape < ALPHA


@pytest.mark.parametrize("name", NAMES)
def test_coordinates_are_independent(name: str) -> None:
    """Signs of neighbouring coordinates agree with probability 1/2: an exact binomial null."""
    signs = draw(noise.REGISTRY.get(name)(1.0), "test_independence").reshape(-1, 2) > 0
    agreements = int((signs[:, 0] == signs[:, 1]).sum())
    assert stats.binomtest(agreements, len(signs)).pvalue > ALPHA


@pytest.mark.parametrize("name", NAMES)
def test_planted_fault_a_reused_stream_is_rejected(name: str) -> None:
    mechanism = noise.REGISTRY.get(name)(1.0)
    signs = np.stack([draw(mechanism, "test_reused"), draw(mechanism, "test_reused")], axis=1) > 0
    agreements = int((signs[:, 0] == signs[:, 1]).sum())
    assert stats.binomtest(agreements, len(signs)).pvalue < ALPHA


def test_a_noise_is_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The example of docs/adding.md, put into the package as it stands, is found and keeps the
    contract."""
    page = (Path(__file__).parents[2] / "docs/adding.md").read_text(encoding="utf-8")
    example = page.split("```python\n# src/dpsub/noise/logistic.py\n")[1].split("```")[0]
    (tmp_path / "logistic.py").write_text(example, encoding="utf-8")
    monkeypatch.setattr(noise, "__path__", [*noise.__path__, str(tmp_path)])
    monkeypatch.setattr(noise, "REGISTRY", Registry("dpsub.noise", Mechanism, "mechanism"))
    monkeypatch.setitem(sys.modules, "dpsub.noise.logistic", None)
    del sys.modules["dpsub.noise.logistic"]
    assert "logistic" in noise.REGISTRY.names()
    test_density_integrates_to_one_and_to_the_variance("logistic", 1.5)
    test_cdf_is_the_integral_of_the_density("logistic")
    test_noise_is_symmetric("logistic")
    test_the_worst_shift_is_the_sensitivity("logistic")
    for epsilon in (-4.0, -0.2, 0.0, 0.5, 2.5):
        test_profile_is_the_hockey_stick_of_the_densities("logistic", 0.3, 1.2, epsilon)
    amplified = amplify(Wr(3).multiplicity_law(10), noise.of("logistic", 1.0), 0.5)
    assert 0 < float(amplified.delta_amplified) < float(amplified.delta)
