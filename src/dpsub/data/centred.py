"""Rows without the outermost ones, around their mean: how the importance-sampling paper prepares its data."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np

from dpsub import checks
from dpsub.errors import DataError

PERCENTILE = 97.5
SENTINEL = -999.0
_ROWS_AT_ONCE = 65536


@dataclass(frozen=True, eq=False)
class Centred:
    """Rows around their mean, in single precision; statistics in double precision, taken before the rounding.

    Attributes
    ----------
    points : ndarray of float32, shape (n, d)
    radius : float
        Largest l2 norm after the second centring.
    mean_square : float
        Mean squared l2 norm.
    n_original : int
        Rows before the removal of outliers.
    kept : ndarray of bool, shape (n_original,)
        Which rows stay.
    """

    points: np.ndarray
    radius: float
    mean_square: float
    n_original: int
    kept: np.ndarray


def squared_norms(points: np.ndarray) -> np.ndarray:
    """Return squared l2 norms of the rows, accumulated in double precision; shape (n,)."""
    found = np.empty(len(points))
    for start in range(0, len(points), _ROWS_AT_ONCE):
        block = points[start : start + _ROWS_AT_ONCE].astype(float, copy=False)
        found[start : start + len(block)] = np.einsum("ij,ij->i", block, block)
    return found


def centred(matrix: np.ndarray, *, percentile: float = PERCENTILE) -> Centred:
    """Remove the outermost rows and centre the others; features are not scaled.

    Rows stay if their distance to the mean is strictly below the `percentile` of all distances (linear interpolation);
    then their own mean is subtracted.

    Parameters
    ----------
    matrix : ndarray, shape (n, d)
        Any numbers; not changed.
    percentile : float
        In (0, 100); 100 would still remove the outermost row.

    Raises
    ------
    DataError
        If the matrix is empty, has a number that is not finite, or all its rows are alike.

    Warns
    -----
    UserWarning
        If equal distances at the limit change how many rows stay, or rows of -999 (a mark for "unknown") do.

    References
    ----------
    importance, Section 5 and Table 1.
    """
    checks.real("percentile", percentile, above=0, below=100)
    if matrix.ndim != 2 or matrix.dtype.kind not in "fiu":
        raise DataError(f"points must be a table of numbers, got {matrix.ndim} axes of type {matrix.dtype}")
    if 0 in matrix.shape:
        raise DataError(f"points must have at least a row and a column, got the shape {matrix.shape}")
    values = matrix.astype(float)
    if not np.isfinite(values).all():
        row, column = np.argwhere(~np.isfinite(values))[0].tolist()
        got = f"{values[row, column]} in row {row + 1}, column {column + 1}"
        raise DataError(f"points must be finite, got {got}; remove or mend the row")
    marked = int((values == SENTINEL).all(axis=1).sum())
    values -= values.mean(axis=0)
    distances = np.sqrt(squared_norms(values))
    limit = float(np.percentile(distances, percentile))
    kept = distances < limit
    expected = int(np.floor(len(values) * percentile / 100))
    if not kept.any():
        raise DataError(f"points must differ, got {len(values)} rows at one distance from their mean")
    if kept.sum() != expected:
        text = f"ties at the {percentile:g} percentile: {int(kept.sum())} rows stay, not {expected}"
        warnings.warn(text, stacklevel=2)
    if marked > 1:
        warnings.warn(f"{marked} rows consist of {SENTINEL:g} only, a mark for unknown values", stacklevel=2)
    values = values[kept]
    values -= values.mean(axis=0)
    squares = squared_norms(values)
    mean_square = float(squares.mean())
    if mean_square == 0:
        raise DataError(f"points must differ, got {len(values)} equal rows")
    return Centred(values.astype(np.float32), float(np.sqrt(squares.max())), mean_square, len(matrix), kept)
