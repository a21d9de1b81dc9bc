"""Experiments: what the papers computed, each in the variants in which it can be read."""

from __future__ import annotations

from dpsub.registry import Registry
from dpsub.reproduce.experiment import Experiment

__all__ = ["REGISTRY", "Experiment"]

REGISTRY: Registry[Experiment] = Registry(
    "dpsub.papers", Experiment, "experiment", inside="experiments"
)
