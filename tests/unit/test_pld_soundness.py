"""Upper bounds that must hold where losses are infinite, sides differ or laws lack mass."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy.signal import fftconvolve

from dpsub.accountants.composition import Composition
from dpsub.accountants.filler_flip import FlipGame
from dpsub.accountants.laplace_profiles import included_once, removed_once
from dpsub.accountants.loss_law import LossLaw
from dpsub.accountants.profile_losses import order_indices, symmetric_law, two_sided_law

_FINE = 2e-4


def test_an_infinite_loss_leaves_the_finite_mass_alone() -> None:
    # randomised response with a sure giveaway: P = (1 - w, w), Q = P with the giveaway elsewhere; H_a = w for a >= 1
    w = 0.3
    law = symmetric_law(lambda x: np.full(x.shape, w), 1e-2, np.arange(100))
    for k in (1, 2, 5):
        assert Composition([law], [k]).delta(0.5) == pytest.approx(1 - (1 - w) ** k, rel=1e-9)
    assert law.masses.sum() + law.infinity == pytest.approx(1, abs=1e-12)


def _laplace_truth(rate: float, ratio: float, swapped: bool, k: int, epsilon: float) -> float:
    """delta of k releases from below: cells of outputs, losses rounded down."""
    t = np.linspace(-40, 40 + ratio, 400_001)

    def below(mean: float) -> np.ndarray:
        near = 0.5 * np.exp(-np.abs(t - mean))
        return np.where(t < mean, near, 1 - near)

    p, q = np.diff((1 - rate) * below(0) + rate * below(ratio)), np.diff(below(0))
    p, q = (q, p) if swapped else (p, q)
    there = (p > 0) & (q > 0)
    places = np.floor((np.log(p[there] / q[there]) - 1e-12) / _FINE).astype(int)
    one = np.bincount(places - places.min(), p[there])
    total = one
    for _ in range(k - 1):
        total = fftconvolve(total, one)
    losses = (np.arange(total.size) + k * places.min()) * _FINE
    return float(np.maximum(-np.expm1(epsilon - losses), 0) @ np.maximum(total, 0)) - 1e-9


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize(("rate", "ratio"), [(0.1, 4.0), (0.6, 1.0)])
def test_laplace_with_poisson_in_both_directions(rate: float, ratio: float, swapped: bool) -> None:
    profiles = [included_once(rate, ratio), removed_once(rate, ratio)]
    if swapped:
        profiles.reverse()
    law = two_sided_law(profiles[0], profiles[1], 1e-3, order_indices(1e-3, 3.0, 20.0))
    for k in (1, 2, 5):
        for epsilon in (0.0, 0.02, 0.1, 0.5):
            truth = _laplace_truth(rate, ratio, swapped, k, epsilon)
            assert truth <= Composition([law], [k]).delta(epsilon) <= truth + 2e-3


def test_the_value_at_order_one_is_on_the_hull() -> None:
    # no mass may be missing at loss 0, however different the directions and however coarse the orders are
    def forward(x: np.ndarray) -> np.ndarray:
        return np.where(x < 0.7, 0.9, 0.05 * np.exp(-x))

    def backward(x: np.ndarray) -> np.ndarray:
        return np.where(x < 2.2, 0.8, 0.4 * np.exp(-x))

    sides: list[tuple[Callable[[np.ndarray], np.ndarray], Callable[[np.ndarray], np.ndarray]]]
    sides = [(forward, backward), (backward, forward)]
    for first, second in sides:
        law = two_sided_law(first, second, 0.5, np.arange(60))
        assert law.masses.sum() + law.infinity == pytest.approx(1, abs=1e-9)
        x = np.arange(60) * 0.5
        delta = np.array([Composition([law], [1]).delta(at) for at in x])
        assert np.all(delta <= np.minimum(first(x), 1) + 1e-9)
        assert np.all(delta >= 0)


@pytest.mark.parametrize(("k", "stages"), [(1, 1), (2, 1), (2, 2), (4, 2), (4, 4), (5, 3)])
def test_the_flip_keeps_a_laws_missing_mass_missing(k: int, stages: int) -> None:
    law = LossLaw(0.01, np.array([100]), np.array([0.5]), "lower")
    epsilons, deltas = FlipGame([law, law], k, stages).curve(-6.0, 6.0)
    value = float(np.interp(0.0, epsilons, deltas))
    truth = 0.5**k * -math.expm1(-k)
    assert truth - 1e-9 <= value <= truth * (1 + 1e-12)


def test_losses_beyond_the_flips_window_are_rounded_into_it() -> None:
    for place in (-1000, 1000):
        law = LossLaw(0.01, np.array([place]), np.array([0.5]), "lower")
        _, deltas = FlipGame([law, law], 1, 1).curve(-1.0, 1.0)
        assert np.all(deltas <= 0.5)
        assert np.all(deltas >= 0)
