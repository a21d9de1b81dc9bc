"""Experiments: what the papers computed, each in the variants in which it can be read."""

from __future__ import annotations

from dpsub.registry import Registry
from dpsub.reproduce.experiment import Experiment

__all__ = ["REGISTRY", "Experiment", "comparisons"]

REGISTRY: Registry[Experiment] = Registry(
    "dpsub.papers", Experiment, "experiment", inside="experiments"
)


def comparisons() -> dict[str, type[Experiment]]:
    """Return the experiments that compare samplers at one stated epsilon' a query, by data set.

    Which these are depends on the papers that are there: a study that reads them names none.
    """
    members = REGISTRY.members().values()
    return {kind.compares: kind for kind in members if kind.compares}
