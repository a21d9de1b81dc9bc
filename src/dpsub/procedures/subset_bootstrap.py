"""The subsampling bootstrap of MUST's experiment 1: noisy statistics of many subsets, averaged."""

from __future__ import annotations

import numpy as np

from dpsub.sample import Samples


def subset_statistics(
    x: np.ndarray, samples: Samples, fixed_size: int | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean and the variance (divisor size - 1) of each subset, counting repeated records.

    Parameters
    ----------
    x : ndarray, shape (n,)
        The data.
    samples : Samples
        T subsets of 0..n-1.
    fixed_size : int, optional
        Divide sums by this number instead of the realised size: the statistics of Poisson sampling whose sensitivity
        is known (MUST, erratum E4).

    Returns
    -------
    mean, variance : ndarray, shape (T,)
        NaN where a subset is too small to have the statistic (realised sizes only).
    """
    values = x[samples.indices]
    weighted = samples.counts * values
    total = samples.totals(weighted)
    square = samples.totals(weighted * values)
    size = samples.sizes.astype(float)
    with np.errstate(divide="ignore", invalid="ignore"):
        centred = square - total * np.where(size > 0, total / size, 0.0)
        if fixed_size is not None:
            return total / fixed_size, centred / (fixed_size - 1)
        mean = np.where(size >= 1, total / size, np.nan)
        variance = np.where(size >= 2, centred / (size - 1), np.nan)
    return mean, variance


def release(statistic: np.ndarray, sigma: float, rng: np.random.Generator) -> float:
    """Average of the subsets' noisy statistics; subsets without the statistic (NaN) are left out.

    Parameters
    ----------
    statistic : ndarray, shape (T,)
    sigma : float
        Standard deviation of the noise of each; 0 for none.
    """
    noisy = statistic + sigma * rng.standard_normal(len(statistic)) if sigma > 0 else statistic
    return float(np.nanmean(noisy))
