"""What canaries show: lower bounds of the loss of weighted DP-Lloyd from draws of the code that is used.

A data set with a canary and one without it are played many times.  On one half of the draws the event is chosen that
tells them apart best, on the other half its two frequencies give exact intervals (Clopper and Pearson), and the log
of the lower end with the canary over the upper end without it is below the loss.  Nothing is believed but the draws.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from dpsub import checks
from dpsub.discrete import clopper_pearson
from dpsub.importance.calibrate import DataFacts
from dpsub.importance.lloyd import Lloyd, clusters, drawn_centres, fixed_centres
from dpsub.importance.losses import inclusion, loss_when_removed
from dpsub.importance.samplers import WeightedSample

_THRESHOLDS = 64
_BLOCK = 2000


@dataclass(frozen=True)
class CanaryAudit:
    """What one attack has shown.

    Attributes
    ----------
    attack : {"noise", "first_centres"}
    mode : str
    promised : float
        The loss that is claimed, nats.
    lower : float
        Proved by the draws at `confidence`, at least 0.
    event : str
    hits : tuple of int
        How often the event came with and without the canary, out of `draws` each.
    draws : int
    confidence : float
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
    attack: str, mode: str, promised: float, statistics: dict[str, tuple[np.ndarray, np.ndarray]], confidence: float
) -> CanaryAudit:
    """Choose the threshold of the best statistic on the first halves, and judge it on the second halves.

    `statistics` has, by name, one number a draw with and without the canary; events are that it is above a threshold.
    """
    level = checks.real("confidence", confidence, above=0, below=1)
    best, chosen = -math.inf, ("", 0.0)
    for name, (first, second) in statistics.items():
        half = first.size // 2
        for threshold in np.unique(np.quantile(first[:half], np.linspace(0, 1, _THRESHOLDS))):
            bound = _bound(first[:half] >= threshold, second[:half] >= threshold, level)
            if bound > best:
                best, chosen = bound, (name, float(threshold))
    name, threshold = chosen
    first, second = (values[values.size // 2 :] >= threshold for values in statistics[name])
    hits = int(np.count_nonzero(first)), int(np.count_nonzero(second))
    event = f"{name} >= {threshold:.6g}"
    return CanaryAudit(attack, mode, promised, max(0.0, _bound(first, second, level)), event, hits, first.size, level)


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
    """Play a canary of length `norm` (noise on sums has scale 1), sampled at rate q, in a cluster without others.

    Statistics: the log likelihood ratio of all rounds under the printed density, and how near the first noisy sum
    comes to the canary's place.  The latter finds the pole of a radius that is exponential in d > 1 (R1).

    Parameters
    ----------
    mode : str
        Of `Lloyd`.
    draws : int
        With and without the canary each, half of which judge.
    """
    checks.integer("d", d, at_least=1)
    checks.real("norm", norm, above=0)
    plan = Lloyd(checks.integer("draws", draws, at_least=100), 1.0, beta_count, mode, max(norm, 1.0), n_iterations)
    chance = float(inclusion(q))
    place = np.zeros(d)
    place[0] = norm / chance
    weight = 1 / chance
    promised = float(loss_when_removed(weight * float(plan.slopes(np.array(norm))), chance))
    ratios, distances = [], []
    for present in (True, False):
        included = (rng.random(draws) < chance) & present
        ratio = np.zeros(draws)
        for turn in range(n_iterations):
            # one plan of many clusters draws the noise of as many runs of one cluster
            counts, sums = plan.noise(d, rng)
            counts += weight * included
            sums[:, 0] += place[0] * included
            apart = np.linalg.norm(sums - place, axis=1)
            ratio += (np.abs(counts) - np.abs(counts - weight)) / beta_count + np.linalg.norm(sums, axis=1) - apart
            if turn == 0:
                distances.append(-apart)
        ratios.append(ratio)
    statistics = {"log likelihood ratio": (ratios[0], ratios[1])}
    near = (distances[0], distances[1])
    statistics["minus distance to the canary"] = near
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
    """Play an outlier beside n points on a sphere: two clusters, one round, no sampling; only noisy counts are seen.

    Drawn as a first centre the outlier has a cluster for itself; without it any two points divide the others about
    evenly (E7).  With centres that do not depend on the data one count differs by 1.

    Parameters
    ----------
    loss : float
        1 / beta_count: what Proposition 13 promises for one noisy count.
    """
    checks.integer("draws", draws, at_least=100)
    u = rng.standard_normal((n, d))
    sphere = u / np.linalg.norm(u, axis=1, keepdims=True)
    outlier = np.zeros((1, d))
    outlier[0, 0] = 10.0
    plan = Lloyd(2, 1.0, 1 / checks.real("loss", loss, above=0), mode, 10.0, 1)
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
    return _shown("first_centres", mode, loss, {"minus smaller count": (smallest[0], smallest[1])}, confidence)
