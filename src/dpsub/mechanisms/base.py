"""The contract of an additive-noise mechanism."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from dpsub import checks


@dataclass(frozen=True)
class Mechanism(ABC):
    """Release value + scale * Z, with Z independent in every coordinate and symmetric around 0.

    Parameters
    ----------
    scale : float
        Scale of the noise, above 0, in the units of the value.

    Raises
    ------
    ArgumentError
        If `scale` is not a finite number above 0.
    """

    scale: float

    name: ClassVar[str]

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", checks.real("scale", self.scale, above=0))

    def release(self, value: ArrayLike, rng: np.random.Generator) -> np.ndarray:
        """Return `value` with fresh noise on every entry.

        Parameters
        ----------
        value : array_like
            Finite numbers of any shape.
        rng : numpy.random.Generator
            The only source of randomness.

        Returns
        -------
        ndarray
            Shape of `value`; a scalar comes back as a scalar.

        Raises
        ------
        ArgumentError
            If an entry of `value` is not finite.
        """
        exact = checks.finite_array("value", value)
        return (exact + self.scale * self._standard_noise(exact.shape, rng))[()]

    @abstractmethod
    def log_density(self, z: ArrayLike) -> np.ndarray:
        """Logarithm of the noise's density at `z` (released value minus exact value), per coordinate."""

    @abstractmethod
    def cdf(self, z: ArrayLike) -> np.ndarray:
        """P(noise <= z), per coordinate."""

    @property
    @abstractmethod
    def variance(self) -> float:
        """Variance of the noise, per coordinate."""

    @abstractmethod
    def _standard_noise(self, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
        """Draw noise of scale 1."""
