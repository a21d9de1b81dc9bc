"""Against prv-accountant: its intervals of the same numbers hold ours, which are narrower.

Its interval for Poisson sampling is for adding a record or for removing it, whichever its variable stands for; the
larger of the two at these settings.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

import dpsub
from benchmarks import peers
from dpsub import sampling


@pytest.mark.parametrize(
    ("q", "s", "k", "delta"),
    [(0.01, 1.0, 1000, 1e-5), (0.05, 1.5, 200, 1e-6), (0.001, 0.7, 500, 1e-7), (0.2, 2.0, 20, 1e-5)],
)
def test_poisson_sampling(q: float, s: float, k: int, delta: float) -> None:
    low, high = peers.interval_poisson(q, s, k, delta, 0.01)
    found = dpsub.account(sampling.Poisson(q), noise_multiplier=s, steps=k, delta=delta, width=1e-3)
    assert low <= found.lower <= found.upper <= high
    assert found.upper - found.lower <= 0.1 * (high - low)


@pytest.mark.parametrize(
    ("n", "b", "m", "s", "k", "epsilon", "most"),
    [
        (10000, 118, 200, 4.0, 1000, 1.0, 15.0),
        (10000, 118, 200, 4.0, 200, 0.5, 15.0),
        (300, 50, 30, 3.0, 60, 1.5, 20.0),
    ],
)
def test_the_papers_pair_of_two_stages(n: int, b: int, m: int, s: float, k: int, epsilon: float, most: float) -> None:
    counts = np.arange(25)
    weights = b / n * binom.pmf(counts, m, 1 / b)
    weights[0] += 1 - b / n
    found = dpsub.account(
        sampling.MustOW(b, m), n, noise_multiplier=s, steps=k, epsilon=epsilon, width=2e-3, variant="paper"
    )
    low, high = peers.interval_mixture(
        peers.MirroredMixture(counts, weights, s), k, epsilon, 0.01, 1e-3 * found.upper, most
    )
    assert low <= found.lower <= found.upper <= high
    assert found.upper - found.lower <= 0.1 * (high - low)
