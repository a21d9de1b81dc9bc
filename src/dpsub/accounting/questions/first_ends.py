"""Closed-form bounds: a proved upper and an attained lower bound for any question, from formulas
(docs/proofs/first_ends.md).

They take milliseconds, and every refinement starts from them. No privacy loss distribution is
computed. Upper bounds compose Gaussian steps, moments of likelihood ratios, or (epsilon, delta)
pairs (`first_upper`); lower bounds come from two tests, one of the sum of all outputs, the other of
the number of large ones (`first_lower`). This module holds what both share.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

EPS = float(np.finfo(float).eps)
SLACK = 1e-9
"""Relative error allowed for every probability and moment: far above the errors of laws of counts
(2e-11) and of sums of a few thousand terms, far below the distance of closed-form bounds."""


class FirstEnd(NamedTuple):
    """One bound of an answer, and the theorem or attack that gives it."""

    value: float
    given_by: str


def divergence(count: np.ndarray | int, times: int, rate: np.ndarray | float) -> np.ndarray:
    """times KL(count / times, rate), rounded down; 0 < rate < 1."""
    count, rate = np.asarray(count, dtype=float), np.asarray(rate, dtype=float)
    rest = times - count
    with np.errstate(divide="ignore", invalid="ignore"):
        drawn = np.where(count > 0, count * (np.log(count / times) - np.log(rate)), 0.0)
        missed = np.where(rest > 0, rest * (np.log(rest / times) - np.log1p(-rate)), 0.0)
    return drawn + missed - 16 * EPS * (times + np.abs(drawn) + np.abs(missed))
