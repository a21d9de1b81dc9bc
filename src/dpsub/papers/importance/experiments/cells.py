"""The clusterings and their cells: data sets, samplers, sizes, targets, and the noise of
each."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from dpsub.data import described, point_sets
from dpsub.data.described import Described
from dpsub.data.point_sets import PointSet
from dpsub.importance.calibrate import DataFacts, LloydCalibration, calibrate
from dpsub.papers.importance.settings import OnCells
from dpsub.reproduce.experiment import Experiment, Run

MODES = {"as_done": "released", "stated": "stated", "consistent": "repaired"}
"""Variant -> mode of the calibration and of the clustering."""
SAMPLERS = ("unif", "core", "opt")
TWIN_NUMBERS = 2_500_000
"""Most numbers (rows times columns) of a twin: with 518 columns they are 4826 rows."""


def each(settings: Any, data: Mapping[str, Path]) -> Iterator[PointSet]:
    """Yield the data sets of a run, in the paper's order: prepared, where the settings say so, else
    a twin."""
    for name, paper in described.EIGHT.items():
        rows = min(settings.sets.twin_rows, TWIN_NUMBERS // paper.d)
        if name in settings.sets.twins:
            yield point_sets.stand_in(name, rows)
        elif name in settings.sets.data:
            yield (
                point_sets.from_ijcnn1(data[name], rows)
                if name == "ijcnn1"
                else point_sets.load(data[name])
            )


class OnPointSets(Experiment, ABC):
    """An experiment whose settings name its data sets, as `OnSets` does; a sweep has cells of one
    data set each."""

    def data_of(self, settings: Any) -> tuple[str, ...]:
        return tuple(sorted(settings.sets.data))

    def cells(self, settings: Any) -> Iterator[Any]:
        for narrowed in super().cells(settings):
            for kind in ("data", "twins"):
                for name in getattr(settings.sets, kind):
                    # One data set a cell, under its own label: data and twins are never mixed.
                    alone = {"data": (), "twins": (), kind: (name,)}
                    yield narrowed.model_copy(
                        update={"sets": settings.sets.model_copy(update=alone)}
                    )

    def records(self, settings: Any, run: Run) -> pd.DataFrame:
        rows = [
            {
                "replicate": 0,
                "dataset": data.name,
                # The facts of Table 1 have no label of their own.
                "data_label": getattr(data, "label", "table1"),
                **row,
            }
            for data in self.sets(settings, run)
            for row in self.rows(data, settings, run)
        ]
        return self.frame(rows or dict.fromkeys(self.columns, ()))

    def sets(self, settings: Any, run: Run) -> Iterable[PointSet | Described]:
        """Return the data sets of the records, prepared or as Table 1 describes them."""
        return each(settings, run.data)

    @abstractmethod
    def rows(self, points: Any, settings: Any, run: Run) -> Iterable[dict[str, Any]]:
        """Return the records of one data set, without the columns that say which it is."""


@dataclass(frozen=True)
class ClusteringCell:
    """One cell of the grid."""

    sampler: str  # unif, core, opt, or full
    m: float  # expected sample size as the paper has it; 0 for full
    epsilon: float  # target, nats; infinite without noise

    def key(self, dataset: str) -> dict[str, Any]:
        """Return the key of the noise's stream; a target of 0 stands for no noise."""
        return {
            "dataset": dataset,
            **asdict(self),
            "epsilon": self.epsilon if math.isfinite(self.epsilon) else 0,
        }


def grid(settings: OnCells, name: str) -> list[ClusteringCell]:
    """Return the cells of one data set, each once: Figures 3 and 6, then 4 and 7, full data, no
    noise."""
    targets, sizes = settings.cells, settings.cells.sizes[name]
    cells = [
        # Figures 3 and 6 cross three sizes with all targets, 4 and 7 all sizes with two targets.
        ClusteringCell(sampler, float(m), float(epsilon))
        for many, epsilons in ((sizes.rows, targets.epsilons), (sizes.curve, targets.size_epsilons))
        for m in many
        for epsilon in epsilons
        for sampler in SAMPLERS
    ]
    cells += [ClusteringCell("full", 0.0, float(epsilon)) for epsilon in targets.size_epsilons]
    # Levels without noise stand in Figures 3 and 6, for the two samplers whose rates need no
    # target.
    cells += [
        ClusteringCell(sampler, float(m), math.inf)
        for m in sizes.rows
        for sampler in ("unif", "core")
    ]
    # Figures 4 and 7 repeat sizes and targets of 3 and 6.
    return list(dict.fromkeys(cells))


def facts_of(data: PointSet | Described) -> DataFacts:
    """Return the facts that calibration needs about a data set, or about one that only Table 1
    describes."""
    if isinstance(data, Described):
        return DataFacts(data.n, data.d, data.radius, data.mean_square)
    n, d = data.points.shape
    return DataFacts(n, d, data.bound, data.mean_square)


def noise_of(
    cell: ClusteringCell, data: PointSet | Described, settings: Any, variant: str
) -> LloydCalibration:
    """Return the noise of a cell, on a data set or, but for `opt`, which needs all norms, from
    Table 1 alone.

    Data of another size than the paper's are sampled at the same rate: noise depends on rates and
    norms only.
    """
    m, norms = cell.m, None
    if isinstance(data, PointSet):
        # The privacy-optimal sampler solves for all norms; the others need the radius and the mean
        # square.
        norms = data.norms if cell.sampler == "opt" else None
        m = m if data.label == "real" else m * len(data.points) / described.of(data.name).n
    return calibrate(
        cell.sampler,
        facts_of(data),
        target=cell.epsilon,
        m=m or None,
        mode=MODES[variant],
        norms=norms,
        n_iterations=settings.iterations,
        mixing=settings.mixing,
    )
