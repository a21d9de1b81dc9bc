"""Divergences of discrete laws and the couplings that bound them."""

from __future__ import annotations

from dpsub.divergences.couplings import MaximalCoupling, cheapest_coupling, compatible_sum, maximal_coupling
from dpsub.divergences.hockey_stick import (
    ConvexitySides,
    advanced_joint_convexity,
    hockey_stick,
    profile_from_losses,
    total_variation,
)
from dpsub.divergences.moments import MomentInterval, moment_from_profiles, tail_rate
from dpsub.divergences.optimum import WorstMechanism, worst_mechanism

__all__ = [
    "ConvexitySides", "MaximalCoupling", "MomentInterval", "WorstMechanism", "advanced_joint_convexity",
    "cheapest_coupling", "compatible_sum", "hockey_stick", "maximal_coupling", "moment_from_profiles",
    "profile_from_losses", "tail_rate", "total_variation", "worst_mechanism",
]  # fmt: skip
