"""Profiles of pairs of Laplace mixtures in closed form, orders at least 1, rounded up.

With w = e^-theta, theta the distance over the scale of the noise, optimal events are half-lines that end between the
two centres, and with a = e^x

    (1 - q) Lap(0) + q Lap(theta) against Lap(0):              q - sqrt(q w (a - 1 + q)),
    Lap(0) against (1 - q) Lap(0) + q Lap(theta):              r - sqrt(r a q w),  r = 1 - a (1 - q),
    (1 - q) Lap(0) + q Lap(theta) against its mirror image:    q - sqrt(q w E),    E = (a - 1)(1 - q) + a q w,

each 0 from the order on at which it falls to 0, the largest likelihood ratio e^top.  Written as multiples of
1 - e^(x - top) they keep their digits there.  The first one is also the bound q h(1 + (a - 1) / q) for sampling without
replacement.
"""

from __future__ import annotations

import math

import numpy as np

from dpsub import checks
from dpsub.accountants.gaussian_orders import PROFILE_ERROR
from dpsub.accountants.profile_losses import Profile

_EPS = float(np.finfo(float).eps)


def largest_loss(rate: float, ratio: float) -> float:
    """log(1 - q + q e^theta): of the mixture against its first component."""
    q = checks.real("rate", rate, above=0, at_most=1)
    return float(np.logaddexp(np.log(q) + ratio, math.log1p(-q))) if q < 1 else ratio


def smallest_loss(rate: float, ratio: float) -> float:
    """log(1 - q + q e^-theta)."""
    q = checks.real("rate", rate, above=0, at_most=1)
    return math.log1p(q * math.expm1(-ratio)) if q < 1 else -ratio


def included_once(rate: float, ratio: float) -> Profile:
    """The mixture against its first component."""
    top, q, w = largest_loss(rate, ratio), rate, math.exp(-ratio)

    def profile(log_order: np.ndarray) -> np.ndarray:
        x, below = _below(log_order, top, ratio)
        return below * (q * (q + w * (1 - q)) / (q + np.sqrt(q * w * (np.expm1(x) + q))))

    return profile


def removed_once(rate: float, ratio: float) -> Profile:
    """The first component against the mixture."""
    top, q, w = -smallest_loss(rate, ratio), rate, math.exp(-ratio)

    def profile(log_order: np.ndarray) -> np.ndarray:
        x, below = _below(log_order, top, ratio)
        # the quotient grows with r, whose rounding is absolute
        r = np.maximum(q - np.expm1(x) * (1 - q), q * w) + 8 * _EPS
        root = np.sqrt(np.exp(x) * q * w)
        return below * (np.sqrt(r) / (np.sqrt(r) + root))

    return profile


def replaced_once(rate: float, ratio: float) -> Profile:
    """The mixture against its mirror image."""
    top, q, w = largest_loss(rate, ratio) - smallest_loss(rate, ratio), rate, math.exp(-ratio)

    def profile(log_order: np.ndarray) -> np.ndarray:
        x, below = _below(log_order, top, ratio)
        inner = np.expm1(x) * (1 - q) + np.exp(x) * q * w
        return below * (q * (q + w * (1 - q)) / (q + np.sqrt(q * w * inner)))

    return profile


def _below(log_order: np.ndarray, top: float, ratio: float) -> tuple[np.ndarray, np.ndarray]:
    """Log orders, at most `top`, and 1 - e^(x - top) rounded up, by more than the roundings of all other factors."""
    x = np.asarray(log_order, dtype=float)
    slack = 16 * _EPS * (1 + ratio + np.abs(x))
    return np.minimum(x, top), np.abs(np.expm1(np.minimum(x - top - slack, 0.0))) * (1 + PROFILE_ERROR)
