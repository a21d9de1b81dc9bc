"""Where delta' meets delta, and where the delta' curves of two samplers cross (MUST, Section S8)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import combinations
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from pydantic import Field
from scipy.optimize import brentq

from dpsub import noise
from dpsub.amplification import Amplified, amplify
from dpsub.papers.must.experiments.amplification_grid import epsilon_grid, laws_of
from dpsub.papers.must.settings import Grid
from dpsub.reproduce.experiment import Experiment, Run
from dpsub.reproduce.settings import ExperimentSettings, Positive, Samplers

Curve = Callable[[np.ndarray | float], Amplified]
"""Base epsilon to the amplified point of one sampler."""

_EQUAL = 1e-11
"""Two logarithms of delta closer than this are equal up to rounding: a sampler compared with its twin never crosses."""


def crossings(epsilons: np.ndarray, difference: Callable[[np.ndarray], np.ndarray]) -> list[float]:
    """Return the roots of `difference` that the grid `epsilons` separates, to 1e-14.

    Points where both curves are 0 or equal up to rounding count as no crossing.
    """
    values = difference(epsilons)
    clear = np.flatnonzero(np.abs(values) > _EQUAL)
    left, right = clear[:-1], clear[1:]
    changes = np.sign(values[left]) != np.sign(values[right])
    return [
        float(brentq(lambda epsilon: float(difference(np.array([epsilon]))[0]), low, high, xtol=1e-14, rtol=1e-14))
        for low, high in zip(epsilons[left[changes]], epsilons[right[changes]], strict=True)
    ]


def log_ratio(upper: np.ndarray, lower: np.ndarray) -> np.ndarray:
    """Return upper - lower of two logarithms, within [-1000, 1000]; 0 where both are -inf."""
    with np.errstate(invalid="ignore"):
        return np.nan_to_num(np.clip(upper - lower, -1000.0, 1000.0), nan=0.0)


class AmplificationCrossings(Experiment):
    """Thresholds of delta above which delta' < delta, and crossovers of the samplers' delta' curves.

    Variants: `stated` finds the exact roots in epsilon; `as_done` reports thresholds as the last point of the grid of
    epsilon at which delta' < delta (erratum E11).
    """

    name: ClassVar[str] = "amplification_crossings"
    columns: ClassVar[dict[str, str]] = {
        "replicate": "int64", "mechanism": "str", "kind": "str", "sampler": "str", "other": "str",
        "epsilon": "float64", "delta": "float64", "delta_amplified": "float64",
    }  # fmt: skip
    variants: ClassVar[tuple[str, ...]] = ("stated", "as_done")

    class Settings(ExperimentSettings, Grid):
        ratio: Positive = Field(1, description="Sensitivity over noise scale.")
        samplers: Samplers = ("wor", "wr", "must_ow", "must_ww")

        def check(self) -> None:
            laws_of(self)
            epsilon_grid(self)
            for mechanism in self.mechanisms:
                noise.of(mechanism, self.ratio)

    def records(self, settings: Settings, run: Run) -> pd.DataFrame:
        epsilons, laws = epsilon_grid(settings), laws_of(settings)
        rows: list[tuple[Any, ...]] = []
        for mechanism in settings.mechanisms:
            profile = noise.of(mechanism, settings.ratio)
            curves = {sampler: partial(amplify, law, profile) for sampler, law in laws.items()}
            met: list[tuple[str, str, str, list[float]]] = [
                ("threshold", sampler, "", self._thresholds(curve, epsilons, exact=run.variant == "stated"))
                for sampler, curve in curves.items()
            ]
            if run.variant == "stated":
                for sampler, other in combinations(curves, 2):
                    gap = partial(_gap_of_two, curves[sampler], curves[other])
                    met.append(("crossover", sampler, other, crossings(epsilons, gap)))
            for kind, sampler, other, places in met:
                for epsilon in places:
                    point = curves[sampler](epsilon)
                    rows.append((0, mechanism, kind, sampler, other, epsilon, float(point.delta),
                                 float(point.delta_amplified)))  # fmt: skip
        return self.frame(pd.DataFrame(rows, columns=list(self.columns)))

    def _thresholds(self, curve: Curve, epsilons: np.ndarray, *, exact: bool) -> list[float]:
        gap = partial(_gap_to_base, curve)
        if exact:
            return crossings(epsilons, gap)
        values = gap(epsilons)
        # from delta' < delta to delta' > delta: where both end at 0 together (WOR, Laplace) there is no threshold
        last = np.flatnonzero((values[:-1] < -_EQUAL) & (values[1:] > _EQUAL))
        return [float(epsilon) for epsilon in epsilons[last]]


def _gap_to_base(curve: Curve, epsilons: np.ndarray) -> np.ndarray:
    point = curve(epsilons)
    return log_ratio(point.log_delta_amplified, point.log_delta)


def _gap_of_two(curve: Curve, other: Curve, epsilons: np.ndarray) -> np.ndarray:
    return log_ratio(curve(epsilons).log_delta_amplified, other(epsilons).log_delta_amplified)
