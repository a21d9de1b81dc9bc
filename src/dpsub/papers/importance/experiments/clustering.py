"""Private k-means on importance samples: data sets, noise, cost on all rows, clock times (Fay et
al., Section 5)."""

from __future__ import annotations

import itertools
import math
import time
from collections import defaultdict
from collections.abc import Iterator
from typing import Annotated, Any, ClassVar

import numpy as np
import pandas as pd
from pydantic import Field

from dpsub.data.described import EIGHT, Described
from dpsub.data.point_sets import PERCENTILE, PointSet
from dpsub.errors import DataError
from dpsub.importance import lloyd
from dpsub.importance.calibrate import LloydCalibration
from dpsub.importance.samplers import PoissonImportance, WeightedSample
from dpsub.papers.importance.experiments.cells import (
    MODES,
    SAMPLERS,
    ClusteringCell,
    OnPointSets,
    each,
    facts_of,
    grid,
    noise_of,
)
from dpsub.papers.importance.settings import (
    FIGURE_SIZES,
    ClusteringRounds,
    Clusters,
    OnCells,
    OnSets,
    PointSetName,
    check_sizes,
)
from dpsub.reproduce.experiment import Experiment, Run
from dpsub.reproduce.settings import AnyOf, Count, ExperimentSettings, Parts, Positive, Replicates

NOISE = "importance_noise"
OF_NOISE = ("m", "mixing", "offset", "s", "beta_sum", "beta_count", "psi", "m_max")
TIMES = ("t_calibration", "t_weights", "t_sampling", "t_dp_lloyd")


class ImportanceData(OnPointSets):
    """Table 1: one record for each data set as it is clustered; `data_label` says whether it is the
    paper's or a stand-in."""

    name = "importance_data"
    stage = "simulate"
    columns: ClassVar[dict[str, str]] = {
        "replicate": "int64",
        "dataset": "str",
        "data_label": "str",
        "n_original": "int64",
        "n": "int64",
        "d": "int64",
        "radius": "float64",
        "mean_square": "float64",
        "percentile": "float64",
    }
    variants = ("stated",)

    class Settings(ExperimentSettings, OnSets):
        pass

    def rows(self, points: PointSet, settings: Settings, run: Run) -> Iterator[dict[str, Any]]:
        n, d = points.points.shape
        yield {
            "n_original": points.n_original,
            "n": n,
            "d": d,
            "radius": points.radius,
            "mean_square": points.mean_square,
            "percentile": PERCENTILE,
        }


class ImportanceNoise(OnPointSets):
    """Scales of the noise, proved loss and attainable size; s is NaN where a size cannot be
    obtained at a target.

    Rows with the data label "table1" (not as_done) need no data: full data, uniform and coreset
    sampling at the paper's radius and mean square. Variants: as_done is the calibration of the
    released code, stated that of the text, consistent has a split between sums and counts that
    scales with the data.
    """

    name = NOISE
    stage = "account"
    columns: ClassVar[dict[str, str]] = {
        "replicate": "int64",
        "dataset": "str",
        "data_label": "str",
        "n": "int64",
        "d": "int64",
        "sampler": "str",
        **dict.fromkeys(
            ("m_paper", "m", "epsilon", "radius", "mean_square", *OF_NOISE[1:]), "float64"
        ),
    }
    variants = tuple(MODES)
    keys = ("dataset", "data_label", "sampler", "m_paper", "epsilon")
    # one: the rows of Table 1 are those of all data sets, whatever is clustered
    cells = Experiment.cells

    class Settings(ExperimentSettings, OnSets, OnCells, ClusteringRounds):
        pass

    def sets(self, settings: Settings, run: Run) -> Iterator[PointSet | Described]:
        # that the released grid misses part of the loss costs a search a cell: it is shown on the
        # data only
        if run.variant != "as_done":
            yield from EIGHT.values()
        yield from each(settings, run.data)

    def rows(
        self, points: PointSet | Described, settings: Settings, run: Run
    ) -> Iterator[dict[str, Any]]:
        for cell in grid(settings, points.name):
            # Privacy-optimal weights need the norms, of which Table 1 has only the largest and the
            # mean square.
            if isinstance(points, Described) and cell.sampler == "opt":
                continue
            noise = noise_of(cell, points, settings, run.variant)
            yield {
                "sampler": cell.sampler,
                "m_paper": cell.m,
                "epsilon": cell.epsilon,
                **{name: getattr(noise, name) for name in OF_NOISE},
                **{
                    name: getattr(noise.facts, name) for name in ("n", "d", "radius", "mean_square")
                },
            }


Groups = list[tuple[PoissonImportance | None, dict[ClusteringCell, LloydCalibration]]]
"""Groups of cells that share their samples, each with its sampler; None where the size cannot be
obtained."""


