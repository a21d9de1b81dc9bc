"""Privacy profiles: values, symmetries, tails, inverses and refusals."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import ndtr

from dpsub import noise
from dpsub.errors import ArgumentError, NumericalError
from dpsub.noise import BlackBoxGroups, GaussianProfile, LaplaceProfile
from dpsub.noise.base import round_up

RATIOS = [1e-3, 0.025, 0.25, 1.0, 3.0, 20.0]
EVERY = [(name, ratio) for name in noise.REGISTRY.names() for ratio in RATIOS]


def test_members_are_found_by_name() -> None:
    assert noise.REGISTRY.names() == ("gaussian", "laplace")
    assert noise.of("gaussian", 2) == GaussianProfile(2.0)


def test_gaussian_equals_the_printed_form_where_that_is_accurate() -> None:
    ratio, epsilon = 1.0, np.linspace(-3, 3, 61)
    printed = ndtr(ratio / 2 - epsilon / ratio) - np.exp(epsilon) * ndtr(-ratio / 2 - epsilon / ratio)
    np.testing.assert_allclose(GaussianProfile(ratio).delta(epsilon), printed, rtol=2e-13)


def test_gaussian_tail_of_the_specification() -> None:
    assert float(GaussianProfile(0.25).delta(4.5)) == pytest.approx(1.27e-73, rel=5e-3)


def test_gaussian_at_zero_is_the_total_variation() -> None:
    for ratio in RATIOS:
        expected = math.erf(ratio / (2 * math.sqrt(2)))
        assert float(GaussianProfile(ratio).delta(0)) == pytest.approx(expected, rel=1e-14)


def test_gaussian_log_delta_survives_the_underflow_of_delta() -> None:
    profile, epsilon = GaussianProfile(0.1), 20.0
    t = epsilon / 0.1 - 0.05
    leading = -t * t / 2 - math.log(math.sqrt(2 * math.pi)) + math.log(0.1 / (t * (t + 0.1)))
    assert float(profile.delta(epsilon)) == 0.0
    assert float(profile.log_delta(epsilon)) == pytest.approx(leading, rel=1e-8)


@pytest.mark.parametrize("epsilon", [-30.0, -2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0])
def test_laplace_is_the_largest_of_three_tests(epsilon: float) -> None:
    if epsilon < -1:
        expected = 1 - math.exp(epsilon)
    elif epsilon < 1:
        expected = 1 - math.exp((epsilon - 1) / 2)
    else:
        expected = 0.0
    assert float(LaplaceProfile(1.0).delta(epsilon)) == pytest.approx(expected, rel=1e-14, abs=0)


def test_the_printed_laplace_formula_is_too_small_below_minus_theta() -> None:
    epsilon, theta = -3.0, 1.0
    printed = -math.expm1((epsilon - theta) / 2)
    assert float(LaplaceProfile(theta).delta(epsilon)) > printed + 0.08


@pytest.mark.parametrize(("name", "ratio"), EVERY)
def test_mirror_symmetry(name: str, ratio: float) -> None:
    epsilon = np.linspace(0, 6, 40)
    profile = noise.of(name, ratio)
    mirrored = -np.expm1(-epsilon) + np.exp(-epsilon) * profile.delta(epsilon)
    np.testing.assert_allclose(profile.delta(-epsilon), mirrored, rtol=1e-13)


@pytest.mark.parametrize(("name", "ratio"), EVERY)
def test_profile_decreases_within_its_limits(name: str, ratio: float) -> None:
    delta = noise.of(name, ratio).delta(np.linspace(-8, 8, 401))
    assert (np.diff(delta) <= 0).all()
    assert delta.min() >= 0
    assert delta.max() <= 1


@pytest.mark.parametrize(("name", "ratio"), EVERY)
def test_log_delta_is_the_logarithm(name: str, ratio: float) -> None:
    epsilon = np.linspace(-8, 0.99 * min(ratio, 8), 101)
    profile = noise.of(name, ratio)
    np.testing.assert_allclose(np.exp(profile.log_delta(epsilon)), profile.delta(epsilon), rtol=1e-12)


def test_branches_of_the_gaussian_profile_meet() -> None:
    for ratio in (1.0, 2.0, 9.0):
        for edge in (0.0, ratio * ratio / 2, ratio * (ratio + ratio / 2), 9 * ratio + ratio**2 / 2):
            profile = GaussianProfile(ratio)
            below, above = (float(profile.log_delta(edge + step)) for step in (-1e-9, 1e-9))
            slope = -(1 + edge / ratio + ratio) / ratio
            assert abs(below - above) < 4e-9 * abs(slope)
            np.testing.assert_allclose(
                profile.log_delta(edge), GaussianProfile(ratio * (1 + 1e-15)).log_delta(edge), rtol=1e-12
            )


@pytest.mark.parametrize(("name", "ratio"), EVERY)
def test_inverse_returns_and_keeps_to_the_safe_side(name: str, ratio: float) -> None:
    profile = noise.of(name, ratio)
    target = np.array([1e-300, 1e-30, 1e-10, 1e-5, 1e-3, 0.1, 0.5, 0.9, 0.999, 1 - 1e-9])
    epsilon = profile.epsilon(target)
    assert epsilon.shape == target.shape
    assert (np.diff(epsilon) <= 0).all()
    assert (profile.log_delta(epsilon) <= np.log(target) + 1e-15).all()
    # A step below the answer breaks the condition: the answer is the smallest one, up to rounding.
    # (Not visible where the step moves delta by less than the spacing of doubles near 1, or Laplace delta is 1e-16.)
    visible = (target < 0.9999) & (target > (1e-16 if name == "laplace" else 0))
    step = 1e-9 * np.maximum(np.abs(epsilon), 1e-3 * ratio)
    assert (profile.delta(epsilon - step)[visible] > target[visible]).all()


@pytest.mark.parametrize(("name", "ratio"), [(name, ratio) for name, ratio in EVERY if ratio <= 3])
def test_inverse_at_the_edges(name: str, ratio: float) -> None:
    profile = noise.of(name, ratio)
    assert float(profile.epsilon(float(profile.delta(0.0)))) == pytest.approx(0, abs=1e-14)
    assert float(profile.epsilon(0.0)) == (math.inf if name == "gaussian" else ratio)
    with pytest.raises(ArgumentError, match="delta must be below 1"):
        profile.epsilon(1.0)
    with pytest.raises(ArgumentError, match="delta must be at least 0"):
        profile.epsilon(-0.1)


@pytest.mark.parametrize("name", noise.REGISTRY.names())
def test_group_profiles_agree_on_both_roads(name: str) -> None:
    profile, epsilon = noise.of(name, 0.25), np.array([0.05, 0.5, 1.7, 3.0])
    table = profile.group_log_delta(epsilon, np.arange(1, 30)[:, np.newaxis])
    for occurrences in range(1, 30):
        np.testing.assert_array_equal(table[occurrences - 1], profile.group(occurrences).log_delta(epsilon))


@pytest.mark.parametrize("name", noise.REGISTRY.names())
@pytest.mark.parametrize("occurrences", [1, 2, 5, 40])
def test_black_box_is_never_below_white_box(name: str, occurrences: int) -> None:
    profile, epsilon = noise.of(name, 0.5), np.linspace(0, 8, 81)
    white = profile.group(occurrences).delta(epsilon)
    black = np.exp(BlackBoxGroups(profile).log_bound(epsilon, occurrences))
    assert (black >= white * (1 - 1e-12)).all()
    assert black[0] == pytest.approx(occurrences * float(profile.delta(0)))
    if occurrences == 1:
        np.testing.assert_allclose(black, white, rtol=1e-13)


def test_black_box_formula_and_its_range() -> None:
    profile = GaussianProfile(1.0)
    by_hand = math.expm1(2.0) / math.expm1(0.5) * float(profile.delta(0.5))
    found = BlackBoxGroups(profile)
    assert float(found.log_bound(2.0, 4)) == pytest.approx(math.log(by_hand), rel=1e-13)
    assert float(np.exp(found.group_log_delta(2.0, 4))) == pytest.approx(min(1.0, by_hand), rel=1e-13)
    assert math.isfinite(float(found.log_bound(2000.0, 3)))


def test_shapes_follow_the_argument() -> None:
    for name in noise.REGISTRY.names():
        profile = noise.of(name, 1.0)
        assert np.ndim(profile.delta(0.3)) == 0
        assert profile.delta(np.full((2, 3), -0.3)).shape == (2, 3)
        assert profile.epsilon(np.full((2, 1), 0.01)).shape == (2, 1)
        assert profile.delta(np.array([])).shape == (0,)


@pytest.mark.parametrize("ratio", [0.0, -1.0, math.inf, math.nan, "1"])
def test_ratio_is_validated_at_construction(ratio: object) -> None:
    with pytest.raises(ArgumentError, match="ratio must be"):
        LaplaceProfile(ratio)  # type: ignore[arg-type]


def test_bad_arguments_are_named() -> None:
    with pytest.raises(ArgumentError, match="epsilon must be finite"):
        GaussianProfile(1.0).delta([0.0, math.nan])
    with pytest.raises(ArgumentError, match="occurrences must be at least 1, got occurrences = 0"):
        GaussianProfile(1.0).group(0)
    with pytest.raises(ArgumentError, match="did you mean 'gaussian'"):
        noise.of("gausian", 1.0)


def test_extreme_arguments_give_no_nan() -> None:
    epsilon = np.array([-1.7e308, -1e6, -700.0, -1e-300, 0.0, 1e-300, 1e3, 1e8, 1e200, 1.7e308])
    for name in noise.REGISTRY.names():
        for ratio in (1e-150, 1e-8, 1.0, 1e3, 1e8, 1e308):
            profile = noise.of(name, ratio)
            assert not np.isnan(profile.group_log_delta(epsilon[:, np.newaxis], np.arange(1, 12))).any()
            assert ((profile.delta(epsilon) >= 0) & (profile.delta(epsilon) <= 1)).all()


def test_round_up_finds_the_next_safe_number_or_refuses() -> None:
    assert round_up(1.0, lambda value: value > 1.0) == math.nextafter(1.0, 2.0)
    assert round_up(1.0, lambda value: True) == 1.0
    with pytest.raises(NumericalError, match="root must hold"):
        round_up(1.0, lambda value: value > 2.0)
