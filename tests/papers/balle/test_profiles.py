"""Profiles of one bit, of a point, of a table and of groups: computed independently, and refusals."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsub import noise
from dpsub.divergences import hockey_stick
from dpsub.errors import ArgumentError, UnsupportedError
from dpsub.noise import (
    BlackBoxGroups,
    ConstantGroups,
    MembershipProfile,
    PairedSteps,
    PointGuarantee,
    Profile,
    RandomisedResponseProfile,
)

EVERY: list[Profile] = [
    RandomisedResponseProfile(0.2), RandomisedResponseProfile(0.75), MembershipProfile(0.9), PointGuarantee(1.0),
    PointGuarantee(0.5, 0.1), BlackBoxGroups(noise.of("laplace", 1)),
    ConstantGroups(noise.of("gaussian", 1)), PairedSteps(noise.of("gaussian", 0.5)),
]  # fmt: skip
IDS = [f"{type(profile).__name__}-{number}" for number, profile in enumerate(EVERY)]


@pytest.mark.parametrize("profile", EVERY, ids=IDS)
def test_a_profile_falls_is_convex_and_mirrors(profile: Profile) -> None:
    alpha = np.linspace(0.05, 8, 200)
    delta = profile.delta(np.log(alpha))
    assert (np.diff(delta) <= 1e-15).all()
    assert delta.min() >= 0
    assert delta.max() <= 1
    assert (np.diff(delta, 2) >= -1e-12).all()
    epsilon = np.linspace(0, 3, 31)
    mirrored = -np.expm1(-epsilon) + np.exp(-epsilon) * profile.delta(epsilon)
    np.testing.assert_allclose(profile.delta(-epsilon), mirrored, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("profile", EVERY, ids=IDS)
def test_the_inverse_is_the_smallest_epsilon(profile: Profile) -> None:
    for delta in (0.15, 0.25, 0.8):
        epsilon = float(profile.epsilon(delta))
        assert float(profile.delta(epsilon)) <= delta * (1 + 1e-12)
        assert float(profile.delta(epsilon - 1e-6)) > delta


@given(p=st.floats(0, 1), epsilon=st.floats(-3, 3), start=st.floats(0, 5), delta=st.floats(0, 1))
def test_randomised_response_is_the_sum_over_both_outcomes_and_attains_its_guarantee(
    p: float, epsilon: float, start: float, delta: float
) -> None:
    exact = max(0, p - math.exp(epsilon) * (1 - p)) + max(0, 1 - p - math.exp(epsilon) * p)
    assert float(RandomisedResponseProfile(p).delta(epsilon)) == pytest.approx(exact, abs=1e-14)
    p = RandomisedResponseProfile.with_guarantee(start, delta).keep_probability
    assert float(hockey_stick([p, 1 - p], [1 - p, p], math.exp(start))) == pytest.approx(delta, abs=1e-12)


def test_moments_are_expectations() -> None:
    p, s = 0.8, 1.7
    odds = math.log(p / (1 - p))
    exact = p * math.exp(s * odds) + (1 - p) * math.exp(-s * odds)
    assert RandomisedResponseProfile(p).log_moment(s) == pytest.approx(math.log(exact), rel=1e-14)
    assert RandomisedResponseProfile(1.0).log_moment(s) == math.inf
    assert noise.of("gaussian", 0.7).log_moment(2) == pytest.approx(3 * 0.49)
    assert noise.of("laplace", 1.0).log_moment(1) == pytest.approx(math.log(1.8572996467), rel=1e-10)
    for profile in (noise.of("laplace", 1.0), noise.of("gaussian", 1.0), RandomisedResponseProfile(p)):
        assert profile.log_moment(0) == 0
        with pytest.raises(ArgumentError, match="order must be at least 0"):
            profile.log_moment(-1)


def test_a_bit_has_no_groups_and_membership_has_them_for_free() -> None:
    with pytest.raises(UnsupportedError, match="distance above 1; take the profile of membership"):
        RandomisedResponseProfile(0.7).group_log_delta(0.1, 2)
    found = MembershipProfile(0.7).group_log_delta(0.1, np.arange(1, 6))
    np.testing.assert_array_equal(found, np.full(5, found[0]))


@pytest.mark.parametrize("steps", [1, 2, 3, 5])
@pytest.mark.parametrize(("epsilon0", "delta0"), [(0.0, 0.05), (0.5, 0.0), (1.0, 0.02), (2.0, 0.3)])
def test_groups_of_a_point_are_the_best_chain_and_below_the_black_box(
    epsilon0: float, delta0: float, steps: int
) -> None:
    """A dense search over events: the largest probability is passed on from neighbour to neighbour."""
    profile, start = PointGuarantee(epsilon0, delta0), np.linspace(0, 1, 200001)
    share = start
    for _ in range(steps):
        share = np.minimum(1, np.minimum(math.exp(epsilon0) * share + delta0,
                                         1 - math.exp(-epsilon0) * (1 - delta0 - share)))
    for epsilon in (0.0, 0.3, epsilon0, 2.5):
        searched = max(0.0, float((share - math.exp(epsilon) * start).max()))
        found, black = (float(np.exp(each.group_log_delta(epsilon, steps)))
                        for each in (profile, BlackBoxGroups(profile)))  # fmt: skip
        assert searched - 1e-12 <= found <= black + 1e-12
        assert found == pytest.approx(searched, abs=2e-4)


def test_a_substitution_is_two_steps() -> None:
    profile = noise.of("laplace", 0.5)
    np.testing.assert_allclose(PairedSteps(profile).delta([0.0, 0.4]), profile.group(2).delta([0.0, 0.4]))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: RandomisedResponseProfile(1.2), "keep_probability must be at most 1"),
        (lambda: RandomisedResponseProfile(math.nan), "keep_probability must be finite"),
        (lambda: RandomisedResponseProfile.with_guarantee(-1, 0.1), "epsilon must be at least 0"),
        (lambda: RandomisedResponseProfile.with_guarantee(1, 1.1), "delta must be at most 1"),
        (lambda: PointGuarantee(-0.1), "epsilon0 must be at least 0"),
        (lambda: PointGuarantee(1, -0.1), "delta0 must be at least 0"),
        (lambda: noise.of("laplace", -1), "ratio must be above 0"),
        (lambda: noise.of("gaussian", 1).group(1.5), "occurrences must be a whole number"),
        (lambda: noise.of("gaussian", 1).group(0), "occurrences must be at least 1"),
    ],
)
def test_parameters_out_of_range_are_refused(make: object, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        make()  # type: ignore[operator]
