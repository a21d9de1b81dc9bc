"""Renyi divergences of recycled Gaussian noise in closed form, and the concentrated privacy that follows.

With f the released density and the intervals of `dpsub.recycling.exact`, k(n)^a k(n - D)^(1 - a) is
e^{a (a - 1) D^2 / (2 sigma^2)} times the normal density around (1 - a) D, so that

    E_a = c e^{a (a - 1) D^2 / (2 sigma^2)} sum of g(n)^a g(n - D)^(1 - a) P(left < N + (1 - a) D <= right),

and the divergence of order a is log(E_a) / (a - 1).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import log_ndtr, logsumexp

from dpsub import checks
from dpsub.errors import UnsupportedError
from dpsub.recycling.divergence import intervals
from dpsub.recycling.kernels import GaussianKernel
from dpsub.recycling.law import Recycled

_ORDERS = 1 + np.geomspace(1e-6, 1e5, 40_001)


def divergence(law: Recycled, order: ArrayLike) -> np.ndarray:
    """The Renyi divergence of order a > 1, the larger one of both directions; infinite at q = 1.

    Raises
    ------
    UnsupportedError
        If the kernel is not Gaussian.
    ArgumentError
        If an order is not above 1.
    """
    if not isinstance(law.kernel, GaussianKernel):
        raise UnsupportedError(
            f"Renyi divergences are known for Gaussian kernels, got {law.kernel.name!r}; compose its exact profile"
        )
    orders = checks.finite_array("order", order)
    checks.real("order", orders.min(), above=1)
    directions = [law] if law.symmetric else [law, law.mirrored]
    return np.asarray(np.max([_one(each, orders) for each in directions], axis=0))[()]


def _one(law: Recycled, orders: np.ndarray) -> np.ndarray:
    if law.rate == 1:
        return np.full(orders.shape, np.inf)
    sigma, shift = law.kernel.scale, (orders - 1) * law.sensitivity
    log_keep = math.log1p(-law.rate)
    terms = []
    for piece in intervals(law.lower, law.upper, law.sensitivity):
        factor = np.zeros(orders.shape) if piece.inside else orders * log_keep
        factor = factor + (0.0 if piece.shifted_inside else (1 - orders) * log_keep)
        terms.append(factor + _log_mass((piece.low + shift) / sigma, (piece.high + shift) / sigma))
    kernel = orders * (orders - 1) * (law.sensitivity / sigma) ** 2 / 2
    return np.asarray((math.log(law.normaliser) + kernel + logsumexp(terms, axis=0)) / (orders - 1))


def _log_mass(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """log P(low < N(0, 1) <= high), from the tails on the side where they are small."""
    right = low > 0
    far, near = np.where(right, -high, low), np.where(right, -low, high)
    largest = log_ndtr(near)
    with np.errstate(divide="ignore"):
        return np.asarray(largest + np.log(-np.expm1(np.minimum(log_ndtr(far) - largest, 0.0))))


def concentrated(law: Recycled) -> float:
    """An upper bound of rho = sup over a > 1 of divergence(a) / a, sharp to a few parts in a thousand.

    Divergences grow with the order: between two orders a < b of a grid, divergence(b) / a is enough; beyond the last
    one it is at most a D^2 / (2 sigma^2) + L + log(c) / (a - 1).
    """
    values = divergence(law, _ORDERS)
    if not np.isfinite(values[0]):
        return math.inf
    starts = np.append(1.0, _ORDERS[:-1])
    last = float(_ORDERS[-1])
    rest = -math.log1p(-law.rate) + math.log(law.normaliser) / (last - 1)
    beyond = (law.sensitivity / law.kernel.scale) ** 2 / 2 + rest / last
    return max(float((values / starts).max()), beyond) * (1 + 1e-9)
