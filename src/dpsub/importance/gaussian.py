"""Weighted Lloyd with Gaussian noise: closed-form (epsilon, delta) after importance sampling, and optimal weights.

T rounds with noise N(0, sigma_sum^2) on sums and N(0, sigma_count^2) on counts tell (w, x) apart as N(mu, 1) from
N(0, 1), mu = w sqrt(T) sqrt(|x|^2 / sigma_sum^2 + 1 / sigma_count^2).  Sampled with probability q, the worst pair is
(1 - q) N(0, 1) + q N(mu, 1) against N(0, 1), in this direction.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from dpsub import checks
from dpsub.errors import ArgumentError
from dpsub.importance.losses import base_order, inclusion
from dpsub.profiles import GaussianProfile
from dpsub.profiles.base import nonnegative

_GROWTH = 1.02
_HALVINGS = 60
_TABLE = 1000
"""Weights of more records than twice as many are bracketed by those of a table: the climb takes hundreds of steps."""


def shifts(norms: ArrayLike, sigma_sum: float, sigma_count: float, n_iterations: int) -> np.ndarray:
    """Return mu at weight 1 of records with these l2 norms, shape of `norms`."""
    z = nonnegative("norms", norms)
    on_sum = checks.real("sigma_sum", sigma_sum, above=0)
    on_count = checks.real("sigma_count", sigma_count, above=0)
    rounds = checks.integer("n_iterations", n_iterations, at_least=1)
    return np.asarray(math.sqrt(rounds) * np.hypot(z / on_sum, 1 / on_count))


def sampled_delta(epsilon: float, q: ArrayLike, mu: ArrayLike) -> np.ndarray:
    """Return q G(log(1 + (e^eps - 1) / q), mu), G the profile of N(mu, 1) against N(0, 1); exact.

    Parameters
    ----------
    epsilon : float
        Nats, >= 0.
    q : array_like
        In (0, 1].
    mu : array_like
        Above 0, at the weight that goes with q.
    """
    order = checks.real("epsilon", epsilon, at_least=0)
    chance, shift = np.broadcast_arrays(inclusion(q), checks.finite_array("mu", mu))
    if shift.size and shift.min() <= 0:
        raise ArgumentError(f"mu must be above 0, got {shift.min():g}; a record without influence needs no noise")
    log_delta = GaussianProfile(1.0).group_log_delta(base_order(np.asarray(order), chance), shift)
    return np.asarray(chance * np.exp(log_delta))


def gaussian_weights(mu: ArrayLike, epsilon: float, delta: float) -> np.ndarray:
    """Return the end of the weights from 1 on at which a record is (epsilon, delta)-protected, rounded down.

    From 1 / delta on every weight is feasible again, as the record is then hardly ever drawn; such weights are useless
    and left out.

    Parameters
    ----------
    mu : array_like, shape (n,)
        At weight 1.
    epsilon, delta : float
        Targets.

    Raises
    ------
    ArgumentError
        If a record is not protected at weight 1, or an argument is out of range.
    """
    first = checks.finite_array("mu", np.atleast_1d(np.asarray(mu, dtype=float)), ndim=1)
    goal = checks.real("delta", delta, above=0, below=1)

    low = np.ones(first.size)
    if not _feasible(first, low, epsilon, goal).all():
        worst = float(sampled_delta(epsilon, 1.0, first).max())
        raise ArgumentError(f"delta must be at least {worst:.3g}, which no sampling attains, got {goal:g}; add noise")
    if first.size <= 2 * _TABLE:
        low = _climbed(first, epsilon, goal)
        high = low * _GROWTH
    else:
        # a smaller mu is protected wherever a larger one is, and a larger one is not wherever a smaller one is not
        places = np.geomspace(first.min(), first.max(), _TABLE)
        ends = gaussian_weights(places, epsilon, goal)
        above = np.clip(np.searchsorted(places, first), 1, _TABLE - 1)
        low, high = ends[above], ends[above - 1] * (1 + 1e-12)
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        if not (high - low > 1e-15 * low).any():
            break
        good = _feasible(first, middle, epsilon, goal)
        low, high = np.where(good, middle, low), np.where(good, high, middle)
    return low


def _feasible(mu: np.ndarray, w: np.ndarray, epsilon: float, goal: float) -> np.ndarray:
    return np.asarray(sampled_delta(epsilon, 1 / w, w * mu) <= goal)


def _climbed(mu: np.ndarray, epsilon: float, goal: float) -> np.ndarray:
    """Feasible weights from which one more step of 2 % is infeasible, or reaches 1 / delta."""
    low, climbing = np.ones(mu.size), np.ones(mu.size, dtype=bool)
    while climbing.any():
        higher = low[climbing] * _GROWTH
        good = _feasible(mu[climbing], higher, epsilon, goal) & (higher < 1 / goal)
        low[climbing] = np.where(good, higher, low[climbing])
        climbing[climbing] = good
    return low
