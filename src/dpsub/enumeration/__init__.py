"""Tiny universes in full: every sample, every law, every neighbour, so that bounds can be held against the truth."""

from __future__ import annotations

from dpsub.enumeration.kernels import (
    KernelProfile,
    dirichlet_kernel,
    membership_kernel,
    noisy_sum_kernel,
    size_and_membership_kernel,
)
from dpsub.enumeration.lower import MembershipLoss, membership_loss
from dpsub.enumeration.rows import BY_SIZE, ROWS, TRIPLES, Comparison, Row, bound_of, compare
from dpsub.enumeration.samples import Dataset, Space, law_on, sample_law

__all__ = [
    "BY_SIZE", "ROWS", "TRIPLES", "Comparison", "Dataset", "KernelProfile", "MembershipLoss", "Row", "Space",
    "bound_of", "compare", "dirichlet_kernel", "law_on", "membership_kernel", "membership_loss", "noisy_sum_kernel",
    "sample_law", "size_and_membership_kernel",
]  # fmt: skip
