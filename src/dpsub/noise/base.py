"""Base classes of privacy profiles and of additive noise."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from dpsub import checks
from dpsub.errors import NumericalError, UnsupportedError

_LARGEST = 2.0**20  # nats; a profile above its target here is taken never to reach it


class Profile(ABC):
    """A privacy profile: for every real epsilon (nats) a delta such that the mechanism is (epsilon,
    delta)-DP.

    The exact profile is the largest hockey-stick divergence of order exp(epsilon) between the
    outputs on neighbouring data. It does not increase, lies in [0, 1] and is convex in
    exp(epsilon); below 0 it is 1 - exp(epsilon) + exp(epsilon) delta(-epsilon), as the relation is
    symmetric (balle, Theorem 1 and Section 3).
    """

    @abstractmethod
    def group_log_delta(self, epsilon: ArrayLike, occurrences: ArrayLike) -> np.ndarray:
        """Return log delta_l(epsilon) at distance l = `occurrences` >= 1, broadcast.

        UnsupportedError if the profile is known at distance 1 only.
        """

    def delta(self, epsilon: ArrayLike) -> np.ndarray:
        """Return delta(epsilon) in [0, 1], of the shape of `epsilon` (any finite real numbers)."""
        return np.exp(self.log_delta(epsilon))

    def log_delta(self, epsilon: ArrayLike) -> np.ndarray:
        """Return log delta(epsilon), also where delta underflows; -inf where it is exactly 0."""
        return self.group_log_delta(checks.finite_array("epsilon", epsilon), 1)

    def epsilon(self, delta: ArrayLike) -> np.ndarray:
        """Return the smallest epsilon with delta(epsilon) <= `delta`, rounded up.

        `delta` is in [0, 1). Epsilon is negative where `delta` is above delta(0), and infinite
        where no epsilon below 2^20 suffices.
        """
        target = checks.finite_array("delta", delta)
        roots = [
            self._root(checks.real("delta", item, at_least=0, below=1))
            for item in target.ravel().tolist()
        ]
        return np.array(roots, dtype=float).reshape(target.shape)[()]

    def _root(self, delta: float) -> float:
        """Bisect on delta(epsilon) <= delta down to neighbouring numbers; the profile is
        monotone."""
        goal = math.log(delta) if delta > 0 else -math.inf
        # Every profile is at least 1 - exp(epsilon), so that the root is not below this.
        low, high = math.nextafter(math.log1p(-delta), -math.inf), 1.0
        while float(self.log_delta(high)) > goal:
            low, high = high, 2 * high
            if high > _LARGEST:
                return math.inf
        while low < (middle := (low + high) / 2) < high:
            low, high = (low, middle) if float(self.log_delta(middle)) <= goal else (middle, high)
        return high


@dataclass(frozen=True)
class AdditiveNoiseProfile(Profile):
    """Exact profile of a query with additive noise.

    It decreases strictly until it is 0 (must, Theorem 1; balle, Theorems 3 and 4).
    """

    ratio: float  # sensitivity divided by the scale of the noise (theta), above 0
    name: ClassVar[str]

    def __post_init__(self) -> None:
        object.__setattr__(self, "ratio", checks.real("ratio", self.ratio, above=0))

    def log_moment(self, order: float) -> float:
        """Return log E exp(s L) for the privacy loss L of the worst pair, s = `order` >= 0.

        The expectation is under the first law. Divided by s it is the Renyi divergence of order
        s + 1. UnsupportedError if the noise has no closed form.
        """
        raise UnsupportedError(
            f"the moments of {self.name} noise must be known in closed form, got none; take "
            "dpsub.divergences.moment_from_profiles"
        )

    def group(self, occurrences: int) -> AdditiveNoiseProfile:
        """Return the profile at distance l >= 1, that of l times the ratio (balle, Section 3)."""
        distance = checks.integer("occurrences", occurrences, at_least=1)
        return replace(self, ratio=distance * self.ratio)


@dataclass(frozen=True)
class Mechanism(ABC):
    """Release value + scale * Z, with Z independent in every coordinate and symmetric around 0."""

    scale: float  # above 0, in the units of the value
    name: ClassVar[str]

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", checks.real("scale", self.scale, above=0))

    def release(self, value: ArrayLike, rng: np.random.Generator) -> np.ndarray:
        """Return the finite `value` with independent noise added to every entry."""
        exact = checks.finite_array("value", value)
        return (exact + self.scale * self.standard_noise(exact.shape, rng))[()]

    @abstractmethod
    def standard_noise(self, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
        """Draw Z: noise of scale 1."""

    @abstractmethod
    def log_density(self, z: ArrayLike) -> np.ndarray:
        """Log-density of the noise at `z`, the released minus the exact value, per coordinate."""

    @abstractmethod
    def cdf(self, z: ArrayLike) -> np.ndarray:
        """P(noise <= z), per coordinate; relatively accurate in the left tail."""

    @property
    @abstractmethod
    def variance(self) -> float:
        """Variance of the noise, per coordinate."""

    @abstractmethod
    def profile(self, sensitivity: float) -> AdditiveNoiseProfile:
        """Return the exact privacy profile of a query of this sensitivity, above 0."""


def mirrored(order: np.ndarray, log_delta: np.ndarray) -> np.ndarray:
    """Return log delta(epsilon) for every real epsilon = `order` from its values at |epsilon|.

    For a symmetric relation delta(epsilon) at epsilon < 0 is
    1 - exp(epsilon) + exp(epsilon) delta(-epsilon) (balle, Section 3; Theorem 14 needs it).
    """
    if not (order < 0).any():
        return log_delta[()]
    below = np.minimum(order, 0.0)
    # A sum of positive terms. Where it is near 1 its logarithm is taken from the complement.
    delta = -np.expm1(below) + np.exp(below + log_delta)
    complement = np.exp(below) * -np.expm1(log_delta)
    with np.errstate(divide="ignore"):
        negative = np.where(delta < 0.5, np.log(delta), np.log1p(-np.minimum(complement, 0.75)))
    return np.where(order < 0, negative, log_delta)[()]


def nonnegative(name: str, value: ArrayLike) -> np.ndarray:
    """Return `value` as a finite, nonnegative float array, else raise ArgumentError."""
    array = checks.finite_array(name, value)
    if array.size:
        checks.real(name, array.min(), at_least=0)
    return array


def round_up(value: float, holds: Callable[[float], bool]) -> float:
    """Return the smallest number tried from `value` upwards for which `holds`.

    A root is found up to rounding, but a guarantee must be on its safe side. NumericalError if 2^40
    units in the last place do not suffice.
    """
    candidate, step = value, math.ulp(value)
    for _ in range(41):
        if holds(candidate):
            return candidate
        candidate, step = value + step, 2 * step
    raise NumericalError(
        f"the root must hold within rounding, got {value!r} with a larger error; "
        "report the arguments"
    )
