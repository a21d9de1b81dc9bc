"""The Gaussian profile at many orders and shifts, rounded up, and orders at the base of a subsampled mechanism."""

from __future__ import annotations

import numpy as np

from dpsub.profiles.gaussian import GaussianProfile

PROFILE_ERROR = 1e-11
"""Relative error allowed for a profile: its own (1e-13) and that of its order, which enters through the slope."""


def gaussian_profile(log_order: np.ndarray, shifts: np.ndarray) -> np.ndarray:
    """Upper bounds of G(a, d) = Phi(d/2 - ln(a)/d) - a Phi(-d/2 - ln(a)/d), a >= 1, with broadcasting.

    Parameters
    ----------
    log_order : ndarray
        ln a >= 0.
    shifts : ndarray
        d > 0, shift in units of the noise.
    """
    log_delta = GaussianProfile(1.0).group_log_delta(log_order, shifts)
    # what underflows is not 0
    return np.asarray(np.maximum(np.exp(log_delta) * (1 + PROFILE_ERROR), np.finfo(float).tiny))


def log_lift(log_order: np.ndarray, eta: float) -> np.ndarray:
    """ln(1 + (a - 1) / eta): the order at the base for the order a >= 1 of a mechanism that includes with probability
    eta."""
    if eta == 1:
        return np.asarray(log_order, dtype=float)
    x = np.asarray(log_order, dtype=float)
    near = np.log1p(np.expm1(np.minimum(x, 1.0)) / eta)
    # for large orders in logs: (e^x - 1 + eta) / eta
    far = x + np.log1p(-(1 - eta) * np.exp(-np.maximum(x, 1.0))) - np.log(eta)
    return np.where(x <= 1, near, far)
