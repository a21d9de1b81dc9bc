"""Private k-means on importance samples: data sets, noise, cost on all rows, clock times (Fay et al., Section 5)."""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Annotated, Any, ClassVar

import numpy as np
import pandas as pd
from pydantic import Field

from dpsub.data.described import EIGHT
from dpsub.data.point_sets import PERCENTILE, PointSet
from dpsub.errors import DataError
from dpsub.importance import lloyd
from dpsub.importance.calibrate import LloydCalibration
from dpsub.importance.samplers import PoissonImportance, WeightedSample
from dpsub.papers.importance.experiments.cells import (
    MODES,
    SAMPLERS,
    Cell,
    OnPointSets,
    cells,
    each,
    facts_of,
    noise_of,
)
from dpsub.papers.importance.settings import Clusters, Lloyd, OnCells, OnSets, PointSetName, check_size
from dpsub.reproduce.experiment import Experiment, Run
from dpsub.reproduce.settings import AnyOf, Count, ExperimentSettings, Parts, Positive, Replicates

NOISE = "importance_noise"
OF_FACTS = ("n", "d", "radius", "mean_square")
OF_NOISE = ("m", "mixing", "offset", "s", "beta_sum", "beta_count", "psi", "m_max")
TIMES = ("t_calibration", "t_weights", "t_sampling", "t_dp_lloyd")


class ImportanceData(OnPointSets):
    """Table 1: one record a data set as it is clustered; `data_label` says whether it is the paper's or a stand-in."""

    name: ClassVar[str] = "importance_data"
    columns: ClassVar[dict[str, str]] = {
        "replicate": "int64", "dataset": "str", "data_label": "str", "n_original": "int64", "n": "int64", "d": "int64",
        "radius": "float64", "mean_square": "float64", "percentile": "float64",
    }  # fmt: skip
    variants: ClassVar[tuple[str, ...]] = ("stated",)

    class Settings(ExperimentSettings, OnSets):
        pass

    def records(self, settings: Settings, run: Run) -> pd.DataFrame:
        rows = [
            (0, one.name, one.label, one.n_original, *one.points.shape, one.radius, one.mean_square, PERCENTILE)
            for one in each(settings, run.data)
        ]
        return self.frame(pd.DataFrame(rows, columns=list(self.columns)))


class ImportanceNoise(OnPointSets):
    """Scales of the noise, proved loss and attainable size; s is NaN where a size cannot be obtained at a target.

    Rows with the data label "table1" (not as_done) need no data: full data, uniform and core-set sampling at the
    paper's radius and mean square. Variants: as_done is the calibration of the released code, stated that of the text,
    consistent has a split between sums and counts that scales with the data.
    """

    name: ClassVar[str] = NOISE
    columns: ClassVar[dict[str, str]] = {
        "replicate": "int64", "dataset": "str", "data_label": "str", "n": "int64", "d": "int64", "sampler": "str",
        **dict.fromkeys(("m_paper", "m", "epsilon", "radius", "mean_square", *OF_NOISE[1:]), "float64"),
    }  # fmt: skip
    variants: ClassVar[tuple[str, ...]] = ("as_done", "stated", "consistent")
    keys: ClassVar[tuple[str, ...]] = ("dataset", "data_label", "sampler", "m_paper", "epsilon")
    cells = Experiment.cells  # one: the rows of Table 1 are those of all data sets, whatever is clustered

    class Settings(ExperimentSettings, OnSets, OnCells, Lloyd):
        pass

    def records(self, settings: Settings, run: Run) -> pd.DataFrame:
        rows = []
        # that the released grid misses part of the loss costs a search a cell: it is shown on the data only
        papers = EIGHT.values() if run.variant != "as_done" else ()
        for data in (*papers, *each(settings, run.data)):
            label = data.label if isinstance(data, PointSet) else "table1"
            for cell in cells(settings, data.name):
                if label == "table1" and cell.sampler == "opt":
                    continue
                noise = noise_of(cell, data, settings, run.variant)
                rows.append({
                    "replicate": 0, "dataset": data.name, "data_label": label, "sampler": cell.sampler,
                    "m_paper": cell.m, "epsilon": cell.epsilon, **{name: getattr(noise, name) for name in OF_NOISE},
                    **{name: getattr(noise.facts, name) for name in OF_FACTS},
                })  # fmt: skip
        return self.frame(rows)


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
    keys: ClassVar[tuple[str, ...]] = ("dataset", "data_label", "sampler", "m_paper", "epsilon")
    needs_records: ClassVar[tuple[str, ...]] = (NOISE,)

    class Settings(ExperimentSettings, OnSets, OnCells, Lloyd):
        parts: Parts = 2
        replicates: Replicates = 50
        clusters: Clusters = 25

    def records(self, settings: Settings, run: Run) -> pd.DataFrame:
        rows: list[dict[str, Any]] = []
        for points in each(settings, run.data):
            if NOISE in run.records:
                noises = recorded(run.records[NOISE], settings, run.variant, points)
            else:  # a sweep
                noises = {cell: noise_of(cell, points, settings, run.variant) for cell in cells(settings, points.name)}
            groups = _groups(noises, points)
            for replicate in run.replicates:
                rows += self._repeat(points, groups, settings, run, replicate)
        return self.frame(rows)

    def _repeat(
        self, points: PointSet, groups: Iterable[_Group], settings: Settings, run: Run, replicate: int
    ) -> Iterator[dict[str, Any]]:
        paired = {"dataset": points.name}
        uniforms = run.streams.sample(paired, replicate).random(len(points.points))
        found, centres = [], []
        for group in groups:
            sample = group.draw(uniforms)
            first = run.streams.initial(paired, replicate)
            centres.append(self._centres(points, group, sample, first, settings, run, replicate))
            found += [(cell, noise, sample.size) for cell, noise in group.cells.items()]
        costs = lloyd.costs(points.points, np.concatenate(centres)).tolist()
        for (cell, noise, size), cost in zip(found, costs, strict=True):
            yield {
                "replicate": replicate, "dataset": points.name, "data_label": points.label, "n": len(points.points),
                "sampler": cell.sampler, "m_paper": cell.m, "m": noise.m, "epsilon": cell.epsilon,
                "mean_square": points.mean_square, "size": size, "cost": cost,
                "clusters": settings.clusters, "iterations": settings.iterations,
            }  # fmt: skip

    def _centres(
        self, points: PointSet, group: _Group, sample: WeightedSample, initial: np.random.Generator,
        settings: Settings, run: Run, replicate: int,
    ) -> np.ndarray:  # fmt: skip
        """Last centres of all cells of a group, shape (cells, k, d); NaN where the size cannot be obtained."""
        k, mode, facts = settings.clusters, MODES[run.variant], facts_of(points)
        if group.sampler is None:
            return np.full((len(group.cells), k, facts.d), math.nan)
        first = (lloyd.fixed_centres(facts, k, initial) if mode == "repaired"
                 else lloyd.drawn_centres(points.points, sample, k, initial))  # fmt: skip
        plans = [plan_of(noise, k) for noise in group.cells.values()]
        rngs = [run.streams.noise({**cell.key(points.name), "mode": mode}, replicate) for cell in group.cells]
        return lloyd.run(points.points, sample, plans, np.repeat(first[None], len(plans), axis=0), rngs)


