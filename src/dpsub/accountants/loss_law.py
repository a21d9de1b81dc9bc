"""Discrete laws of the privacy loss on a grid: what discretisation makes and composition takes.

A pair (P, Q) enters composition only through the law of its loss log dP/dQ under P.  Here that law is a positive
measure
on the grid offset + index step, and a mass at +infinity; mass at -infinity weighs nothing in delta(epsilon) and is
left out.

    delta(epsilon) = sum over x > epsilon of (1 - e^{epsilon - x}) mass(x) + mass(infinity)

is nondecreasing in every mass and in every loss, and so is that of sums of independent losses.  So a law with more
mass,
or with mass moved up, bounds from above, and a law with less mass, or with mass moved down, from below: every rounding
has a safe direction, and total masses need not be exactly 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpsub import checks
from dpsub.errors import ArgumentError

SIDES = ("upper", "lower")


@dataclass(frozen=True, eq=False)
class LossLaw:
    """A bound of the law of one loss, on a grid.

    Attributes
    ----------
    step : float
        Distance of neighbouring losses, in nats, above 0.
    indices : ndarray of int, shape (n,)
        The loss of masses[i] is offset + indices[i] step; any order, repeated ones add up.
    masses : ndarray, shape (n,)
        Nonnegative and finite.
    side : {"upper", "lower"}
        Whether delta computed from this law is at least, or at most, that of the pair it stands for, after any number
        of compositions.
    infinity : float
        Mass at +infinity, in [0, 1].
    offset : float
        In nats; takes up what does not fit the grid.

    Raises
    ------
    ArgumentError
        If a mass is negative or not finite, or a field is out of range.
    """

    step: float
    indices: np.ndarray
    masses: np.ndarray
    side: str
    infinity: float = 0.0
    offset: float = 0.0

    def __post_init__(self) -> None:
        checks.real("step", self.step, above=0)
        checks.one_of("side", self.side, SIDES)
        checks.real("infinity", self.infinity, at_least=0, at_most=1)
        masses = checks.finite_array("masses", self.masses, ndim=1)
        indices = np.asarray(self.indices, dtype=np.int64)
        if masses.shape != indices.shape or masses.size == 0 or masses.min() < 0:
            raise ArgumentError(f"a loss law needs nonnegative masses, one an index, got {masses.size}, {indices.size}")
        filled = masses > 0
        if not filled.any():
            filled[0] = True
        object.__setattr__(self, "masses", masses[filled])
        object.__setattr__(self, "indices", indices[filled])

    @cached_property
    def losses(self) -> np.ndarray:
        """Losses without the offset, shape (n,)."""
        return self.indices * self.step

    @property
    def support(self) -> tuple[int, int]:
        """Smallest and largest index."""
        return int(self.indices.min()), int(self.indices.max())

    def log_mgf(self, tilt: float) -> float:
        """log sum of mass e^{tilt loss} over finite losses, without the offset."""
        exponents = tilt * self.losses
        largest = float(exponents.max())
        total = float(self.masses @ np.exp(exponents - largest))
        if total > 0:
            return largest + float(np.log(total))
        with np.errstate(divide="ignore"):
            return float(np.logaddexp.reduce(np.log(self.masses) + exponents))

    def moments(self, tilt: float) -> tuple[float, float]:
        """Mean and variance of the tilted, normalised law, without the offset."""
        with np.errstate(divide="ignore"):
            exponents = np.log(self.masses) + tilt * self.losses
        weights = np.exp(exponents - exponents.max())
        weights /= weights.sum()
        mean = float(weights @ self.losses)
        return mean, float(weights @ (self.losses - mean) ** 2)
