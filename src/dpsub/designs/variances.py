"""Design variances of the Horvitz-Thompson estimator of a total."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np


def simple(y: np.ndarray, m: int) -> float:
    """Return N^2 (1 - m/N) S^2/m for a simple random sample of m of N; infinite for m = 0, 0 for a census."""
    n = len(y)
    if m >= n:
        return 0.0
    return n * n * (1 - m / n) * float(y.var(ddof=1)) / m if m else math.inf


def random_size(y: np.ndarray, sizes: Mapping[int, float]) -> float:
    """Return the variance of sum(y in S) N / E[m] for samples without replacement of a random size m.

    E[m (1 - m/N)] S^2 (N/E[m])^2 within sizes, Var(m) mean(y)^2 (N/E[m])^2 between them.
    """
    n, mean = len(y), math.fsum(m * p for m, p in sizes.items())
    if mean == 0:
        return math.inf
    within = math.fsum(p * m * (1 - m / n) for m, p in sizes.items()) * (float(y.var(ddof=1)) if n > 1 else 0.0)
    between = math.fsum(p * (m - mean) ** 2 for m, p in sizes.items()) * float(y.mean()) ** 2
    return (n / mean) ** 2 * (within + between)


def poisson(y: np.ndarray, pi: np.ndarray) -> float:
    """Return sum (1/pi - 1) y^2."""
    return float(((1 / pi - 1) * y * y).sum())


def clustered(y: np.ndarray, clusters: np.ndarray, drawn: int, second_stage: float) -> float:
    """Return k^2 (1 - l/k) S_t^2/l over the totals t of the k clusters, plus (k/l)(1/r - 1) sum y^2 within them."""
    totals = np.bincount(clusters, weights=y)
    return simple(totals, drawn) + len(totals) / drawn * (1 / second_stage - 1) * float((y * y).sum())


def pps_with_replacement(y: np.ndarray, sizes: np.ndarray, m: int) -> float:
    """Return sum p (y/p - Y)^2 / m, that of the Hansen-Hurwitz estimator, which takes the place of Horvitz-Thompson."""
    p = sizes / sizes.sum()
    return float((p * (y / p - y.sum()) ** 2).sum()) / m


def largest_entropy(y: np.ndarray, pi: np.ndarray) -> float:
    """Return Hajek's approximation for conditional Poisson samples; exact for simple random samples.

    sum b (y/pi - B)^2 with b = pi (1 - pi) c, B the b-weighted mean of y/pi and c = n'/(n' - 1), n' the number of units
    that are not certain.
    """
    open_units = pi < 1
    p, z = pi[open_units], y[open_units] / pi[open_units]
    if len(p) < 2:
        return 0.0
    b = p * (1 - p) * len(p) / (len(p) - 1)
    found = float((b * (z - (b * z).sum() / b.sum()) ** 2).sum())
    return found if found > 1e-20 * float(y.sum()) ** 2 else 0.0  # round-off where y is proportional to size


def one_cluster(y: np.ndarray, clusters: np.ndarray) -> float:
    """Return sum pi (t/pi - Y)^2 for one cluster drawn with pi proportional to its number of records."""
    totals, counts = np.bincount(clusters, weights=y), np.bincount(clusters)
    pi = counts / counts.sum()
    return float((pi * (totals / pi - y.sum()) ** 2).sum())


def systematic(y: np.ndarray, step: int) -> float:
    """Return the variance of `step` times the sample total over all starts."""
    totals = np.array([y[start::step].sum() for start in range(step)])
    return float(((step * totals - y.sum()) ** 2).mean())


def stratified(y: np.ndarray, strata: np.ndarray, allocation: Sequence[int]) -> float:
    """Return the sum of `simple` over the strata."""
    return math.fsum(simple(y[strata == h], m) for h, m in enumerate(allocation))
