"""Privacy profiles epsilon -> delta of the base mechanisms. Those of additive noise are registered by discovery."""

from __future__ import annotations

from dpsub.profiles.base import AdditiveNoiseProfile, Profile
from dpsub.profiles.binary import MembershipProfile, RandomisedResponseProfile
from dpsub.profiles.gaussian import GaussianProfile
from dpsub.profiles.groups import BlackBoxGroups, ConstantGroups, PairedSteps
from dpsub.profiles.laplace import LaplaceProfile
from dpsub.profiles.point import PointGuarantee
from dpsub.profiles.tabulated import TabulatedProfile
from dpsub.registry import Registry

REGISTRY: Registry[AdditiveNoiseProfile] = Registry("dpsub.profiles", AdditiveNoiseProfile, "mechanism")

__all__ = [
    "REGISTRY", "AdditiveNoiseProfile", "BlackBoxGroups", "ConstantGroups", "GaussianProfile", "LaplaceProfile",
    "MembershipProfile", "PairedSteps", "PointGuarantee", "Profile", "RandomisedResponseProfile", "TabulatedProfile",
    "of",
]  # fmt: skip


def of(name: str, ratio: float) -> AdditiveNoiseProfile:
    """Return the profile of the mechanism called `name` at the sensitivity-to-scale ratio `ratio`.

    Raises
    ------
    ArgumentError
        If the name is unknown or the ratio not above 0.

    Examples
    --------
    >>> import math
    >>> profile = of("laplace", 1.0)                # scale equal to the sensitivity
    >>> float(profile.delta(1.0))                   # 1-DP, exactly
    0.0
    >>> math.isclose(profile.delta(0.0), 1 - math.exp(-1 / 2))
    True
    """
    return REGISTRY.get(name)(ratio)
