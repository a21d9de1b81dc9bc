"""Privacy profiles epsilon -> delta of the base mechanisms. Registration is by discovery."""

from __future__ import annotations

from dpsub.profiles.base import Profile
from dpsub.profiles.gaussian import GaussianProfile
from dpsub.profiles.laplace import LaplaceProfile
from dpsub.registry import Registry

REGISTRY: Registry[Profile] = Registry("dpsub.profiles", Profile, "mechanism")

__all__ = ["REGISTRY", "GaussianProfile", "LaplaceProfile", "Profile", "of"]


def of(name: str, ratio: float) -> Profile:
    """Return the profile of the mechanism called `name` at the sensitivity-to-scale ratio `ratio`.

    Raises
    ------
    ArgumentError
        If the name is unknown or the ratio not above 0.
    """
    return REGISTRY.get(name)(ratio)
