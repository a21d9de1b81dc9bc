"""The bound of shuffled epochs that hides the record's step, against sums over all orders by
quadrature, and the use of each of its parts."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

import dpsub
from dpsub.accounting.engine import work
from dpsub.accounting.engine.work import OutOfWorkError
from dpsub.accounting.schemes.shuffling.hidden_step import (
    CertifiedBounds,
    HiddenStep,
    OrderBound,
    leak,
)
from dpsub.noise import GaussianProfile
from dpsub.streams import stream
from tests.few import few

ORDERS = (1.0, 1.1, 1.5, 3.0, 8.0)
FILLERS = (-1.0, 0.0, 1.0)
QUADRATURE = 2e-3
"""Relative error of sums over a grid of three dimensions."""


def orders_of_three(first: float, fillers: tuple[float, ...], s: float, flips: bool) -> np.ndarray:
    """Return the density of three sums in a uniform order of three records, on a grid; where
    `flips`, the fillers' signs in the second and third step are those of the sums before."""
    t = np.linspace(-1 - 6 * s, 1 + 6 * s, 48)
    sign = np.where(t > 0, 1.0, -1.0)
    total = np.zeros((t.size, t.size, t.size))
    for places in itertools.permutations(range(3)):
        # places[0] is the step of the record, the others are those of the fillers
        held = dict(zip(places, (first, *fillers), strict=True))
        at_first = norm.pdf(t, held[0], s)[:, None, None]
        second = np.full(t.size, held[1])
        third = np.full((t.size, t.size), held[2])
        if flips and places[0] != 1:
            second = second * sign
        if flips and places[0] != 2:
            third = third * sign[:, None] * sign[None, :]
        at_second = norm.pdf(t[None, :], second[:, None], s)[:, :, None]
        at_third = norm.pdf(t[None, None, :], third[:, :, None], s)
        total += at_first * at_second * at_third
    return total / 6 * (t[1] - t[0]) ** 3


def check_three_steps(bounds: Sequence[Any], s: float, other: float) -> None:
    """Check that no fillers, fixed or chosen from the past, exceed these bounds at `ORDERS`."""
    for fillers in itertools.combinations_with_replacement(FILLERS, 2):
        for flips in (False, True):
            d, d_other = (orders_of_three(v, fillers, s, flips) for v in (1.0, other))
            for place, a in enumerate(ORDERS):
                found = max(
                    float(np.maximum(d - a * d_other, 0).sum()),
                    float(np.maximum(d_other - a * d, 0).sum()),
                )
                for bound in bounds:
                    assert found <= bound[place] * (1 + QUADRATURE) + 1e-6


@pytest.mark.parametrize("s", few([0.7, 4.0]))
@pytest.mark.parametrize("other", [-1.0, 0.0])
def test_three_steps_of_one_record_each(s: float, other: float) -> None:
    """No fillers, fixed or chosen from the past, exceed the bound, whatever k is taken."""
    distance = 1.0 - other
    hidden = HiddenStep(3, s, distance)
    x = np.log(ORDERS)
    bounds = [hidden.allocated(k)(x) + (1 + np.exp(x)) * hidden.charge(k) for k in (1, 2)] + [
        GaussianProfile(distance / s).delta(x)
    ]
    check_three_steps(bounds, s, other)


def told(vectors: np.ndarray, s: float, ratio: float) -> float:
    """Return the mean over j of H_c(N(r_j) || mean of all N(r_i)) of vectors of the plane, shape
    (n, 2), by quadrature."""
    t = np.linspace(-1 - 7 * s, 1 + 7 * s, 160)
    densities = np.array([np.outer(norm.pdf(t, x, s), norm.pdf(t, y, s)) for x, y in vectors])
    gap = densities - ratio * densities.mean(axis=0)
    return float(np.maximum(gap, 0).sum() / len(vectors) * (t[1] - t[0]) ** 2)


def sets_of_vectors() -> list[np.ndarray]:
    rng = stream(7, experiment="hidden step", cell={}, role="data", replicate=0)
    sets = [
        np.array([[1.0, 0.0]] * few + [[-1.0, 0.0]] * many)
        for few, many in ((1, 1), (1, 3), (1, 9), (2, 30), (1, 60), (0, 2))
    ]
    for size in (3, 8, 25):
        vectors = rng.normal(size=(size, 2))
        vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1.0)
        sets.append(vectors)
    angles = np.linspace(0, 2 * np.pi, 12, endpoint=False)
    return [*sets, np.stack([np.cos(angles), np.sin(angles)], axis=1)]


@pytest.mark.parametrize("s", few([2.0, 0.8, 4.0]))
def test_what_the_first_step_tells(s: float) -> None:
    for ratio in (1.0, 1.2, 2.0, 5.0):
        bound = leak(ratio, s)
        for vectors in sets_of_vectors():
            assert told(vectors, s, ratio) <= bound + 1e-7


def test_a_leak_of_half_the_distance_is_caught() -> None:
    """The planted fault takes the others' vectors to be at most 1/2 long, or to lie in their
    mean."""
    s, ratio = 2.0, 2.0
    most = max(told(vectors, s, ratio) for vectors in sets_of_vectors())
    assert most > leak(ratio, 2 * s)
    assert most > float(GaussianProfile(0.5 / s).delta(math.log(ratio)))


def weighed(weights: np.ndarray, s: float, a: float) -> float:
    """Return H_a of a vector of length 2 in one of two steps, with these weights, against none."""
    t = np.linspace(-8 * s, 2 + 8 * s, 600)
    base = np.outer(norm.pdf(t, 0, s), norm.pdf(t, 0, s))
    moved = norm.pdf(t, 2, s) / norm.pdf(t, 0, s)
    ratio = weights[0] * moved[:, None] + weights[1] * moved[None, :]
    return float((base * np.maximum(ratio - a, 0)).sum() * (t[1] - t[0]) ** 2)


