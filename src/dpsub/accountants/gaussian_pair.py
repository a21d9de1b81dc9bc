"""Two Gaussian mixtures with the same scale, and the privacy loss between them.

One occurrence of the differing record moves the mean of N(0, s^2) by 1, so the scale s is the noise multiplier (noise
scale over the norm bound of one record's term in the released sum).  Everything computed from these pairs is *per the
paper's pair*: the pairs of WOR, WR and the multistage samplers are not proved to dominate all neighbours, and the paper
uses only one of the two directions for Poisson, so nothing here is a guarantee for a sampler.

References
----------
MUST, Section 3.4 and Sections S5 and S6 of its supplement.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import ClassVar

import numpy as np
from scipy.special import ndtr

from dpsub.accountants.tilted import log_tilted_sum
from dpsub.relations import Relation

LOSS_TOLERANCE = 1e-12
"""|L(L^-1(x)) - x| is at most this times max(1, |x|); inverses that miss it are refused."""

MIN_SCALE = 0.05
"""Smallest scale: below it exp(1 / (2 s^2)) leaves the range where the loss has this accuracy."""

MAX_SCALE = 1e9
"""Largest noise multiplier of a release: what is charged for rounding then outweighs the losses by far."""

_NEGLIGIBLE_MASS = 1e-25
"""Total weight of components that need no cell masses; whoever bounds from above charges it."""

_FEW = 20_000
"""Up to so many pairs of a point and a component a loop over the components would cost more than it computes."""

_LOG_2PI = float(np.log(2 * np.pi))


class GaussianPair(ABC):
    """X ~ sum_u w_u N(u, s^2) against X', with the loss L(t) = log f_X(t) - log f_X'(t).

    X' is the mirror image sum_u w_u N(-u, s^2) where `mirrored`, else N(0, s^2).  L is strictly increasing.

    Attributes
    ----------
    label : str
        The two distributions in words.
    relation : Relation
        Adjacency for which the paper states the pair.
    closed_form : bool
        Whether the inverse of the loss and its derivative are closed formulas.
    """

    label: ClassVar[str]
    relation: ClassVar[Relation]
    closed_form: ClassVar[bool]
    mirrored: ClassVar[bool]
    scale: float

    @property
    @abstractmethod
    def components(self) -> tuple[np.ndarray, np.ndarray]:
        """(u, log w_u) for w_u > 0, u increasing."""

    @property
    def loss_floor(self) -> float:
        """Infimum of the loss; -inf if it is unbounded."""
        return -np.inf

    @abstractmethod
    def loss(self, t: np.ndarray) -> np.ndarray:
        """L(t), in nats, for finite t."""

    @abstractmethod
    def loss_slope(self, t: np.ndarray) -> np.ndarray:
        """L'(t) > 0."""

    @abstractmethod
    def inverse_loss(self, x: np.ndarray) -> np.ndarray:
        """t with L(t) = x, to `LOSS_TOLERANCE`; -inf at and below the floor of the loss."""

    @abstractmethod
    def inverse_slope(self, x: np.ndarray) -> np.ndarray:
        """dt/dx of the inverse; infinite at and below the floor of the loss."""

    def loss_density(self, x: np.ndarray) -> np.ndarray:
        """Density of the loss under X, omega(x) = f_X(t) dt/dx at t = L^-1(x); 0 at and below the floor."""
        x = np.asarray(x, dtype=float)
        above = x > self.loss_floor
        inside = np.where(above, x, 0.0)
        t = self.inverse_loss(inside)
        return np.where(above, np.exp(self.log_density(t)) * self.inverse_slope(inside), 0.0)

    def log_density(self, t: np.ndarray) -> np.ndarray:
        """log f_X(t)."""
        return self._log_mixture(np.asarray(t, dtype=float))

    def cdf(self, t: np.ndarray) -> np.ndarray:
        """P(X <= t), a sum of positive terms: small values keep their relative accuracy."""
        return self._mixture_of(lambda z: ndtr(z), t)

    def sf(self, t: np.ndarray) -> np.ndarray:
        """P(X > t), likewise."""
        return self._mixture_of(lambda z: ndtr(-z), t)

    def cdf_prime(self, t: np.ndarray) -> np.ndarray:
        """P(X' <= t)."""
        t = np.asarray(t, dtype=float)
        return self.sf(-t) if self.mirrored else ndtr(t / self.scale)

    def sf_prime(self, t: np.ndarray) -> np.ndarray:
        """P(X' > t)."""
        t = np.asarray(t, dtype=float)
        return self.cdf(-t) if self.mirrored else ndtr(-t / self.scale)

    @cached_property
    def bulk(self) -> tuple[np.ndarray, np.ndarray, float]:
        """(u, w_u) without the rarest components, and the total weight of those, at most 1e-25."""
        counts, log_weights = self.components
        weights = np.exp(log_weights)
        rarest_first = np.argsort(weights)
        running = np.cumsum(weights[rarest_first])
        left_out = int(np.searchsorted(running, _NEGLIGIBLE_MASS))
        kept = np.sort(rarest_first[left_out:])
        return counts[kept], weights[kept], float(running[left_out - 1]) if left_out else 0.0

    def interval_masses(self, edges: np.ndarray) -> np.ndarray:
        """P(edges[i] < X <= edges[i + 1]) of the `bulk`, shape (len(edges) - 1,); edges nondecreasing, -inf allowed.

        Each component is differenced on the side of its centre where the tail is small; the one interval that holds the
        centre gets the missing 1.  So the masses are those of tails perturbed by a few roundings of min(cdf, sf).
        """
        masses = np.zeros(len(edges) - 1)
        for count, weight in zip(*self.bulk[:2], strict=True):
            z = (edges - count) / self.scale
            tail = ndtr(-np.abs(z))
            step = np.diff(np.where(z <= 0, tail, -tail))
            centre = int(np.searchsorted(z, 0.0, side="right")) - 1
            if 0 <= centre < step.size:
                step[centre] += 1.0
            masses += weight * step
        return masses

    def _mixture_of(self, tail: Callable[[np.ndarray], np.ndarray], t: np.ndarray) -> np.ndarray:
        t = np.asarray(t, dtype=float)
        counts, log_weights = self.components
        if t.size * counts.size <= _FEW:
            return np.asarray(tail(np.subtract.outer(t, counts) / self.scale) @ np.exp(log_weights))
        total = np.zeros(t.shape)
        for count, weight in zip(counts[::-1], np.exp(log_weights[::-1]), strict=True):
            total += weight * tail((t - count) / self.scale)
        return total

    def _log_mixture(self, t: np.ndarray) -> np.ndarray:
        counts, log_weights = self.components
        shifted = log_weights - 0.5 * (counts / self.scale) ** 2
        log_sum, _ = log_tilted_sum(shifted, counts, np.ravel(t) / self.scale**2)
        return log_sum.reshape(t.shape) - 0.5 * ((t / self.scale) ** 2 + _LOG_2PI) - np.log(self.scale)
