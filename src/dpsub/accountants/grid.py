"""The grid of losses of the Fourier accountant and convolution powers on it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import fft

from dpsub import checks
from dpsub.errors import ArgumentError


@dataclass(frozen=True)
class LossGrid:
    """Points x_i = -L + i dx, i = 0..r - 1, dx = 2 L / r, and the cells [x_i, x_{i+1}).

    Attributes
    ----------
    half_width : float
        L > 0, in nats.
    size : int
        r >= 4, even.

    Raises
    ------
    ArgumentError
        If r is odd or out of range.

    References
    ----------
    MUST, Algorithm 1, steps 1 and 2.
    """

    half_width: float
    size: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "half_width", checks.real("half_width", self.half_width, above=0))
        object.__setattr__(self, "size", checks.integer("grid_size", self.size, at_least=4))
        if self.size % 2:
            raise ArgumentError(f"grid_size must be even, got grid_size = {self.size}; take {self.size + 1}")

    @property
    def step(self) -> float:
        """dx."""
        return 2 * self.half_width / self.size

    @cached_property
    def edges(self) -> np.ndarray:
        """x_0..x_r, shape (r + 1,), its own mirror image to the last bit."""
        return (np.arange(self.size + 1) - self.size // 2) * self.step

    @property
    def points(self) -> np.ndarray:
        """x_0..x_{r-1}, shape (r,)."""
        return self.edges[:-1]


def swap_halves(values: np.ndarray) -> np.ndarray:
    """Exchange the halves of a vector of even length, so that the loss 0 comes first (H of Algorithm 1)."""
    return np.roll(values, values.size // 2)


def spectrum(cells: np.ndarray) -> np.ndarray:
    """Transform of the swapped cells; of a real vector, so half of it is kept."""
    return np.asarray(fft.rfft(swap_halves(cells)))


def convolution_power(transformed: np.ndarray, n_compositions: int, size: int) -> np.ndarray:
    """The k-th cyclic convolution power of the cells with the given spectrum, in the order of the grid."""
    return swap_halves(fft.irfft(transformed**n_compositions, n=size))


def excess(points: np.ndarray, epsilon: float) -> np.ndarray:
    """The weight (1 - e^{epsilon - x})_+ of a loss x in delta(epsilon)."""
    return -np.expm1(np.minimum(epsilon - points, 0.0))
