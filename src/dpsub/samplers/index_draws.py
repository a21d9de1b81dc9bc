"""Vectorised draws of indices for a block of subsets, at a cost that does not depend on the size of the frame."""

from __future__ import annotations

import numpy as np


def uniform(rng: np.random.Generator, n: int, shape: int | tuple[int, int]) -> np.ndarray:
    """Independent uniform indices 0..n-1, in the narrowest integer type (less memory, faster sorting).

    The type leaves room above n for the marks of absent entries.
    """
    return rng.integers(n, size=shape, dtype=np.int32 if n < 2**30 else np.int64)


def distinct_rows(rng: np.random.Generator, n: int, sizes: np.ndarray) -> np.ndarray:
    """Return for each row i a uniformly chosen set of `sizes[i]` different indices of 0..n-1.

    Parameters
    ----------
    rng : numpy.random.Generator
    n : int
        Number of indices.
    sizes : ndarray of int, shape (rows,)
        How many each row needs, at most n.

    Returns
    -------
    ndarray, shape (sum(sizes),)
        The rows one after the other, in no particular order within a row.

    Notes
    -----
    Sparse rows: draw with replacement, then redraw repeated values until none is left. The procedure treats all labels
    alike, so every set of a size is equally likely. Rows above half of the frame are shuffled whole instead.
    """
    width = int(sizes.max(initial=0))
    present = np.arange(width) < sizes[:, None]
    if 2 * width > n:
        order = rng.permuted(np.broadcast_to(np.arange(n), (len(sizes), n)), axis=1)[:, :width]
        return order[present]
    # absent entries hold n, n + 1, ...: they sort behind all indices and never repeat
    labels = uniform(rng, n, present.shape)
    if int(sizes.min(initial=width)) < width:
        np.copyto(labels, n + np.arange(width, dtype=labels.dtype), where=~present)
    labels.sort(axis=1)
    rows, open_labels = None, labels
    while True:
        repeated = open_labels[:, 1:] == open_labels[:, :-1]
        where = np.flatnonzero(repeated.any(axis=1))
        if not len(where):
            break
        rows = where if rows is None else rows[where]
        open_labels = open_labels[where]
        repeated = repeated[where]
        open_labels[:, 1:][repeated] = uniform(rng, n, int(repeated.sum()))
        open_labels.sort(axis=1)
        labels[rows] = open_labels
    return labels[present] if int(sizes.min(initial=width)) < width else labels.ravel()


def regroup(
    rng: np.random.Generator, n: int, first: np.ndarray | None, shape: tuple[int, int], sizes: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """Give each group of entries an independent uniform label 0..n-1 and merge the groups of a row that share one.

    Parameters
    ----------
    rng : numpy.random.Generator
    n : int
        Number of labels.
    first : ndarray of bool, shape (rows, width), or None
        Where a new group begins; the entries of a group are neighbours in a row. None: each entry is its own group.
    shape : (rows, width)
    sizes : ndarray, shape (rows,), or None
        How many entries of each row are present; the others are at its end. None: all.

    Returns
    -------
    labels : ndarray of int, shape (rows, width)
        Sorted rows; absent entries at the end hold n.
    first : ndarray of bool, shape (rows, width)
        Where a new label begins, False for absent entries.
    """
    total = shape[0] * shape[1]
    if first is None:
        labels = uniform(rng, n, total)
    else:
        fresh = uniform(rng, n, int(np.count_nonzero(first)))
        # rows without any group come first at most with absent entries, which are overwritten below
        labels = fresh.take(np.cumsum(first.ravel(), dtype=np.intp) - 1, mode="clip") if len(fresh) else fresh
        labels = labels if len(fresh) else np.zeros(total, dtype=fresh.dtype)
    labels = labels.reshape(shape)
    if sizes is not None:
        present = np.arange(shape[1]) < sizes[:, None]
        np.copyto(labels, n, where=~present)
    labels.sort(axis=1)
    begins = np.empty(shape, dtype=bool)
    # one pass over the flat table is faster than one over each row; the first column is set after it
    flat = labels.ravel()
    np.not_equal(flat[1:], flat[:-1], out=begins.ravel()[1:])
    begins[:, :1] = True
    if sizes is not None:
        begins &= present
    return labels, begins


def groups(first: np.ndarray, sizes: np.ndarray | None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return what `first` marks: flat starts and sizes of groups, shape (groups,); row offsets, shape (rows + 1,)."""
    rows, width = first.shape
    starts = np.flatnonzero(first)
    offsets = np.searchsorted(starts, np.arange(rows + 1) * width)
    counts = np.empty(len(starts), dtype=np.int32)
    np.subtract(starts[1:], starts[:-1], out=counts[:-1], casting="same_kind")
    if sizes is None:
        counts[-1:] = first.size - starts[-1:]
    else:
        # the last group of a row must not run on over absent entries, or over the empty rows that follow it
        occupied = np.flatnonzero(offsets[1:] > offsets[:-1])
        last = offsets[1:][occupied] - 1
        counts[last] = occupied * width + sizes[occupied] - starts[last]
    return starts, counts, offsets
