"""Registry of the experiments of the papers, each in the variants in which its paper can be
read."""

from __future__ import annotations

from dpsub.registry import Registry
from dpsub.reproduce.experiment import Experiment, StatedComparison

__all__ = ["REGISTRY", "Experiment", "comparisons"]

REGISTRY: Registry[Experiment] = Registry(
    "dpsub.papers", Experiment, "experiment", inside="experiments"
)


def comparisons() -> dict[str, StatedComparison]:
    """Return the comparisons of samplers at one stated epsilon' a query, by experiment.

    They depend on the papers that are there: a study that reads them names none.
    """
    members = REGISTRY.members().items()
    return {name: kind.compares for name, kind in members if kind.compares}
