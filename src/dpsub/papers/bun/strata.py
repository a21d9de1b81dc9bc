"""Stratified sampling: a guarantee for each stratum, and allocations compared at one guarantee."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dpsub import checks
from dpsub.amplification.survey import rates
from dpsub.amplification.survey.sizes import rounding_checked


def proportional(rate: object, epsilon: float, sizes: Sequence[int], *, differing: int) -> float:
    """Return the loss of proportional allocation with randomised rounding in each stratum, for one
    stratum's records.

    The size condition is needed in the differing stratum only; upper, add_remove (bun, Theorem
    7.2).
    """
    # Other strata are the same in both populations, and their samples are independent: only the
    # differing one counts.
    return rounding_checked(
        rate, epsilon, checks.integer("the size of a stratum", sizes[differing], at_least=1)
    )


def certificate(allocation: Sequence[int], sizes: Sequence[int], change: int, base: float) -> float:
    """Return max_i log(1 + f_i/(N_i + 1) (e^(2 base) - 1)) + s_1 base, for an allocation that
    depends on the data. s_1 = `change` is its largest L1 change when one record is added or
    removed; upper, add_remove (bun, Lemma B.1).
    """
    # Lemma B.1 has the size of the larger neighbour, N + 1, in its rate; 2 base because a deletion-
    # DP mechanism loses twice under a replacement (erratum BN7).
    share = max(f / (n + 1) for f, n in zip(allocation, sizes, strict=True))
    return (
        rates.amplified(min(1.0, share), 2 * base)
        + checks.integer("change", change, at_least=0) * base
    )


def base_for_certificate(
    allocation: Sequence[int], sizes: Sequence[int], change: int, target: float
) -> float:
    """Return the largest base epsilon whose `certificate` is at most `target`, by bisection,
    rounded down."""
    target = checks.real("target", target, above=0)
    # At base = target / (change + 2) the certificate is at most the target, as its first term is at
    # most 2 base; the lower bound, which has been certified, is the answer.
    low, high = target / (change + 2), 2.0 * target + 60.0
    for _ in range(200):
        middle = 0.5 * (low + high)
        if not low < middle < high:
            break
        low, high = (
            (middle, high)
            if certificate(allocation, sizes, change, middle) <= target
            else (low, middle)
        )
    return low


def base_for_public(allocation: Sequence[int], sizes: Sequence[int], target: float) -> float:
    """Return the base epsilon for an allocation fixed in advance: the smallest over strata of
    `rates.base_for`.

    Substitution within a stratum, mechanisms that are epsilon-DP under substitute.
    """
    # A public allocation cannot leak through the sizes: simple random sampling of each stratum is
    # all there is.
    return min(rates.base_for(f / n, target) for f, n in zip(allocation, sizes, strict=True) if f)


def private_weights(
    sizes: Sequence[int],
    deviations: Sequence[float],
    upper_limit: float,
    epsilon: float,
    rng: np.random.Generator,
) -> np.ndarray:
    """Return N_i S_i with Laplace noise, epsilon-DP when one value in [0, B] is substituted within
    its stratum.

    N_i S_i (S_i with divisor N_i - 1) is N_i / sqrt(N_i - 1) times the length of the centred
    values, which one value moves by at most B sqrt((N_i - 1)/N_i): the sensitivity is B sqrt(N_i),
    in one stratum only. Sizes and B, the `upper_limit`, are public. A weight below the scale of its
    noise is raised to it: no stratum is starved by chance.
    """
    upper_limit = checks.real("upper_limit", upper_limit, above=0)
    # One stratum changes, so the noise of one Laplace mechanism serves all strata.
    scale = (
        upper_limit
        * np.sqrt(np.array(sizes, dtype=float))
        / checks.real("epsilon", epsilon, above=0)
    )
    weights = np.array(sizes, dtype=float) * np.array(deviations, dtype=float)
    # Raising is post-processing of the noisy weights: no privacy is spent.
    return np.asarray(np.maximum(weights + rng.laplace(scale=scale), scale))


class Scenario(NamedTuple):
    """A possible population: sizes N_i and standard deviations (divisor N_i - 1) of the strata."""

    sizes: tuple[int, ...]
    deviations: tuple[float, ...]

    def sampling_variance(self, allocation: Sequence[int]) -> float:
        """Return the design variance of the mean, sum (N_i/N)^2 (1 - m_i/N_i) S_i^2/m_i (bun,
        Section 7.2)."""
        total = sum(self.sizes)
        # A stratum that is taken in full has no design variance: 1 - m_i/N_i is 0 there.
        return math.fsum(
            (n / total) ** 2 * max(0.0, 1 - m / n) * s * s / m
            for n, s, m in zip(self.sizes, self.deviations, allocation, strict=True)
        )

    def noise_variance(self, allocation: Sequence[int], base: float, upper_limit: float) -> float:
        """Return 2 (B max w/base)^2 for values in [0, B] and public weights w_i = N_i/(N m_i)."""
        total = sum(self.sizes)
        weight = max(n / (total * m) for n, m in zip(self.sizes, allocation, strict=True))
        return 2 * (upper_limit * weight / base) ** 2
