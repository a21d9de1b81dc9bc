"""Additive-noise mechanisms: what is released. Registration is by discovery."""

from __future__ import annotations

from dpsub.mechanisms.base import Mechanism
from dpsub.mechanisms.gaussian import Gaussian
from dpsub.mechanisms.laplace import Laplace
from dpsub.registry import Registry

REGISTRY: Registry[Mechanism] = Registry("dpsub.mechanisms", Mechanism, "mechanism")

__all__ = ["REGISTRY", "Gaussian", "Laplace", "Mechanism"]
