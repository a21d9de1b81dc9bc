"""Hockey-stick divergences, couplings, moments from profiles, and the worst mechanism of a
design."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from dpsub import noise
from dpsub.divergences import (
    advanced_joint_convexity,
    cheapest_coupling,
    compatible_sum,
    hockey_stick,
    maximal_coupling,
    moment_from_profiles,
    profile_from_losses,
    tail_rate,
    total_variation,
    worst_mechanism,
)
from dpsub.divergences.hockey_stick import MaximalCoupling
from dpsub.errors import ArgumentError
from dpsub.noise import PointGuarantee, RandomisedResponseProfile

LAW = arrays(float, 4, elements=st.floats(0.001, 1)).map(lambda weights: weights / weights.sum())
SHARE = st.floats(0, 1)
ORDER = st.floats(1, 10)


@given(first=LAW, second=LAW, alpha=ORDER)
def test_the_divergence_is_the_best_event(
    first: np.ndarray, second: np.ndarray, alpha: float
) -> None:
    events = np.array(list(itertools.product((0, 1), repeat=4)))
    best = (events @ first - alpha * (events @ second)).max()
    assert float(hockey_stick(first, second, alpha)) == pytest.approx(best, abs=1e-12)


@given(shared=LAW, first=LAW, second=LAW, eta=SHARE, alpha=ORDER)
def test_advanced_joint_convexity(
    shared: np.ndarray, first: np.ndarray, second: np.ndarray, eta: float, alpha: float
) -> None:
    sides = advanced_joint_convexity(shared, first, second, eta, alpha)
    assert sides.mixed == pytest.approx(sides.identity, abs=1e-12)
    assert sides.mixed <= sides.bound + 1e-12


@given(first=LAW, second=LAW, epsilon=st.floats(-2, 4))
def test_the_profile_from_losses(first: np.ndarray, second: np.ndarray, epsilon: float) -> None:
    alpha = math.exp(epsilon)
    exact = np.maximum(first - alpha * second, 0).sum()
    assert float(profile_from_losses(first, second, epsilon)) == pytest.approx(exact, abs=1e-12)


def test_an_infinite_loss_counts_once() -> None:
    assert float(profile_from_losses([0.3, 0.7, 0.0], [0.0, 0.5, 0.5], 5.0)) == pytest.approx(0.3)


def joint_of(parts: MaximalCoupling) -> np.ndarray:
    return (1 - parts.eta) * np.diag(parts.shared) + parts.eta * np.outer(parts.first, parts.second)


@given(first=LAW, second=LAW)
def test_the_maximal_coupling_has_its_marginals_and_the_largest_diagonal(
    first: np.ndarray, second: np.ndarray
) -> None:
    parts = maximal_coupling(first, second)
    np.testing.assert_allclose(joint_of(parts).sum(axis=1), first, atol=1e-12)
    np.testing.assert_allclose(joint_of(parts).sum(axis=0), second, atol=1e-12)
    assert np.trace(joint_of(parts)) >= 1 - float(total_variation(first, second)) - 1e-12


def test_equal_and_disjoint_laws_have_branches_of_their_own() -> None:
    same, apart = maximal_coupling([0.4, 0.6], [0.4, 0.6]), maximal_coupling([1.0, 0.0], [0.0, 1.0])
    assert same.eta == 0
    np.testing.assert_allclose(joint_of(same), np.diag([0.4, 0.6]))
    assert apart.eta == 1
    np.testing.assert_allclose(joint_of(apart), [[0, 1], [0, 0]])


def test_the_cheapest_coupling_of_points_on_a_line() -> None:
    """On a line the cheapest coupling for a distance is the area between the distribution
    functions."""
    rng = np.random.default_rng(3)
    first, second = rng.dirichlet(np.ones(6)), rng.dirichlet(np.ones(6))
    costs = np.abs(np.subtract.outer(np.arange(6), np.arange(6))).astype(float)
    found = cheapest_coupling(first, second, costs)
    assert found is not None
    cost, joint = found
    assert cost == pytest.approx(np.abs(np.cumsum(first - second)).sum(), abs=1e-12)
    np.testing.assert_allclose(joint.sum(axis=1), first, atol=1e-9)
    assert cheapest_coupling([0.5, 0.5], [0.2, 0.8], [[0, math.inf], [math.inf, 0]]) is None


def test_the_sum_by_distance_needs_finite_distances() -> None:
    assert compatible_sum([0.25, 0.75], [[1, 2], [2, 2]], [0, 0.1, 0.3]) == pytest.approx(0.25)
    with pytest.raises(ArgumentError, match="distance of at most 1"):
        compatible_sum([0.25, 0.75], [[1, 2], [2, 2]], [0, 0.1])


@pytest.mark.parametrize("s", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("ratio", [0.3, 1.0, 2.5])
def test_moments_from_profiles_enclose_the_closed_forms(ratio: float, s: float) -> None:
    laplace, gaussian = noise.of("laplace", ratio), noise.of("gaussian", ratio)
    found = moment_from_profiles(laplace.log_delta, laplace.log_delta, s, end=ratio)
    assert found.lower <= math.exp(laplace.log_moment(s)) <= found.upper
    end = 30 * ratio
    rate = tail_rate(gaussian.log_delta, end)
    found = moment_from_profiles(gaussian.log_delta, gaussian.log_delta, s, end=end, rate=rate)
    assert found.lower <= math.exp(gaussian.log_moment(s)) <= found.upper
    assert found.upper / found.lower < 1 + 1e-6


def test_an_early_end_is_charged_or_refused() -> None:
    profile = noise.of("gaussian", 1.0)
    end = 2.0
    moment = moment_from_profiles(
        profile.log_delta,
        profile.log_delta,
        1.0,
        end=end,
        rate=tail_rate(profile.log_delta, end),
        width=1.0,
    )
    assert moment.lower < math.e < moment.upper
    with pytest.raises(ArgumentError, match="take a later end"):
        moment_from_profiles(
            profile.log_delta,
            profile.log_delta,
            9.0,
            end=end,
            rate=tail_rate(profile.log_delta, end),
        )
    # planted fault: without the tail the interval misses the moment
    cut = moment_from_profiles(profile.log_delta, profile.log_delta, 1.0, end=end)
    assert cut.upper < math.e


@pytest.mark.parametrize(("epsilon0", "delta0"), [(0.5, 0.0), (1.0, 0.05), (0.0, 0.2), (2.0, 0.3)])
@pytest.mark.parametrize("steps", [1, 2, 3, 5])
def test_the_worst_mechanism_on_a_chain_is_the_group_profile(
    epsilon0: float, delta0: float, steps: int
) -> None:
    start, end = np.eye(steps + 1)[[0, -1]]
    chain = [(k, k + 1) for k in range(steps)]
    for epsilon in (0.0, 0.4, 1.1):
        worst = worst_mechanism(end, start, chain, epsilon0, delta0, math.exp(epsilon))
        exact = float(np.exp(PointGuarantee(epsilon0, delta0).group_log_delta(epsilon, steps)))
        assert worst.divergence == pytest.approx(exact, abs=1e-8)
        assert worst.dual == pytest.approx(worst.divergence, abs=1e-8)
        kernel = np.column_stack([worst.event, 1 - worst.event])
        assert float(
            hockey_stick(end @ kernel, start @ kernel, math.exp(epsilon))
        ) == pytest.approx(exact, abs=1e-8)


def test_the_worst_mechanism_for_one_step_is_randomised_response() -> None:
    worst = worst_mechanism([1, 0], [0, 1], [(0, 1)], 1.0, 0.0, 1.3)
    p = RandomisedResponseProfile.with_guarantee(1.0, 0.0)
    assert worst.divergence == pytest.approx(float(p.delta(math.log(1.3))), abs=1e-9)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: hockey_stick([0.5, 0.4], [0.5, 0.5], 1), "first must sum to 1 within 1e-9"),
        (lambda: hockey_stick([1.5, -0.5], [0.5, 0.5], 1), "first must not be negative"),
        (lambda: hockey_stick([0.5, 0.5], [0.5, 0.5], 0.9), "alpha must be at least 1"),
        (lambda: hockey_stick([0.5, math.nan], [0.5, 0.5], 1), "first must be finite"),
        (lambda: hockey_stick(1.0, [0.5, 0.5], 1), "along its last axis"),
        (lambda: advanced_joint_convexity([1], [1], [1], 1.1, 2), "eta must be at most 1"),
        (lambda: cheapest_coupling([1], [1], [[0, 1]]), "costs must have shape"),
        (lambda: worst_mechanism([1], [1], [(0, 1)], 1, 0, 1), "give positions below that"),
        (lambda: worst_mechanism([1], [1], [], 1, 1.1, 1), "delta must be at most 1"),
        (lambda: worst_mechanism([1], [1], [], -1, 0, 1), "epsilon must be at least 0"),
    ],
)
def test_inputs_that_are_refused(call: object, message: str) -> None:
    with pytest.raises(ArgumentError, match=message) as caught:
        call()  # type: ignore[operator]
    assert "\n" not in str(caught.value)
