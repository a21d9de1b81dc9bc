"""Numbers of the errata that follow from no table of the run."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from dpsub.papers.schuchardt import bounds

N, BATCH = 100, 8  # records and draws of Figure 13


def printed_weight(i: int, n: int = N, batch: int = BATCH) -> Fraction:
    """Return the weight of i copies that the proof of Theorem L.5 prints."""
    return Fraction(1, n) ** i * Fraction(n - 1, n) ** (batch - i)


def law_of_draws(i: int, n: int = N, batch: int = BATCH) -> Fraction:
    """Return the probability of i copies of a record in draws with replacement."""
    return math.comb(batch, i) * printed_weight(i, n, batch)


def law_of_multisets(i: int, n: int = N, batch: int = BATCH) -> Fraction:
    """Return the probability of i copies in a uniform multiset, as Definition L.2 has it."""
    others = math.comb(n - 1 + batch - i - 1, batch - i)
    return Fraction(others, math.comb(n + batch - 1, batch))


def printed_sum() -> float:
    return float(sum(printed_weight(i) for i in range(BATCH + 1)))


def corrected(epsilon: float) -> float:
    """Return delta by Theorem L.5 with binomial weights, at sigma = 1."""
    first = bounds.mixture(bounds.drawn(BATCH, 1 / N))
    return bounds.delta(epsilon, "gaussian", 1.0, first, first * np.array([-1, 1]))


def attacked_multisets(epsilon: float) -> float:
    """Return delta that counting a record attains, if samples are uniform multisets."""
    weights = np.log([float(law_of_multisets(i)) for i in range(BATCH + 1)])
    return bounds.delta(epsilon, "gaussian", 1.0, bounds.mixture(weights), bounds.NOTHING)


def transported(alpha: int, divisor: int, noise: float = 5.0) -> float:
    """Return Proposition H.7 for one record of a batch that holds all records, where the exact
    divergence is that of the Gaussian mechanism; its logarithm is divided by `divisor`."""
    return alpha * (alpha - 1) / (2 * noise**2) / divisor
