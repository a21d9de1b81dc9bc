"""A linear recursion along an array, without a loop over its entries."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np

_LONG = 2**18
"""Longer arrays leave the caches, where `scipy.signal.lfilter` is faster; its import takes longer than they do."""


def damped_sums(values: np.ndarray, damp: float) -> np.ndarray:
    """Return y with y_j = values_j + damp y_{j-1}, y_{-1} = 0.

    Parameters
    ----------
    values : ndarray, shape (p,)
        Non-negative where relative accuracy matters: then all terms are positive, and each y_j is off by at most a few
        sqrt(p) roundings of its value.
    damp : float
        In [0, 1].

    Returns
    -------
    ndarray, shape (p,)

    Notes
    -----
    About sqrt(p) blocks of sqrt(p) entries advance side by side; what each block hands to the next is added at the end.
    """
    if values.size == 0:
        return np.zeros(0)
    if values.size > _LONG:
        from scipy.signal import lfilter

        return np.asarray(lfilter([1.0], [1.0, -damp], values))
    length = math.isqrt(values.size - 1) + 1
    n_blocks = -(-values.size // length)
    padded = np.zeros(n_blocks * length)
    padded[: values.size] = values
    # row i holds entry i of every block, so that one step of all blocks is one operation on neighbours in memory
    table = padded.reshape(n_blocks, length).T.copy()
    for before, row in pairwise(table):
        row += damp * before
    powers = damp ** np.arange(1, length + 1)
    across = float(powers[-1])
    handed, carry = np.zeros(n_blocks), 0.0
    for block, last in enumerate(table[-1].tolist()):
        handed[block] = carry
        carry = last + across * carry
    table += np.multiply.outer(powers, handed)
    return np.ascontiguousarray(table.T).reshape(-1)[: values.size]
