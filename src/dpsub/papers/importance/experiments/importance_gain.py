"""What a delta buys: proved (epsilon, delta) of weighted DP-Lloyd whose noise was set for pure privacy."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, ClassVar

import pandas as pd
from pydantic import Field

from dpsub.accounting.compose import ComposedLoss
from dpsub.data import described
from dpsub.importance.approximate import CELLS, NormPair, certified_epsilon, gaussian_weights
from dpsub.importance.calibrate import DataFacts, calibrate
from dpsub.papers.importance.settings import FirstSizes, Rounds
from dpsub.reproduce.experiment import Experiment, Run
from dpsub.reproduce.settings import Delta, ExperimentSettings, Listed, Positive, Sizes

TOLERANCE = 0.05  # of what is proved, relative; smaller means more intervals of norms


class ImportanceGain(Experiment):
    """Proved epsilons at one delta, first centres fixed independently of the data.

    Topics: "lloyd", counts and sums at the radius and mean square of Table 1, for full data, uniform and core-set
    sampling; "sums", sums only, by dimension; "gaussian", the largest weight of a record whose noise is Gaussian, by
    its shift mu at weight 1 (`proved` is the weight).
    """

    name: ClassVar[str] = "importance_gain"
    columns: ClassVar[dict[str, str]] = {
        "replicate": "int64", "topic": "str", "dataset": "str", "d": "int64", "sampler": "str", "mode": "str",
        "m": "float64", "pure": "float64", "delta": "float64", "mu": "float64", "proved": "float64",
    }  # fmt: skip
    variants: ClassVar[tuple[str, ...]] = ("rigorous",)

    class Settings(ExperimentSettings, FirstSizes):
        epsilons: Listed[Positive] = Field((3, 30), description="Pure targets, in nats.")
        delta: Delta = 1e-6
        dimensions: Sizes = Field((10, 90, 518), description="Dimensions of sums without counts.")
        shifts: Listed[Positive] = Field((0.005, 0.02, 0.05, 0.1, 0.2), description="Shifts mu at weight 1 under Gaussian noise.")
        iterations: Rounds = 10

    def records(self, settings: Settings, run: Run) -> pd.DataFrame:
        rows = [*self._lloyd(settings), *self._sums(settings), *self._gaussian(settings)]
        return self.frame(pd.DataFrame(rows).assign(replicate=0, delta=float(settings.delta)))

    def _lloyd(self, settings: Settings) -> Iterator[dict[str, Any]]:
        for name, m in settings.sizes.items():
            paper = described.of(name)
            facts = DataFacts(paper.n, paper.d, paper.radius, paper.mean_square)
            for mode in ("stated", "repaired"):
                for sampler in ("full", "unif", "core"):
                    for epsilon in settings.epsilons:
                        noise = calibrate(sampler, facts, target=float(epsilon), m=float(m), mode=mode,
                                          n_iterations=int(settings.iterations))  # fmt: skip
                        proved = math.nan
                        if noise.feasible:
                            proved = certified_epsilon(noise, float(settings.delta), tolerance=TOLERANCE)
                        yield {"topic": "lloyd", "dataset": name, "d": paper.d, "sampler": sampler, "mode": mode,
                               "m": noise.m, "pure": float(epsilon), "mu": math.nan, "proved": proved}  # fmt: skip

    def _sums(self, settings: Settings) -> Iterator[dict[str, Any]]:
        rounds = int(settings.iterations)
        for d in settings.dimensions:
            for epsilon in settings.epsilons:
                shift = float(epsilon) / rounds
                law = NormPair(int(d), shift).upper_law(shift / CELLS)
                proved = min(float(epsilon), ComposedLoss([law], [rounds]).epsilon(float(settings.delta)))
                yield {"topic": "sums", "dataset": "", "d": int(d), "sampler": "full", "mode": "", "m": math.nan,
                       "pure": float(epsilon), "mu": math.nan, "proved": proved}  # fmt: skip

    def _gaussian(self, settings: Settings) -> Iterator[dict[str, Any]]:
        for mu in settings.shifts:
            weight = float(gaussian_weights([float(mu)], 1.0, float(settings.delta))[0])
            yield {"topic": "gaussian", "dataset": "", "d": 0, "sampler": "opt", "mode": "", "m": math.nan, "pure": 1.0,
                   "mu": float(mu), "proved": weight}  # fmt: skip
