"""How well samples stand in for all rows in the cost of centres: the distribution of the core-set theorem, measured.

The theorem bounds |cost of all - cost of sample| by (e/2)(cost of all at C + cost of all at the mean), for all sets C
of at most k centres at once, for independent draws of a size with an unnamed constant.  `deviation` is the least such
e for one C, for any weighted sample: also one drawn by the Poisson sampler, of which the theorem does not speak.
"""

from __future__ import annotations

import numpy as np

from dpsub import checks
from dpsub.errors import ArgumentError
from dpsub.importance.lloyd import Lloyd, checked_points, drawn_centres, run, total_costs
from dpsub.importance.samplers import PoissonImportance, WeightedSample, coreset_rates

KINDS = ("independent", "poisson")


def distribution(points: np.ndarray) -> np.ndarray:
    """Return 1/(2n) + |x_i - mean|^2 / (2 sum of these), shape (n,): sums to 1.

    Raises
    ------
    ArgumentError
        If all rows are alike.

    References
    ----------
    importance, Theorem 15 (lightweight core-sets of Bachem et al. 2018; distances are squared).
    """
    rows = checked_points(points)
    squares = ((rows - rows.mean(axis=0, dtype=float)) ** 2).sum(axis=1, dtype=float)
    total = float(squares.sum())
    if not total > 0:
        raise ArgumentError("rows must not all be alike, got a total squared distance of 0; any sample will do")
    return np.asarray(0.5 / rows.shape[0] + 0.5 * squares / total)


def draw(points: np.ndarray, m: int, kind: str, rng: np.random.Generator) -> WeightedSample:
    """Draw m rows independently with weights 1 / (m p), or each on its own with probability m p and weight 1 / (m p).

    Independent draws may repeat a row, whose weights then add up.

    Raises
    ------
    ArgumentError
        If the kind is unknown, or m p exceeds 1 for the Poisson sampler.
    """
    checks.one_of("kind", kind, KINDS)
    chances = distribution(points)
    if kind == "poisson":
        squares = (chances - 0.5 / chances.size) * 2 * chances.size
        q = coreset_rates(np.sqrt(np.maximum(squares, 0.0)), m, n=chances.size, mean_square=1.0)
        return PoissonImportance(q).draw(rng)
    drawn = rng.choice(chances.size, checks.integer("m", m, at_least=1), p=chances / chances.sum())
    indices, times = np.unique(drawn, return_counts=True)
    return WeightedSample(indices, times / (m * chances[indices]))


def deviation(points: np.ndarray, sample: WeightedSample, centres: np.ndarray) -> np.ndarray:
    """Return 2 |cost of all - cost of sample| / (cost of all + cost of all at the mean), sums of squares, shape (c,).

    Parameters
    ----------
    points : ndarray, shape (n, d)
    sample : WeightedSample
    centres : ndarray, shape (c, k, d)
        c sets of centres.
    """
    full = total_costs(points, centres)
    middle = points.mean(axis=0, dtype=float)
    at_mean = float(total_costs(points, middle[None, None, :])[0])
    return np.asarray(2 * np.abs(full - total_costs(points, centres, sample)) / (full + at_mean))


def worst_deviation(
    points: np.ndarray, sample: WeightedSample, n_clusters: int, rng: np.random.Generator, *, sets: int = 10
) -> tuple[float, float]:
    """Return the largest deviation over sets of random rows, and over centres fitted to the sample.

    Both are lower bounds of the supremum over all sets of centres.
    """
    everything = WeightedSample(np.arange(points.shape[0]), np.ones(points.shape[0]))
    count = checks.integer("sets", sets, at_least=1)
    random = np.stack([drawn_centres(points, everything, n_clusters, rng) for _ in range(count)])
    first = np.stack([drawn_centres(points, sample, n_clusters, rng) for _ in range(count)])
    radius = float(np.sqrt(np.einsum("ij,ij->i", points, points, dtype=float).max())) * (1 + 1e-5)
    plan = Lloyd(n_clusters, 0, 0, "repaired", radius)
    # without noise only the ratios of weights matter; those of independent draws may be below 1
    scaled = WeightedSample(sample.indices, sample.weights / min(1.0, float(sample.weights.min())))
    fitted = run(points, scaled, [plan] * count, first, [rng] * count)
    return float(deviation(points, sample, random).max()), float(deviation(points, sample, fitted).max())
