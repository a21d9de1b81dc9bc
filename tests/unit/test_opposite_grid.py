"""Sums over the steps on grids, Theorem 79: against quadrature, sums pair by pair and convolutions
term by term; faults are noticed."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpsub.accounting.engine import grid_sums
from dpsub.accounting.engine.grid_sums import GridLaw
from dpsub.accounting.schemes.allocation.opposite import attained, upper_mean
from dpsub.accounting.schemes.allocation.opposite_event import OppositeEvent
from dpsub.accounting.schemes.allocation.opposite_grid import OppositeGrid
from tests.unit.test_opposite import of_opposites

_FINE = 0.025


def ends(grid: OppositeGrid) -> tuple[float, float]:
    """What an attack attains, and the upper bound."""
    event, above = grid.attained(), grid.upper_mean()
    assert event is not None and above is not None
    return event.ahead - grid.order * event.behind, above


@pytest.mark.parametrize(
    ("noise", "t", "order"),
    [(1.0, 2, 1.0), (1.0, 2, 10.0), (0.7, 2, 2.0), (3.0, 3, 1.2), (0.8, 3, 5.0)],
)
def test_both_ends_hold_the_mean_of_the_worst_differences(
    noise: float, t: int, order: float
) -> None:
    truth = of_opposites(noise, t, order)
    below, above = ends(OppositeGrid(order, 1 / noise, t, _FINE, 1e-6 * truth))
    assert truth * 0.985 < below < truth * (1 + 1e-6)
    assert truth * (1 - 1e-6) < above < truth * 1.015


@pytest.mark.parametrize(
    ("noise", "t", "order"),
    [(1.0, 62, 1.0), (1.0, 62, math.e), (1.5, 781, 1.1), (0.7, 20, 4.0), (8.0, 4096, 1.001)],
)
def test_both_ends_are_those_of_sums_pair_by_pair(noise: float, t: int, order: float) -> None:
    by_pairs = upper_mean(order, 1 / noise, t, _FINE, 1e-12)
    event = attained(order, 1 / noise, t, _FINE, 1e-12)
    below, above = ends(OppositeGrid(order, 1 / noise, t, _FINE, 1e-6 * by_pairs))
    # each lower end is below both upper ones
    lower, upper = sorted([below, event.ahead - order * event.behind]), sorted([above, by_pairs])
    assert upper[1] * 0.97 < lower[0] and lower[1] < upper[0]


def test_finer_grids_close_on_the_mean() -> None:
    both = [ends(OppositeGrid(2.2, 1.0, 37, step, 1e-12)) for step in (0.2, 0.1, 0.05)]
    gaps = [above / below - 1 for below, above in both]
    assert gaps[0] > 3 * gaps[1] > 9 * gaps[2] > 0
    assert max(below for below, _ in both) < min(above for _, above in both)


def test_ends_hold_where_losses_are_rare() -> None:
    order, t = math.exp(2.0), 62
    by_pairs = upper_mean(order, 1.0, t, 0.02, 1e-16)
    event = attained(order, 1.0, t, 0.02, 1e-16)
    below, above = ends(OppositeGrid(order, 1.0, t, _FINE, 1e-6 * by_pairs))
    assert event.ahead - order * event.behind < above < by_pairs < 1e-8
    assert 0.97 * by_pairs < below < above


def test_where_round_off_shows_nothing_is_said() -> None:
    assert OppositeGrid(math.exp(4.0), 1.0, 62, _FINE, 1e-25).attained() is None
    assert OppositeGrid(1.0, 1e-6, 10**6, _FINE, 1e-16).upper_mean() is None


def test_where_a_single_value_decides_nothing_is_said() -> None:
    grid = OppositeGrid(math.e, 1.25, 10_000, 0.1, 1e-20)
    assert grid.upper_mean() is None and grid.attained() is None


def by_convolution(law: GridLaw, masses: np.ndarray, count: int) -> float:
    """The probability that the sum of count - 1 values and one with other masses is above 0."""
    first = int(law.places[0])
    sum_of = np.zeros(int(law.places[-1]) - first + 1)
    sum_of[law.places - first] = masses
    one = np.zeros(sum_of.size)
    one[law.places - first] = law.masses
    for _ in range(count - 1):
        sum_of = np.convolve(sum_of, one)
    return math.fsum(sum_of[1 - count * first :])


def above_zero(law: GridLaw, count: int, masses: np.ndarray) -> tuple[float, float]:
    bounds = law.above_zero(count, [masses], law.deviation)
    assert bounds is not None
    return bounds[0]


def random_law(rng: np.random.Generator, mean: float) -> tuple[GridLaw, np.ndarray]:
    places = np.unique(rng.integers(-25, 60, size=40))
    masses = rng.random(places.size) * np.exp(-0.1 * np.abs(places - mean))
    masses /= masses.sum()
    others = masses * rng.uniform(0.1, 30.0, size=places.size)
    others /= others.sum()
    law = GridLaw(0.3, places, masses, np.zeros(places.size - 1), 0.0, 0.0)
    return law, others


@pytest.mark.parametrize("count", [1, 2, 7, 40])
@pytest.mark.parametrize("mean", [-20.0, -5.0, 3.0])
def test_probabilities_of_sums_above_zero_are_held_closely(count: int, mean: float) -> None:
    rng = np.random.default_rng(int(10 * count + abs(mean)))
    for _ in range(5):
        law, others = random_law(rng, mean)
        truth = by_convolution(law, others, count)
        low, high = above_zero(law, count, others)
        assert low <= truth * (1 + 1e-11) and truth * (1 - 1e-11) <= high
        assert high - low <= 1e-7 * truth + 1e-300


def test_a_short_window_is_charged(monkeypatch: pytest.MonkeyPatch) -> None:
    """What comes round adds to the sum: without a charge the lower end would be too high."""
    law, others = random_law(np.random.default_rng(3), -5.0)
    truth = by_convolution(law, others, 7)
    monkeypatch.setattr(grid_sums, "_LOG_SEEN", 0.5)
    monkeypatch.setattr(grid_sums, "_LOG_LOOSE", 50.0)
    low, high = above_zero(law, 7, others)
    assert high > truth * (1 + 1e-6)
    assert low <= truth


@pytest.mark.parametrize(
    ("t", "noise", "is_on_grid"),
    [(50, 2.0, True), (50, 0.8, True), (50, 0.5, False), (4, 2.0, False)],
)
def test_grids_are_used_for_many_steps_whose_values_are_not_too_far_apart(
    t: int, noise: float, is_on_grid: bool
) -> None:
    assert OppositeEvent(t, noise).is_on_grid is is_on_grid
