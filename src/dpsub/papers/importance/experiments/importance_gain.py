"""What a delta buys: proved (epsilon, delta) of weighted DP-Lloyd whose noise was set for pure privacy."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd

from dpsub import checks
from dpsub.accounting.compose import ComposedLoss
from dpsub.data import described
from dpsub.importance.approximate import CELLS, NormPair, certified_epsilon, gaussian_weights
from dpsub.importance.calibrate import DataFacts, calibrate
from dpsub.reproduce.experiment import Experiment

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

    def check(self, settings: Mapping[str, Any]) -> None:
        checks.real("delta", settings["delta"], above=0, below=1)
        checks.integer("iterations", settings["iterations"], at_least=1)
        for epsilon in settings["epsilons"]:
            checks.real("epsilon", epsilon, above=0)
        for name, m in settings["sizes"].items():
            checks.integer("m", m, at_least=1, at_most=described.of(name).n, at_most_name=f"n of {name}")
        for d in settings["dimensions"]:
            checks.integer("dimension", d, at_least=1)
        for mu in settings["shifts"]:
            checks.real("shift", mu, above=0)

    def run(
        self, *, settings: Mapping[str, Any], variant: str, replicates: range, root: int, data: Mapping[str, Path]
    ) -> pd.DataFrame:
        rows = [*self._lloyd(settings), *self._sums(settings), *self._gaussian(settings)]
        return self.frame(pd.DataFrame(rows).assign(replicate=0, delta=float(settings["delta"])))

    def _lloyd(self, settings: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        for name, m in settings["sizes"].items():
            paper = described.of(name)
            facts = DataFacts(paper.n, paper.d, paper.radius, paper.mean_square)
            for mode in ("stated", "repaired"):
                for sampler in ("full", "unif", "core"):
                    for epsilon in settings["epsilons"]:
                        noise = calibrate(sampler, facts, target=float(epsilon), m=float(m), mode=mode,
                                          n_iterations=int(settings["iterations"]))  # fmt: skip
                        proved = math.nan
                        if noise.feasible:
                            proved = certified_epsilon(noise, float(settings["delta"]), tolerance=TOLERANCE)
                        yield {"topic": "lloyd", "dataset": name, "d": paper.d, "sampler": sampler, "mode": mode,
                               "m": noise.m, "pure": float(epsilon), "mu": math.nan, "proved": proved}  # fmt: skip

    def _sums(self, settings: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        rounds = int(settings["iterations"])
        for d in settings["dimensions"]:
            for epsilon in settings["epsilons"]:
                shift = float(epsilon) / rounds
                law = NormPair(int(d), shift).upper_law(shift / CELLS)
                proved = min(float(epsilon), ComposedLoss([law], [rounds]).epsilon(float(settings["delta"])))
                yield {"topic": "sums", "dataset": "", "d": int(d), "sampler": "full", "mode": "", "m": math.nan,
                       "pure": float(epsilon), "mu": math.nan, "proved": proved}  # fmt: skip

    def _gaussian(self, settings: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        for mu in settings["shifts"]:
            weight = float(gaussian_weights([float(mu)], 1.0, float(settings["delta"]))[0])
            yield {"topic": "gaussian", "dataset": "", "d": 0, "sampler": "opt", "mode": "", "m": math.nan, "pure": 1.0,
                   "mu": float(mu), "proved": weight}  # fmt: skip
