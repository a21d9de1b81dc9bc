"""Private k-means on importance samples: the cost on all rows, by sampler, size and target (Fay et al., Section 5)."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from dpsub.data.point_sets import PointSet
from dpsub.importance import lloyd
from dpsub.importance.calibrate import LloydCalibration
from dpsub.importance.samplers import PoissonImportance, WeightedSample
from dpsub.papers.importance.experiments.importance_cells import MODES, Cell, recorded
from dpsub.papers.importance.experiments.importance_sets import OnPointSets, each
from dpsub.papers.importance.settings import Clusters, Lloyd, OnCells, OnSets
from dpsub.reproduce.experiment import Run
from dpsub.reproduce.settings import ExperimentSettings, Parts, Replicates
from dpsub.streams import Streams


class ImportanceClustering(OnPointSets):
    """One record a repeat of a cell: the size of its sample and the mean squared distance of all rows to its centres.

    The cost is NaN where a run fails (an empty cluster without noise, in all variants but `consistent`) and where the
    size cannot be obtained at the target. One repeat means the same uniform numbers and the same numbers for the first
    centres for all samplers, sizes, targets and variants; noise is each cell's own. Variants: as_done is the released
    code, stated the text, consistent the repaired algorithm.
    """

    name: ClassVar[str] = "importance_clustering"
    columns: ClassVar[dict[str, str]] = {
        "replicate": "int64", "dataset": "str", "data_label": "str", "n": "int64", "sampler": "str",
        "m_paper": "float64", "m": "float64", "epsilon": "float64", "mean_square": "float64", "size": "int64",
        "cost": "float64", "clusters": "int64", "iterations": "int64",
    }  # fmt: skip
    variants: ClassVar[tuple[str, ...]] = ("as_done", "stated", "consistent")
    needs_records: ClassVar[tuple[str, ...]] = ("importance_noise",)

    class Settings(ExperimentSettings, OnSets, OnCells, Lloyd):
        parts: Parts = 2
        replicates: Replicates = 50
        clusters: Clusters = 25

    def records(self, settings: Settings, run: Run) -> pd.DataFrame:
        rows: list[dict[str, Any]] = []
        for points in each(settings, run.data):
            found = list(recorded(run.records["importance_noise"], settings, run.variant, points))
            groups = _samples(found, points)
            for replicate in run.replicates:
                rows += self._repeat(points, groups, settings, run.variant, replicate, run.streams)
        return self.frame(rows)

    def _repeat(
        self, points: PointSet, groups: Sequence[_Group], settings: Settings, variant: str, replicate: int,
        streams: Streams,
    ) -> Iterator[dict[str, Any]]:  # fmt: skip
        paired = {"dataset": points.name}
        uniforms = streams.sample(paired, replicate).random(
            len(points.points)
        )
        sizes: list[int] = []
        centres: list[np.ndarray] = []
        for group in groups:
            initial = streams.initial(paired, replicate)
            sample = group.draw(uniforms)
            sizes += [sample.size] * len(group.cells)
            centres.append(self._centres(points, group, sample, settings, variant, initial, replicate, streams))
        costs = lloyd.costs(points.points, np.concatenate(centres))
        cells = [(cell, noise) for group in groups for cell, noise in group.cells]
        for (cell, noise), size, cost in zip(cells, sizes, costs.tolist(), strict=True):
            yield {
                "replicate": replicate, "dataset": points.name, "data_label": points.label, "n": len(points.points),
                "sampler": cell.sampler, "m_paper": cell.m, "m": noise.m, "epsilon": cell.epsilon,
                "mean_square": points.mean_square, "size": size, "cost": cost,
                "clusters": int(settings.clusters), "iterations": int(settings.iterations),
            }  # fmt: skip

    def _centres(
        self, points: PointSet, group: _Group, sample: WeightedSample, settings: Settings, variant: str,
        initial: np.random.Generator, replicate: int, streams: Streams,
    ) -> np.ndarray:  # fmt: skip
        """Last centres of all cells of a group, shape (cells, k, d); NaN where the size cannot be obtained."""
        k, d, mode = int(settings.clusters), points.points.shape[1], MODES[variant]
        if not group.feasible:
            return np.full((len(group.cells), k, d), math.nan)
        facts = group.cells[0][1].facts
        first = (lloyd.fixed_centres(facts, k, initial) if mode == "repaired"
                 else lloyd.drawn_centres(points.points, sample, k, initial))  # fmt: skip
        plans = [lloyd.Lloyd(k, noise.beta_sum, noise.beta_count, mode, facts.radius, noise.n_iterations)
                 for _, noise in group.cells]  # fmt: skip
        rngs = [
            streams.noise({**cell.key(points.name), "mode": mode}, replicate)
            for cell, _ in group.cells
        ]  # fmt: skip
        return lloyd.run(points.points, sample, plans, np.repeat(first[None], len(plans), axis=0), rngs)


class _Group:
    """Cells that share their samples: one sampler and size at all targets; each cell alone where targets set rates."""

    def __init__(self, cells: list[tuple[Cell, LloydCalibration]], points: PointSet) -> None:
        self.cells = cells
        self.feasible = cells[0][1].feasible
        self._sampler = PoissonImportance(cells[0][1].rates(points.norms)) if self.feasible else None

    def draw(self, uniforms: np.ndarray) -> WeightedSample:
        if self._sampler is None:
            return WeightedSample(np.empty(0, dtype=np.int64), np.empty(0))
        return self._sampler.select(uniforms)


def _samples(found: Sequence[tuple[Cell, LloydCalibration]], points: PointSet) -> list[_Group]:
    shared: dict[tuple[str, float, float], list[tuple[Cell, LloydCalibration]]] = defaultdict(list)
    for cell, noise in found:
        shared[cell.sampler, cell.m, cell.epsilon if cell.sampler == "opt" else 0.0].append((cell, noise))
    return [_Group(cells, points) for cells in shared.values()]
