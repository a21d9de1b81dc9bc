"""A zeroed-out record in samples without replacement with Laplace noise (docs/proofs/zero_out.md,
Theorem 73): closed forms next to sums over a fine grid, and data sets that are enumerated."""

from __future__ import annotations

import math
from itertools import combinations
from typing import Any

import numpy as np
import pytest

import dpsub
from dpsub.accounting.engine.laplace_pairs import included_once, zeroed_once
from dpsub.streams import stream

T = np.linspace(-40.0, 40.0, 80_001)


def laplace(centre: float, s: float) -> np.ndarray:
    """Return the masses of small cells of the line."""
    return np.exp(-np.abs(T - centre) / s) / (2 * s) * (T[1] - T[0])


def divergence(p: np.ndarray, q: np.ndarray, order: float) -> float:
    return float(np.maximum(p - order * q, 0.0).sum())


def released(numbers: list[float], m: int, s: float) -> np.ndarray:
    """Return the law of the output on a data set: every subset of m records."""
    subsets = list(combinations(numbers, m))
    return np.sum([laplace(sum(subset), s) for subset in subsets], axis=0) / len(subsets)


@pytest.mark.parametrize("rate", [0.02, 0.5, 0.9])
@pytest.mark.parametrize("s", [0.5, 1.0, 4.0])
def test_closed_forms_are_sums_over_the_line(rate: float, s: float) -> None:
    base = (1 - rate) * laplace(0.0, s)
    far, near = base + rate * laplace(2.0, s), base + rate * laplace(1.0, s)
    for x in (0.0, 0.05, 0.3, 1.0, 2.5):
        exact = divergence(far, near, math.exp(x)), divergence(near, laplace(0.0, s), math.exp(x))
        proved = [
            float(profile(rate, 1 / s)(np.array([x]))[0])
            for profile in (zeroed_once, included_once)
        ]
        assert proved == pytest.approx(exact, abs=2e-5)


def test_no_data_sets_lie_above() -> None:
    rng = stream(73, experiment="laplace", cell={}, role="data", replicate=0)
    beaten = 0
    for _ in range(60):
        n = int(rng.integers(2, 5))
        m, s = int(rng.integers(1, n)), float(rng.choice([0.5, 1.0, 3.0]))
        others = [float(rng.choice([-1, 1, 0, rng.uniform(-1, 1)])) for _ in range(n - 1)]
        if rng.random() < 0.5:
            others = [others[0]] * (n - 1)
        with_it, without = (released([v, *others], m, s) for v in (1.0, 0.0))
        for x in (0.0, 0.2, 0.8):
            forward, backward = (
                float(profile(m / n, 1 / s)(np.array([x]))[0])
                for profile in (zeroed_once, included_once)
            )
            order = math.exp(x)
            assert divergence(with_it, without, order) <= forward + 2e-5
            assert divergence(without, with_it, order) <= backward + 2e-5
            # the fault: a record that takes nobody's place
            beaten += divergence(with_it, without, order) > backward + 1e-3
    assert beaten > 0


def test_one_step_is_attained() -> None:
    for epsilon in (0.0, 0.2, 0.5):
        asked: dict[str, Any] = {"mechanism": "laplace", "adjacency": "zero_out"}
        found = dpsub.account(
            dpsub.Wor(2), 5, noise_multiplier=1.0, steps=1, epsilon=epsilon, **asked
        )
        with_it, without = (released([v, -1, -1, -1, -1], 2, 1.0) for v in (1.0, 0.0))
        exact = divergence(with_it, without, math.exp(epsilon))
        assert found.lower - 2e-5 <= exact <= found.upper + 2e-5
        assert found.upper < 1.005 * found.lower


def test_several_steps_lie_between_poisson_and_replacement() -> None:
    asked: dict[str, Any] = {"mechanism": "laplace", "noise_multiplier": 2.0, "steps": 20}
    asked |= {"epsilon": 0.5, "quick": True}
    found = dpsub.account(dpsub.Wor(5), 50, adjacency="zero_out", **asked)
    replaced = dpsub.account(dpsub.Wor(5), 50, **asked)
    poisson = dpsub.account(dpsub.Poisson(0.1), adjacency="zero_out", **asked)
    assert poisson.upper < found.lower < found.upper < replaced.upper
    assert found.upper < 1.5 * found.lower


def test_two_steps_as_they_are_enumerated() -> None:
    s, epsilon = 1.0, 0.4
    t = np.linspace(-14, 14, 1401)
    found = dpsub.account(
        dpsub.Wor(1),
        3,
        noise_multiplier=s,
        steps=2,
        epsilon=epsilon,
        mechanism="laplace",
        adjacency="zero_out",
    )
    best = 0.0
    for filler in (-1.0, 1.0, 0.0):
        p, q = (
            (np.exp(-np.abs(t - v) / s) + 2 * np.exp(-np.abs(t - filler) / s)) / (6 * s) * 0.02
            for v in (1.0, 0.0)
        )
        for first, second in ((p, q), (q, p)):
            joint = np.multiply.outer(first, first) - math.exp(epsilon) * np.multiply.outer(
                second, second
            )
            best = max(best, float(np.maximum(joint, 0.0).sum()))
    assert found.lower <= best * (1 + 1e-3) and best * (1 - 1e-3) <= found.upper
    assert found.lower > 0.98 * best


def test_all_records_in_each_sample_are_one_laplace_step() -> None:
    asked: dict[str, Any] = {"mechanism": "laplace", "adjacency": "zero_out"}
    found = dpsub.account(dpsub.Wor(4), 4, noise_multiplier=2.0, steps=1, delta=1e-6, **asked)
    # beyond the largest loss, 1 / s, nothing is left
    assert found.kind == "exact" and found.upper == pytest.approx(0.5, rel=1e-3)