class ImportanceClustering(OnPointSets):
    """One record for each repeat of a cell: the size of its sample and the mean squared distance of
    all rows to its centres.

    The cost is NaN where a run fails (an empty cluster without noise, in all variants but
    `consistent`) and where the size cannot be obtained at the target. One repeat means the same
    uniform numbers and the same numbers for the first centres for all samplers, sizes, targets and
    variants; noise is each cell's own. Variants: as_done is the released code, stated the text,
    consistent the repaired algorithm.
    """

    name = "importance_clustering"
    stage = "train"
    columns: ClassVar[dict[str, str]] = {
        "replicate": "int64",
        "dataset": "str",
        "data_label": "str",
        "n": "int64",
        "sampler": "str",
        "m_paper": "float64",
        "m": "float64",
        "epsilon": "float64",
        "mean_square": "float64",
        "size": "int64",
        "cost": "float64",
        "clusters": "int64",
        "iterations": "int64",
    }
    variants = tuple(MODES)
    keys = ImportanceNoise.keys
    needs_records = (NOISE,)

    class Settings(ExperimentSettings, OnSets, OnCells, ClusteringRounds):
        parts: Parts = 6
        replicates: Replicates = 50
        clusters: Clusters = 25

    def rows(self, points: PointSet, settings: Settings, run: Run) -> Iterator[dict[str, Any]]:
        # A sweep has no records of the noise, and computes it.
        if NOISE in run.records:
            noises = recorded(run.records[NOISE], settings, run.variant, points)
        else:
            noises = {
                cell: noise_of(cell, points, settings, run.variant)
                for cell in grid(settings, points.name)
            }
        # Cells of one sampler and size share their samples at all targets, unless the rates depend
        # on the target.
        shared: dict[tuple[str, float, float], dict[ClusteringCell, LloydCalibration]] = (
            defaultdict(dict)
        )
        for cell, noise in noises.items():
            # Privacy-optimal rates are solved for the target; uniform and coreset rates know the
            # size alone.
            target = cell.epsilon if cell.sampler == "opt" else 0.0
            shared[cell.sampler, cell.m, target][cell] = noise
        groups: Groups = []
        for cells in shared.values():
            noise = next(iter(cells.values()))
            sampler = PoissonImportance(noise.rates(points.norms)) if noise.feasible else None
            groups.append((sampler, cells))
        for replicate in run.replicates:
            yield from self._repeat(points, groups, settings, run, replicate)

    def _repeat(
        self, points: PointSet, groups: Groups, settings: Settings, run: Run, replicate: int
    ) -> Iterator[dict[str, Any]]:
        k, mode, facts = settings.clusters, MODES[run.variant], facts_of(points)
        paired = {"dataset": points.name}
        # Common uniform numbers and first centres: the samplers are compared in pairs.
        uniforms = run.streams.sample(paired, replicate).random(len(points.points))
        rows, centres = [], []
        for sampler, cells in groups:
            # An infeasible size has no sample: its costs are NaN.
            size, last = 0, np.full((len(cells), k, facts.d), math.nan)
            if sampler is not None:
                sample, initial = sampler.select(uniforms), run.streams.initial(paired, replicate)
                # First centres drawn from the data are not covered by Proposition 13 (IM7).
                if mode == "repaired":
                    first = lloyd.fixed_centres(facts, k, initial)
                else:
                    first = lloyd.drawn_centres(points.points, sample, k, initial)
                plans = [plan_of(noise, k) for noise in cells.values()]
                # Noise is each cell's own, and each mode is another algorithm.
                rngs = [
                    run.streams.noise({**cell.key(points.name), "mode": mode}, replicate)
                    for cell in cells
                ]
                # All targets of one sample advance together: the rows are read once a round.
                starts = np.repeat(first[None], len(plans), axis=0)
                size, last = sample.size, lloyd.run(points.points, sample, plans, starts, rngs)
            centres.append(last)
            rows += [
                {
                    "replicate": replicate,
                    "n": facts.n,
                    "sampler": cell.sampler,
                    "m_paper": cell.m,
                    "m": noise.m,
                    "epsilon": cell.epsilon,
                    "mean_square": points.mean_square,
                    "size": size,
                    "clusters": k,
                    "iterations": settings.iterations,
                }
                for cell, noise in cells.items()
            ]
        # The costs of all sets of centres in one pass over the rows.
        costs = lloyd.costs(points.points, np.concatenate(centres)).tolist()
        for row, cost in zip(rows, costs, strict=True):
            yield {**row, "cost": cost}


def recorded(
    frame: pd.DataFrame, settings: Any, variant: str, points: PointSet
) -> dict[ClusteringCell, LloydCalibration]:
    """Return the noise of each cell of a data set on record; DataError if it is of another data set
    or lacks a cell."""
    chosen = (
        (frame["variant"] == variant)
        & (frame["dataset"] == points.name)
        & (frame["data_label"] == points.label)
    )
    rows = {
        ClusteringCell(row["sampler"], row["m_paper"], row["epsilon"]): row
        for row in frame[chosen].to_dict("records")
    }
    calibrations = {}
    for cell in grid(settings, points.name):
        row = rows.get(cell)
        # Another number of rows means other data, for which this noise promises nothing.
        if row is None or row["n"] != len(points.points):
            raise DataError(
                f"the noise of {cell} on {points.name} must be on record, got none; run "
                "importance_noise with the settings of importance_clustering"
            )
        calibrations[cell] = LloydCalibration(
            cell.sampler,
            MODES[variant],
            facts_of(points),
            cell.epsilon,
            row["m"],
            row["mixing"],
            settings.iterations,
            row["offset"],
            row["s"],
            row["psi"],
            row["m_max"],
        )
    return calibrations


