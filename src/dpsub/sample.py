"""Samples: which records were drawn, and how often."""

from __future__ import annotations

from dataclasses import dataclass
from typing import overload

import numpy as np


@dataclass(frozen=True, eq=False)
class Sample:
    """One subset, a multiset of records.

    Attributes
    ----------
    indices : ndarray, shape (d,)
        Distinct record indices.
    counts : ndarray, shape (d,)
        How often each of them was drawn, at least 1.
    """

    indices: np.ndarray
    counts: np.ndarray

    @property
    def size(self) -> int:
        """Number of draws, with multiplicity: |Y| in the papers."""
        return int(self.counts.sum())


@dataclass(frozen=True, eq=False)
class Samples:
    """A block of subsets, stored one after the other (compressed rows).

    Attributes
    ----------
    indices, counts : ndarray, shape (total,)
        Distinct record indices of subset i, and their counts, at positions ``offsets[i]:offsets[i + 1]``.
    offsets : ndarray, shape (n_subsets + 1,)
        Where each subset begins.
    """

    indices: np.ndarray
    counts: np.ndarray
    offsets: np.ndarray

    @property
    def n_subsets(self) -> int:
        return len(self.offsets) - 1

    @property
    def distinct(self) -> np.ndarray:
        """Number of distinct records in each subset, shape (n_subsets,)."""
        return np.diff(self.offsets)

    @property
    def sizes(self) -> np.ndarray:
        """Number of draws in each subset, with multiplicity, shape (n_subsets,)."""
        return self.totals(self.counts).astype(np.int64)

    def totals(self, values: np.ndarray) -> np.ndarray:
        """Return the sum of `values` (one an entry of `indices`) over each subset, shape (n_subsets,)."""
        sums = np.zeros(self.n_subsets)
        occupied = self.distinct > 0
        if occupied.any():
            # an empty subset has no segment of its own: reduceat must not see it
            sums[occupied] = np.add.reduceat(values, self.offsets[:-1][occupied])
        return sums

    def __len__(self) -> int:
        return self.n_subsets

    @overload
    def __getitem__(self, i: int) -> Sample: ...

    @overload
    def __getitem__(self, i: slice) -> Samples: ...

    def __getitem__(self, i: int | slice) -> Sample | Samples:
        """Return subset `i`, or for a slice of step 1 the block of these subsets."""
        if isinstance(i, slice):
            start, stop, _ = i.indices(self.n_subsets)
            offsets = self.offsets[start : stop + 1]
            part = slice(offsets[0], offsets[-1])
            return Samples(self.indices[part], self.counts[part], offsets - offsets[0])
        if not -self.n_subsets <= i < self.n_subsets:
            raise IndexError(f"subset {i} of {self.n_subsets}")
        part = slice(self.offsets[i % self.n_subsets], self.offsets[i % self.n_subsets + 1])
        return Sample(self.indices[part], self.counts[part])

    def padded(self, width: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Return (indices, counts) as two arrays of shape (n_subsets, width); absent entries have index 0, count 0.

        `width` defaults to the largest number of distinct records.
        """
        distinct = self.distinct
        present = np.arange(int(distinct.max(initial=0)) if width is None else width) < distinct[:, None]
        indices = np.zeros(present.shape, dtype=np.intp)
        counts = np.zeros(present.shape)
        indices[present] = self.indices
        counts[present] = self.counts
        return indices, counts
