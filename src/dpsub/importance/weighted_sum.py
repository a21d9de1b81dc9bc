"""The weighted sum with Laplace noise: losses, its exact error under any inclusion probabilities, and draws of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dpsub import checks
from dpsub.importance.losses import inclusion
from dpsub.importance.samplers import WeightedSample
from dpsub.mechanisms import Laplace

_NUMBERS_A_BLOCK = 1 << 22


@dataclass(frozen=True)
class WeightedLaplaceSum:
    """Release sum of w_i x_i + independent Laplace noise of one scale in each coordinate.

    Parameters
    ----------
    scale : float
        b > 0, in units of the records.

    Raises
    ------
    ArgumentError
        If the scale is not above 0.

    References
    ----------
    importance, Section 3.3.
    """

    scale: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", checks.real("scale", self.scale, above=0))

    def slopes(self, points: ArrayLike) -> np.ndarray:
        """|x|_1 / b: the loss of each record at weight 1, shape (n,); that at weight w is w times it."""
        rows = checks.finite_array("points", points, ndim=2)
        return np.asarray(np.abs(rows).sum(axis=1) / self.scale)

    def release(self, points: np.ndarray, sample: WeightedSample, rng: np.random.Generator) -> np.ndarray:
        """Return the noisy weighted sum over a sample, shape (d,).

        Raises
        ------
        ArgumentError
            If a weight is below 1.
        """
        sample.refuse_light_weights()
        return np.asarray(Laplace(self.scale).release(sample.weights @ points[sample.indices], rng))

    def mean_squared_error(self, points: ArrayLike, q: ArrayLike) -> float:
        """E |release - sum of all records|^2 = 2 b^2 d + sum (1/q_i - 1) |x_i|^2, exact."""
        rows = checks.finite_array("points", points, ndim=2)
        chance = np.broadcast_to(inclusion(q), rows.shape[:1])
        return float(2 * self.scale**2 * rows.shape[1] + (1 / chance - 1) @ np.einsum("ij,ij->i", rows, rows))

    def squared_errors(self, points: ArrayLike, q: ArrayLike, runs: int, rng: np.random.Generator) -> np.ndarray:
        """Draw samples and noise, and return the squared error of each run, shape (runs,)."""
        rows = checks.finite_array("points", points, ndim=2)
        chance = np.broadcast_to(inclusion(q), rows.shape[:1])
        weighted, total = rows / chance[:, None], rows.sum(axis=0)
        errors = np.empty(checks.integer("runs", runs, at_least=1))
        block = max(1, _NUMBERS_A_BLOCK // rows.shape[0])
        for start in range(0, runs, block):
            part = errors[start : start + block]
            drawn = rng.random((part.size, rows.shape[0])) < chance
            released = Laplace(self.scale).release(drawn.astype(float) @ weighted, rng)
            part[:] = ((released - total) ** 2).sum(axis=1)
        return errors
