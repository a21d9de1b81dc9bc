"""Pairs of one step and their composition, computed in two ways, and planted faults."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from scipy import integrate, stats

import dpsub
from dpsub.papers.lebeda import bounds
from dpsub.papers.lebeda.claims import LebedaClaims
from dpsub.papers.lebeda.experiments import Directions, OppositePair
from tests.papers.cells import truth_of

RATE, SCALE = 0.5, 1.0


def laplace_atoms(order: str) -> list[tuple[float, float]]:
    """Return masses and likelihood ratios of one step with Laplace noise of scale 1, on cells that
    are fine between both means, where alone the ratio changes."""
    places = [-math.inf, *np.linspace(0, 1, 301), math.inf]
    atoms = []
    for left, right in itertools.pairwise(places):
        without = stats.laplace.cdf(right) - stats.laplace.cdf(left)
        moved = stats.laplace.cdf(right - 1) - stats.laplace.cdf(left - 1)
        with_record = (1 - RATE) * without + RATE * moved
        pair = (with_record, without) if order == "remove" else (without, with_record)
        atoms.append((pair[0], pair[0] / pair[1]))
    return atoms


@pytest.mark.parametrize("order", ["remove", "add"])
def test_two_steps_are_those_of_all_pairs_of_outputs(order: str) -> None:
    epsilon = 0.1
    atoms = laplace_atoms(order)
    found = sum(
        a * b * max(1 - math.exp(epsilon) / (c * d), 0.0)
        for (a, c), (b, d) in itertools.product(atoms, repeat=2)
    )
    lower, upper = (
        bounds.composed("laplace", SCALE, RATE, order, 2, np.array([epsilon]), upper=end)[0]
        for end in (False, True)
    )
    # cells of 1 / 300 are a lower bound, off by their second order
    assert found <= upper and lower == pytest.approx(found, abs=2e-4)
    assert upper - lower < 2e-4


@pytest.mark.parametrize("steps", [1, 3])
def test_gaussian_noise_is_that_of_the_library(steps: int) -> None:
    answer = dpsub.account(
        dpsub.Poisson(RATE), noise_multiplier=SCALE, steps=steps, epsilon=0.4, width=1e-4
    )
    lower, upper = (
        max(
            bounds.composed("gaussian", SCALE, RATE, order, steps, np.array([0.4]), upper=end)[0]
            for order in ("remove", "add")
        )
        for end in (False, True)
    )
    assert lower <= answer.upper and answer.lower <= upper
    assert upper - lower < 3e-4


def test_the_opposite_pair_is_that_of_the_integral() -> None:
    noise, rate, epsilon = 1.3, 0.2, 0.3

    def gain(x: float) -> float:
        plain, up, down = (stats.norm.pdf(x, mean, noise) for mean in (0, 1, -1))
        return max(
            (1 - rate) * plain + rate * up - math.exp(epsilon) * ((1 - rate) * plain + rate * down),
            0.0,
        )

    found = integrate.quad(gain, -14, 16, epsabs=1e-13, limit=400)[0]
    assert bounds.opposite_pair(epsilon, noise, rate) == pytest.approx(found, rel=1e-7)


def test_orders_that_do_not_cross_are_noticed() -> None:
    settings = {"steps": [1, 2], "epsilons": [0, 0.1, 0.2]}
    frame = Directions().compute(settings, variant="stated")
    assert truth_of(LebedaClaims.claims, "worst_of_one_step", {"lebeda_directions": frame}) == 1
    several = frame["steps"] > 1
    planted = frame.copy()
    planted.loc[several, ["add_lower", "add_upper"]] *= 0.9
    assert truth_of(LebedaClaims.claims, "worst_of_one_step", {"lebeda_directions": planted}) == 0


def test_a_pair_that_is_too_small_is_noticed() -> None:
    settings = {"n": 100, "batch": 10, "epsilons": [0.5]}
    frame = OppositePair().compute(settings, variant="stated")
    for name in ("opposite_poisson", "opposite_wrong"):
        assert truth_of(LebedaClaims.claims, name, {"lebeda_opposite": frame}) == 1
    less = frame.assign(pair=frame["pair"] * 0.9)
    assert truth_of(LebedaClaims.claims, "opposite_poisson", {"lebeda_opposite": less}) == 0
    exact = frame.assign(pair=frame["delta_upper"])
    assert truth_of(LebedaClaims.claims, "opposite_wrong", {"lebeda_opposite": exact}) == 0


def test_a_removed_record_is_refuted_by_an_attack_alone() -> None:
    rows = {
        "noise": [1.0, 1.0],
        "steps": [1, 5],
        "removed_lower": [1.0, 2.0],
        "removed_upper": [1.0, 2.0],
        "epsilon_lower": [1.0, 2.01],
        "epsilon_upper": [1.0, 2.1],
        "pair_upper": [1.0, 2.2],
    }
    frame = pd.DataFrame(rows)
    assert truth_of(LebedaClaims.claims, "removed_suffices", {"lebeda_removed": frame}) == 0
    unknown = frame.assign(epsilon_lower=[1.0, 1.9])
    assert math.isnan(
        truth_of(LebedaClaims.claims, "removed_suffices", {"lebeda_removed": unknown})
    )
    proved = unknown.assign(epsilon_upper=[1.0, 1.99])
    assert truth_of(LebedaClaims.claims, "removed_suffices", {"lebeda_removed": proved}) == 1
