"""Exponentially tilted sums of a discrete law, in log space, on many points at once."""

from __future__ import annotations

import numpy as np

NEGLIGIBLE = 60.0
"""Terms below exp(-60) of the largest one are left out: all of them together change a sum of at most 1e6 terms by less
than 1e-20 of its value, which no double can show."""

_BLOCK = 4096


def log_tilted_sum(log_weights: np.ndarray, counts: np.ndarray, tilt: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return log sum_u a_u e^{u tilt} and the mean of u under the tilted weights.

    Parameters
    ----------
    log_weights : ndarray, shape (c,)
        log a_u, finite.
    counts : ndarray, shape (c,)
        u, strictly increasing.
    tilt : ndarray, shape (p,)
        Any finite values; nearby values should be neighbours, for speed only.

    Returns
    -------
    log_sum, mean : ndarray, shape (p,)

    Notes
    -----
    Each block of points works on the window of terms that matter somewhere in it.  The window is found at the two ends
    of the block: the tilted laws have monotone likelihood ratios in u, so a term to the left that is negligible at the
    smallest tilt is negligible at every larger one, and likewise on the right.
    """
    log_sum, mean = np.empty(tilt.size), np.empty(tilt.size)
    for start in range(0, tilt.size, _BLOCK):
        block = slice(start, start + _BLOCK)
        points = tilt[block]
        window = _window(log_weights, counts, float(points.min()), float(points.max()))
        terms = log_weights[window] + np.multiply.outer(points, counts[window])
        largest = terms.max(axis=1)
        terms -= largest[:, None]
        np.exp(terms, out=terms)
        total = terms.sum(axis=1)
        log_sum[block] = largest + np.log(total)
        mean[block] = (terms @ counts[window]) / total
    return log_sum, mean


def _window(log_weights: np.ndarray, counts: np.ndarray, low: float, high: float) -> slice:
    at_low, at_high = log_weights + low * counts, log_weights + high * counts
    first = int(np.argmax(at_low >= at_low.max() - NEGLIGIBLE))
    last = counts.size - int(np.argmax((at_high >= at_high.max() - NEGLIGIBLE)[::-1]))
    return slice(first, last)
