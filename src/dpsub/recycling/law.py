"""The law of recycled noise: acceptance, moments, number of draws.

A kernel draws n; if n lies in [lower, upper], or with probability 1 - q, it is released, else drawn anew.  With p the
kernel's mass inside and c = 1 / (1 - q (1 - p)), the released noise has the density c k(n) inside and c (1 - q) k(n)
outside.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from dpsub import checks
from dpsub.recycling import divergence
from dpsub.recycling.kernels import Kernel


@dataclass(frozen=True)
class Recycled:
    """A recycler around a kernel.

    Parameters
    ----------
    kernel : Kernel
    rate : float
        q in [0, 1], the probability with which noise outside the bounds is drawn anew: 0 is the kernel alone, 1 noise
        with hard bounds.
    lower, upper : float
        Bounds of the noise, lower < 0 < upper, in the units of the query.  They must be public, and chosen without
        looking at the value.
    sensitivity : float
        D > 0: the farthest that the values of two neighbouring data sets are apart.

    Raises
    ------
    ArgumentError
        If an argument is out of range.

    References
    ----------
    brdp, Section 3, Proposition 1.
    """

    kernel: Kernel
    rate: float
    lower: float
    upper: float
    sensitivity: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "rate", checks.real("rate", self.rate, at_least=0, at_most=1))
        object.__setattr__(self, "lower", checks.real("lower", self.lower, below=0))
        object.__setattr__(self, "upper", checks.real("upper", self.upper, above=0))
        object.__setattr__(self, "sensitivity", checks.real("sensitivity", self.sensitivity, above=0))

    @classmethod
    def within(cls, kernel: Kernel, rate: float, bound: float, sensitivity: float) -> Recycled:
        """Bounds [-bound, bound]."""
        theta = checks.real("bound", bound, above=0)
        return cls(kernel, rate, -theta, theta, sensitivity)

    @property
    def symmetric(self) -> bool:
        """Whether the noise is."""
        return self.rate == 0 or self.lower == -self.upper

    @property
    def mirrored(self) -> Recycled:
        """The recycler with bounds (-upper, -lower)."""
        return replace(self, lower=-self.upper, upper=-self.lower)

    @cached_property
    def inside(self) -> float:
        """p = P(kernel in [lower, upper])."""
        return self.kernel.mass(self.lower, self.upper)

    @cached_property
    def outside(self) -> float:
        """1 - p, without cancellation."""
        return self.kernel.mass(-math.inf, self.lower) + self.kernel.mass(self.upper, math.inf)

    @property
    def normaliser(self) -> float:
        """c, the mean number of draws."""
        return 1 / (self.inside + (1 - self.rate) * self.outside)

    @property
    def acceptance(self) -> float:
        """P(released noise in [lower, upper]) = p / (p + (1 - p)(1 - q)).

        References
        ----------
        brdp, equation (9).
        """
        return self.inside * self.normaliser

    def acceptance_within(self, bound: float) -> float:
        """P(|released noise| <= bound), for any bound >= 0."""
        theta = checks.real("bound", bound, at_least=0)
        low, high = max(-theta, self.lower), min(theta, self.upper)
        inside = self.kernel.mass(low, high)
        outside = self.kernel.mass(min(-theta, self.lower), self.lower)
        outside += self.kernel.mass(self.upper, max(theta, self.upper))
        return self.normaliser * (inside + (1 - self.rate) * outside)

    def log_density(self, n: ArrayLike) -> np.ndarray:
        """log of the released noise's density; -inf outside at q = 1."""
        place = np.asarray(n, dtype=float)
        within = (place >= self.lower) & (place <= self.upper)
        with np.errstate(divide="ignore"):
            factor = np.where(within, 0.0, np.log(1 - self.rate))
        return (math.log(self.normaliser) + factor + self.kernel.log_density(place))[()]

    def cdf(self, n: ArrayLike) -> np.ndarray:
        """P(released noise <= n)."""
        place = np.asarray(n, dtype=float)
        kernel = self.kernel.cdf
        clipped = np.clip(place, self.lower, self.upper)
        tail = kernel(np.minimum(place, self.lower)) + kernel(-self.upper) - kernel(-np.maximum(place, self.upper))
        return (self.normaliser * ((1 - self.rate) * tail + kernel(clipped) - kernel(self.lower)))[()]

    def stick(self, epsilon: ArrayLike, occurrences: int = 1) -> divergence.Stick:
        """Divergences of the output from the one on a data set whose value is larger by the sensitivity."""
        with np.errstate(divide="ignore"):
            log_keep = np.log1p(-np.asarray(self.rate))
        return divergence.stick(
            self.kernel, log_keep, self.lower, self.upper, occurrences * self.sensitivity, epsilon
        )

    @property
    def infinite_mass(self) -> float:
        """Probability of infinite loss against such a data set: 0 unless q = 1."""
        if self.rate < 1:
            return 0.0
        # inside for the value, outside for its neighbour
        return self.normaliser * self.kernel.mass(self.lower, min(self.upper, self.lower + self.sensitivity))

    @property
    def mean(self) -> float:
        """Mean of the released noise: 0 for symmetric bounds."""
        return self.normaliser * self.rate * (self._below[0] - self._above[0])

    @property
    def variance(self) -> float:
        """Variance of the released noise."""
        outside = self._below[1] + self._above[1]
        second = self.kernel.mechanism.variance - self.rate * outside
        return self.normaliser * second - self.mean**2

    @property
    def sd(self) -> float:
        """Standard deviation of the released noise."""
        return math.sqrt(self.variance)

    @property
    def mean_size_outside(self) -> float:
        """E(|noise| given that it lies outside of the bounds), which recycling does not change."""
        return (self._below[0] + self._above[0]) / self.outside if self.outside > 0 else math.nan

    def draws(self, count: ArrayLike) -> np.ndarray:
        """P(J = j) of the number of draws, geometric: (q (1 - p))^(j - 1) (1 - q (1 - p)); independent of the noise."""
        again = self.rate * self.outside
        return again ** (np.asarray(count, dtype=float) - 1) / self.normaliser

    def capped(self, most: int) -> Recycled:
        """The recycler that a loop amounts to which releases its draw number `most` whatever it is.

        With r = q (1 - p) and S = (1 - r^(most - 1)) / (1 - r), noise inside is released with the factor S + r^(most -
        1), outside with (1 - q) S + r^(most - 1): recycling at a smaller rate.

        Raises
        ------
        ArgumentError
            If `most` is below 1.
        """
        draws = checks.integer("most", most, at_least=1)
        again = self.rate * self.outside
        last = again ** (draws - 1)
        # 1 - r is positive, as p is
        earlier = (1 - last) * self.normaliser
        return replace(self, rate=self.rate * earlier / (earlier + last))

    @cached_property
    def _below(self) -> tuple[float, float]:
        return self.kernel.tail_moments(-self.lower)

    @cached_property
    def _above(self) -> tuple[float, float]:
        return self.kernel.tail_moments(self.upper)
