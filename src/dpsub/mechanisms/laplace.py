"""Laplace noise."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from dpsub.mechanisms.base import Mechanism


@dataclass(frozen=True)
class Laplace(Mechanism):
    """Double-exponential noise per coordinate: density exp(-|z| / scale) / (2 scale).

    Parameters
    ----------
    scale : float
        Scale b of the exponential tails, above 0; the standard deviation is sqrt(2) times it.

    References
    ----------
    must, Theorem 1; balle, Section 3 (output perturbation).
    """

    name: ClassVar[str] = "laplace"

    def log_density(self, z: ArrayLike) -> np.ndarray:
        return (-np.abs(np.asarray(z, dtype=float)) / self.scale - math.log(2 * self.scale))[()]

    def cdf(self, z: ArrayLike) -> np.ndarray:
        standard = np.asarray(z, dtype=float) / self.scale
        tail = 0.5 * np.exp(-np.abs(standard))
        return np.where(standard < 0, tail, 1 - tail)[()]

    @property
    def variance(self) -> float:
        return 2 * self.scale**2

    def _standard_noise(self, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
        return rng.laplace(size=shape)
