"""The largest noise-to-norm factor s that keeps a core-set sampler below its target, with a proof for every norm.

At norm z the loss is at most eps* iff s <= f(z) = phi(q(z)) / (z + offset), phi(q) = q log(1 + E/q), E = e^{eps*} - 1,
q(z) = A + B z^2.  With u = E/q the logarithmic derivative is

    f'/f = e(u) q'/q - 1 / (z + offset),   e(u) = 1 - (u / (1 + u)) / log(1 + u),

and e increases with u, from 0 to 1.  All parts are monotone in z, which bounds f'/f on a cell.  Where the bounds have
one sign the smallest value is at an end; elsewhere log f is at least its value in the middle minus half the width
times the largest slope, and the cell is halved.  As slopes vanish at minima, few cells are halved more than a few
times.
"""

from __future__ import annotations

import numpy as np

from dpsub.errors import NumericalError
from dpsub.importance.losses import log_expm1

_CELLS = 2048
_ROUNDS = 60
_GAP = 1e-12
ROUNDING = 1e-12
"""Relative error allowed for the evaluation of f; the factor is lowered by it."""


def log_factor(z: np.ndarray, q: np.ndarray, offset: float, target: float) -> np.ndarray:
    """log f at norms z included with probability q: also the closed form of uniform sampling."""
    return _curve(z, q, offset, float(log_expm1(target)))[0]


def _curve(z: np.ndarray, q: np.ndarray, offset: float, log_gain: float) -> tuple[np.ndarray, np.ndarray]:
    """log f at norms z, and log u there; log_gain is log E."""
    log_q = np.log(q)
    log_u = log_gain - log_q
    return np.asarray(log_q + np.log(np.logaddexp(0.0, log_u)) - np.log(z + offset)), log_u


def _elasticity(log_u: np.ndarray) -> np.ndarray:
    return np.asarray(1 - 1 / (1 + np.exp(-log_u)) / np.logaddexp(0.0, log_u))


def smallest_factor(constant: float, square: float, radius: float, offset: float, target: float) -> tuple[float, float]:
    """Return a lower bound of min f over [0, radius] for q(z) = constant + square z^2, and the value found at a point.

    Parameters
    ----------
    constant, square : float
        A > 0, B >= 0, A + B radius^2 <= 1.
    radius, offset : float
        Above 0.
    target : float
        eps* > 0.

    Raises
    ------
    NumericalError
        If bound and value do not come within 1e-12 of each other.
    """

    def rate(z: np.ndarray) -> np.ndarray:
        return constant + square * z * z

    log_gain = float(log_expm1(target))

    def curve(z: np.ndarray, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return _curve(z, np.minimum(q, 1.0), offset, log_gain)

    edges = np.linspace(0.0, radius, _CELLS + 1)
    left, right = edges[:-1], edges[1:]
    best, proved = np.inf, np.inf
    for _ in range(_ROUNDS):
        q_left, q_right, middle = rate(left), rate(right), 0.5 * (left + right)
        (at_left, u_left), (at_right, u_right) = curve(left, q_left), curve(right, q_right)
        at_middle, _ = curve(middle, rate(middle))
        steepest = _elasticity(u_left) * 2 * square * right / q_left - 1 / (right + offset)
        flattest = _elasticity(u_right) * 2 * square * left / q_right - 1 / (left + offset)
        ends = np.minimum(at_left, at_right)
        best = min(best, float(at_middle.min()), float(ends.min()))
        largest = np.maximum(np.abs(steepest), np.abs(flattest))
        bound = np.where((steepest <= 0) | (flattest >= 0), ends, at_middle - largest * (right - left) / 2)
        open_ = bound < best - _GAP
        if not open_.all():
            proved = min(proved, float(bound[~open_].min()))
        if not open_.any():
            return float(np.exp(proved)) * (1 - ROUNDING), float(np.exp(best))
        left = np.concatenate([left[open_], middle[open_]])
        right = np.concatenate([middle[open_], right[open_]])
    raise NumericalError(f"the minimum over norms must settle, got a value of exp({best:g}) and {left.size} open cells")
