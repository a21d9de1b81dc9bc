"""Summaries over replicates: mean, standard deviation, root mean square, paired difference, each
with its error."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy import special

from dpsub import checks
from dpsub.errors import ArgumentError
from dpsub.sampling.laws import clopper_pearson


@dataclass(frozen=True)
class Estimate:
    """A value over `replicates` repetitions, its standard error (NaN where one repetition gives
    none) and interval."""

    value: float
    standard_error: float
    replicates: int
    lower: float = math.nan
    upper: float = math.nan


def mean(values: np.ndarray) -> Estimate:
    """Return the mean and its standard error, SD / sqrt(R) with the divisor R - 1 in the SD."""
    x = _values(values)
    # One repetition has no spread: NaN, which the page leaves blank.
    error = float(x.std(ddof=1) / math.sqrt(x.size)) if x.size > 1 else math.nan
    return Estimate(float(x.mean()), error, x.size)


def deviation(values: np.ndarray) -> Estimate:
    """Return the standard deviation (divisor R - 1) and its standard error from the sample's own
    kurtosis.

    Var(s^2) = (mu_4 - sigma^4 (R - 3) / (R - 1)) / R, with the sample's moments in place of mu_4
    and sigma; the error of s is that of s^2 divided by 2 s. For a normal sample this is close to s
    / sqrt(2 (R - 1)).
    """
    x = _values(values)
    if x.size < 2:
        return Estimate(math.nan, math.nan, x.size)
    centred = x - x.mean()
    variance = float(centred @ centred / (x.size - 1))
    # All replicates agree: the error is 0, and the formula below would divide by it.
    if variance == 0:
        return Estimate(0.0, 0.0, x.size)
    fourth = float(np.mean(centred**4))
    # of a few replicates the difference may come out below 0
    variance_of_variance = max(0.0, fourth - variance**2 * (x.size - 3) / (x.size - 1)) / x.size
    sd = math.sqrt(variance)
    return Estimate(sd, math.sqrt(variance_of_variance) / (2 * sd), x.size)


def root_mean_square(values: np.ndarray) -> Estimate:
    """Return sqrt(mean x^2) and its standard error by the delta method, SE(mean x^2) / (2 rms)."""
    square = mean(_values(values) ** 2)
    root = math.sqrt(square.value)
    # All values are 0: nothing varies.
    error = square.standard_error / (2 * root) if root > 0 else 0.0
    return Estimate(root, error, square.replicates)


def paired_difference(
    values: np.ndarray, reference: np.ndarray, *, level: float = 0.95
) -> Estimate:
    """Return the mean of ``values - reference``, its standard error and its Student interval of the
    given level."""
    x, y = _values(values), _values(reference)
    if x.size != y.size:
        raise ArgumentError(
            f"paired samples must have one length, got {x.size} and {y.size}; pair "
            "them by replicate"
        )
    # Differences first: what both share by their common seed cancels.
    difference = mean(x - y)
    lower, upper = interval(difference, level=level)
    return Estimate(difference.value, difference.standard_error, x.size, lower, upper)


def proportion(hits: int, trials: int, *, level: float = 0.95) -> Estimate:
    """Return hits / trials with its Clopper-Pearson interval of the given level."""
    lower, upper = clopper_pearson(hits, trials, level)
    return Estimate(hits / trials, math.nan, trials, lower, upper)


def interval(estimate: Estimate, *, level: float = 0.95) -> tuple[float, float]:
    """Return the Student interval of a mean; NaN for one replicate."""
    if estimate.replicates < 2:
        return math.nan, math.nan
    quantile = float(special.stdtrit(estimate.replicates - 1, (1 + level) / 2))
    half = quantile * estimate.standard_error
    return estimate.value - half, estimate.value + half


def _values(values: np.ndarray) -> np.ndarray:
    x = checks.finite_array("the replicates", values, ndim=1)
    if x.size == 0:
        raise ArgumentError(
            "a summary needs at least one replicate, got none; check the records' "
            "variant and sampler"
        )
    return x


def estimate_row(
    keys: Mapping[str, object], column: str, variant: str, estimate: Estimate, note: str = ""
) -> dict[str, Any]:
    """Return one row of a values frame from its key fields and an estimate."""
    return {**keys, "column": column, "variant": variant, **asdict(estimate), "note": note}
