"""Profiles of subsampled Laplace noise on a scalar query, where joint convexity is exact.

The base profile is that of Lap(b) at ratio theta = sensitivity / b, self-dual.  Without replacement under substitution
(distance 2 C) and Poisson under add/remove (distance C) the mechanism includes the record at most once, and

    H_a(P || Q) = q h(lift(a, q)),    H_a(Q || P) = (1 - a (1 - q)) h(a q / (1 - a (1 - q))) for a < 1 / (1 - q), else
    0,

the second for Poisson only, where Q is the base; it is the mirror image of the first for orders below 1.
"""

from __future__ import annotations

import numpy as np

from dpsub import checks
from dpsub.accountants.gaussian_orders import PROFILE_ERROR, log_lift
from dpsub.accountants.profile_losses import Profile
from dpsub.profiles.laplace import LaplaceProfile


def included_once(rate: float, ratio: float) -> Profile:
    """a -> q h(lift(a, q)) at log orders, rounded up."""
    q = checks.real("rate", rate, above=0, at_most=1)
    base = LaplaceProfile(ratio)

    def profile(log_order: np.ndarray) -> np.ndarray:
        return np.asarray(q * base.delta(log_lift(log_order, q)) * (1 + PROFILE_ERROR))

    return profile


def removed_once(rate: float, ratio: float) -> Profile:
    """a -> (1 - a (1 - q)) h(a q / (1 - a (1 - q))) at log orders, rounded up."""
    q = checks.real("rate", rate, above=0, at_most=1)
    base = LaplaceProfile(ratio)

    def profile(log_order: np.ndarray) -> np.ndarray:
        x = np.asarray(log_order, dtype=float)
        share = -np.expm1(x + np.log1p(-q)) if q < 1 else np.ones_like(x)
        inside = share > 1e-14
        safe = np.where(inside, share, 1.0)
        # the share is rounded up by what its own rounding can hide: H falls with the order and grows with the share
        value = (safe + 1e-15) * base.delta(np.where(inside, x + np.log(q) - np.log(safe), 0.0)) * (1 + PROFILE_ERROR)
        return np.asarray(np.where(inside, value, 1e-13))

    return profile
