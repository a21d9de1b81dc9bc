"""Sweeps: large grids of cells, each computed once, in jobs of about equal length."""

from __future__ import annotations

from dpsub.registry import Registry
from dpsub.reproduce.sweeps.cells import Cell, CellExperiment, Cost

__all__ = ["REGISTRY", "Cell", "CellExperiment", "Cost"]

REGISTRY: Registry[CellExperiment] = Registry(
    "dpsub.papers", CellExperiment, "experiment of a sweep", inside="sweeps"
)
