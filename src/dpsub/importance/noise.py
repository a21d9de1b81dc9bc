"""Noise with a density proportional to exp(-|z|_p / scale) in d dimensions."""

from __future__ import annotations

import math

import numpy as np

from dpsub import checks

RADII = ("gamma", "exponential")
"""`gamma`: the radius has the law Gamma(d, scale), as the density says.  `exponential`: that of one dimension, whose
density in d > 1 has a pole at 0 and bounds no loss (R1)."""


def norm_order(value: float) -> float:
    """Return the order of the norm.

    Raises
    ------
    ArgumentError
        If it is below 1, where |.|_p is no norm and the loss is not bounded by it.
    """
    if value == math.inf:
        return math.inf
    return checks.real("the norm order", value, at_least=1)


def norms(vectors: np.ndarray, order: float) -> np.ndarray:
    """|v|_order along the last axis, in float64, without overflow at large orders."""
    if order == 2:
        return np.asarray(np.sqrt(np.einsum("...j,...j->...", vectors, vectors, dtype=float)))
    sizes = np.abs(vectors, dtype=float)
    largest = sizes.max(axis=-1)
    if order == math.inf:
        return np.asarray(largest)
    shares = sizes / np.where(largest > 0, largest, 1.0)[..., None]
    return np.asarray(largest * (shares**order).sum(axis=-1) ** (1 / order))


def norm_noise(
    shape: tuple[int, ...], scale: float, rng: np.random.Generator, *, order: float = 2.0, radius: str = "gamma"
) -> np.ndarray:
    """Draw vectors of the last axis' dimension with a density proportional to exp(-|z|_order / scale).

    The direction u / |u|_p of independent coordinates with density proportional to exp(-|u|^p) is independent of the
    radius |z|_p, whose law is Gamma(d, scale) as |z|_p^{d-1} is what a shell has in volume.

    Parameters
    ----------
    shape : tuple of int
        The last entry is d.
    scale : float
        At least 0; 0 gives zeros.
    order : float
        p in [1, inf].
    radius : {"gamma", "exponential"}

    Raises
    ------
    ArgumentError
        If an argument is out of range.
    """
    p = norm_order(order)
    beta = checks.real("scale", scale, at_least=0)
    law = checks.one_of("radius", radius, RADII)
    if beta == 0:
        return np.zeros(shape)
    if p == 2:
        u = rng.standard_normal(shape)
    elif p == math.inf:
        u = rng.uniform(-1.0, 1.0, shape)
    else:
        # Gamma(1/p) is Gamma(1 + 1/p) times the p-th power of a uniform number, and would underflow at large p
        u = rng.gamma(1 + 1 / p, 1.0, shape) ** (1 / p) * rng.uniform(-1.0, 1.0, shape)
    size = rng.gamma(shape[-1], beta, shape[:-1]) if law == "gamma" else rng.exponential(beta, shape[:-1])
    return np.asarray(u * (size / norms(u, p))[..., None])
