"""The formulas of the code, computed in two ways, and planted faults."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import integrate, stats

import dpsub
from dpsub.papers.chua import bounds
from dpsub.papers.chua.claims import ChuaClaims
from dpsub.papers.chua.experiments import ByBatches, ByEpochs, OneEpoch
from tests.papers.cells import truth_of

STEPS, NOISE = 20, 0.7


def density_of_largest(x: float, mean: float) -> float:
    """Return the density of the largest of the steps, from the product of their laws."""
    place, top = x / NOISE, (x - mean) / NOISE
    others = stats.norm.cdf(place) ** (STEPS - 1)
    one = (STEPS - 1) * stats.norm.cdf(place) ** (STEPS - 2) * stats.norm.pdf(place)
    return float(stats.norm.pdf(top) * others + stats.norm.cdf(top) * one) / NOISE


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 5.0])
def test_the_cube_is_the_best_event_of_the_largest_step(epsilon: float) -> None:
    def gain(x: float) -> float:
        with_record, without = (density_of_largest(x, mean) for mean in (2.0, 1.0))
        return max(with_record - math.exp(epsilon) * without, 0.0)

    found = integrate.quad(gain, -4, 14, epsabs=1e-13, limit=400)[0]
    assert bounds.cube(epsilon, NOISE, STEPS) == pytest.approx(found, rel=1e-7)


@pytest.mark.parametrize("epochs", [1, 3])
def test_a_fixed_order_is_the_gaussian_mechanism(epochs: int) -> None:
    distance = math.sqrt(epochs) / NOISE

    def gain(x: float) -> float:
        return max(float(stats.norm.pdf(x, distance) - math.e * stats.norm.pdf(x)), 0.0)

    found = integrate.quad(gain, -10, 14, epsabs=1e-13)[0]
    assert bounds.fixed_order(1.0, NOISE, epochs) == pytest.approx(found, rel=1e-8)


def test_draws_of_an_epoch_have_the_law_of_the_largest_step() -> None:
    rng = np.random.default_rng(1)
    outputs = rng.normal(0, NOISE, size=(200_000, STEPS))
    outputs[np.arange(len(outputs)), rng.integers(STEPS, size=len(outputs))] += bounds.WITH
    below = (outputs.max(axis=1) <= 2.0).mean()
    expected = math.exp(bounds.log_below(np.array(2.0), bounds.WITH, NOISE, STEPS))
    # six deviations of a share
    assert below == pytest.approx(expected, abs=6 * 0.5 / math.sqrt(len(outputs)))


def test_losses_of_one_epoch_give_the_cube_from_below() -> None:
    for epsilon in (0.5, 2.0, 5.0):
        exact = bounds.cube(epsilon, NOISE, STEPS)
        found = bounds.reshuffled(epsilon, NOISE, STEPS, 1)
        # losses are rounded down by up to the spacing
        assert bounds.cube(epsilon + 2 * bounds.SPACING, NOISE, STEPS) <= found <= exact
        assert bounds.reshuffled(epsilon, NOISE, STEPS, 1, pessimistic=True) >= exact


def test_composed_epochs_are_those_of_the_library() -> None:
    epochs = 4
    answer = dpsub.account(
        dpsub.Shuffle(1),
        STEPS,
        noise_multiplier=NOISE,
        steps=STEPS * epochs,
        epsilon=6.0,
        adjacency="zero_out",
    )
    found = bounds.reshuffled(6.0, NOISE, STEPS, epochs)
    assert found <= answer.upper
    assert found == pytest.approx(answer.lower, rel=0.01)
    assert bounds.reshuffled(6.0, NOISE, STEPS, epochs, pessimistic=True) > found


def test_one_order_is_one_epoch_of_less_noise() -> None:
    found = bounds.cube(2.0, NOISE, STEPS, 9)
    assert found == pytest.approx(bounds.cube(2.0, NOISE / 3, STEPS), rel=1e-9)


def test_the_search_finds_the_noise_of_a_delta() -> None:
    noise = bounds.solved(lambda s: bounds.fixed_order(1.0, s), 1e-5)
    assert bounds.fixed_order(1.0, noise) == pytest.approx(1e-5, rel=1e-4)


def test_a_formula_that_is_too_large_is_noticed() -> None:
    settings = {"noises": [0.35], "epsilons": [1.0, 4.0], "steps": 50}
    frame = OneEpoch().compute(settings, variant="stated")
    for column, name in (("cube", "cube_lower"), ("fixed", "fixed_exact")):
        for factor, holds in ((1.0, 1.0), (1.05, 0.0)):
            planted = frame.assign(**{column: frame[column] * factor})
            assert truth_of(ChuaClaims.claims, name, {"chua_epoch": planted}) == holds
    # the same numbers for both samplers are no gap
    same = frame.assign(shuffle_lower=frame["poisson_lower"], shuffle_upper=frame["poisson_upper"])
    assert truth_of(ChuaClaims.claims, "gap_one_epoch", {"chua_epoch": frame}) == 1
    assert truth_of(ChuaClaims.claims, "gap_one_epoch", {"chua_epoch": same}) == 0


def test_an_estimate_from_above_that_is_too_small_is_noticed() -> None:
    target = {"n": 100, "delta": 0.001, "epsilon": 3.0, "epochs": [2]}
    frames = {
        "chua_epochs": ByEpochs().compute({**target, "batch": 50}, variant="stated"),
        "chua_batches": ByBatches().compute({**target, "batches": [25]}, variant="stated"),
    }
    assert truth_of(ChuaClaims.claims, "pessimistic", frames) == 1
    assert truth_of(ChuaClaims.claims, "dynamic_lower", frames) == 1
    more = {
        name: frame.assign(pessimistic_lower=frame["epsilon"] * 1.1)
        for name, frame in frames.items()
    }
    assert truth_of(ChuaClaims.claims, "pessimistic", more) == 0
    much = {
        name: frame.assign(noise_paper=frame["noise_upper"] * 1.1) for name, frame in frames.items()
    }
    assert truth_of(ChuaClaims.claims, "dynamic_lower", much) == 0
