"""What draws show: lower bounds of the loss of weighted DP-Lloyd, and how well samples stand in for
all rows.

*Canaries.*  The code in use is played with and without a canary: an event chosen on one half of the
draws has exact intervals (Clopper and Pearson) on the other half; the log of lower end with over
upper end without is below the loss. *Coresets.*  Theorem 15: |cost of all - cost of sample| <=
(e/2)(cost of all at C + at the mean) for all C of at most k centres at once, for independent draws.
`coreset_deviation` is the least e for one C, for any weighted sample.
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
_BLOCK = 2000  # runs that are played together
_MOST_NUMBERS = 1 << 28


@dataclass(frozen=True)
class CanaryAudit:
    """The loss that one attack has shown, `lower` at a confidence, beside the one promised, in
    nats; `hits`: how often the event came with and without the canary, of `draws` each."""

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
    """Choose the best threshold on the first halves, judge it on the second ones; `statistics`: by
    name, one number a draw with and without the canary."""
    level = checks.real("confidence", confidence, above=0, below=1)
    best, name, threshold = -math.inf, "", 0.0
    for tried, (first, second) in statistics.items():
        half = first.size // 2
        for place in np.unique(np.quantile(first[:half], np.linspace(0, 1, 64))):
            bound = _bound(first[:half] >= place, second[:half] >= place, level)
            if bound > best:
                best, name, threshold = bound, tried, float(place)
    first, second = (values[values.size // 2 :] >= threshold for values in statistics[name])
    hits = int(np.count_nonzero(first)), int(np.count_nonzero(second))
    lower = max(0.0, _bound(first, second, level))
    return CanaryAudit(
        attack, mode, promised, lower, f"{name} >= {threshold:.6g}", hits, first.size, level
    )


def _bound(first: np.ndarray, second: np.ndarray, confidence: float) -> float:
    low, _ = clopper_pearson(int(np.count_nonzero(first)), first.size, confidence)
    _, high = clopper_pearson(int(np.count_nonzero(second)), second.size, confidence)
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
    """Play a canary of length `norm` (noise on sums has scale 1), sampled at rate q, alone in a
    cluster. Statistics: the log likelihood ratio of all rounds under the printed density, and how
    near the first noisy sum comes to its place, which finds the pole of a radius that is
    exponential in d > 1 (R1). Half of the `draws` each judge."""
    d = checks.integer("d", d, at_least=1, at_most=10**6)
    norm, chance = moderate("norm", norm), float(inclusion(q))
    draws = checks.integer("draws", draws, at_least=100, at_most=_MOST_NUMBERS // d)
    plan = Lloyd(draws, 1.0, beta_count, mode, max(norm, 1.0), n_iterations)
    weight, place = 1 / chance, norm / chance * np.eye(1, d)[0]
    promised = float(loss_when_removed(weight * float(plan.slopes(np.array(norm))), chance))
    ratios, distances = [], []
    for present in (True, False):
        included = (rng.random(draws) < chance) & present
        ratio = np.zeros(draws)
        for turn in range(plan.n_iterations):
            # one plan of many clusters draws the noise of as many runs of one cluster
            counts, sums = plan.noise(d, rng)
            counts += weight * included
            sums[:, 0] += place[0] * included
            apart = np.linalg.norm(sums - place, axis=1)
            ratio += (
                (np.abs(counts) - np.abs(counts - weight)) / beta_count
                + np.linalg.norm(sums, axis=1)
                - apart
            )
            if turn == 0:
                distances.append(-apart)
        ratios.append(ratio)
    statistics = {"log likelihood ratio": ratios, "minus distance to the canary": distances}
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
    """Play an outlier next to n points on a sphere: two clusters, one round, no sampling, only
    noisy counts seen. As a first centre it has a cluster for itself; without it any two points
    divide the others about evenly (E7). With centres independent of the data one count differs by
    1: Proposition 13 promises `loss` = 1 / beta_count."""
    n = checks.integer("n", n, at_least=2, at_most=10**6)
    d = checks.integer("d", d, at_least=1, at_most=_MOST_NUMBERS // max(n, 2 * _BLOCK))
    draws = checks.integer("draws", draws, at_least=100, at_most=_MOST_NUMBERS)
    u = rng.standard_normal((n, d))
    sphere = u / np.linalg.norm(u, axis=1, keepdims=True)
    outlier = 10.0 * np.eye(1, d)
    plan = Lloyd(2, 1.0, 1 / moderate("loss", loss), mode, 10.0, 1)
    facts = DataFacts(n, d, 10.0, 1.0)
    smallest = []
    for points in (np.concatenate([sphere, outlier]), sphere):
        sample = WeightedSample(np.arange(points.shape[0]), np.ones(points.shape[0]))
        values = np.empty(draws)
        for start in range(0, draws, _BLOCK):
            size = min(_BLOCK, draws - start)
            # centres and noise of many runs at once are those of one run with many clusters
            if mode == "repaired":
                centres = fixed_centres(facts, 2 * size, rng).reshape(size, 2, d)
            else:
                centres = np.stack([drawn_centres(points, sample, 2, rng) for _ in range(size)])
            counts, _ = clusters(points, centres)
            noisy = counts + replace(plan, n_clusters=2 * size).noise(1, rng)[0].reshape(size, 2)
            values[start : start + size] = -noisy.min(axis=1)
        smallest.append(values)
    return _shown("first_centres", mode, loss, {"minus smaller count": smallest}, confidence)


def coreset_distribution(points: np.ndarray) -> np.ndarray:
    """Return 1/(2n) + |x_i - mean|^2 / (2 sum of these), shape (n,): sums to 1; ArgumentError if
    all rows are alike.

    Theorem 15: lightweight coresets of Bachem et al. 2018, whose distances are squared."""
    rows = checked_points(points)
    squares = ((rows - rows.mean(axis=0, dtype=float)) ** 2).sum(axis=1, dtype=float)
    total = float(squares.sum())
    if not total > 0:
        raise ArgumentError(
            "rows must not all be alike, got a total squared distance of 0; any sample will do"
        )
    return np.asarray(0.5 / rows.shape[0] + 0.5 * squares / total)


def coreset_sample(
    points: np.ndarray, m: int, kind: str, rng: np.random.Generator
) -> WeightedSample:
    """Draw m rows independently with weights 1 / (m p), or each on its own with probability m p and
    weight 1 / (m p).

    Independent draws may repeat a row, whose weights then add up. ArgumentError if m p exceeds 1
    for the latter."""
    checks.one_of("kind", kind, CORESET_KINDS)
    chances = coreset_distribution(points)
    if kind == "poisson":
        squares = (chances - 0.5 / chances.size) * 2 * chances.size
        q = coreset_rates(np.sqrt(np.maximum(squares, 0.0)), m, n=chances.size, mean_square=1.0)
        return PoissonImportance(q).draw(rng)
    size = checks.integer("m", m, at_least=1, at_most=_MOST_NUMBERS)
    indices, times = np.unique(
        rng.choice(chances.size, size, p=chances / chances.sum()), return_counts=True
    )
    return WeightedSample(indices, times / (size * chances[indices]))


def coreset_deviation(
    points: np.ndarray, sample: WeightedSample, centres: np.ndarray
) -> np.ndarray:
    """2 |cost of all - of sample| / (cost of all + cost at the mean), sums of squares, (c,), at
    centres (c, k, d)."""
    full = total_costs(points, centres)
    at_mean = float(total_costs(points, points.mean(axis=0, dtype=float)[None, None, :])[0])
    return np.asarray(2 * np.abs(full - total_costs(points, centres, sample)) / (full + at_mean))


def worst_coreset_deviation(
    points: np.ndarray,
    sample: WeightedSample,
    n_clusters: int,
    rng: np.random.Generator,
    *,
    sets: int = 10,
) -> tuple[float, float]:
    """Largest deviation over sets of random rows, and over centres fitted to the sample: below that
    over all."""
    everything = WeightedSample(np.arange(points.shape[0]), np.ones(points.shape[0]))
    count = checks.integer("sets", sets, at_least=1, at_most=10**5)
    random = np.stack([drawn_centres(points, everything, n_clusters, rng) for _ in range(count)])
    first = np.stack([drawn_centres(points, sample, n_clusters, rng) for _ in range(count)])
    radius = float(np.sqrt(np.einsum("ij,ij->i", points, points, dtype=float).max())) * (1 + 1e-5)
    plan = Lloyd(n_clusters, 0, 0, "repaired", radius)
    # without noise only the ratios of weights matter; those of independent draws may be below 1
    scaled = WeightedSample(sample.indices, sample.weights / min(1.0, float(sample.weights.min())))
    fitted = run(points, scaled, [plan] * count, first, [rng] * count)
    at_random, at_fitted = (
        float(coreset_deviation(points, sample, centres).max()) for centres in (random, fitted)
    )
    return at_random, at_fitted
