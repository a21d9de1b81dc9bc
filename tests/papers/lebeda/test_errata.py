"""One test an erratum of Lebeda et al.: what errata.md says, shown by a computation."""

from __future__ import annotations

import numpy as np
import pytest

from dpsub.papers.lebeda.evidence import attained, removed


@pytest.mark.parametrize(("noise", "steps"), [(1, 10), (2, 100), (4, 100)])
def test_le1_an_attack_attains_more_than_a_removed_record(noise: float, steps: int) -> None:
    ratio = attained(noise, steps) / removed(noise, steps)
    assert 1.001 < ratio < 1.01


def test_le1_in_one_step_a_removed_record_is_worst() -> None:
    assert attained(2, 1) == pytest.approx(removed(2, 1), rel=1e-3)


def step(value: np.ndarray, orders: np.ndarray, first: tuple[float, float], q: float) -> np.ndarray:
    """Return the mean of a value of the order that is left after one step, by quadrature over its
    output: the record's mean is `first[0]` on the one side and `first[1]` on the other."""
    x = np.linspace(-9, 11, 4001)
    density = np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi)
    sides = [1 - q + q * np.exp(mean * x - mean**2 / 2) for mean in first]
    mass = density * sides[0] * (x[1] - x[0])
    log_ratio = np.log(sides[0] / sides[1])
    left = np.log(orders)[:, None] - log_ratio
    return np.interp(left, np.log(orders), value) @ mass


def test_le1_two_steps_by_quadrature() -> None:
    # noise 1, rate .3: the value of the better choice of the others after each output
    q, orders = 0.3, np.exp(np.linspace(-12, 12, 1201))
    end = np.maximum(1 - orders, 0)
    pairs = ((2.0, 0.0), (0.0, -2.0))
    always = [step(step(end, orders, pair, q), orders, pair, q) for pair in pairs]
    last = np.max([step(end, orders, pair, q) for pair in pairs], axis=0)
    chosen = np.max([step(last, orders, pair, q) for pair in pairs], axis=0)
    gain = chosen - np.max(always, axis=0)
    assert gain.max() > 1e-3 and gain.min() > -1e-9