def recorded(frame: pd.DataFrame, settings: Any, variant: str, points: PointSet) -> dict[Cell, LloydCalibration]:
    """Return the noise of each cell of a data set from the records of `importance_noise`.

    Raises
    ------
    DataError
        If the records are of another data set or lack a cell.
    """
    chosen = (frame["variant"] == variant) & (frame["dataset"] == points.name) & (frame["data_label"] == points.label)
    rows = {Cell(row["sampler"], row["m_paper"], row["epsilon"]): row for row in frame[chosen].to_dict("records")}
    found = {}
    for cell in cells(settings, points.name):
        row = rows.get(cell)
        if row is None or row["n"] != len(points.points):
            raise DataError(
                f"the noise of {cell} on {points.name} must be on record, got none; run importance_noise with the "
                "settings of importance_clustering"
            )
        found[cell] = LloydCalibration(
            cell.sampler, MODES[variant], facts_of(points), cell.epsilon, row["m"], row["mixing"],
            settings.iterations, row["offset"], row["s"], row["psi"], row["m_max"],
        )  # fmt: skip
    return found


class _Group:
    """Cells that share their samples: one sampler and size at all targets; each cell alone where targets set rates."""

    def __init__(self, cells: dict[Cell, LloydCalibration], points: PointSet) -> None:
        self.cells = cells
        noise = next(iter(cells.values()))
        self.sampler = PoissonImportance(noise.rates(points.norms)) if noise.feasible else None

    def draw(self, uniforms: np.ndarray) -> WeightedSample:
        if self.sampler is None:
            return WeightedSample(np.empty(0, dtype=np.int64), np.empty(0))
        return self.sampler.select(uniforms)


def _groups(noises: dict[Cell, LloydCalibration], points: PointSet) -> list[_Group]:
    shared: dict[tuple[str, float, float], dict[Cell, LloydCalibration]] = defaultdict(dict)
    for cell, noise in noises.items():
        shared[cell.sampler, cell.m, cell.epsilon if cell.sampler == "opt" else 0.0][cell] = noise
    return [_Group(found, points) for found in shared.values()]


def plan_of(noise: LloydCalibration, k: int) -> lloyd.Lloyd:
    """Return the rounds of weighted DP-Lloyd with k clusters and this noise."""
    return lloyd.Lloyd(k, noise.beta_sum, noise.beta_count, noise.mode, noise.facts.radius, noise.n_iterations)


