"""The frame, which is the records that a sampler draws from with their design variables, and
samples from it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, overload

import numpy as np

from dpsub import checks
from dpsub.errors import ArgumentError


@dataclass(frozen=True, eq=False)
class Frame:
    """The n records, known to the sampler by their indices 0, ..., n - 1.

    ArgumentError if the arrays do not fit.

    Parameters
    ----------
    strata, clusters
        Stratum and cluster of each record, numbered from 0 without a gap, shape (n,).
    sizes
        Measure of size of each record, not negative, shape (n,).
    """

    n: int
    strata: np.ndarray | None = None
    clusters: np.ndarray | None = None
    sizes: np.ndarray | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "n", checks.integer("n", self.n, at_least=1))
        for name, noun in (("strata", "stratum"), ("clusters", "cluster")):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, self._labels(noun, getattr(self, name)))
        if self.sizes is not None:
            sizes = checks.finite_array("sizes", self.sizes, ndim=1)
            self._check_length("sizes", sizes)
            if sizes.min() < 0:
                raise ArgumentError(
                    f"sizes must not be negative, got {sizes.min():g}; correct the frame"
                )
            object.__setattr__(self, "sizes", _locked(sizes))

    @cached_property
    def stratum_sizes(self) -> np.ndarray:
        """Number of records N_i of each stratum."""
        return np.bincount(self.needed("strata"))

    @cached_property
    def cluster_sizes(self) -> np.ndarray:
        """Number of records of each cluster."""
        return np.bincount(self.needed("clusters"))

    def needed(self, name: str) -> np.ndarray:
        """Return the design variable "strata", "clusters" or "sizes".

        ArgumentError if the frame does not have it.
        """
        values: np.ndarray | None = getattr(self, name)
        if values is None:
            raise ArgumentError(
                f"this sampler needs a frame with {name}, got one without; give "
                f"the frame its {name}"
            )
        return values

    def _labels(self, noun: str, labels: Any) -> np.ndarray:
        values = np.asarray(labels)
        if values.ndim != 1 or values.dtype.kind not in "iu":
            raise ArgumentError(
                f"labels of a {noun} must be whole numbers in one dimension, got {values.dtype}"
            )
        self._check_length(f"{noun} labels", values)
        if values.min() < 0 or len(np.unique(values)) != values.max() + 1:
            raise ArgumentError(
                f"each {noun} from 0 to {values.max()} must hold a record, got a gap; renumber them"
            )
        return _locked(values.astype(np.int64))

    def _check_length(self, name: str, values: np.ndarray) -> None:
        if len(values) != self.n:
            raise ArgumentError(
                f"{name} must be given for all n = {self.n} records, got {len(values)}"
            )


def _locked(values: np.ndarray) -> np.ndarray:
    copy = values.copy()
    copy.flags.writeable = False
    return copy


@dataclass(frozen=True, eq=False)
class Sample:
    """One multiset of records: distinct record `indices` and how often each was drawn, `counts` >=
    1, shape (d,)."""

    indices: np.ndarray
    counts: np.ndarray

    @property
    def size(self) -> int:
        """Number of draws, with multiplicity: |Y| in the papers."""
        return int(self.counts.sum())


@dataclass(frozen=True, eq=False)
class Samples:
    """A block of subsets, one after the other (compressed rows): subset i stands at
    ``offsets[i]:offsets[i + 1]``."""

    indices: np.ndarray  # distinct records of each subset
    counts: np.ndarray  # how often each was drawn
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
        """Return the sum of `values` (one per entry of `indices`) over each subset, shape
        (n_subsets,)."""
        sums = np.zeros(self.n_subsets)
        occupied = self.distinct > 0
        if occupied.any():
            # an empty subset has no segment of its own: reduceat must not see it
            sums[occupied] = np.add.reduceat(values, self.offsets[:-1][occupied])
        return sums

    def thinned(self, chances: np.ndarray, rng: np.random.Generator) -> Samples:
        """Return the subsets with each record of each kept, at all its counts, with its own chance,
        shape (n,).

        Poisson samples become Poisson samples at rates that differ. An account of these subsets
        covers it for sums of vectors whose norms stay within the bound: docs/proofs/poisson.md.
        """
        kept = rng.random(len(self.indices)) < chances[self.indices]
        before = np.concatenate(([0], np.cumsum(kept)))
        return Samples(self.indices[kept], self.counts[kept], before[self.offsets])

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
        """Return (indices, counts), each of shape (n_subsets, width, by default the least that
        fits), padded with 0."""
        distinct = self.distinct
        present = (
            np.arange(int(distinct.max(initial=0)) if width is None else width) < distinct[:, None]
        )
        indices = np.zeros(present.shape, dtype=np.intp)
        counts = np.zeros(present.shape)
        indices[present] = self.indices
        counts[present] = self.counts
        return indices, counts
