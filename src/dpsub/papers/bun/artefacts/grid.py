"""Questions to the grid of bounds: in how many cases a statement is right, and by how much."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

TOLERANCE = 2e-6
"""Two computations of one loss, of which one is certified to 1e-6 nats, agree within this."""


@dataclass(frozen=True)
class Standing:
    """How a statement fares over its cases.

    Attributes
    ----------
    cases, right, tight : int
        All cases; those in which it is right; those in which formula and truth agree.
    smallest, largest : float
        Ratios formula / truth over the cases with a finite truth above 0; NaN where there is none.
    worst : str
        The case that decides, with both numbers.
    """

    cases: int
    right: int
    tight: int
    smallest: float
    largest: float
    worst: str


def right(frame: pd.DataFrame) -> np.ndarray:
    """Return which rows are right: an upper bound at or above the truth, a lower one at or below it, or equal."""
    bound, exact = frame["bound"].to_numpy(float), frame["exact"].to_numpy(float)
    equal = _tight(bound, exact)
    side = frame["side"].to_numpy()
    beyond = np.where(side == "upper", bound >= exact, (side == "lower") & (bound <= exact))
    return beyond | equal


def _tight(bound: np.ndarray, exact: np.ndarray) -> np.ndarray:
    with np.errstate(invalid="ignore"):
        return (np.abs(bound - exact) <= TOLERANCE) | (bound == exact)


def standing(frame: pd.DataFrame) -> Standing:
    """Return the standing of one statement from its rows in one variant."""
    bound, exact, good = frame["bound"].to_numpy(float), frame["exact"].to_numpy(float), right(frame)
    tight = _tight(bound, exact)
    known = np.isfinite(exact) & (exact > TOLERANCE) & np.isfinite(bound)
    ratios = bound[known] / exact[known]
    with np.errstate(invalid="ignore"):
        gap = np.nan_to_num(np.abs(bound - exact), nan=0.0)  # both infinite: no gap
    # the case that refutes it by most, or the closest call where none does
    place = int(np.argmax(np.where(good, -1.0, gap))) if not good.all() else int(np.argmin(gap))
    row = frame.iloc[place]
    worst = f"{row['case']}, epsilon {row['epsilon']:g}: formula {row['bound']:.6g}, exact {row['exact']:.6g}"
    ends = (float(ratios.min()), float(ratios.max())) if len(ratios) else (float("nan"), float("nan"))
    return Standing(len(frame), int(good.sum()), int(tight.sum()), *ends, worst)
