"""Numbers of the errata that follow from no table of the run."""

from __future__ import annotations

import dpsub

N, BATCH, DELTA = 10_000, 200, 1e-5


def removed(noise: float, steps: int) -> float:
    """Return an upper bound on epsilon of a record that is removed from samples without
    replacement, C among -C at every step."""
    # the outputs are those of a Poisson sample of a record that moves sums by 2 C
    account = dpsub.account(
        dpsub.Poisson(BATCH / N),
        noise_multiplier=noise / 2,
        steps=steps,
        delta=DELTA,
        effort=None,
        quick=True,
    )
    return float(account.upper)


def attained(noise: float, steps: int) -> float:
    """Return epsilon that an attack attains, which chooses the other records by what it has
    seen."""
    account = dpsub.account(
        dpsub.Wor(BATCH),
        N,
        noise_multiplier=noise,
        steps=steps,
        delta=DELTA,
        adjacency="substitute",
        effort=None,
        quick=True,
    )
    return float(account.lower)
