"""Numbers of the errata that follow from no table of the run, for the placeholders `computed`."""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import brentq

from dpsub.data import described
from dpsub.data.point_sets import squared_norms, twin
from dpsub.importance.calibrate import DataFacts, LloydCalibration, calibrate
from dpsub.importance.losses import loss_when_removed
from dpsub.papers.importance.experiments.cells import facts_of

SLOPE, ROUNDS = 0.05, 10
"""The constant c and the number of rounds T of the example of IM1."""
CLUSTERS = 25


def facts(name: str) -> DataFacts:
    return facts_of(described.of(name))


def second_derivative() -> float:
    """Return c^2 T^2 exp(c T), the second derivative of exp(c T w) at w = 1."""
    return (SLOPE * ROUNDS) ** 2 * math.exp(SLOPE * ROUNDS)


def printed_second_derivative() -> float:
    return ROUNDS**2 * SLOPE * math.exp(SLOPE * ROUNDS)


def optimal_weight() -> float:
    """Return the weight beyond 1 at which exp(eps(w)) = e + (w - 1)/2 + (w - 1)^2/2 meets 1 + w (e
    # 1 is a root too: the bracket begins beyond it.
    - 1)."""
    return float(
        brentq(lambda w: math.e + (w - 1) / 2 + (w - 1) ** 2 / 2 - 1 - w * math.expm1(1), 1.5, 10)
    )


def left_side(epsilon: float) -> float:
    """Return the left side of the inequality of IM5."""
    return math.exp(epsilon) * (epsilon - 1) + 1


def largest_core_size(name: str) -> float:
    """Return the largest size at which coreset rates are at most 1."""
    # Neither the target nor the size asked for enters the limit, lambda + (1 - lambda) r^2 / x
    # does.
    return float(calibrate("core", facts(name), target=3.0, m=20000).m_max)


def printed_limit(name: str) -> float:
    """Return n x / r^2, the limit of the text, for a data set of Table 1."""
    data = facts(name)
    # The limit of the text is that of lambda = 0 (IM6).
    return data.n * data.mean_square / data.radius**2


def stated_split(name: str) -> LloydCalibration:
    """Return the noise of a data set of Table 1 without sampling, as the text splits it, at epsilon
    = 3."""
    return calibrate("full", facts(name), target=3.0, mode="stated")


def noise_on_counts() -> float:
    return stated_split("kdd_protein").beta_count


def largest_share_of_counts() -> float:
    """Return the largest share of the budget that counts get on a data set of Table 1 other than
    Ijcnn1."""
    splits = [stated_split(name) for name in described.EIGHT if name != "ijcnn1"]
    # By Proposition 13 the loss at the radius is s (r + offset), and counts spend s times the
    # offset.
    return max(split.offset / (split.facts.radius + split.offset) for split in splits)


def points_a_cluster() -> float:
    return facts("kdd_protein").n / CLUSTERS


def amplified(epsilon: float, rate: float) -> float:
    # Proposition 3: a profile that ignores the weight.
    return float(loss_when_removed(epsilon, rate))


def approximated(epsilon: float, rate: float) -> float:
    # Section 2: epsilon - log(1/p).
    return epsilon + math.log(rate)


def misprinted(rate: float) -> float:
    """Return the amplified loss with exp(1/q) in place of exp(eps(1/q, x))."""
    return math.log1p(rate * math.expm1(1 / rate))


def above_the_target(relative: bool = False) -> float:
    """Return the amount by which weights of the released code exceed a target of 1000, in nats or
    relative to it."""
    # Weights depend on norms only: two thousand rows show what half a million would.
    points, _ = twin(described.of("song"), 2000)
    data, norms = DataFacts.of(points), np.sqrt(squared_norms(points))
    # Size by rate, as a twin has fewer rows than the paper's data.
    noise = calibrate("opt", data, target=1000.0, m=0.05 * data.n, mode="released", norms=norms)
    return float(noise.psi - 1000) / (1000 if relative else 1)
