"""Numbers of the errata that follow from no table of the run."""

from __future__ import annotations

from dpsub.papers.birrell import bounds

SMALL_RATE = 1e-4


def attained_over_poisson(noise: float) -> float:
    """Return D_2 of one step without replacement that an attack attains over the exact one of
    Poisson samples, one record replaced, at a small rate."""
    attack = bounds.attack_without_replacement(2.0, noise, SMALL_RATE)
    return attack / bounds.attack_poisson(2.0, noise, SMALL_RATE)


def leading_over_poisson(noise: float) -> float:
    """Return the ratio of the paper's two leading terms."""
    return bounds.leading_of_fixed_size(noise) / bounds.leading_of_poisson(noise)
