"""Additive noise, one file each, and the privacy profiles epsilon -> delta of base mechanisms."""

from __future__ import annotations

from dpsub import checks
from dpsub.noise.base import AdditiveNoiseProfile, Mechanism, Profile
from dpsub.noise.gaussian import Gaussian, GaussianProfile
from dpsub.noise.laplace import Laplace, LaplaceProfile
from dpsub.noise.profiles import (
    BlackBoxGroups,
    ConstantGroups,
    MembershipProfile,
    PairedSteps,
    PointGuarantee,
    RandomisedResponseProfile,
)
from dpsub.registry import Registry

REGISTRY: Registry[Mechanism] = Registry("dpsub.noise", Mechanism, "mechanism")

__all__ = [
    "REGISTRY",
    "AdditiveNoiseProfile",
    "BlackBoxGroups",
    "ConstantGroups",
    "Gaussian",
    "GaussianProfile",
    "Laplace",
    "LaplaceProfile",
    "Mechanism",
    "MembershipProfile",
    "PairedSteps",
    "PointGuarantee",
    "Profile",
    "RandomisedResponseProfile",
    "of",
]


def of(name: str, ratio: float) -> AdditiveNoiseProfile:
    """Return the profile of the mechanism called `name` at the sensitivity-to-scale ratio `ratio`,
    above 0.

    Examples
    --------
    >>> import math
    >>> profile = of("laplace", 1.0)                # scale equal to the sensitivity
    >>> float(profile.delta(1.0))                   # 1-DP, exactly
    0.0
    >>> math.isclose(profile.delta(0.0), 1 - math.exp(-1 / 2))
    True
    """
    return REGISTRY.get(name)(1.0).profile(checks.real("ratio", ratio, above=0))
