"""Gaussian noise."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr

from dpsub.mechanisms.base import Mechanism


@dataclass(frozen=True)
class Gaussian(Mechanism):
    """Noise N(0, scale²) per coordinate: density exp(-z² / (2 scale²)) / (scale sqrt(2 pi)).

    Parameters
    ----------
    scale : float
        Standard deviation sigma, above 0.

    References
    ----------
    must, Theorem 1; balle, Section 3 (output perturbation).
    """

    name: ClassVar[str] = "gaussian"

    def log_density(self, z: ArrayLike) -> np.ndarray:
        standard = np.asarray(z, dtype=float) / self.scale
        return (-0.5 * standard * standard - math.log(self.scale) - 0.5 * math.log(2 * math.pi))[()]

    def cdf(self, z: ArrayLike) -> np.ndarray:
        return ndtr(np.asarray(z, dtype=float) / self.scale)

    @property
    def variance(self) -> float:
        return self.scale**2

    def _standard_noise(self, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
        return rng.standard_normal(shape)
