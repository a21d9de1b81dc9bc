"""Recycled noise: its law, draws from it, and its exact privacy profile (docs/recycling.md,
sections 1 and 2).

Noise n is drawn from a kernel with density k. It is released if it lies in [lower, upper];
otherwise it is released with probability 1 - q, and redrawn with probability q. The released noise
has the density c k(n) inside the bounds and c (1 - q) k(n) outside, where c = 1 / (1 - q (1 - p))
and p is the kernel's mass inside.
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
    """Released values, and the number of draws that each entry took.

    The number of draws must not be published with the values.
    """

    released: np.ndarray
    draws: np.ndarray


@dataclass(frozen=True)
class Recycled:
    """A recycler around a kernel.

    Parameters
    ----------
    kernel : Kernel
    rate : float
        Recycling rate q in [0, 1], the probability that noise outside the bounds is redrawn: 0 is
        the kernel alone, 1 is noise with hard bounds.
    lower, upper : float
        Bounds of the noise, lower < 0 < upper, in the units of the query. They are public and must
        not depend on the value.
    sensitivity : float
        D > 0, the largest distance between the values of two neighbouring data sets.

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
        object.__setattr__(
            self, "sensitivity", checks.real("sensitivity", self.sensitivity, above=0)
        )
        scale = self.kernel.scale
        for name in ("lower", "upper", "sensitivity"):
            value = getattr(self, name)
            # Within this range the ratios to the scale and their squares are finite doubles.
            if not 1e-150 <= abs(value) / scale <= 1e150:
                raise ArgumentError(
                    f"{name} must lie within 150 orders of magnitude of the kernel's "
                    f"scale = {scale:g}, got {name} = {value:g}; choose closer values"
                )

    @classmethod
    def within(cls, kernel: Kernel, rate: float, bound: float, sensitivity: float) -> Recycled:
        """Return the recycler with the symmetric bounds [-bound, bound]."""
        theta = checks.real("bound", bound, above=0)
        return cls(kernel, rate, -theta, theta, sensitivity)

    @property
    def symmetric(self) -> bool:
        """Whether the density of the released noise is symmetric around 0."""
        return self.rate == 0 or self.lower == -self.upper

    @property
    def mirrored(self) -> Recycled:
        """The recycler with bounds (-upper, -lower)."""
        return replace(self, lower=-self.upper, upper=-self.lower)

    @property
    def directions(self) -> list[Recycled]:
        """The recyclers whose upward divergences cover both directions.

        One recycler if the noise is symmetric; otherwise this one, for a neighbour whose value is
        larger, and the mirrored one, for a neighbour whose value is smaller.
        """
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
        """c, which is also the mean number of draws."""
        return 1 / (self.inside + (1 - self.rate) * self.outside)

    @property
    def acceptance(self) -> float:
        """P(released noise in [lower, upper]) = p / (p + (1 - p)(1 - q)): brdp, equation (9)."""
        return self.inside * self.normaliser

    def log_density(self, n: ArrayLike) -> np.ndarray:
        """Log-density of the released noise; -inf outside the bounds at q = 1."""
        noise = np.asarray(n, dtype=float)
        inside = (noise >= self.lower) & (noise <= self.upper)
        with np.errstate(divide="ignore"):
            log_factor = np.where(inside, 0.0, np.log(1 - self.rate))
        log_density = math.log(self.normaliser) + log_factor + self.kernel.log_density(noise)
        return log_density[()]

    def cdf(self, n: ArrayLike) -> np.ndarray:
        """P(released noise <= n)."""
        noise = np.asarray(n, dtype=float)
        kernel_cdf = self.kernel.cdf
        # P(upper < N <= n) is a difference of right tails, which are cdfs of -N by symmetry: near 1
        # the cdf itself has no digits left for it.
        tails = (
            kernel_cdf(np.minimum(noise, self.lower))
            + kernel_cdf(-self.upper)
            - kernel_cdf(-np.maximum(noise, self.upper))
        )
        clipped = np.clip(noise, self.lower, self.upper)
        mass = (1 - self.rate) * tails + kernel_cdf(clipped) - kernel_cdf(self.lower)
        return (self.normaliser * mass)[()]

    def hockey_stick(self, epsilon: ArrayLike, occurrences: int = 1) -> HockeyStickPieces:
        """Hockey-stick divergence from the output on a value that is larger by the sensitivity.

        Parameters
        ----------
        epsilon : array_like
            Logarithms of the orders, any real numbers.
        occurrences : int
            Size of the group of records: the value moves by `occurrences` times the sensitivity.
        """
        with np.errstate(divide="ignore"):
            log_keep = np.log1p(-np.asarray(self.rate))
        shift = occurrences * self.sensitivity
        return hockey_stick(self.kernel, log_keep, self.lower, self.upper, shift, epsilon)

    @cached_property
    def _tail_moments(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """First and second moments of the kernel's |noise| below the bounds, and above."""
        return self.kernel.tail_moments(-self.lower), self.kernel.tail_moments(self.upper)

    @property
    def mean(self) -> float:
        """Mean of the released noise: 0 for symmetric bounds."""
        below, above = self._tail_moments
        return self.normaliser * self.rate * (below[0] - above[0])

    @property
    def variance(self) -> float:
        """Variance of the released noise."""
        below, above = self._tail_moments
        # Recycling removes the share q of the kernel's second moment outside the bounds.
        second_moment = self.normaliser * (self.kernel.variance - self.rate * (below[1] + above[1]))
        return second_moment - self.mean**2

    @property
    def sd(self) -> float:
        """Standard deviation of the released noise."""
        return math.sqrt(self.variance)

    @property
    def mean_size_outside(self) -> float:
        """Mean of |noise| given that it is outside the bounds; recycling does not change it."""
        below, above = self._tail_moments
        if self.outside == 0:
            return math.nan
        return (below[0] + above[0]) / self.outside

    def capped(self, max_draws: int) -> Recycled:
        """Return the law of a loop that releases draw number `max_draws` wherever it lies.

        It is a recycler with a smaller rate (docs/recycling.md, section 1).
        """
        exponent = checks.integer("max_draws", max_draws, at_least=1) - 1
        # r^(J - 1), with r = q (1 - p) the probability that one draw is rejected
        reach_last = (self.rate * self.outside) ** exponent
        # 1 - r, the divisor inside the normaliser, is positive because p is.
        released_before = (1 - reach_last) * self.normaliser
        rate = self.rate * released_before / (released_before + reach_last)
        return replace(self, rate=rate)

    def release(self, value: ArrayLike, rng: np.random.Generator) -> np.ndarray:
        """Release `value`, finite numbers of any shape, without a loop.

        The time that it takes does not depend on the noise.
        """
        exact = checks.finite_array("value", value)
        noise = self.draw(exact.size, rng).reshape(exact.shape)
        return (exact + noise)[()]

    def draw(self, size: int, rng: np.random.Generator) -> np.ndarray:
        """Draw recycled noise of shape (size,) without a loop.

        The side is drawn first: below, inside or above the bounds. Given the side, the kernel is
        drawn by inversion.
        """
        side = rng.random(size)
        probability = 1 - rng.random(size)
        kernel = self.kernel
        mass_below = float(kernel.cdf(self.lower))
        mass_above = float(kernel.cdf(-self.upper))
        kept = (1 - self.rate) * self.normaliser
        is_below = side < kept * mass_below
        is_above = side >= 1 - kept * mass_above
        inside = kernel.quantile(mass_below + probability * self.inside)
        # Each tail is inverted from its own small probability, so that it keeps its digits.
        below = kernel.quantile(probability * mass_below)
        above = -kernel.quantile(probability * mass_above)
        # A quantile may be rounded across the bound that it must not cross.
        noise = np.clip(inside, self.lower, self.upper)
        noise = np.where(is_below, np.minimum(below, self.lower), noise)
        return np.where(is_above, np.maximum(above, self.upper), noise)

    def release_by_loop(
        self, value: ArrayLike, rng: np.random.Generator, max_draws: int | None = None
    ) -> LoopedRelease:
        """Release `value`, finite numbers of any shape, by redrawing noise until it is accepted.

        Draw number `max_draws` is released wherever it lies; `capped` is the law with this limit.
        """
        exact = checks.finite_array("value", value)
        limit = None if max_draws is None else checks.integer("max_draws", max_draws, at_least=1)
        noise = np.empty(exact.size)
        draws = np.zeros(exact.size, dtype=np.int64)
        waiting = np.arange(exact.size)
        while waiting.size:
            drawn = np.atleast_1d(self.kernel.release(np.zeros(waiting.size), rng))
            # The noise itself is tested (condition 3 of docs/recycling.md): release minus value is
            # rounded in a way that depends on the data.
            accepted = (drawn >= self.lower) & (drawn <= self.upper)
            accepted |= rng.random(waiting.size) >= self.rate
            draws[waiting] += 1
            if limit is not None:
                accepted |= draws[waiting] >= limit
            noise[waiting[accepted]] = drawn[accepted]
            waiting = waiting[~accepted]
        released = exact + noise.reshape(exact.shape)
        return LoopedRelease(released[()], draws.reshape(exact.shape)[()])


@dataclass(frozen=True)
class RecycledProfile(Profile):
    """Exact privacy profile of one release with recycled noise.

    It is the larger divergence of the two directions at the full sensitivity, which is the worst
    shift (docs/recycling.md, section 2). At q = 1 it does not fall to 0. `dpsub.recycling.paper`
    has the paper's formulas, which differ.
    """

    law: Recycled

    def group_log_delta(self, epsilon: ArrayLike, occurrences: ArrayLike) -> np.ndarray:
        order, distance = np.broadcast_arrays(
            np.asarray(epsilon, dtype=float), np.asarray(occurrences)
        )
        log_delta = np.empty(order.shape)
        for value in np.unique(distance).tolist():
            here = distance == value
            group = checks.integer("occurrences", value, at_least=1)
            divergences = [
                law.hockey_stick(np.abs(order[here]), group) for law in self.law.directions
            ]
            log_delta[here] = np.max([divergence.log for divergence in divergences], axis=0)
        return mirrored(order, np.minimum(log_delta, 0.0))

    def bounds(self, epsilon: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
        """Certified lower and upper bound on delta(epsilon) for epsilon >= 0, of its shape.

        All rounding errors and their propagation are charged.
        """
        order = checks.finite_array("epsilon", epsilon)
        divergences = [law.hockey_stick(order) for law in self.law.directions]
        lower = np.max([divergence.end(-1) for divergence in divergences], axis=0)
        upper = np.max([divergence.end(1) for divergence in divergences], axis=0)
        return lower[()], upper[()]
