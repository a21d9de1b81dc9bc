"""The ceiling of acceptance against the staircase, and against every noise at hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpsub.errors import ArgumentError
from dpsub.recycling import GaussianKernel, LaplaceKernel
from dpsub.recycling.ceiling import _certified, _prices, _programme, ceiling, staircase
from dpsub.recycling.choice import best_recycler


@pytest.mark.parametrize(
    ("epsilon", "bound", "sensitivity", "value"),
    [(1.0, 1.0, 1.0, 0.632), (4.0, 1.0, 5.0, 0.9147), (0.5, 5.0, 22.0, 0.1285), (2.0, 2.5, 1.0, 0.9956),
     (0.1, 3.0, 1.0, 0.2592), (1.5, 0.7, 1.0, None)],
)  # fmt: skip
def test_the_programme_meets_the_staircase(
    epsilon: float, bound: float, sensitivity: float, value: float | None
) -> None:
    found = ceiling(epsilon, 1e-7, bound, sensitivity)
    closed = staircase(epsilon, bound, sensitivity)
    assert closed <= found.upper <= closed + 20 * 1e-7
    assert found.lower == closed
    if value is not None:
        assert closed == pytest.approx(value, abs=6e-5 if value > 0.64 else 2e-4)


def test_the_staircase_is_private() -> None:
    epsilon, ratio = 1.3, 0.4
    levels = np.exp(-epsilon * np.arange(60))
    widths = np.append(2 * ratio, np.full(59, 2.0))
    assert levels[0] * widths[0] / (levels @ widths) == pytest.approx(staircase(epsilon, ratio, 1.0))


def test_no_noise_at_hand_passes_the_ceiling() -> None:
    most = ceiling(3.0, 1e-2, 0.5, 1.0).upper
    for family in (GaussianKernel, LaplaceKernel):
        found = best_recycler(family, 3.0, 1e-2, 0.5, 1.0).acceptance
        assert 0.8 * most < found <= most


def test_the_certificate_does_not_trust_the_solver() -> None:
    programme = _programme(1.0, 1e-3, 4, 3, 80)
    prices, mass = _prices(programme)
    best = _certified(programme, prices, mass)
    rng = np.random.default_rng(0)
    for size in (1e-6, 1e-3, 1e-1):
        wrong = prices + size * rng.standard_normal(prices.size)
        assert _certified(programme, wrong, mass) >= best - 1e-12
    assert _certified(programme, 0 * prices, 0.0) >= best


def test_odd_ratios_are_rounded_to_the_safe_side() -> None:
    found = ceiling(3.0, 1e-5, 1.0, math.pi)
    assert found.lower <= staircase(3.0, 1.0, math.pi) * (1 + 1e-4)
    assert found.upper >= staircase(3.0, 1.0, math.pi)
    with pytest.raises(ArgumentError, match="bound must be above 0"):
        ceiling(1.0, 1e-5, 0.0, 1.0)


@pytest.mark.parametrize(("epsilon", "bound", "sensitivity"), [(1e4, 1.0, 1.0), (1.0, 1e7, 1.0), (1.0, 1.0, 1e-200)])
def test_the_ceiling_is_one_where_the_programme_would_be_too_large(
    epsilon: float, bound: float, sensitivity: float
) -> None:
    found = ceiling(epsilon, 1e-5, bound, sensitivity)
    assert found.lower <= found.upper == 1.0
