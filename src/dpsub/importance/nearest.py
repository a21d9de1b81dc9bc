"""The nearest of k centres of each row, for many sets of centres: scores by one matrix product, compared in long rows.

Scores lie with the centres of a set on the first axis and the rows on the last, so that a comparison of one centre with
the best so far runs along thousands of numbers that are beside each other, and a block of them stays in the cache.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dpsub.errors import ArgumentError

CHUNK = 8192
"""Rows of one matrix product."""
FLOATS = (np.dtype(np.float32), np.dtype(np.float64))
_SCORES = 1 << 20  # of one matrix product, if one set has no more
_FEW = 2048  # labels for which a search one by one is faster than k comparisons of all


class CentreSets:
    """c sets of k centres, ready for rows of one precision.

    Parameters
    ----------
    centres : ndarray, shape (c, k, d)
    dtype : dtype
        Of the rows.

    Raises
    ------
    ArgumentError
        If the rows are no float32 or float64: centres would be rounded to whole numbers with them.
    """

    def __init__(self, centres: np.ndarray, dtype: np.dtype) -> None:
        if dtype not in FLOATS:
            raise ArgumentError(f"rows must be float32 or float64, got {dtype}; convert them with checked_points")
        self.n_sets, self.k, d = centres.shape
        at_once = max(1, _SCORES // (self.k * CHUNK))
        self._blocks = []
        self._room = np.empty(0, dtype=dtype)
        with np.errstate(over="ignore", invalid="ignore"):
            for start in range(0, self.n_sets, at_once):
                block = slice(start, min(start + at_once, self.n_sets))
                flat = centres[block].transpose(1, 0, 2).reshape(-1, d)
                squares = np.einsum("ij,ij->i", flat, flat).astype(dtype)[:, None]
                self._blocks.append((block, np.ascontiguousarray((2 * flat).astype(dtype)), squares))

    def _scores(self, columns: np.ndarray) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield |c|^2 - 2 x c, which orders centres as distances do, shape (k, sets of the block, rows)."""
        n = columns.shape[1]
        needed = max(doubled.shape[0] for _, doubled, _ in self._blocks) * n
        if self._room.size < needed:  # else the room of the last chunk, which is in the cache
            self._room = np.empty(needed, dtype=columns.dtype)
        for block, doubled, squares in self._blocks:
            scores = self._room[: doubled.shape[0] * n].reshape(doubled.shape[0], n)
            with np.errstate(over="ignore", invalid="ignore"):
                np.matmul(doubled, columns, out=scores)
                np.subtract(squares, scores, out=scores)
            yield block, scores.reshape(self.k, -1, n)

    def labels(self, columns: np.ndarray) -> np.ndarray:
        """Index of the nearest centre: the lowest on ties, the first with a NaN if there is one.

        Parameters
        ----------
        columns : ndarray, shape (d, n)
            Rows, transposed; the product is fastest if this is how they lie in memory.

        Returns
        -------
        ndarray of int, shape (c, n)
        """
        labels = np.empty((self.n_sets, columns.shape[1]), dtype=np.min_scalar_type(self.k))
        for block, scores in self._scores(columns):
            labels[block] = _lowest(scores, labels.dtype)
        return labels

    def least(self, columns: np.ndarray) -> np.ndarray:
        """Squared distance to the nearest centre less |x|^2, shape (c, n), `columns` as above; NaN if a centre is."""
        least = np.empty((self.n_sets, columns.shape[1]), dtype=columns.dtype)
        for block, scores in self._scores(columns):
            scores.min(axis=0, out=least[block])
        return least


def _lowest(scores: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """scores.argmin(axis=0), by one comparison of all numbers a centre."""
    best = scores[0].copy()
    if best.size < _FEW:
        return np.asarray(scores.argmin(axis=0))
    labels, lower = np.zeros(best.shape, dtype), np.empty(best.shape, dtype)
    for j in range(1, scores.shape[0]):
        np.less(scores[j], best, out=lower)
        np.minimum(best, scores[j], out=best)
        # the last centre that lowers the best is the largest index among those that do
        np.multiply(lower, dtype.type(j), out=lower)
        np.maximum(labels, lower, out=labels)
    lost = np.isnan(best)
    if lost.any():
        labels[lost] = np.isnan(scores[:, lost]).argmax(axis=0)
    return labels
