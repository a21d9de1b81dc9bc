"""Weighted sums with Laplace noise under three readings of an unstated rule (Fay et al., Section 3.3 and Figure 2)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import pandas as pd
from pydantic import Field
from scipy import optimize

from dpsub import checks
from dpsub.importance.losses import Power
from dpsub.importance.samplers import WeightedLaplaceSum, filled_rates, optimal_rates, oracle_rates, uniform_rates
from dpsub.papers.importance.settings import Dimension, Factor
from dpsub.reproduce.experiment import Experiment, Run
from dpsub.reproduce.settings import (
    ExperimentSettings,
    FrameSize,
    Listed,
    Positive,
    SampleSize,
)
from dpsub.streams import Streams

RULES = ("free", "fixed_eps", "b1")
SAMPLERS = ("unif", "opt", "var", "water")


class ImportanceSums(Experiment):
    """Topic "weight": the weight of each point at one size. Topic "curve": largest loss and error over noise scales.

    Topic "pareto": at one noise scale, the least error by target and size (water-filling), next to uniform sampling.

    The text does not state the target at which privacy-constrained weights are computed. Rules: free, the largest loss
    without sampling; fixed_eps, one target for all noise scales; b1, weights from the profile as printed, w |x|_1,
    which is that of the noise scale 1, whatever the noise. Samplers: unif; opt; var, which has the least variance and
    sees all data; water, the least variance among those with the losses of opt, at twice its size.
    """

    name: ClassVar[str] = "importance_sums"
    columns: ClassVar[dict[str, str]] = {
        "replicate": "int64", "topic": "str", "rule": "str", "sampler": "str", "rank": "int64", "norm": "float64",
        "weight": "float64", "n": "int64", "d": "int64", "variance_per_dimension": "float64", "scale": "float64",
        "target": "float64", "m": "float64", "max_loss": "float64", "mse": "float64", "mse_error": "float64",
        "mse_exact": "float64", "runs": "int64",
    }  # fmt: skip
    variants: ClassVar[tuple[str, ...]] = ("stated",)

    class Settings(ExperimentSettings):
        n: FrameSize = 1000
        d: Dimension = 10
        m: SampleSize = Field(19, description="Expected size at which weights are shown.")
        scale_min: Positive = Field(3, description="Smallest noise scale.")
        scale_max: Positive = Field(3000, description="Largest noise scale.")
        points: Annotated[int, Field(ge=2, le=1_000)] = Field(13, description="Noise scales, in equal ratios.")
        runs: Annotated[int, Field(ge=2)] = Field(1000, description="Releases behind each mean squared error.")
        rules: Listed[Literal["free", "fixed_eps", "b1"]] = Field(("free", "fixed_eps", "b1"), description="Readings of the target that the text does not state - free, the loss without sampling; fixed_eps, one target; b1, weights from the profile of noise scale 1.")
        fixed_epsilon: Positive = Field(3, description="Target of fixed_eps, in nats.")
        pareto_scale: Positive = Field(3, description="Noise scale of the surface of targets and sizes.")
        pareto_targets: Listed[Factor] = Field((1, 1.5, 2, 4, 8), description="Targets over the largest loss without sampling.")
        pareto_sizes: Listed[Factor] = Field((1, 1.25, 1.5, 2, 3, 4, 6), description="Sizes over the least one at the target.")

        def check(self) -> None:
            checks.real("m", self.m, above=0, below=checks.integer("n", self.n, at_least=10))
            checks.real("scale_max", self.scale_max, above=self.scale_min)

    def records(self, settings: Settings, run: Run) -> pd.DataFrame:
        n, d = int(settings.n), int(settings.d)
        rng = run.streams.data({"n": n, "d": d}, 0)
        points = rng.normal(0, math.sqrt(1 / d), (n, d))
        rows: list[dict[str, Any]] = []
        for rule in settings.rules:
            rows += self._weights(rule, points, settings)
            rows += self._curve(rule, points, settings, run.streams)
        rows += self._pareto(points, settings)
        frame = pd.DataFrame(rows).assign(replicate=0, n=n, d=d, variance_per_dimension=1 / d)
        absent = {"rank": -1, "runs": 0}
        return self.frame(frame.assign(**{name: frame[name].fillna(value) for name, value in absent.items()}))

    def _weights(self, rule: str, points: np.ndarray, settings: Settings) -> Iterator[dict[str, Any]]:
        norms, m = np.abs(points).sum(axis=1), float(settings.m)
        scale, target = self._at_size(rule, norms, m, float(settings.fixed_epsilon))
        rates = {"unif": uniform_rates(len(points), m), "opt": optimal_rates(norms / scale, target),
                 "var": oracle_rates(np.linalg.norm(points, axis=1), m)}  # fmt: skip
        order = np.argsort(norms)
        for sampler, q in rates.items():
            for rank, place in enumerate(order.tolist()):
                yield {"topic": "weight", "rule": rule, "sampler": sampler, "rank": rank, "norm": norms[place],
                       "weight": 1 / q[place], "scale": scale, "target": target, "m": float(q.sum())}  # fmt: skip

    def _at_size(self, rule: str, norms: np.ndarray, m: float, fixed: float) -> tuple[float, float]:
        """Return noise scale and target at which opt has the expected size m."""
        largest = float(norms.max())
        if rule == "b1":
            target = _root(lambda value: optimal_rates(norms, value).sum() - m, largest, 1e6)
            return 1.0, target
        if rule == "free":
            scale = _root(lambda b: optimal_rates(norms / b, largest / b).sum() - m, 1e-2, 1e6)
            return scale, largest / scale
        scale = _root(lambda b: optimal_rates(norms / b, fixed).sum() - m, largest / fixed * (1 + 1e-9), 1e9)
        return scale, fixed

    def _curve(
        self, rule: str, points: np.ndarray, settings: Settings, streams: Streams
    ) -> Iterator[dict[str, Any]]:
        norms, lengths = np.abs(points).sum(axis=1), np.linalg.norm(points, axis=1)
        scales = np.geomspace(settings.scale_min, settings.scale_max, int(settings.points))
        for scale in scales.tolist():
            mechanism = WeightedLaplaceSum(scale)
            planned = 1.0 if rule == "b1" else scale
            target = float(settings.fixed_epsilon) if rule == "fixed_eps" else float(norms.max()) / planned
            private = optimal_rates(norms / planned, target)
            m = float(private.sum())
            rates = {"unif": uniform_rates(len(points), m), "opt": private, "var": oracle_rates(lengths, m),
                     "water": filled_rates(private, lengths, min(2 * m, float(len(points))))}  # fmt: skip
            for sampler, q in rates.items():
                # the same numbers for every sampler
                key = {"rule": rule, "scale": scale}
                rng = streams.sample(key, 0)
                squares = mechanism.squared_errors(points, q, int(settings.runs), rng)
                yield {
                    "topic": "curve", "rule": rule, "sampler": sampler, "scale": scale, "target": target,
                    "m": float(q.sum()), "max_loss": float(Power(mechanism.slopes(points)).sampled(q).max()),
                    "mse": float(squares.mean()), "runs": len(squares),
                    "mse_error": float(squares.std(ddof=1) / math.sqrt(len(squares))),
                    "mse_exact": mechanism.mean_squared_error(points, q),
                }  # fmt: skip


    def _pareto(self, points: np.ndarray, settings: Settings) -> Iterator[dict[str, Any]]:
        """Targets and sizes are given as multiples of the least ones; sizes end before all rows are taken."""
        lengths, scale = np.linalg.norm(points, axis=1), float(settings.pareto_scale)
        mechanism = WeightedLaplaceSum(scale)
        slopes = mechanism.slopes(points)
        for factor in settings.pareto_targets:
            target = float(factor) * float(slopes.max())
            floors = optimal_rates(slopes, target)
            for share in settings.pareto_sizes:
                m = float(floors.sum()) * float(share)
                if m >= len(points):
                    continue
                rates = {"water": filled_rates(floors, lengths, m), "unif": uniform_rates(len(points), m)}
                for sampler, q in rates.items():
                    yield {
                        "topic": "pareto", "rule": "free", "sampler": sampler, "scale": scale, "target": target, "m": m,
                        "max_loss": float(Power(slopes).sampled(q).max()),
                        "mse_exact": mechanism.mean_squared_error(points, q),
                    }  # fmt: skip


def _root(gap: Callable[[float], float], low: float, high: float) -> float:
    return float(math.exp(optimize.brentq(lambda log: gap(math.exp(log)), math.log(low), math.log(high), xtol=1e-12)))
