"""The game of a record that contributes 0, without replacement: cells are above triples of vectors
by quadrature in the plane, and values above adaptive play."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import dpsub
from dpsub.accounting.games.game import CellProfile
from dpsub.accounting.games.zeroed import ZeroedCell, ZeroedCells, best_interval
from dpsub.sampling import Wor
from dpsub.streams import stream

LOGS = np.array([0.0, 0.05, 0.3, 1.0, 2.0])


def in_the_plane(
    rate: float, scale: float, v: np.ndarray, g: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return both divergences of (1 - q) N(0) + q N(v - g) and (1 - q) N(0) + q N(-g), by sums over
    a grid of the plane, to 1e-4."""
    width = 0.05 * scale
    along = np.arange(-2 - 7 * scale, 2 + 7 * scale, width)
    first, second = np.meshgrid(along, along)

    def density(centre: np.ndarray) -> np.ndarray:
        away = (first - centre[0]) ** 2 + (second - centre[1]) ** 2
        return np.exp(-away / (2 * scale**2)) / (2 * math.pi * scale**2)

    base = (1 - rate) * density(np.zeros(2))
    p, q = base + rate * density(v - g), base + rate * density(-g)
    orders = np.exp(LOGS)

    def divergences(one: np.ndarray, other: np.ndarray) -> np.ndarray:
        positive = [np.maximum(one - order * other, 0.0).sum() for order in orders]
        return np.array(positive) * width**2

    return divergences(p, q), divergences(q, p)


def test_triples_are_below_the_bounds_of_their_cells() -> None:
    rng = stream(31, experiment="zeroed_game", cell={}, role="data", replicate=0)
    faults = 0
    for _ in range(25):
        rate, scale = float(rng.uniform(0.05, 0.9)), float(np.exp(rng.uniform(-0.7, 1.0)))
        angle, width = float(rng.uniform(0, math.pi)), float(rng.uniform(0, 0.3))
        cell = ZeroedCell(max(0.0, angle - width), min(math.pi, angle + width))
        v, g = np.array([1.0, 0.0]), np.array([math.cos(angle), math.sin(angle)])
        truth = in_the_plane(rate, scale, v, g)
        bounds = ZeroedCells(rate, scale).profiles(cell, 1e-12)
        for exact, bound in zip(truth, bounds, strict=True):
            assert (exact <= bound(LOGS) + 1e-4).all()
        # planted fault: that the vectors span a plane is forgotten
        flat = bounds[0]
        assert isinstance(flat, CellProfile)
        forgotten = replace(flat, radius=flat.foot)
        faults += int((truth[0] > forgotten(LOGS) + 1e-3).any())
    assert faults > 3


@pytest.mark.parametrize("angle", [0.0, 0.8, 1.5, 1.7, 2.4, math.pi])
def test_a_single_angle_is_bounded_by_its_own_divergences(angle: float) -> None:
    v, g = np.array([1.0, 0.0]), np.array([math.cos(angle), math.sin(angle)])
    truth = in_the_plane(0.3, 0.9, v, g)
    bounds = ZeroedCells(0.3, 0.9).profiles(ZeroedCell(angle, angle), 1e-12)
    for exact, bound in zip(truth, bounds, strict=True):
        np.testing.assert_allclose(bound(LOGS), exact, rtol=5e-3, atol=1e-4)


def test_vectors_within_the_ball_are_below_those_on_its_surface() -> None:
    """The cover leaves out shorter vectors: their parts across the other are lengthened."""
    rng = stream(31, experiment="zeroed_game", cell={}, role="data", replicate=1)
    for _ in range(10):
        g, v = rng.normal(size=(2, 2))
        g, v = g / np.linalg.norm(g), rng.uniform(0, 1) * v / np.linalg.norm(v)
        # v is moved at a right angle to g onto the circle
        along = float(v @ g)
        across = v - along * g
        across = across / np.linalg.norm(across) * math.sqrt(1 - along**2)
        inner, outer = in_the_plane(0.4, 0.8, v, g), in_the_plane(0.4, 0.8, along * g + across, g)
        for one, other in zip(inner, outer, strict=True):
            assert (one <= other + 1e-4).all()


def test_the_best_interval_is_that_of_the_densities() -> None:
    rng = stream(31, experiment="zeroed_game", cell={}, role="data", replicate=2)
    t = np.linspace(-14, 14, 100_001)

    def density(mean: float) -> np.ndarray:
        return np.asarray(np.exp(-((t - mean) ** 2) / 2) / math.sqrt(2 * math.pi))

    positive = 0
    for _ in range(60):
        log_order, log_charge = float(rng.uniform(0, 3)), float(rng.uniform(-5, 2))
        apart = float(rng.uniform(0.1, 3))
        away = float(rng.uniform(0.02, 1)) * apart
        against = math.exp(log_order) * density(-apart) + math.exp(log_charge) * density(away)
        truth = float(np.trapezoid(np.maximum(density(0.0) - against, 0.0), t))
        found = float(best_interval(np.array([log_order]), np.array([log_charge]), apart, away)[0])
        assert found == pytest.approx(truth, rel=1e-6, abs=1e-7)
        positive += truth > 1e-3
    assert positive > 10


@pytest.mark.thorough
def test_both_ends_meet_within_half_a_percent() -> None:
    answer = dpsub.account(
        Wor(200),
        10_000,
        noise_multiplier=4.0,
        steps=1000,
        delta=1e-5,
        adjacency="zero_out",
        effort=None,
        quick=False,
    )
    assert answer.theorem == "Theorem 70, docs/proofs/without_replacement.md"
    assert answer.lower <= answer.upper <= 1.005 * answer.lower


@pytest.mark.thorough
def test_the_value_of_two_steps_is_above_the_data_sets_of_the_attack() -> None:
    """The value claimed by the game is above those of both sign patterns, and below the first
    bound."""
    asked = {"noise_multiplier": 0.8, "steps": 2, "epsilon": 0.5, "adjacency": "zero_out"}
    first = dpsub.account(Wor(3), 10, quick=True, **asked)
    found = dpsub.account(Wor(3), 10, width=1e-4, effort=None, quick=False, **asked)
    assert found.lower <= found.upper < first.upper
    assert found.upper <= found.lower * 1.02
