"""Numbers of the errata, which stand without a run."""

from __future__ import annotations

import dpsub
from dpsub.papers.lebeda.experiments import RemovedRecord

ASKED = RemovedRecord.Settings(variants=("stated",))


def removed(noise: float, steps: int) -> float:
    """Return an upper bound on epsilon of a record that is removed from samples without
    replacement, C among -C at every step."""
    # the outputs are those of a Poisson sample of a record that moves sums by 2 C
    account = dpsub.account(
        dpsub.Poisson(ASKED.batch / ASKED.n),
        noise_multiplier=noise / 2,
        steps=steps,
        delta=ASKED.delta,
        effort=None,
        quick=True,
    )
    return float(account.upper)


def attained(noise: float, steps: int) -> float:
    """Return epsilon that an attack attains, which chooses the other records by what it has
    seen."""
    account = dpsub.account(
        dpsub.Wor(ASKED.batch),
        ASKED.n,
        noise_multiplier=noise,
        steps=steps,
        delta=ASKED.delta,
        adjacency="substitute",
        effort=None,
        quick=True,
    )
    return float(account.lower)
