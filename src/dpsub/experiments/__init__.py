"""Experiments: what the papers computed, each in the variants in which it can be read."""

from __future__ import annotations

from dpsub.experiments.base import Experiment
from dpsub.registry import Registry

__all__ = ["REGISTRY", "Experiment"]

REGISTRY: Registry[Experiment] = Registry("dpsub.experiments", Experiment, "experiment")
