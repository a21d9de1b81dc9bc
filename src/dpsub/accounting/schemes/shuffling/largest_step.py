"""Shuffled epochs: an attack that looks at the largest step of an epoch alone.

All other records are equal fillers. Up to a translation the output of an epoch is then the mixture
of N(x e_j, s^2 I) over its T steps j, against that of N(y e_j, s^2 I). `LargestStep` gives the law
of the largest coordinate under both; `shuffling.scheme` takes it as a lower bound
(docs/proofs/shuffling.md).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import log_ndtr

from dpsub.accounting.engine.cell_masses import MassBounds, tail_differences
from dpsub.accounting.engine.outputs import EpochOutputs
from dpsub.accounting.engine.statistic import Statistic

_EPS = float(np.finfo(float).eps)
_FARTHEST = 1e3  # deviations: beyond it log Phi is 0, or that of a mass below the smallest double


@dataclass(frozen=True)
class LargestStep(Statistic):
    """The largest of T outputs N(0, s^2); one has the mean `x` under P, and `y` under Q; 0
    <= y < x. Which of them has it does not change the law of the largest.

    With probability 1 - `in_steps` the record is dropped, and all have the mean 0.
    """

    steps: int
    x: float
    y: float
    noise_multiplier: float
    in_steps: float = 1.0

    @property
    def outputs(self) -> EpochOutputs | None:
        if self.in_steps < 1:
            return None
        return EpochOutputs(self.steps, 1, self.x, self.y, self.noise_multiplier)

    # the largest of T outputs is beyond sqrt(2 ln T) deviations as seldom as one is beyond 0
    def range(self, tail: float) -> tuple[float, float]:
        reach = math.sqrt(-2 * math.log(tail)) * self.noise_multiplier
        return -reach, self.x + reach + math.sqrt(2 * math.log(self.steps)) * self.noise_multiplier

    def masses(self, edges: np.ndarray) -> tuple[MassBounds, MassBounds]:
        return self._with_dropped(edges, self.x), self._with_dropped(edges, self.y)

    def _with_dropped(self, edges: np.ndarray, mean: float) -> MassBounds:
        if self.in_steps == 1:
            return self._masses(edges, mean)
        there, dropped = self._masses(edges, mean), self._masses(edges, 0.0)
        # shares and their products are off by a few roundings
        low, high = (
            (self.in_steps * of + (1 - self.in_steps) * without) * (1 + sign * 8 * _EPS)
            for of, without, sign in zip(there, dropped, (-1, 1), strict=True)
        )
        return low, high

    def _masses(self, edges: np.ndarray, mean: float) -> MassBounds:
        return masses_of_largest(edges, [(mean, 1), (0.0, self.steps - 1)], self.noise_multiplier)


def masses_of_largest(
    edges: np.ndarray, outputs: Sequence[tuple[float, int]], noise_multiplier: float
) -> MassBounds:
    """Return masses between edges of the largest of independent outputs; so many have each mean.

    They are differences of the smaller tail of log P(largest <= t) = the sum of log Phi((t - mean)
    / s). Each logarithm is off by at most eps (16 + 8 z^2) of itself, its own error and that of z =
    (t - mean) / s.
    """
    log_below, error = np.zeros(edges.size), np.zeros(edges.size)
    for centre, count in outputs:
        z = np.clip((edges - centre) / noise_multiplier, -_FARTHEST, _FARTHEST)
        log_part = count * log_ndtr(z)
        log_below += log_part
        error += _EPS * (16 + 8 * z * z) * np.abs(log_part)
    error = np.minimum(error, 1.0)
    # an error e of the logarithm is one of at most 2 e of exp, e <= 1
    below, above = np.exp(log_below), -np.expm1(log_below)
    below_error = 2 * (error + 2 * _EPS) * below
    above_error = 2 * error * below + 4 * _EPS * above
    left = above[:-1] > 0.5
    masses = tail_differences(below, above, left)
    errors = np.where(left, below_error[1:] + below_error[:-1], above_error[1:] + above_error[:-1])
    return np.maximum(masses - errors, 0.0), np.maximum(masses, 0.0) + errors
