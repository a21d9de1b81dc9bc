"""Recycled noise: its law, draws from it, and its exact privacy profile (docs/recycling.md,
sections 1 and 2).

A kernel k draws n, released if it lies in [lower, upper] or else with probability 1 - q, otherwise
drawn again. The density is c k(n) inside, c (1 - q) k(n) outside; c = 1 / (1 - q (1 - p)), p the
kernel's mass inside.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from dpsub import checks
from dpsub.errors import ArgumentError
from dpsub.noise.base import Profile, mirrored
from dpsub.recycling.divergence import HockeyStickPieces, hockey_stick
from dpsub.recycling.kernels import Kernel


class LoopedRelease(NamedTuple):
    """What the loop released, and how many draws each entry took (never to be published with
    it)."""

    released: np.ndarray
    draws: np.ndarray


@dataclass(frozen=True)
class Recycled:
    """A recycler around a kernel (brdp, Section 3, Proposition 1); ArgumentError if an argument is
    out of range.

    Parameters
    ----------
    kernel : Kernel
    rate : q in [0, 1], the chance that noise outside is drawn anew: 0 is the kernel alone, 1 noise
    with hard bounds. lower, upper : bounds of the noise, lower < 0 < upper, in the query's units:
    public, chosen without the value. sensitivity : D > 0, the farthest that the values of two
    neighbouring data sets are apart.
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
        object.__setattr__(
            self, "sensitivity", checks.real("sensitivity", self.sensitivity, above=0)
        )
        for name in ("lower", "upper", "sensitivity"):
            # what is computed from their ratios to the scale, and their squares, is a double
            value, scale = getattr(self, name), self.kernel.scale
            if not 1e-150 <= abs(value) / scale <= 1e150:
                raise ArgumentError(
                    f"{name} must lie within 150 orders of magnitude of the kernel's scale = "
                    f"{scale:g}, got {name} = {value:g}; take numbers that are closer"
                )

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

    @property
    def directions(self) -> list[Recycled]:
        """The laws whose divergences upwards are those of a neighbour above and, where it differs,
        of one below."""
        return [self] if self.symmetric else [self, self.mirrored]

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
        """P(released noise in [lower, upper]) = p / (p + (1 - p)(1 - q)): brdp, equation (9)."""
        return self.inside * self.normaliser

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
        tail = (
            kernel(np.minimum(place, self.lower))
            + kernel(-self.upper)
            - kernel(-np.maximum(place, self.upper))
        )
        return (self.normaliser * ((1 - self.rate) * tail + kernel(clipped) - kernel(self.lower)))[
            ()
        ]

    def hockey_stick(self, epsilon: ArrayLike, occurrences: int = 1) -> HockeyStickPieces:
        """Divergences of the output from the one on a data set whose value is larger by the
        sensitivity."""
        with np.errstate(divide="ignore"):
            log_keep = np.log1p(-np.asarray(self.rate))
        return hockey_stick(
            self.kernel, log_keep, self.lower, self.upper, occurrences * self.sensitivity, epsilon
        )

    @cached_property
    def _tails(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """First and second moments of the kernel's |noise| below the bounds, and above."""
        return self.kernel.tail_moments(-self.lower), self.kernel.tail_moments(self.upper)

    @property
    def mean(self) -> float:
        """Mean of the released noise: 0 for symmetric bounds."""
        below, above = self._tails
        return self.normaliser * self.rate * (below[0] - above[0])

    @property
    def variance(self) -> float:
        """Variance of the released noise."""
        below, above = self._tails
        return (
            self.normaliser * (self.kernel.variance - self.rate * (below[1] + above[1]))
            - self.mean**2
        )

    @property
    def sd(self) -> float:
        """Standard deviation of the released noise."""
        return math.sqrt(self.variance)

    @property
    def mean_size_outside(self) -> float:
        """E(|noise| given that it lies outside of the bounds), which recycling does not change."""
        below, above = self._tails
        return (below[0] + above[0]) / self.outside if self.outside > 0 else math.nan

    def capped(self, most: int) -> Recycled:
        """The law of a loop that releases draw `most` >= 1 whatever it is (docs/recycling.md,
        section 1)."""
        last = (self.rate * self.outside) ** (checks.integer("most", most, at_least=1) - 1)
        earlier = (1 - last) * self.normaliser  # 1 - r is positive, as p is
        return replace(self, rate=self.rate * earlier / (earlier + last))

    def release(self, value: ArrayLike, rng: np.random.Generator) -> np.ndarray:
        """Release `value`, finite numbers of any shape, without a loop: constant time, whatever is
        drawn."""
        exact = checks.finite_array("value", value)
        return (exact + self.draw(exact.size, rng).reshape(exact.shape))[()]

    def draw(self, size: int, rng: np.random.Generator) -> np.ndarray:
        """Recycled noise without a loop, shape (size,): first inside or outside, then the kernel by
        inversion."""
        choice, place = rng.random(size), 1 - rng.random(size)
        kernel = self.kernel
        below, above = float(kernel.cdf(self.lower)), float(kernel.cdf(-self.upper))
        keep = (1 - self.rate) * self.normaliser
        left, right = choice < keep * below, choice >= 1 - keep * above
        drawn = np.clip(kernel.quantile(below + place * self.inside), self.lower, self.upper)
        # the tails from their own small probabilities, so that they keep their digits
        drawn = np.where(left, np.minimum(kernel.quantile(place * below), self.lower), drawn)
        return np.where(right, np.maximum(-kernel.quantile(place * above), self.upper), drawn)

    def release_by_loop(
        self, value: ArrayLike, rng: np.random.Generator, most: int | None = None
    ) -> LoopedRelease:
        """Release `value`, finite numbers of any shape, by drawing until noise passes, or at draw
        number `most` >= 1 (`capped` is that law). The noise is tested, never release minus value,
        whose rounding depends on the data."""
        exact = checks.finite_array("value", value)
        last = None if most is None else checks.integer("most", most, at_least=1)
        noise, draws = np.empty(exact.size), np.zeros(exact.size, dtype=np.int64)
        waiting = np.arange(exact.size)
        while waiting.size:
            drawn = np.atleast_1d(self.kernel.release(np.zeros(waiting.size), rng))
            passed = (drawn >= self.lower) & (drawn <= self.upper)
            passed |= rng.random(waiting.size) >= self.rate
            draws[waiting] += 1
            if last is not None:
                passed |= draws[waiting] >= last
            noise[waiting[passed]] = drawn[passed]
            waiting = waiting[~passed]
        return LoopedRelease(
            (exact + noise.reshape(exact.shape))[()], draws.reshape(exact.shape)[()]
        )


@dataclass(frozen=True)
class RecycledProfile(Profile):
    """Exact profile: the larger one of both directions at the full sensitivity, the worst shift
    (docs/recycling.md, section 2). At q = 1 it does not fall to 0. The paper's formulas:
    `dpsub.recycling.paper`."""

    law: Recycled

    def group_log_delta(self, epsilon: ArrayLike, occurrences: ArrayLike) -> np.ndarray:
        order, distance = np.broadcast_arrays(
            np.asarray(epsilon, dtype=float), np.asarray(occurrences)
        )
        log = np.empty(order.shape)
        for value in np.unique(distance).tolist():
            here, times = distance == value, checks.integer("occurrences", value, at_least=1)
            found = [law.hockey_stick(np.abs(order[here]), times) for law in self.law.directions]
            log[here] = np.max([one.log for one in found], axis=0)
        return mirrored(order, np.minimum(log, 0.0))

    def bounds(self, epsilon: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
        """Certified ends of delta(epsilon) at epsilon >= 0, of its shape: rounding and its
        propagation are charged."""
        order = checks.finite_array("epsilon", epsilon)
        found = [law.hockey_stick(order) for law in self.law.directions]
        low, high = (np.max([one.end(sign) for one in found], axis=0)[()] for sign in (-1, 1))
        return low, high
