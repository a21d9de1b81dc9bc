"""Weighted sums with Laplace noise under three readings of an unstated rule (Fay et al., Section 3.3 and Figure 2)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from scipy import optimize

from dpsub import checks
from dpsub.importance.losses import Power
from dpsub.importance.samplers import WeightedLaplaceSum, filled_rates, optimal_rates, oracle_rates, uniform_rates
from dpsub.reproduce.experiment import Experiment
from dpsub.streams import stream

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

    def check(self, settings: Mapping[str, Any]) -> None:
        n = checks.integer("n", settings["n"], at_least=10)
        checks.integer("d", settings["d"], at_least=1)
        checks.real("m", settings["m"], above=0, below=n)
        low = checks.real("scale_min", settings["scale_min"], above=0)
        checks.real("scale_max", settings["scale_max"], above=low)
        checks.integer("points", settings["points"], at_least=2)
        checks.integer("runs", settings["runs"], at_least=2)
        for rule in settings["rules"]:
            checks.one_of("rule", rule, RULES)
        checks.real("pareto_scale", settings["pareto_scale"], above=0)
        for name in ("pareto_targets", "pareto_sizes"):
            for factor in settings[name]:
                checks.real(name, factor, at_least=1)
        checks.real("fixed_epsilon", settings["fixed_epsilon"], above=0)

    def run(
        self, *, settings: Mapping[str, Any], variant: str, replicates: range, root: int, data: Mapping[str, Path]
    ) -> pd.DataFrame:
        n, d = int(settings["n"]), int(settings["d"])
        rng = stream(root, experiment=self.name, cell={"n": n, "d": d}, role="data", replicate=0)
        points = rng.normal(0, math.sqrt(1 / d), (n, d))
        rows: list[dict[str, Any]] = []
        for rule in settings["rules"]:
            rows += self._weights(rule, points, settings)
            rows += self._curve(rule, points, settings, root)
        rows += self._pareto(points, settings)
        frame = pd.DataFrame(rows).assign(replicate=0, n=n, d=d, variance_per_dimension=1 / d)
        absent = {"rank": -1, "runs": 0}
        return self.frame(frame.assign(**{name: frame[name].fillna(value) for name, value in absent.items()}))

    def _weights(self, rule: str, points: np.ndarray, settings: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        norms, m = np.abs(points).sum(axis=1), float(settings["m"])
        scale, target = self._at_size(rule, norms, m, float(settings["fixed_epsilon"]))
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
        self, rule: str, points: np.ndarray, settings: Mapping[str, Any], root: int
    ) -> Iterator[dict[str, Any]]:
        norms, lengths = np.abs(points).sum(axis=1), np.linalg.norm(points, axis=1)
        scales = np.geomspace(settings["scale_min"], settings["scale_max"], int(settings["points"]))
        for scale in scales.tolist():
            mechanism = WeightedLaplaceSum(scale)
            planned = 1.0 if rule == "b1" else scale
            target = float(settings["fixed_epsilon"]) if rule == "fixed_eps" else float(norms.max()) / planned
            private = optimal_rates(norms / planned, target)
            m = float(private.sum())
            rates = {"unif": uniform_rates(len(points), m), "opt": private, "var": oracle_rates(lengths, m),
                     "water": filled_rates(private, lengths, min(2 * m, float(len(points))))}  # fmt: skip
            for sampler, q in rates.items():
                # the same numbers for every sampler
                key = {"rule": rule, "scale": scale}
                rng = stream(root, experiment=self.name, cell=key, role="sample", replicate=0)
                squares = mechanism.squared_errors(points, q, int(settings["runs"]), rng)
                yield {
                    "topic": "curve", "rule": rule, "sampler": sampler, "scale": scale, "target": target,
                    "m": float(q.sum()), "max_loss": float(Power(mechanism.slopes(points)).sampled(q).max()),
                    "mse": float(squares.mean()), "runs": len(squares),
                    "mse_error": float(squares.std(ddof=1) / math.sqrt(len(squares))),
                    "mse_exact": mechanism.mean_squared_error(points, q),
                }  # fmt: skip


    def _pareto(self, points: np.ndarray, settings: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """Targets and sizes are given as multiples of the least ones; sizes end before all rows are taken."""
        lengths, scale = np.linalg.norm(points, axis=1), float(settings["pareto_scale"])
        mechanism = WeightedLaplaceSum(scale)
        slopes = mechanism.slopes(points)
        for factor in settings["pareto_targets"]:
            target = float(factor) * float(slopes.max())
            floors = optimal_rates(slopes, target)
            for share in settings["pareto_sizes"]:
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
