"""The largest ratio of two weighted sums over positive sequences that change by at most exp(epsilon) a step."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from dpsub import checks
from dpsub.errors import ArgumentError, NumericalError

_HUGE = 1e200
_ROUNDS = 200
_SLACK = 1e-11


@dataclass(frozen=True, eq=False)
class WorstRatio:
    """The optimum and a sequence that attains it.

    Attributes
    ----------
    log_ratio : float
        log max over A of sum(N A) / sum(D A).
    log_sequence : ndarray, shape (n,)
        log A of a maximiser, A_0 = 1.
    slack : float
        Verified: no sequence has a log ratio above log_ratio + slack. It covers round-off, which grows with n epsilon.
    """

    log_ratio: float
    log_sequence: np.ndarray
    slack: float

    @property
    def upper(self) -> float:
        """A value that is proved not to be below the optimum."""
        return self.log_ratio + self.slack


def worst_ratio(log_numerator: np.ndarray, log_denominator: np.ndarray, epsilon: float) -> WorstRatio:
    """Return max over A > 0 with exp(-epsilon) <= A_{j+1}/A_j <= exp(epsilon) of sum(N A) / sum(D A).

    This is a linear-fractional programme whose extreme rays go up or down by the full factor at every step. For a
    trial value lambda, V_j = N_j - lambda D_j + max(exp(epsilon) V_{j+1}, exp(-epsilon) V_{j+1}) decides in one pass
    whether some A exceeds it; the A of that pass gives the next lambda (Dinkelbach's method). Each pass is O(n).

    Parameters
    ----------
    log_numerator, log_denominator : ndarray, shape (n,)
        Logarithms of the weights N and D, -inf for 0; D must not be 0 everywhere.
    epsilon : float
        Largest change of log A between neighbours, above 0.

    Raises
    ------
    ArgumentError
        If the arrays differ in length, hold NaN or +inf, or one of them is 0 everywhere.
    NumericalError
        If no maximiser is verified.

    References
    ----------
    bun, Sections 3 and 4: with A_m the probability of an event on a sample of size m, the worst event of all
    epsilon-DP mechanisms.
    """
    epsilon = checks.real("epsilon", epsilon, above=0)
    n, d = np.asarray(log_numerator, dtype=float), np.asarray(log_denominator, dtype=float)
    if n.ndim != 1 or n.shape != d.shape:
        raise ArgumentError(f"the two weights must have one length, got shapes {n.shape} and {d.shape}")
    for name, array in (("numerator", n), ("denominator", d)):
        if not np.all(array < np.inf) or not np.any(array > -np.inf):
            raise ArgumentError(f"the {name} must hold finite logarithms or -inf, not all -inf, got {array[:5]}...")
    level = np.maximum(n, d)
    level = np.where(np.isneginf(level), np.max(level), level)
    above, below = np.exp(n - level).tolist(), np.exp(d - level).tolist()
    levels = level.tolist()
    log_lambda, sequence = -math.inf, np.zeros(len(n))
    slopes = np.ones(len(n))
    for _ in range(_ROUNDS):
        candidate = epsilon * (np.cumsum(slopes) - slopes[0])
        value = float(logsumexp(n + candidate) - logsumexp(d + candidate))
        if value <= log_lambda + 4e-16 * (1 + abs(log_lambda)):
            break
        log_lambda, sequence = value, candidate
        slopes = _pass(above, below, levels, log_lambda, epsilon)[1]
    else:
        raise NumericalError(f"the worst ratio must settle within {_ROUNDS} rounds, got {log_lambda!r} at the end")
    # weights far below the others do not matter, however long their logarithms are
    digits = min(float(np.ptp(level)), 2 * epsilon * len(n) + 2000)
    slack = _SLACK + 1e-15 * (epsilon * len(n) + digits)
    if _pass(above, below, levels, log_lambda + slack, epsilon)[0] > 0:
        raise NumericalError(f"the worst ratio must be verified to {slack:g}, got exp({log_lambda!r}) exceeded")
    return WorstRatio(log_lambda, sequence, slack)


def _pass(
    above: list[float], below: list[float], levels: list[float], log_lambda: float, epsilon: float
) -> tuple[float, np.ndarray]:
    """Return the sign-carrying V_0 (rescaled) and the slopes: entry j is the step from j - 1 to j."""
    up, down = math.exp(min(epsilon, 600.0)), math.exp(-epsilon)
    ratio = math.exp(min(log_lambda, 600.0))
    slopes = np.ones(len(above))
    value, reference = 0.0, levels[-1]
    for j in range(len(above) - 1, -1, -1):
        distance = levels[j] - reference
        if distance > 300.0 or value == 0.0:
            value *= math.exp(max(-distance, -745.0)) if value else 0.0
            reference, distance = levels[j], 0.0
        value += (above[j] - ratio * below[j]) * math.exp(distance) if distance > -745.0 else 0.0
        if value > 0:
            value *= up if j else 1.0
        else:
            slopes[j] = -1.0
            value *= down if j else 1.0
        if abs(value) > _HUGE or (value != 0.0 and abs(value) < 1 / _HUGE):
            reference += math.log(abs(value))
            value = math.copysign(1.0, value)
    return value, slopes
