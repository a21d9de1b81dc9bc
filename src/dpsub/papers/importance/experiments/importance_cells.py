"""Cells of the clustering experiments of Fay et al.: sampler, expected size, target, and the noise of each."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pandas as pd

from dpsub.data.described import Described
from dpsub.data.point_sets import PointSet
from dpsub.errors import DataError
from dpsub.importance.calibrate import DataFacts, LloydCalibration, calibrate
from dpsub.papers.importance.experiments.importance_sets import scaled_size
from dpsub.papers.importance.settings import OnCells

MODES = {"as_done": "released", "stated": "stated", "consistent": "repaired"}
"""Variant -> mode of the calibration and of the clustering."""
SAMPLERS = ("unif", "core", "opt")
NOISE_COLUMNS = {
    "dataset": "str", "data_label": "str", "n": "int64", "d": "int64", "sampler": "str", "m_paper": "float64",
    "m": "float64", "epsilon": "float64", "radius": "float64", "mean_square": "float64", "mixing": "float64",
    "offset": "float64", "s": "float64", "beta_sum": "float64", "beta_count": "float64", "psi": "float64",
    "m_max": "float64",
}  # fmt: skip


@dataclass(frozen=True)
class Cell:
    """One cell of the grid.

    Attributes
    ----------
    sampler : {"unif", "core", "opt", "full"}
    m : float
        Expected sample size as the paper has it; 0 for `full`.
    epsilon : float
        Target, nats; infinite without noise.
    """

    sampler: str
    m: float
    epsilon: float

    def key(self, dataset: str) -> dict[str, Any]:
        """Return what fixes the noise's stream; a target of 0 stands for no noise."""
        return {"dataset": dataset, "sampler": self.sampler, "m": self.m,
                "epsilon": self.epsilon if math.isfinite(self.epsilon) else 0}  # fmt: skip


def cells(settings: OnCells, name: str) -> list[Cell]:
    """Return the cells of one data set, each once: Figures 3 and 6, then 4 and 7, full data, no noise."""
    grid, sizes = settings.cells, settings.cells.sizes[name]
    found = [Cell(sampler, float(m), float(epsilon)) for m in sizes.rows for epsilon in grid.epsilons
             for sampler in SAMPLERS]  # fmt: skip
    found += [Cell(sampler, float(m), float(epsilon)) for m in sizes.curve for epsilon in grid.size_epsilons
              for sampler in SAMPLERS]  # fmt: skip
    found += [Cell("full", 0.0, float(epsilon)) for epsilon in grid.size_epsilons]
    found += [Cell(sampler, float(m), math.inf) for m in sizes.rows for sampler in ("unif", "core")]
    return list(dict.fromkeys(found))


def facts_of(points: PointSet) -> DataFacts:
    """Return what calibration needs to know of a data set."""
    n, d = points.points.shape
    return DataFacts(n, d, points.bound, points.mean_square)


def noise_of(cell: Cell, points: PointSet, settings: Any, variant: str) -> LloydCalibration:
    """Return the noise of a cell on a data set, at the size that its label asks for."""
    m = None if cell.sampler == "full" else scaled_size(cell.m, points)
    return calibrate(
        cell.sampler, facts_of(points), target=cell.epsilon, m=m, mode=MODES[variant],
        norms=points.norms if cell.sampler == "opt" else None, n_iterations=settings.iterations,
        mixing=settings.mixing,
    )  # fmt: skip


def noise_of_table1(cell: Cell, paper: Described, settings: Any, variant: str) -> LloydCalibration:
    """Return the noise of a cell from the paper's Table 1 alone (not for `opt`, which needs all norms)."""
    facts = DataFacts(paper.n, paper.d, paper.radius, paper.mean_square)
    return calibrate(
        cell.sampler, facts, target=cell.epsilon, m=cell.m or None, mode=MODES[variant],
        n_iterations=settings.iterations, mixing=settings.mixing,
    )  # fmt: skip


def noise_row(dataset: str, label: str, cell: Cell, noise: LloydCalibration) -> dict[str, Any]:
    """Return the record of a calibration, in the columns `NOISE_COLUMNS`."""
    facts = noise.facts
    return {
        "dataset": dataset, "data_label": label, "n": facts.n, "d": facts.d, "sampler": cell.sampler,
        "m_paper": cell.m, "m": noise.m, "epsilon": cell.epsilon, "radius": facts.radius,
        "mean_square": facts.mean_square, "mixing": noise.mixing, "offset": noise.offset, "s": noise.s,
        "beta_sum": noise.beta_sum, "beta_count": noise.beta_count, "psi": noise.psi, "m_max": noise.m_max,
    }  # fmt: skip


def recorded(
    frame: pd.DataFrame, settings: Any, variant: str, points: PointSet
) -> Iterator[tuple[Cell, LloydCalibration]]:
    """Yield the cells of a data set and their noise from the records of `importance_noise`.

    Raises
    ------
    DataError
        If the records are of another data set or lack a cell.
    """
    chosen = (frame["variant"] == variant) & (frame["dataset"] == points.name) & (frame["data_label"] == points.label)
    rows = {(row["sampler"], row["m_paper"], row["epsilon"]): row for row in frame[chosen].to_dict("records")}
    for cell in cells(settings, points.name):
        row = rows.get((cell.sampler, cell.m, cell.epsilon))
        if row is None or int(row["n"]) != len(points.points):
            raise DataError(
                f"the noise of {cell} on {points.name} must be on record, got none; run importance_noise with the "
                "settings of importance_clustering"
            )
        yield cell, LloydCalibration(
            cell.sampler, MODES[variant], facts_of(points), cell.epsilon, float(row["m"]), float(row["mixing"]),
            settings.iterations, float(row["offset"]), float(row["s"]), float(row["psi"]), float(row["m_max"]),
        )  # fmt: skip
