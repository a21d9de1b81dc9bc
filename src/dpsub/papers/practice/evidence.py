"""Numbers of the errata that are in no table of the run, for the placeholders `computed`."""

from __future__ import annotations

from functools import cache

import dpsub

EFFORT = 1.0
"""Work that each answer may take."""


@cache
def small_batches() -> dpsub.Account:
    """Return both bounds on epsilon for 128 samples of 16 of 1,000 records, noise multiplier 1."""
    # The first case of erratum P1.
    return dpsub.account(
        dpsub.Wor(16),
        1000,
        noise_multiplier=1,
        steps=128,
        delta=1e-6,
        adjacency="substitute",
        effort=EFFORT,
        quick=False,
    )


def attained_with_small_batches() -> float:
    return small_batches().lower


def proved_with_small_batches() -> float:
    return small_batches().upper


def attained_by_one_sum() -> float:
    """Return epsilon of one sum of all records at noise multiplier 5: two normal distributions 2 C
    apart."""
    return dpsub.account(
        dpsub.Poisson(1),
        noise_multiplier=5,
        steps=1,
        delta=1e-5,
        adjacency="substitute",
        effort=EFFORT,
        quick=False,
    ).lower


def proved_for_one_sum() -> float:
    return dpsub.account(
        dpsub.Poisson(1),
        noise_multiplier=5,
        steps=1,
        delta=1e-5,
        adjacency="substitute",
        effort=EFFORT,
        quick=False,
    ).upper