class ImportanceTimes(OnPointSets):
    """Figure 5, Tables 2 and 3: one record a turn of a cell; seconds of processor time.

    t_calibration is the search for the noise at which the sampler has the size, which the paper's tables leave out;
    t_weights one evaluation of all probabilities. Backends: vectorised, and loop, a plain loop over rows, for the cells
    that the settings name. Infeasible cells are left out.
    """

    name: ClassVar[str] = "importance_times"
    columns: ClassVar[dict[str, str]] = {
        "replicate": "int64", "dataset": "str", "data_label": "str", "n": "int64", "sampler": "str",
        "m_paper": "float64", "m": "float64", "backend": "str", **dict.fromkeys(TIMES, "float64"),
    }  # fmt: skip
    variants: ClassVar[tuple[str, ...]] = ("stated",)
    keys: ClassVar[tuple[str, ...]] = ("dataset", "data_label", "sampler", "m_paper", "backend")
    timed: ClassVar[bool] = True

    class Settings(ExperimentSettings, OnSets, Lloyd):
        turns: Annotated[int, Field(ge=1, le=1_000)] = Field(3, description="Repetitions of each measurement.")
        epsilon: Positive = Field(3, description="Target, in nats.")
        clusters: Clusters = 25
        sizes: dict[PointSetName, AnyOf[Count]] = Field(
            {
                "kdd_protein": (5000, 10000, 15000, 20000),
                "rna": (5000, 10000, 15000, 20000, 50000),
                "song": (5000, 10000, 15000, 20000, 50000),
                "covertype": (5000, 10000, 15000, 20000, 50000),
                "ijcnn1": (3000, 4000, 5000, 6000, 7000, 10000, 15000, 20000),
                "pose": (3000, 4000, 5000, 6000, 7000, 8000),
                "miniboone": (4000, 5000, 6000, 7000),
                "fma": (5000, 10000, 15000),
            },
            description="Expected sample sizes by data set.",
        )
        loop: dict[PointSetName, AnyOf[Count]] = Field(
            {"ijcnn1": (5000,)}, description="Sizes at which a plain loop over rows is timed too."
        )

        def check(self) -> None:
            for name, sizes in self.sizes.items():
                for m in sizes:
                    check_size(name, m)

    def replicates(self, settings: Settings) -> int:
        return settings.turns

    def records(self, settings: Settings, run: Run) -> pd.DataFrame:
        rows: list[dict[str, Any]] = []
        for points in each(settings, run.data):
            chosen = [Cell("full", 0.0, settings.epsilon)]
            chosen += [Cell(sampler, m, settings.epsilon) for sampler in SAMPLERS for m in settings.sizes[points.name]]
            for cell in chosen:
                for turn in run.replicates:
                    rows += self._turn(cell, points, settings, run, turn)
        return self.frame(rows)

    def _turn(self, cell: Cell, points: PointSet, settings: Settings, run: Run, turn: int) -> Iterator[dict[str, Any]]:
        times = [time.process_time()]
        noise = noise_of(cell, points, settings, run.variant)
        if not noise.feasible:
            return
        times.append(time.process_time())
        rates = noise.rates(points.norms)
        times.append(time.process_time())
        rng = run.streams.sample(cell.key(points.name), turn)
        sample = (WeightedSample(np.arange(len(rates)), np.ones(len(rates))) if cell.sampler == "full"
                  else PoissonImportance(rates).draw(rng))  # fmt: skip
        times.append(time.process_time())
        named = settings.loop.get(points.name, ())
        looped = turn == 0 and (cell.m in named or (named and cell.sampler == "full"))
        for backend in ("vectorised", "loop") if looped and cell.sampler in ("full", "unif") else ("vectorised",):
            start = time.process_time()
            self._cluster(backend, points, noise, sample, settings.clusters, rng)
            spent = [*np.diff(times).tolist(), time.process_time() - start]
            yield {
                "replicate": turn, "dataset": points.name, "data_label": points.label, "n": len(points.points),
                "sampler": cell.sampler, "m_paper": cell.m, "m": noise.m, "backend": backend,
                **dict(zip(TIMES, spent, strict=True)),
            }  # fmt: skip

    def _cluster(
        self, backend: str, points: PointSet, noise: LloydCalibration, sample: WeightedSample, k: int,
        rng: np.random.Generator,
    ) -> None:  # fmt: skip
        plan, initial = plan_of(noise, k), lloyd.drawn_centres(points.points, sample, k, rng)
        if backend == "loop":
            lloyd.run_by_rows(points.points[sample.indices], sample.weights, plan, initial, rng)
        elif noise.sampler == "full":
            lloyd.run_full(points.points, plan, initial, rng)
        else:
            lloyd.run(points.points, sample, [plan], initial[None], [rng])
