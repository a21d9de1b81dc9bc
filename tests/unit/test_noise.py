"""Noise and its privacy profiles: values computed in other ways, inverses, groups, scales, and
refusals."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsub import noise
from dpsub.divergences import hockey_stick
from dpsub.errors import ArgumentError, NumericalError, UnsupportedError
from dpsub.noise import (
    BlackBoxGroups,
    ConstantGroups,
    Gaussian,
    GaussianProfile,
    Laplace,
    LaplaceProfile,
    MembershipProfile,
    PairedSteps,
    PointGuarantee,
    Profile,
    RandomisedResponseProfile,
)
from dpsub.noise.base import round_up
from dpsub.noise.gaussian import CLASSICAL_BELOW

RATIOS = [1e-3, 0.025, 0.25, 1.0, 3.0, 20.0]
EVERY = [(name, ratio) for name in noise.REGISTRY.names() for ratio in RATIOS]


@pytest.mark.parametrize(("name", "ratio"), [(name, ratio) for name, ratio in EVERY if ratio <= 3])
def test_ends_of_the_inverse(name: str, ratio: float) -> None:
    profile = noise.of(name, ratio)
    assert float(profile.epsilon(float(profile.delta(0.0)))) == pytest.approx(0, abs=1e-14)
    assert float(profile.epsilon(0.0)) == (math.inf if name == "gaussian" else ratio)


@pytest.mark.parametrize(("name", "ratio"), EVERY)
def test_inverse_returns_and_keeps_to_the_safe_side(name: str, ratio: float) -> None:
    profile = noise.of(name, ratio)
    target = np.array([1e-300, 1e-30, 1e-10, 1e-5, 1e-3, 0.1, 0.5, 0.9, 0.999, 1 - 1e-9])
    epsilon = profile.epsilon(target)
    assert epsilon.shape == target.shape
    assert (np.diff(epsilon) <= 0).all()
    assert (profile.log_delta(epsilon) <= np.log(target) + 1e-15).all()
    # A step below the answer breaks the condition: the answer is the smallest one, up to rounding.
    # (Not visible where the step moves delta by less than the spacing of doubles near 1, or Laplace
    # delta is 1e-16.)
    visible = (target < 0.9999) & (target > (1e-16 if name == "laplace" else 0))
    step = 1e-9 * np.maximum(np.abs(epsilon), 1e-3 * ratio)
    assert (profile.delta(epsilon - step)[visible] > target[visible]).all()


@pytest.mark.parametrize("name", noise.REGISTRY.names())
def test_group_profiles_agree_on_both_roads(name: str) -> None:
    profile, epsilon = noise.of(name, 0.25), np.array([0.05, 0.5, 1.7, 3.0])
    table = profile.group_log_delta(epsilon, np.arange(1, 30)[:, np.newaxis])
    for occurrences in range(1, 30):
        np.testing.assert_array_equal(
            table[occurrences - 1], profile.group(occurrences).log_delta(epsilon)
        )


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
    assert float(np.exp(found.group_log_delta(2.0, 4))) == pytest.approx(
        min(1.0, by_hand), rel=1e-13
    )
    assert math.isfinite(float(found.log_bound(2000.0, 3)))


def test_shapes_follow_the_argument() -> None:
    for name in noise.REGISTRY.names():
        profile = noise.of(name, 1.0)
        assert np.ndim(profile.delta(0.3)) == 0
        assert profile.delta(np.full((2, 3), -0.3)).shape == (2, 3)
        assert profile.epsilon(np.full((2, 1), 0.01)).shape == (2, 1)
        assert profile.delta(np.array([])).shape == (0,)


def test_extreme_arguments_give_no_nan() -> None:
    epsilon = np.array([-1.7e308, -1e6, -700.0, -1e-300, 0.0, 1e-300, 1e3, 1e8, 1e200, 1.7e308])
    for name in noise.REGISTRY.names():
        for ratio in (1e-150, 1e-8, 1.0, 1e3, 1e8, 1e308):
            profile = noise.of(name, ratio)
            assert not np.isnan(
                profile.group_log_delta(epsilon[:, np.newaxis], np.arange(1, 12))
            ).any()
            assert ((profile.delta(epsilon) >= 0) & (profile.delta(epsilon) <= 1)).all()


def test_round_up_finds_the_next_safe_number_or_refuses() -> None:
    assert round_up(1.0, lambda value: value > 1.0) == math.nextafter(1.0, 2.0)
    assert round_up(1.0, lambda value: True) == 1.0
    with pytest.raises(NumericalError, match="root must hold"):
        round_up(1.0, lambda value: value > 2.0)


KINDS: list[Profile] = [
    RandomisedResponseProfile(0.2),
    RandomisedResponseProfile(0.75),
    MembershipProfile(0.9),
    PointGuarantee(1.0),
    PointGuarantee(0.5, 0.1),
    BlackBoxGroups(noise.of("laplace", 1)),
    ConstantGroups(noise.of("gaussian", 1)),
    PairedSteps(noise.of("gaussian", 0.5)),
]
IDS = [f"{type(profile).__name__}-{number}" for number, profile in enumerate(KINDS)]


@pytest.mark.parametrize(
    ("profile", "slack"),
    [*((each, 1e-15) for each in KINDS), *((noise.of(*each), 0.0) for each in EVERY)],
)
def test_a_profile_falls_is_convex_and_mirrors(profile: Profile, slack: float) -> None:
    delta = profile.delta(np.log(np.linspace(0.05, 8, 200)))
    assert delta.min() >= 0 and delta.max() <= 1
    assert (np.diff(delta) <= slack).all() and (np.diff(delta, 2) >= -1e-12).all()
    assert (np.diff(profile.delta(np.linspace(-8, 8, 401))) <= slack).all()
    epsilon = np.linspace(0, 6, 40)
    mirrored = -np.expm1(-epsilon) + np.exp(-epsilon) * profile.delta(epsilon)
    np.testing.assert_allclose(profile.delta(-epsilon), mirrored, rtol=1e-13, atol=10 * slack)


@pytest.mark.parametrize("profile", KINDS, ids=IDS)
def test_the_inverse_is_the_smallest_epsilon(profile: Profile) -> None:
    for delta in (0.15, 0.25, 0.8):
        epsilon = float(profile.epsilon(delta))
        assert float(profile.delta(epsilon)) <= delta * (1 + 1e-12)
        assert float(profile.delta(epsilon - 1e-6)) > delta


@pytest.mark.parametrize("p", [0, 0.2, 0.5, 0.75, 1])
@pytest.mark.parametrize("epsilon", [-2.0, -0.3, 0.0, 0.4, 1.5])
def test_randomised_response_is_the_sum_over_both_outcomes(p: float, epsilon: float) -> None:
    alpha = math.exp(epsilon)
    exact = max(0, p - alpha * (1 - p)) + max(0, 1 - p - alpha * p)
    assert float(RandomisedResponseProfile(p).delta(epsilon)) == pytest.approx(exact, abs=1e-15)


@given(epsilon=st.floats(0, 5), delta=st.floats(0, 1))
def test_randomised_response_attains_its_guarantee(epsilon: float, delta: float) -> None:
    p = RandomisedResponseProfile.with_guarantee(epsilon, delta).keep_probability
    value = float(hockey_stick([p, 1 - p], [1 - p, p], math.exp(epsilon)))
    assert value == pytest.approx(delta, abs=1e-12)


def test_moments_are_expectations() -> None:
    p, s = 0.8, 1.7
    odds = math.log(p / (1 - p))
    exact = p * math.exp(s * odds) + (1 - p) * math.exp(-s * odds)
    assert RandomisedResponseProfile(p).log_moment(s) == pytest.approx(math.log(exact), rel=1e-14)
    assert RandomisedResponseProfile(1.0).log_moment(s) == math.inf
    assert noise.of("gaussian", 0.7).log_moment(2) == pytest.approx(3 * 0.49)
    assert noise.of("laplace", 1.0).log_moment(1) == pytest.approx(
        math.log(1.8572996467), rel=1e-10
    )
    for profile in (
        noise.of("laplace", 1.0),
        noise.of("gaussian", 1.0),
        RandomisedResponseProfile(p),
    ):
        assert profile.log_moment(0) == 0


def test_membership_has_groups_for_free() -> None:
    found = MembershipProfile(0.7).group_log_delta(0.1, np.arange(1, 6))
    np.testing.assert_array_equal(found, np.full(5, found[0]))


def test_a_substitution_is_two_steps() -> None:
    profile = noise.of("laplace", 0.5)
    np.testing.assert_allclose(
        PairedSteps(profile).delta([0.0, 0.4]), profile.group(2).delta([0.0, 0.4])
    )


GRID = [
    (e, d)
    for e in (0.0, 1e-6, 0.01, 0.5, 1.0, 4.0, 30.0, 500.0)
    for d in (1e-300, 1e-20, 1e-5, 0.1, 0.5, 0.99)
]


@pytest.mark.parametrize(("epsilon", "delta"), GRID)
def test_analytic_scale_is_safe_and_the_smallest(epsilon: float, delta: float) -> None:
    scale = Gaussian.calibrated(epsilon, delta, 2.0).scale
    assert float(GaussianProfile(2.0 / scale).log_delta(epsilon)) <= math.log(delta)
    assert float(GaussianProfile(2.0 / (scale * (1 - 1e-11))).log_delta(epsilon)) > math.log(delta)


def test_scales_are_proportional_to_the_sensitivity() -> None:
    for scale in (Gaussian.calibrated, Gaussian.classical, Laplace.calibrated):
        assert scale(0.5, 1e-3, 6.0).scale == pytest.approx(
            6 * scale(0.5, 1e-3, 1.0).scale, rel=1e-14
        )


def test_the_laplace_scale_is_safe_and_the_smallest() -> None:
    for epsilon, delta in ((0.0, 1e-3), (0.5, 0.0), (1.0, 1e-5), (30.0, 0.9)):
        scale = Laplace.calibrated(epsilon, delta, 2.0).scale
        assert float(Laplace(scale).profile(2.0).delta(epsilon)) <= delta
        assert float(Laplace(scale * (1 - 1e-11)).profile(2.0).delta(epsilon)) > delta


def test_classical_scale_is_its_formula_and_safe_where_valid() -> None:
    assert Gaussian.classical(0.5, 0.01, 3.0).scale == pytest.approx(
        3 * math.sqrt(2 * math.log(125)) / 0.5
    )
    for epsilon in (0.01, 0.3, math.nextafter(CLASSICAL_BELOW, 0.0)):
        for delta in (1e-12, 1e-5, 1e-3, 0.1):
            classical = Gaussian.classical(epsilon, delta, 1.0).scale
            assert classical >= Gaussian.calibrated(epsilon, delta, 1.0).scale


def test_the_classical_condition_matters() -> None:
    # far beyond its condition the classical scale does break its promise
    scale = Gaussian.classical(40.0, 1e-5, 1.0).scale
    assert float(GaussianProfile(1 / scale).delta(40.0)) > 1e-5


@pytest.mark.parametrize("name", noise.REGISTRY.names())
def test_a_release_keeps_its_shape_and_its_stream_alone_decides_the_noise(name: str) -> None:
    make, before = noise.REGISTRY.get(name), np.random.get_state(legacy=False)["state"]  # noqa: NPY002
    value = np.arange(12.0).reshape(3, 4)
    released, again = (make(1.0).release(value, np.random.default_rng(1)) for _ in range(2))
    assert released.shape == value.shape and len(np.unique(released - value)) == value.size
    np.testing.assert_array_equal(released, again)
    thrice = make(3.0).release(np.zeros((3, 4)), np.random.default_rng(1))
    np.testing.assert_allclose(
        thrice, 3 * make(1.0).release(np.zeros((3, 4)), np.random.default_rng(1)), rtol=1e-15
    )
    assert np.ndim(make(2.0).release(3.0, np.random.default_rng(1))) == 0
    assert (value == np.arange(12.0).reshape(3, 4)).all()
    after = np.random.get_state(legacy=False)["state"]  # noqa: NPY002 (it is the global state that is looked at)
    assert before["pos"] == after["pos"] and (before["key"] == after["key"]).all()


SCALES = (Gaussian.calibrated, Gaussian.classical)
REFUSED: list[tuple[Callable[[], Any], str]] = [
    *(
        (lambda name=name, scale=scale: noise.REGISTRY.get(name)(scale), "scale must be")  # type: ignore[arg-type]
        for name in noise.REGISTRY.names()
        for scale in (0.0, -1.0, math.nan, math.inf, "wide", True)
    ),
    (
        lambda: Gaussian(1.0).release([0.0, math.nan], np.random.default_rng(0)),
        "value must be finite, got 1 NaN or infinite among 2 values",
    ),
    *(
        (lambda ratio=ratio: LaplaceProfile(ratio), "ratio must be")  # type: ignore[arg-type]
        for ratio in (0.0, -1.0, math.inf, math.nan, "1")
    ),
    (lambda: GaussianProfile(1.0).delta([0.0, math.nan]), "epsilon must be finite"),
    (lambda: noise.of("gausian", 1.0), "did you mean 'gaussian'"),
    (lambda: noise.of("gaussian", 1.0).epsilon(1.0), "delta must be below 1"),
    (lambda: noise.of("laplace", 1.0).epsilon(1.0), "delta must be below 1"),
    (lambda: noise.of("gaussian", 1.0).epsilon(-0.1), "delta must be at least 0"),
    (lambda: noise.of("laplace", 1.0).epsilon(-0.1), "delta must be at least 0"),
    *(
        (lambda profile=profile: profile.log_moment(-1), "order must be at least 0")
        for profile in (
            noise.of("laplace", 1.0),
            noise.of("gaussian", 1.0),
            RandomisedResponseProfile(0.8),
        )
    ),
    (lambda: RandomisedResponseProfile(1.2), "keep_probability must be at most 1"),
    (lambda: RandomisedResponseProfile(math.nan), "keep_probability must be finite"),
    (lambda: RandomisedResponseProfile.with_guarantee(-1, 0.1), "epsilon must be at least 0"),
    (lambda: RandomisedResponseProfile.with_guarantee(1, 1.1), "delta must be at most 1"),
    (
        lambda: RandomisedResponseProfile(0.7).group_log_delta(0.1, 2),
        "distance 1 only; use the profile of member",
    ),
    (lambda: PointGuarantee(-0.1), "epsilon0 must be at least 0"),
    (lambda: PointGuarantee(1, -0.1), "delta0 must be at least 0"),
    (lambda: noise.of("laplace", -1), "ratio must be above 0"),
    (lambda: noise.of("gaussian", 1).group(1.5), "occurrences must be a whole number"),  # type: ignore[arg-type]
    (
        lambda: noise.of("gaussian", 1).group(0),
        "occurrences must be at least 1, got occurrences = 0",
    ),
    *((lambda scale=scale: scale(-0.1, 0.1, 1.0), "epsilon must be") for scale in SCALES),
    *((lambda scale=scale: scale(0.1, 1.0, 1.0), "delta must be below 1") for scale in SCALES),
    *((lambda scale=scale: scale(0.1, 0.0, 1.0), "delta must be above 0") for scale in SCALES),
    *(
        (lambda scale=scale: scale(0.1, 0.1, 0.0), "sensitivity must be above 0")
        for scale in SCALES
    ),
    *(
        (lambda scale=scale: scale(math.nan, 0.1, 1.0), "epsilon must be finite")
        for scale in SCALES
    ),
    (lambda: Gaussian.classical(0.0, 0.1, 1.0), "epsilon must be above 0"),
    (lambda: Laplace.calibrated(0.0, 0.0, 1.0), "epsilon = 0 and delta = 0; raise one of them"),
]


@pytest.mark.parametrize(("call", "sentence"), REFUSED)
def test_what_is_refused(call: Callable[[], object], sentence: str) -> None:
    with pytest.raises(
        UnsupportedError if "distance 1 only" in sentence else ArgumentError, match=sentence
    ):
        call()
