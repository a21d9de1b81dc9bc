"""Divergences of discrete laws and the couplings that bound them."""

from __future__ import annotations

from dpsub.divergences.hockey_stick import (
    advanced_joint_convexity,
    cheapest_coupling,
    compatible_sum,
    hockey_stick,
    maximal_coupling,
    moment_from_profiles,
    profile_from_losses,
    tail_rate,
    total_variation,
    worst_mechanism,
)

__all__ = [
    "advanced_joint_convexity",
    "cheapest_coupling",
    "compatible_sum",
    "hockey_stick",
    "maximal_coupling",
    "moment_from_profiles",
    "profile_from_losses",
    "tail_rate",
    "total_variation",
    "worst_mechanism",
]
