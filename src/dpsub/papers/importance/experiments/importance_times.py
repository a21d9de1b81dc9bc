"""Clock time of weights, sampling and DP-Lloyd, by sampler and size (Fay et al., Figure 5 and Tables 2 and 3)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Annotated, Any, ClassVar

import numpy as np
import pandas as pd
from pydantic import Field

from dpsub import checks
from dpsub.data.point_sets import PointSet
from dpsub.importance import lloyd
from dpsub.importance.calibrate import LloydCalibration
from dpsub.importance.samplers import PoissonImportance, WeightedSample
from dpsub.papers.importance.experiments.importance_cells import SAMPLERS, Cell, noise_of
from dpsub.papers.importance.experiments.importance_sets import OnPointSets, each
from dpsub.papers.importance.settings import Clusters, Lloyd, OnSets, PointSetName, check_size
from dpsub.reproduce.experiment import Run
from dpsub.reproduce.settings import AnyOf, Count, ExperimentSettings, Positive
from dpsub.streams import Streams

PARTS = ("t_calibration", "t_weights", "t_sampling", "t_dp_lloyd")


class ImportanceTimes(OnPointSets):
    """One record a turn of a cell; seconds of processor time.

    t_calibration is the search for the noise at which the sampler has the size, which the paper's tables leave out;
    t_weights one evaluation of all probabilities. Backends: vectorised, and loop, a plain loop over rows, for the cells
    that the settings name. Infeasible cells are left out.
    """

    name: ClassVar[str] = "importance_times"
    columns: ClassVar[dict[str, str]] = {
        "replicate": "int64", "dataset": "str", "data_label": "str", "n": "int64", "sampler": "str",
        "m_paper": "float64", "m": "float64", "backend": "str", **dict.fromkeys(PARTS, "float64"),
    }  # fmt: skip
    variants: ClassVar[tuple[str, ...]] = ("stated",)
    timed: ClassVar[bool] = True

    class Settings(ExperimentSettings, OnSets, Lloyd):
        turns: Annotated[int, Field(ge=1, le=1_000)] = Field(3, description="Repetitions of each measurement.")
        epsilon: Positive = Field(3, description="Target, in nats.")
        clusters: Clusters = 25
        sizes: dict[PointSetName, AnyOf[Count]] = Field({"kdd_protein": (5000, 10000, 15000, 20000), "rna": (5000, 10000, 15000, 20000, 50000), "song": (5000, 10000, 15000, 20000, 50000), "covertype": (5000, 10000, 15000, 20000, 50000), "ijcnn1": (3000, 4000, 5000, 6000, 7000, 10000, 15000, 20000), "pose": (3000, 4000, 5000, 6000, 7000, 8000), "miniboone": (4000, 5000, 6000, 7000), "fma": (5000, 10000, 15000)}, description="Expected sample sizes by data set.")
        loop: dict[PointSetName, AnyOf[Count]] = Field({"ijcnn1": (5000,)}, description="Sizes at which a plain loop over rows is timed too.")

        def check(self) -> None:
            for name, sizes in self.sizes.items():
                for m in sizes:
                    check_size(name, m)

    def replicates(self, settings: Settings) -> int:
        return checks.integer("turns", settings.turns, at_least=1)

    def records(self, settings: Settings, run: Run) -> pd.DataFrame:
        rows: list[dict[str, Any]] = []
        for points in each(settings, run.data):
            chosen = [Cell("full", 0.0, float(settings.epsilon))]
            chosen += [Cell(sampler, float(m), float(settings.epsilon)) for sampler in SAMPLERS
                       for m in settings.sizes[points.name]]  # fmt: skip
            for cell in chosen:
                for turn in run.replicates:
                    rows += self._turn(cell, points, settings, run.variant, turn, run.streams)
        return self.frame(rows)

    def _turn(
        self, cell: Cell, points: PointSet, settings: Settings, variant: str, turn: int, streams: Streams
    ) -> Iterator[dict[str, Any]]:
        times = [time.process_time()]
        noise = noise_of(cell, points, settings, variant)
        if not noise.feasible:
            return
        times.append(time.process_time())
        rates = noise.rates(points.norms)
        times.append(time.process_time())
        rng = streams.sample(cell.key(points.name), turn)
        everything = cell.sampler == "full"
        sample = (WeightedSample(np.arange(len(rates)), np.ones(len(rates))) if everything
                  else PoissonImportance(rates).draw(rng))  # fmt: skip
        times.append(time.process_time())
        backends = ("vectorised", "loop") if turn == 0 and self._looped(cell, points, settings) else ("vectorised",)
        for backend in backends:
            start = time.process_time()
            self._cluster(backend, points, noise, sample, int(settings.clusters), rng)
            spent = [*np.diff(times).tolist(), time.process_time() - start]
            yield {
                "replicate": turn, "dataset": points.name, "data_label": points.label, "n": len(points.points),
                "sampler": cell.sampler, "m_paper": cell.m, "m": noise.m, "backend": backend,
                **dict(zip(PARTS, spent, strict=True)),
            }  # fmt: skip

    def _looped(self, cell: Cell, points: PointSet, settings: Settings) -> bool:
        named = settings.loop.get(points.name, [])
        return cell.sampler in ("full", "unif") and bool(named) and (cell.m == 0 or cell.m in named)

    def _cluster(
        self, backend: str, points: PointSet, noise: LloydCalibration, sample: WeightedSample, k: int,
        rng: np.random.Generator,
    ) -> None:  # fmt: skip
        plan = lloyd.Lloyd(k, noise.beta_sum, noise.beta_count, noise.mode, noise.facts.radius, noise.n_iterations)
        initial = lloyd.drawn_centres(points.points, sample, k, rng)
        if backend == "loop":
            lloyd.run_by_rows(points.points[sample.indices], sample.weights, plan, initial, rng)
        elif noise.sampler == "full":
            lloyd.run_full(points.points, plan, initial, rng)
        else:
            lloyd.run(points.points, sample, [plan], initial[None], [rng])
