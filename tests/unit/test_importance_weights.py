"""The largest weights: Newton's method against two other solvers, the feasible side, and the released middles."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import lambertw

from dpsub.errors import ArgumentError
from dpsub.importance.losses import Power, log_expm1
from dpsub.importance.weights import optimal_weights, released_weights

TARGETS = [1e-3, 0.1, 0.5, 3.0, 30.0, 300.0, 600.0, 1000.0]
RATIOS = np.concatenate([np.geomspace(1e-4, 0.99, 300), 1 - np.geomspace(1e-12, 1e-2, 50)])


def excess(a: np.ndarray, w: np.ndarray, target: float) -> np.ndarray:
    """At most 0 iff the weight is feasible."""
    return log_expm1(a * w) - np.log(w) - log_expm1(target)


def bracketed(a: np.ndarray, target: float, halvings: int) -> tuple[np.ndarray, np.ndarray]:
    """Ends of a bracket of the root after halvings, from an upper end that is doubled until it is infeasible."""
    high = np.full(a.size, 2.0)
    while (excess(a, high, target) <= 0).any():
        high = np.where(excess(a, high, target) <= 0, 2 * high, high)
    low = np.ones(a.size) if halvings > 60 else high / 2
    for _ in range(halvings):
        middle = 0.5 * (low + high)
        feasible = excess(a, middle, target) <= 0
        low, high = np.where(feasible, middle, low), np.where(feasible, high, middle)
    return low, high


def lambert(a: np.ndarray, target: float) -> np.ndarray:
    """max(1, -W_{-1}(-c e^{-c}) / a - 1/E), c = a/E."""
    c = a / math.expm1(target)
    with np.errstate(invalid="ignore"):
        w = -lambertw(-c * np.exp(-c), k=-1).real / a - 1 / math.expm1(target)
    return np.maximum(np.where(np.isfinite(w), w, 1.0), 1.0)


@pytest.mark.parametrize("target", TARGETS)
def test_solvers_agree_and_weights_are_feasible_and_largest(target: float) -> None:
    a = target * RATIOS
    w = optimal_weights(a, target)
    assert (Power(a).sampled(1 / w) <= target * (1 + 1e-12)).all() and (w >= 1).all()
    assert w[:300] == pytest.approx(bracketed(a, target, 2500)[0][:300], rel=1e-8)
    if target <= 700:
        assert w[:300] == pytest.approx(lambert(a, target)[:300], rel=1e-8)
    # one step further is infeasible
    assert (excess(a, w * (1 + 1e-9), target) > 0)[:300].all()


@pytest.mark.parametrize("target", [1e-3, 1.0, 3.0])
def test_records_of_hardly_any_influence_have_the_largest_weights_too(target: float) -> None:
    """At slopes below 1e-16 of the target the derivative at the first guess is lost to rounding."""
    a = target * np.geomspace(1e-26, 1e-8, 50)
    w = optimal_weights(a, target)
    assert w == pytest.approx(lambert(a, target), rel=1e-9)
    assert (excess(a, w, target) <= 1e-12).all()


def test_a_generic_optimiser_of_the_joint_problem_finds_the_same_size() -> None:
    target, a = 1.0, np.array([0.05, 0.2, 0.4, 0.7, 0.9])

    def room(w: np.ndarray) -> np.ndarray:
        return target - Power(a).sampled(np.minimum(1 / w, 1.0))

    found = minimize(
        lambda w: float(np.sum(1 / w)), np.full(5, 1.01), method="SLSQP", bounds=[(1.0, 1e3)] * 5,
        constraints=[{"type": "ineq", "fun": room}], options={"maxiter": 500, "ftol": 1e-12},
    )  # fmt: skip
    assert found.fun == pytest.approx((1 / optimal_weights(a, target)).sum(), abs=1e-6)


@pytest.mark.parametrize("target", [0.5, 3.0, 1000.0])
def test_released_weights_are_middles_after_eleven_halvings(target: float) -> None:
    a = target * np.concatenate([np.geomspace(1e-3, 0.999, 4000), [1.0]])
    low, high = bracketed(a, target, 11)
    assert (released_weights(a, target) == 0.5 * (low + high)).all()


def test_the_limit_of_a_free_target_is_weight_1() -> None:
    assert optimal_weights([2.0], 2.0)[0] == 1.0
    assert optimal_weights(np.array([]), 2.0).size == 0


@pytest.mark.parametrize(
    ("slopes", "target", "message"),
    [
        ([0.5], 0.0, "target epsilon must be above 0"),
        ([0.5], math.nan, "target epsilon must be finite"),
        ([0.0], 1.0, "slopes must be above 0.*cap it"),
        ([2.0], 1.0, "at least the largest unsampled loss = 2"),
        ([math.inf], 1.0, "slopes must be finite"),
    ],
)
def test_bad_targets_are_refused_in_a_sentence(slopes: list[float], target: float, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        optimal_weights(slopes, target)