def plan_of(noise: LloydCalibration, k: int) -> lloyd.Lloyd:
    """Return the rounds of weighted DP-Lloyd with k clusters and this noise."""
    return lloyd.Lloyd(
        k, noise.beta_sum, noise.beta_count, noise.mode, noise.facts.radius, noise.n_iterations
    )


class ImportanceTimes(OnPointSets):
    """Figure 5, Tables 2 and 3: one record for each turn of a cell; seconds of processor time.

    t_calibration is the search for the noise at which the sampler has the size, which the paper's
    tables leave out; t_weights one evaluation of all probabilities. Backends: vectorised, and loop,
    a plain loop over rows, for the cells that the settings name. Infeasible cells are left out.
    """

    name = "importance_times"
    stage = "train"
    columns: ClassVar[dict[str, str]] = {
        "replicate": "int64",
        "dataset": "str",
        "data_label": "str",
        "n": "int64",
        "sampler": "str",
        "m_paper": "float64",
        "m": "float64",
        "backend": "str",
        **dict.fromkeys(TIMES, "float64"),
    }
    variants = ("stated",)
    keys = ("dataset", "data_label", "sampler", "m_paper", "backend")
    timed = True

    class Settings(ExperimentSettings, OnSets, ClusteringRounds):
        turns: Annotated[int, Field(ge=1, le=1_000)] = Field(
            3, description="Repetitions of each measurement."
        )
        epsilon: Positive = Field(3, description="Target, in nats.")
        clusters: Clusters = 25
        sizes: dict[PointSetName, AnyOf[Count]] = Field(
            {name: sizes.curve for name, sizes in FIGURE_SIZES.items()}
            | {
                "kdd_protein": (5000, 10000, 15000, 20000),
                "covertype": (5000, 10000, 15000, 20000, 50000),
            },
            description="Expected sample sizes by data set.",
        )
        loop: dict[PointSetName, AnyOf[Count]] = Field(
            {"ijcnn1": (5000,)}, description="Sizes at which a plain loop over rows is timed too."
        )

        def check(self) -> None:
            check_sizes(self.sizes)

    def replicates(self, settings: Settings) -> int:
        return settings.turns

    def rows(self, points: PointSet, settings: Settings, run: Run) -> Iterator[dict[str, Any]]:
        # Full data come first: all others are shown relative to them.
        chosen = [("full", 0), *itertools.product(SAMPLERS, settings.sizes[points.name])]
        for (sampler, m), turn in itertools.product(chosen, run.replicates):
            yield from self._turn(
                ClusteringCell(sampler, m, settings.epsilon), points, settings, run, turn
            )

    def _turn(
        self, cell: ClusteringCell, points: PointSet, settings: Settings, run: Run, turn: int
    ) -> Iterator[dict[str, Any]]:
        rows, rng = points.points, run.streams.sample(cell.key(points.name), turn)
        # Processor time: what else the machine does is not counted.
        times = [time.process_time()]
        noise = noise_of(cell, points, settings, run.variant)
        if not noise.feasible:
            return
        times.append(time.process_time())
        rates = noise.rates(points.norms)
        # The end of t_calibration, which the paper's tables leave out, and the start of t_weights.
        times.append(time.process_time())
        if cell.sampler == "full":
            sample = WeightedSample(np.arange(len(rates)), np.ones(len(rates)))
        else:
            sample = PoissonImportance(rates).draw(rng)
        times.append(time.process_time())
        named = settings.loop.get(points.name, ())
        # The plain loop takes minutes: it is timed once, for two samplers.
        looped = turn == 0 and (cell.m in named or (named and cell.sampler == "full"))
        backends = ["vectorised"]
        if looped and cell.sampler in ("full", "unif"):
            backends.append("loop")
        for backend in backends:
            start = time.process_time()
            plan = plan_of(noise, settings.clusters)
            # First centres belong to the time of DP-Lloyd.
            initial = lloyd.drawn_centres(rows, sample, settings.clusters, rng)
            if backend == "loop":
                lloyd.run_by_rows(rows[sample.indices], sample.weights, plan, initial, rng)
            else:
                # Without a sample all rows are read where they are, and not copied.
                read = None if cell.sampler == "full" else sample
                lloyd.run(rows, read, [plan], initial[None], [rng])
            spent = [*np.diff(times).tolist(), time.process_time() - start]
            yield {
                "replicate": turn,
                "n": len(rows),
                "sampler": cell.sampler,
                "m_paper": cell.m,
                "m": noise.m,
                "backend": backend,
                **dict(zip(TIMES, spent, strict=True)),
            }