def test_an_allocation_that_forgets_the_first_step_is_caught() -> None:
    """The planted fault takes the weights of the steps to be equal after the first step. Fillers of
    either sign exceed this bound; with the charge they do not."""
    s, a = 2.0, 3.0
    y = np.linspace(-1 - 8 * s, 1 + 8 * s, 400)
    p, q = norm.pdf(y, 1, s), norm.pdf(y, -1, s)
    found = sum(
        (first + second) / 2 * weighed(np.array([first, second]) / (first + second), s, a)
        for first, second in zip(p, q, strict=True)
    ) * (y[1] - y[0])
    equal = weighed(np.array([0.5, 0.5]), s, a)
    assert found > equal * 1.02
    assert found <= equal + HiddenStep(3, s, 2.0).charge(2)


@pytest.mark.thorough
def test_more_noise_and_more_steps_never_raise_the_bound() -> None:
    asked = {"epochs": 1, "delta": 1e-5}

    def upper(n: int, s: float) -> float:
        found = dpsub.account(dpsub.Shuffle(1), n, noise_multiplier=s, **asked)  # type: ignore[arg-type]
        return float(found.upper)

    by_noise = [upper(1000, s) for s in (1.0, 2.0, 4.0, 8.0)]
    assert by_noise == sorted(by_noise, reverse=True)
    by_steps = [upper(n, 4.0) for n in (10, 100, 1000, 10_000)]
    assert by_steps == sorted(by_steps, reverse=True)


@pytest.mark.parametrize(("s", "most"), few([(4.0, 0.152), (8.0, 0.039), (16.0, 0.014)]))
def test_a_thousand_steps_amplify(s: float, most: float) -> None:
    """Nothing is gained where all is revealed; here the bound is a fraction of it."""
    found = dpsub.account(
        dpsub.Shuffle(1), 1000, noise_multiplier=s, epochs=1, delta=1e-5, adjacency="substitute"
    )
    assert 0 < found.lower < found.upper < most


def test_a_profile_that_is_begun_is_finished_or_none() -> None:
    """It does not depend on how much work was left, or was before."""
    x = np.log([1.0, 1.1, 1.3])
    hidden = HiddenStep(1000, 4.0, 2.0)
    with work.metered(1e-2), pytest.raises(OutOfWorkError):
        hidden.profile(x)
    assert np.array_equal(hidden.profile(x), HiddenStep(1000, 4.0, 2.0).profile(x))


def test_too_little_work_leaves_the_bound_of_the_revealed_step() -> None:
    asked: dict[str, Any] = {"noise_multiplier": 4.0, "epochs": 1, "delta": 1e-5}
    hurried = dpsub.account(dpsub.Shuffle(1), 1000, effort=0.02, **asked)
    revealed = dpsub.account(dpsub.Deterministic(1), 1000, **asked)
    assert hurried.upper == pytest.approx(revealed.upper, rel=1e-2)
    assert dpsub.account(dpsub.Shuffle(1), 1000, **asked).upper < revealed.upper / 10


def test_a_shuffle_costs_no_more_than_a_fixed_order() -> None:
    # with this noise hiding the step gains little, and a profile's grid is coarser than a pair's
    asked: dict[str, Any] = {"noise_multiplier": 0.6, "delta": 1e-5, "adjacency": "zero_out"}
    shuffled = dpsub.account(dpsub.Shuffle(60), 60_000, **asked)
    assert shuffled.theorem.startswith("Theorems 76 and 89,")
    assert shuffled.upper <= dpsub.account(dpsub.Deterministic(60), 60_000, **asked).upper


def test_what_is_certified_is_the_profile_or_more() -> None:
    """A certificate may prove more where one of the bounds that give the profile is left out."""
    x = np.linspace(0.0, 0.13, 14)
    hidden = HiddenStep(20, 30.0, 2.0)
    profile = hidden.profile(x)
    direct, weighed, _ = hidden.certified
    assert direct and weighed and not hidden.references
    found = hidden.certified_profile(x, ())
    assert np.all((profile <= found) & (found <= 1.12 * profile))
    looser = [each._replace(value=3 * each.value) for each in direct]
    hidden.certified = CertifiedBounds(looser, [], [])
    assert np.all(hidden.certified_profile(x[1:5], ()) > profile[1:5] * 1.5)
    hidden.certified = CertifiedBounds([], [], [])
    assert np.array_equal(hidden.certified_profile(x, ()), hidden.revealed(x))


NO_WEIGHTS = [OrderBound(0.0, 1.0, 1.0, [])]
"""Bounds by Theorem 76 that say nothing: it is smaller than Theorem 49."""


@pytest.mark.parametrize("distance", [2.0, 1.0])
def test_with_many_steps_and_little_noise_another_record_stands_in(
    distance: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(HiddenStep, "_weighed", NO_WEIGHTS)
    monkeypatch.setattr(HiddenStep, "has_clones", False)
    x = np.linspace(0.0, 3.0, 31)
    hidden = HiddenStep(100_000, 1.2, distance)
    profile = hidden.certified_profile(x, hidden.references)
    assert np.all(hidden.profile(x) <= profile)
    # one number of steps is best at some orders, and none is needed at all of them
    alone = hidden.certified_profile(x, ())
    for k in hidden.references[1:3]:
        found = hidden.certified_profile(x, (k,))
        assert np.all((profile <= found) & (found <= alone))
        assert np.any(found < alone * 0.5) and np.any(found > profile * 1.05)
