"""Mechanisms on tiny spaces as matrices, and their exact profiles by comparing all pairs of samples."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from dpsub import mechanisms
from dpsub.divergences.hockey_stick import law_array, positive_part
from dpsub.enumeration.samples import Space
from dpsub.errors import ArgumentError
from dpsub.profiles.base import Profile

EDGES = np.linspace(-8.0, 12.0, 2001)  # of the bins of a noisy sum


def dirichlet_kernel(space: Space, outcomes: int, rng: np.random.Generator) -> np.ndarray:
    """Return a mechanism whose outcome laws are independent and uniform over the simplex, shape (samples, outcomes)."""
    return rng.dirichlet(np.ones(outcomes), size=len(space.samples))


def membership_kernel(space: Space, record: int, keep_probability: float) -> np.ndarray:
    """Return randomised response on whether `record` is in the sample; outcome 0 says that it is.

    References
    ----------
    balle, Section 5.
    """
    inside = np.array([sample[record] > 0 for sample in space.samples])
    first = np.where(inside, keep_probability, 1 - keep_probability)
    return np.column_stack([first, 1 - first])


def size_and_membership_kernel(space: Space, record: int, keep_probability: float) -> np.ndarray:
    """Return the size of the sample with randomised membership of `record`: private under substitution only."""
    answer = membership_kernel(space, record, keep_probability)
    sizes = np.array(space.samples).sum(axis=1)
    kernel = np.zeros((len(sizes), sizes.max() + 1, 2))
    kernel[np.arange(len(sizes)), sizes] = answer
    return kernel.reshape(len(sizes), -1)


def noisy_sum_kernel(space: Space, mechanism: str, values: Sequence[float], scale: float) -> np.ndarray:
    """Return the exact bin masses of a sum with noise; binning is post-processing, so its divergences are lower bounds.

    Parameters
    ----------
    space : Space
        The samples.
    mechanism : str
        "laplace" or "gaussian".
    values : sequence of float
        Value of each record of the universe.
    scale : float
        Scale of the noise, above 0.
    """
    noise = mechanisms.REGISTRY.get(mechanism)(scale)
    sums = np.array(space.samples) @ np.asarray(values, dtype=float)
    below = noise.cdf(EDGES - sums[:, np.newaxis])
    ends = np.zeros((len(sums), 1))
    return np.diff(np.concatenate([ends, below, ends + 1], axis=1), axis=1)


class KernelProfile(Profile):
    """Exact group profiles of a mechanism on a tiny space: the largest divergence of all pairs within a distance.

    Parameters
    ----------
    kernel : array_like, shape (samples, outcomes)
        Law of the outcome for each sample.
    distances : array_like, shape (samples, samples)
        Symmetric path distances; infinite for pairs that no path joins.

    Raises
    ------
    ArgumentError
        If a row does not sum to 1 within 1e-9, or the shapes differ.
    """

    def __init__(self, kernel: ArrayLike, distances: ArrayLike) -> None:
        self.kernel = law_array("kernel", kernel)
        self.distances = np.asarray(distances, dtype=float)
        if self.distances.shape != (len(self.kernel), len(self.kernel)):
            raise ArgumentError(f"distances must be a square matrix over {len(self.kernel)} samples, got shape "
                                f"{self.distances.shape}")
        # samples with one law (sums that agree) are compared once
        seen: dict[bytes, int] = {}
        self._place = [seen.setdefault(law.tobytes(), len(seen)) for law in self.kernel]
        self._laws = np.array([self.kernel[self._place.index(place)] for place in range(len(seen))])
        self._known: dict[float, np.ndarray] = {}

    def group_log_delta(self, epsilon: ArrayLike, occurrences: ArrayLike) -> np.ndarray:
        order, distance = np.broadcast_arrays(np.asarray(epsilon, dtype=float), np.asarray(occurrences, dtype=int))
        deltas = [self.deltas(float(value)) for value in order.ravel()]
        found = [delta[min(int(steps), len(delta) - 1)] for delta, steps in zip(deltas, distance.ravel(), strict=True)]
        with np.errstate(divide="ignore"):
            return np.log(np.array(found)).reshape(order.shape)[()]

    def _root(self, delta: float) -> float:
        if delta > 0:
            return super()._root(delta)
        # the largest log ratio of neighbours, in place of a bisection over all pairs
        rows, columns = np.nonzero(self.distances == 1)
        with np.errstate(divide="ignore", invalid="ignore"):
            losses = np.log(self.kernel[rows]) - np.log(self.kernel[columns])
        return float(np.max(losses, where=self.kernel[rows] > 0, initial=0.0))

    def deltas(self, epsilon: float) -> np.ndarray:
        """Return delta_k(epsilon) for k = 0, 1, ..., the largest finite distance; also for negative epsilon.

        Beyond 700 nats, where exp(epsilon) overflows, it is the value at 700: an upper bound.
        """
        if epsilon not in self._known:
            growth = np.exp(min(epsilon, 700.0))
            apart = np.array([positive_part(law, self._laws, growth) for law in self._laws])
            pairs = apart[np.ix_(self._place, self._place)]
            largest = int(self.distances[np.isfinite(self.distances)].max())
            by_distance = [pairs[self.distances == k].max(initial=0.0) for k in range(largest + 1)]
            self._known[epsilon] = np.maximum.accumulate(by_distance)
        return self._known[epsilon]
