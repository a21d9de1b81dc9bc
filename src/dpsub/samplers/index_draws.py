"""Vectorised draws of indices for a block of subsets, at a cost that does not depend on the size of the frame."""

from __future__ import annotations

import numpy as np

from dpsub.sample import Samples


def uniform(rng: np.random.Generator, n: int, shape: int | tuple[int, int]) -> np.ndarray:
    """Independent uniform indices 0..n-1, in the narrowest integer type (less memory, faster sorting)."""
    return rng.integers(n, size=shape, dtype=np.int32 if n < 2**31 else np.int64)


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


def aggregate(labels: np.ndarray, n: int, sizes: np.ndarray, counts: np.ndarray | None) -> Samples:
    """Merge equal labels within each row.

    Parameters
    ----------
    labels : ndarray of int, shape (sum(sizes),)
        Rows one after the other, values 0..n-1. Overwritten.
    n : int
        Number of labels.
    sizes : ndarray, shape (rows,)
        Row lengths, at least one of them positive.
    counts : ndarray of int, shape (sum(sizes),), or None
        How often each entry counts; None for once each.
    """
    rows, width = len(sizes), int(sizes.max(initial=0))
    shift = 0 if counts is None else int(counts.max(initial=1)).bit_length()
    keys = labels
    if counts is not None:
        # label and count share one key, so that a plain sort of the rows carries the counts along
        keys = labels.astype(np.int32 if (n + 1) << shift < 2**31 else np.int64)
        keys <<= shift
        keys |= counts
    ragged = rows * width != len(labels)
    if ragged:
        # absent entries hold n and sort behind all labels
        table = np.full((rows, width), n << shift, dtype=keys.dtype)
        table[np.arange(width) < sizes[:, None]] = keys
    else:
        table = keys.reshape(rows, width)
    table.sort(axis=1)
    sorted_labels = table >> shift if shift else table
    first = np.empty(table.shape, dtype=bool)
    first[:, :1] = True
    np.not_equal(sorted_labels[:, 1:], sorted_labels[:, :-1], out=first[:, 1:])
    starts = np.flatnonzero(first)
    merged = sorted_labels.ravel()[starts]
    ends = np.searchsorted(starts, np.arange(0, rows + 1) * width)
    if counts is None:
        merged_counts = np.empty(len(starts), dtype=np.int32)
        np.subtract(starts[1:], starts[:-1], out=merged_counts[:-1], casting="same_kind")
        merged_counts[-1:] = table.size - starts[-1:]
    else:
        table &= (1 << shift) - 1
        merged_counts = np.add.reduceat(table.ravel(), starts)
    if ragged:
        real = merged < n
        ends[1:] -= np.cumsum(sizes < width)
        merged, merged_counts = merged[real], merged_counts[real]
    return Samples(merged, merged_counts, ends)
