"""The contract of a privacy profile, and what follows from it alone."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from dpsub import checks
from dpsub.errors import NumericalError


@dataclass(frozen=True)
class Profile(ABC):
    """Exact privacy profile of an additive-noise mechanism on a query of given sensitivity.

    delta(epsilon) is the largest hockey-stick divergence of order exp(epsilon) between the outputs on neighbouring
    data: the smallest delta for which the mechanism is (epsilon, delta)-DP. It is exact, not a bound, decreases
    strictly from 1 until it is 0, and is defined for every real epsilon.

    Parameters
    ----------
    ratio : float
        Sensitivity divided by the scale of the noise (theta), above 0.

    Raises
    ------
    ArgumentError
        If `ratio` is not a finite number above 0.

    References
    ----------
    must, Theorem 1; balle, Theorems 3 and 4.
    """

    ratio: float

    name: ClassVar[str]

    def __post_init__(self) -> None:
        object.__setattr__(self, "ratio", checks.real("ratio", self.ratio, above=0))

    @abstractmethod
    def group_log_delta(self, epsilon: ArrayLike, occurrences: ArrayLike) -> np.ndarray:
        """Logarithm of the white-box group profile delta_l(epsilon), l = `occurrences` >= 1, with broadcasting.

        The array road of `group`, for sums over many l; -inf where the profile is 0.
        """

    @abstractmethod
    def epsilon(self, delta: ArrayLike) -> np.ndarray:
        """Return the smallest epsilon with delta(epsilon) <= `delta`, exact up to rounding upwards.

        Parameters
        ----------
        delta : array_like
            In [0, 1). Above delta(0) the answer is negative.

        Raises
        ------
        ArgumentError
            If an entry lies outside [0, 1).
        """

    def delta(self, epsilon: ArrayLike) -> np.ndarray:
        """Return delta(epsilon) in [0, 1], of the shape of `epsilon` (nats, any finite real numbers).

        Raises
        ------
        ArgumentError
            If an entry of `epsilon` is not finite.
        """
        return np.exp(self.log_delta(epsilon))

    def log_delta(self, epsilon: ArrayLike) -> np.ndarray:
        """Return log delta(epsilon), accurate where delta itself underflows; -inf where it is exactly 0.

        Raises
        ------
        ArgumentError
            If an entry of `epsilon` is not finite.
        """
        return self.group_log_delta(checks.finite_array("epsilon", epsilon), 1)

    def group(self, occurrences: int) -> Profile:
        """Return the white-box profile for data sets at distance l: the ratio times l.

        Raises
        ------
        ArgumentError
            If `occurrences` is not a whole number of at least 1.

        References
        ----------
        balle, Section 3 (white-box group privacy).
        """
        return replace(self, ratio=checks.integer("occurrences", occurrences, at_least=1) * self.ratio)

    def black_box_group(self, epsilon: ArrayLike, occurrences: int) -> np.ndarray:
        """Upper bound on the profile at distance l that any mechanism with this profile obeys.

        (exp(epsilon) - 1) / (exp(epsilon / l) - 1) * delta(epsilon / l), at epsilon = 0 its limit l delta(0). Values
        above 1 are returned as they are: the bound is then vacuous.

        Parameters
        ----------
        epsilon : array_like
            Nats, at least 0.
        occurrences : int
            The distance l, at least 1.

        Raises
        ------
        ArgumentError
            If an entry of `epsilon` is negative or not finite, or `occurrences` is below 1.

        References
        ----------
        balle, Section 3 (after Vadhan 2017, Lemma 2.2).
        """
        distance = checks.integer("occurrences", occurrences, at_least=1)
        total = nonnegative("epsilon", epsilon)
        share = total / distance
        with np.errstate(divide="ignore", invalid="ignore"):
            # exp(total - share) carries the size, so that a large epsilon does not overflow before delta is applied.
            quotient = np.expm1(-total) / np.expm1(-share)
            log_factor = total - share + np.log(np.where(share > 0, quotient, distance))
        return np.exp(log_factor + self.log_delta(share))


def nonnegative(name: str, value: ArrayLike) -> np.ndarray:
    """Return `value` as a finite float array without negative entries.

    Raises
    ------
    ArgumentError
        If an entry is negative or not finite.
    """
    array = checks.finite_array(name, value)
    if array.size:
        checks.real(name, array.min(), at_least=0)
    return array


def round_up(value: float, holds: Callable[[float], bool]) -> float:
    """Return `value`, or the next number a few units in the last place above it for which `holds` is true.

    A root is found up to rounding, but a guarantee must lie on its safe side.

    Raises
    ------
    NumericalError
        If the condition fails over 2^40 units in the last place: the root was not one.
    """
    step = math.ulp(value)
    candidate = value
    for _ in range(41):
        if holds(candidate):
            return candidate
        candidate = value + step
        step *= 2
    raise NumericalError(f"the root must hold within rounding, got {value!r} with a larger error; report the arguments")
