"""Scales of Gaussian noise: the classical formula and the exact one."""

from __future__ import annotations

import math

from scipy.optimize import brentq
from scipy.special import erfinv, ndtri

from dpsub import checks
from dpsub.profiles.base import round_up
from dpsub.profiles.gaussian import GaussianProfile


def classical_gaussian_scale(epsilon: float, delta: float, sensitivity: float) -> float:
    """Return sigma = sensitivity sqrt(2 log(1.25 / delta)) / epsilon.

    Its proof needs epsilon < 1. The formula is evaluated for every epsilon, as the paper does, and its condition is a
    question of its own: `classical_is_valid`. Where that says no, the scale is what the paper's formula gives, not a
    guarantee of (epsilon, delta); the exact delta is ``GaussianProfile(sensitivity / sigma).delta(epsilon)``.

    Parameters
    ----------
    epsilon : float
        Nats, above 0.
    delta : float
        In (0, 1).
    sensitivity : float
        L2 sensitivity of the query, above 0, in its units.

    Returns
    -------
    float
        Standard deviation of the noise, in the units of the query.

    Raises
    ------
    ArgumentError
        If an argument is out of range.

    References
    ----------
    must, Equation (9) and footnote 4; balle, Section 3.
    """
    order = checks.real("epsilon", epsilon, above=0)
    target = checks.real("delta", delta, above=0, below=1)
    return checks.real("sensitivity", sensitivity, above=0) * math.sqrt(2 * math.log(1.25 / target)) / order


def classical_is_valid(epsilon: float) -> bool:
    """Return whether `epsilon` meets the condition 0 < epsilon < 1 of `classical_gaussian_scale`.

    Raises
    ------
    ArgumentError
        If `epsilon` is not a number above 0.

    References
    ----------
    must, footnote 4.
    """
    return checks.real("epsilon", epsilon, above=0) < 1


def analytic_gaussian_scale(epsilon: float, delta: float, sensitivity: float) -> float:
    """Return the smallest sigma whose exact Gaussian profile satisfies delta(epsilon) <= `delta`.

    The root of log delta_theta(epsilon) = log `delta` in theta = sensitivity / sigma, rounded towards more noise until
    the profile at the returned sigma keeps the inequality in double precision. Valid for every epsilon >= 0.

    Parameters
    ----------
    epsilon : float
        Nats, at least 0.
    delta : float
        In (0, 1).
    sensitivity : float
        L2 sensitivity of the query, above 0, in its units.

    Returns
    -------
    float
        Standard deviation of the noise, in the units of the query; exact up to rounding upwards.

    Raises
    ------
    ArgumentError
        If an argument is out of range.

    References
    ----------
    balle, Theorem 4 (the profile); must, Theorem 1(b).

    Examples
    --------
    >>> from dpsub.profiles import GaussianProfile
    >>> sigma = analytic_gaussian_scale(1.0, 1e-5, sensitivity=2.0)
    >>> print(f"{sigma:.2f}, by the classical formula {classical_gaussian_scale(1.0, 1e-5, 2.0):.2f}")
    7.46, by the classical formula 9.69
    >>> bool(GaussianProfile(2.0 / sigma).delta(1.0) <= 1e-5)
    True
    """
    order = checks.real("epsilon", epsilon, at_least=0)
    target = checks.real("delta", delta, above=0, below=1)
    span = checks.real("sensitivity", sensitivity, above=0)
    goal = math.log(target)

    def excess(ratio: float) -> float:
        return float(GaussianProfile(ratio).log_delta(order)) - goal

    # delta_theta(epsilon) is at most delta_theta(0) and at most Phi(theta/2 - epsilon/theta); each equals `delta` at a
    # ratio that is therefore no larger than the root.
    quantile = float(ndtri(target))
    root_of_bound = math.hypot(quantile, math.sqrt(2 * order))
    by_half_line = quantile + root_of_bound if quantile >= 0 else 2 * order / (root_of_bound - quantile)
    low = max(2 * math.sqrt(2) * float(erfinv(target)), by_half_line)
    while excess(low) > 0:  # rounding only
        low *= 1 - 1e-12
    high = 2 * low
    while excess(high) < 0:
        high *= 2
    ratio = float(brentq(excess, low, high, xtol=1e-300, rtol=1e-15, maxiter=500))
    return round_up(span / ratio, lambda scale: excess(span / scale) <= 0)
