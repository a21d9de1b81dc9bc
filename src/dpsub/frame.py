"""The frame: the records that a sampler draws from, and their design variables."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from dpsub import checks
from dpsub.errors import ArgumentError


@dataclass(frozen=True, eq=False)
class Frame:
    """The n records, known to the sampler by their indices 0..n-1.

    Parameters
    ----------
    n : int
        Number of records, at least 1.
    strata, clusters : array of int, shape (n,), optional
        Stratum and cluster of each record, numbered from 0 without a gap.
    sizes : array of float, shape (n,), optional
        Measure of size of each record, not negative.

    Raises
    ------
    ArgumentError
        If n < 1, an array has another length, labels leave a gap, or a size is negative or not finite.
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
                raise ArgumentError(f"sizes must not be negative, got {sizes.min():g}; mend the frame")
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
        """Return the design variable `name` ("strata", "clusters" or "sizes").

        Raises
        ------
        ArgumentError
            If the frame has none.
        """
        values: np.ndarray | None = getattr(self, name)
        if values is None:
            raise ArgumentError(f"this sampler needs a frame with {name}, got one without; give the frame its {name}")
        return values

    def _labels(self, noun: str, labels: Any) -> np.ndarray:
        values = np.asarray(labels)
        if values.ndim != 1 or values.dtype.kind not in "iu":
            raise ArgumentError(f"labels of a {noun} must be whole numbers in one dimension, got {values.dtype}")
        self._check_length(f"{noun} labels", values)
        if values.min() < 0 or len(np.unique(values)) != values.max() + 1:
            raise ArgumentError(f"each {noun} from 0 to {values.max()} must hold a record, got a gap; number them anew")
        return _locked(values.astype(np.int64))

    def _check_length(self, name: str, values: np.ndarray) -> None:
        if len(values) != self.n:
            raise ArgumentError(f"{name} must be given for all n = {self.n} records, got {len(values)}")


def _locked(values: np.ndarray) -> np.ndarray:
    copy = values.copy()
    copy.flags.writeable = False
    return copy
