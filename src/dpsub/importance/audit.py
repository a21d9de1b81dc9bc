"""Empirical audits: lower bounds on the loss of weighted DP-Lloyd, and how well coresets represent
all rows.

*Canaries.* The code in use is run with and without a canary. An event is chosen on one half of the
draws and has exact confidence intervals (Clopper and Pearson) on the other half. The log-ratio of
the lower limit with the canary to the upper limit without it is a lower bound on the loss.

*Coresets.* Theorem 15: |cost of all - cost of sample| <= (e/2)(cost of all at C + at the mean) for
all sets C of at most k centres at once, for independent draws. `coreset_deviation` is the smallest
e for one C and any weighted sample.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from dpsub import checks
from dpsub.errors import ArgumentError
from dpsub.importance.calibrate import DataFacts
from dpsub.importance.lloyd import Lloyd, clusters, drawn_centres, fixed_centres, run, total_costs
from dpsub.importance.losses import inclusion, loss_when_removed, moderate
from dpsub.importance.samplers import (
    PoissonImportance,
    WeightedSample,
    checked_points,
    coreset_rates,
)
from dpsub.sampling.laws import clopper_pearson

CORESET_KINDS = ("independent", "poisson")
_BLOCK = 2000  # runs that are computed together
_MOST_NUMBERS = 1 << 28


@dataclass(frozen=True)
class CanaryAudit:
    """Loss shown by one attack next to the promised loss, in nats.

    `lower` is a lower bound at the confidence level. `hits` are the numbers of draws, of `draws`
    each, in which the event occurred with and without the canary.
    """

    attack: str
    mode: str
    promised: float
    lower: float
    event: str
    hits: tuple[int, int]
    draws: int
    confidence: float

    @property
    def flagged(self) -> bool:
        """Whether the draws refute the claim."""
        return self.lower > self.promised


def _shown(
    attack: str,
    mode: str,
    promised: float,
    statistics: dict[str, list[np.ndarray]],
    confidence: float,
) -> CanaryAudit:
    """Choose the best threshold on the first halves of the draws and judge it on the second ones.

    `statistics` has, by name, one number for each draw with and without the canary.
    """
    level = checks.real("confidence", confidence, above=0, below=1)
    best, name, threshold = -math.inf, "", 0.0
    for candidate, (present, absent) in statistics.items():
        half = present.size // 2
        for quantile in np.unique(np.quantile(present[:half], np.linspace(0, 1, 64))):
            bound = _loss_bound(present[:half] >= quantile, absent[:half] >= quantile, level)
            if bound > best:
                best, name, threshold = bound, candidate, float(quantile)
    # The event was chosen on other draws, so that the intervals are valid for these.
    present, absent = (values[values.size // 2 :] >= threshold for values in statistics[name])
    hits = int(np.count_nonzero(present)), int(np.count_nonzero(absent))
    lower = max(0.0, _loss_bound(present, absent, level))
    event = f"{name} >= {threshold:.6g}"
    return CanaryAudit(attack, mode, promised, lower, event, hits, present.size, level)


def _loss_bound(present: np.ndarray, absent: np.ndarray, confidence: float) -> float:
    """Lower bound on the loss from the draws in which the event occurred."""
    low, _ = clopper_pearson(int(np.count_nonzero(present)), present.size, confidence)
    _, high = clopper_pearson(int(np.count_nonzero(absent)), absent.size, confidence)
    return math.log(low / high) if low > 0 else -math.inf


def audit_noise(
    mode: str,
    rng: np.random.Generator,
    *,
    d: int = 8,
    norm: float = 0.1,
    beta_count: float = 10.0,
    q: float = 0.5,
    n_iterations: int = 2,
    draws: int = 40_000,
    confidence: float = 0.99,
) -> CanaryAudit:
    """Audit the noise with a canary that is alone in a cluster.

    The canary has the length `norm`, where the noise on sums has scale 1, and is sampled at rate q.
    One statistic is the log-likelihood ratio of all rounds under the printed density. The other one
    is the distance of the first noisy sum from the canary, which finds the pole at 0 of a radius
    that is exponential in d > 1 (IM15). One half of the `draws` chooses the event, the other one
    judges it.
    """
    d = checks.integer("d", d, at_least=1, at_most=10**6)
    norm = moderate("norm", norm)
    rate = float(inclusion(q))
    draws = checks.integer("draws", draws, at_least=100, at_most=_MOST_NUMBERS // d)
    plan = Lloyd(draws, 1.0, beta_count, mode, max(norm, 1.0), n_iterations)
    weight = 1 / rate
    canary_sum = norm / rate * np.eye(1, d)[0]
    promised = float(loss_when_removed(weight * float(plan.slopes(np.array(norm))), rate))
    log_ratios, closeness = [], []
    for present in (True, False):
        included = (rng.random(draws) < rate) & present
        log_ratio = np.zeros(draws)
        for turn in range(plan.n_iterations):
            # One plan with many clusters draws the noise of as many runs with one cluster.
            counts, sums = plan.noise(d, rng)
            counts += weight * included
            sums[:, 0] += canary_sum[0] * included
            distance = np.linalg.norm(sums - canary_sum, axis=1)
            log_ratio += (
                (np.abs(counts) - np.abs(counts - weight)) / beta_count
                + np.linalg.norm(sums, axis=1)
                - distance
            )
            if turn == 0:
                closeness.append(-distance)
        log_ratios.append(log_ratio)
    statistics = {"log likelihood ratio": log_ratios, "minus distance to the canary": closeness}
    return _shown("noise", mode, promised, statistics, confidence)


def audit_first_centres(
    mode: str,
    rng: np.random.Generator,
    *,
    n: int = 60,
    d: int = 64,
    loss: float = 1.0,
    draws: int = 8000,
    confidence: float = 0.99,
) -> CanaryAudit:
    """Audit the first centres with an outlier next to n points on a sphere.

    There are two clusters, one round and no sampling, and the attack sees noisy counts alone. As a
    first centre the outlier has a cluster of its own; without it any two points divide the others
    about evenly (IM7). With centres independent of the data one count differs by 1, and Proposition
    13 promises `loss` = 1 / beta_count.
    """
    n = checks.integer("n", n, at_least=2, at_most=10**6)
    d = checks.integer("d", d, at_least=1, at_most=_MOST_NUMBERS // max(n, 2 * _BLOCK))
    draws = checks.integer("draws", draws, at_least=100, at_most=_MOST_NUMBERS)
    directions = rng.standard_normal((n, d))
    sphere = directions / np.linalg.norm(directions, axis=1, keepdims=True)
    outlier = 10.0 * np.eye(1, d)
    plan = Lloyd(2, 1.0, 1 / moderate("loss", loss), mode, 10.0, 1)
    facts = DataFacts(n, d, 10.0, 1.0)
    smaller_counts = []
    for points in (np.concatenate([sphere, outlier]), sphere):
        sample = WeightedSample(np.arange(points.shape[0]), np.ones(points.shape[0]))
        statistic = np.empty(draws)
        for start in range(0, draws, _BLOCK):
            size = min(_BLOCK, draws - start)
            # Centres and noise of many runs are those of one run with many clusters.
            if mode == "repaired":
                centres = fixed_centres(facts, 2 * size, rng).reshape(size, 2, d)
            else:
                centres = np.stack([drawn_centres(points, sample, 2, rng) for _ in range(size)])
            counts, _ = clusters(points, centres)
            on_counts, _ = replace(plan, n_clusters=2 * size).noise(1, rng)
            noisy = counts + on_counts.reshape(size, 2)
            statistic[start : start + size] = -noisy.min(axis=1)
        smaller_counts.append(statistic)
    statistics = {"minus smaller count": smaller_counts}
    return _shown("first_centres", mode, loss, statistics, confidence)


def coreset_distribution(points: np.ndarray) -> np.ndarray:
    """Sampling distribution 1/(2n) + |x_i - mean|^2 / (2 sum of these), shape (n,).

    These are the lightweight coresets of Bachem et al. (2018), with squared distances, of Theorem
    15. ArgumentError if all rows are alike.
    """
    rows = checked_points(points)
    squares = ((rows - rows.mean(axis=0, dtype=float)) ** 2).sum(axis=1, dtype=float)
    total = float(squares.sum())
    if not total > 0:
        raise ArgumentError(
            "rows must not all be equal, got a total squared distance of 0; any sample will do"
        )
    return np.asarray(0.5 / rows.shape[0] + 0.5 * squares / total)


def coreset_sample(
    points: np.ndarray, m: int, kind: str, rng: np.random.Generator
) -> WeightedSample:
    """Draw a coreset of (expected) size m with weights 1 / (m p).

    The kind "independent" draws m rows independently; a row may be repeated, and its weights then
    add up. The kind "poisson" includes each row with probability m p; ArgumentError if that
    exceeds 1.
    """
    checks.one_of("kind", kind, CORESET_KINDS)
    distribution = coreset_distribution(points)
    n = distribution.size
    if kind == "poisson":
        # Squared distances in units of their mean, so that `coreset_rates` gives m p.
        squares = (distribution - 0.5 / n) * 2 * n
        q = coreset_rates(np.sqrt(np.maximum(squares, 0.0)), m, n=n, mean_square=1.0)
        return PoissonImportance(q).draw(rng)
    size = checks.integer("m", m, at_least=1, at_most=_MOST_NUMBERS)
    draws = rng.choice(n, size, p=distribution / distribution.sum())
    indices, counts = np.unique(draws, return_counts=True)
    return WeightedSample(indices, counts / (size * distribution[indices]))


def coreset_deviation(
    points: np.ndarray, sample: WeightedSample, centres: np.ndarray
) -> np.ndarray:
    """2 |cost of all - cost of sample| / (cost of all + cost at the mean), shape (c,).

    Costs are sums of squared distances to the nearest of the centres, shape (c, k, d).
    """
    cost_of_all = total_costs(points, centres)
    cost_of_sample = total_costs(points, centres, sample)
    mean = points.mean(axis=0, dtype=float)[None, None, :]
    at_mean = float(total_costs(points, mean)[0])
    return np.asarray(2 * np.abs(cost_of_all - cost_of_sample) / (cost_of_all + at_mean))


def worst_coreset_deviation(
    points: np.ndarray,
    sample: WeightedSample,
    n_clusters: int,
    rng: np.random.Generator,
    *,
    sets: int = 10,
) -> tuple[float, float]:
    """Largest deviation over sets of random rows, and over centres fitted to the sample.

    Both are lower bounds on the largest deviation over all centres.
    """
    all_rows = WeightedSample(np.arange(points.shape[0]), np.ones(points.shape[0]))
    count = checks.integer("sets", sets, at_least=1, at_most=10**5)
    random = np.stack([drawn_centres(points, all_rows, n_clusters, rng) for _ in range(count)])
    initial = np.stack([drawn_centres(points, sample, n_clusters, rng) for _ in range(count)])
    # Room for the rounding of float32 rows.
    radius = float(np.sqrt(np.einsum("ij,ij->i", points, points, dtype=float).max())) * (1 + 1e-5)
    plan = Lloyd(n_clusters, 0, 0, "repaired", radius)
    # Without noise only the ratios of weights matter. Weights of independent draws may be below 1,
    # which the algorithm refuses: they are scaled.
    smallest = min(1.0, float(sample.weights.min()))
    scaled = WeightedSample(sample.indices, sample.weights / smallest)
    fitted = run(points, scaled, [plan] * count, initial, [rng] * count)
    at_random = float(coreset_deviation(points, sample, random).max())
    at_fitted = float(coreset_deviation(points, sample, fitted).max())
    return at_random, at_fitted
