"""Recycled releases against dp-accounting: its connected dots of a profile that this test computes
by itself."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from scipy.special import ndtr

from benchmarks import peers
from dpsub.recycling import GaussianKernel, LaplaceKernel, Recycled
from dpsub.recycling.composition import account


def divergence(law: Recycled, x: np.ndarray) -> np.ndarray:
    """Return H at log orders x, from cells between all changes of the likelihood ratio: each counts
    wholly or not at all."""
    d, scale = law.sensitivity, law.kernel.scale

    def cdf(n: np.ndarray) -> np.ndarray:
        if law.kernel.name == "gaussian":
            return np.asarray(ndtr(n / scale))
        return np.where(
            n < 0,
            0.5 * np.exp(np.minimum(n, 0) / scale),
            1 - 0.5 * np.exp(-np.maximum(n, 0) / scale),
        )

    keep = 1 - law.rate
    total = cdf(np.array(law.upper)) - cdf(np.array(law.lower))
    total = total + keep * (1 - total)
    cuts = sorted({-math.inf, law.lower, law.upper, law.lower + d, law.upper + d, math.inf})
    result = np.zeros(x.shape)
    for low, high in pairwise(cuts):
        first = 1.0 if law.lower <= low and high <= law.upper else keep
        second = 1.0 if law.lower + d <= low and high <= law.upper + d else keep
        order = x - math.log(first / second)
        if law.kernel.name == "gaussian":
            end = d / 2 - order * scale**2 / d
        else:
            m = d / scale
            end = np.where(
                order >= m, -np.inf, np.where(order < -m, np.inf, (d - scale * order) / 2)
            )
        end = np.clip(end, low, high)
        mass, moved = cdf(end) - cdf(np.array(low)), cdf(end - d) - cdf(np.array(low - d))
        result += first * mass - np.exp(x) * second * moved
    return np.clip(result / total, 0.0, 1.0)


@pytest.mark.parametrize(
    ("law", "times", "epsilon", "last"),
    [
        (Recycled.within(GaussianKernel(4.08642), 0.208565, 1.0, 1.0), 10, 3.45, 8.0),
        (Recycled.within(GaussianKernel(4.08642), 0.208565, 1.0, 1.0), 100, 14.5, 8.0),
        (Recycled.within(GaussianKernel(2.0), 0.7, 0.4, 1.0), 20, 12.0, 20.0),
        (Recycled.within(LaplaceKernel(10.0), 0.05, 3.0, 1.0), 1000, 17.6, 0.3),
        (Recycled.within(LaplaceKernel(2.0), 0.5, 0.7, 1.0), 20, 8.0, 2.0),
    ],
    ids=str,
)
def test_the_limit_of_their_upper_bounds_lies_in_ours(
    law: Recycled, times: int, epsilon: float, last: float
) -> None:
    ends = account(law, times, epsilon=epsilon, width=2e-3)
    fine, coarse = (
        peers.self_dual_upper(lambda x: divergence(law, x), step, last)
        .self_compose(times)
        .get_delta_for_epsilon(epsilon)
        for step in (1e-3, 2e-3)
    )
    # their errors fall with the square of the step
    limit = fine - (coarse - fine) / 3
    assert ends.kind == "exact"
    assert ends.lower <= limit * (1 + 1e-5)
    assert limit * (1 - 1e-5) <= ends.upper <= fine * (1 + 2e-3)
    assert ends.upper - ends.lower <= 2e-3 * ends.upper
