"""Amplified privacy: along the base epsilon, where curves cross, and over the sizes (MUST, Tables 2
and 3, Section S8, Figures 4, 5, S1 and S3)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import combinations, product
from typing import ClassVar

import numpy as np
import pandas as pd
from pydantic import Field

from dpsub import checks, noise, sampling
from dpsub.amplification import Amplified, amplify, category
from dpsub.papers.must.settings import MUST, SIX, AmplificationCurves
from dpsub.reproduce import settings as s
from dpsub.reproduce.experiment import Experiment, Run
from dpsub.sampling.laws import MultiplicityLaw

MOST_POINTS = 100_000
POINT = ("epsilon", "delta", "epsilon_amplified", "delta_amplified")
Curve = Callable[[np.ndarray | float], Amplified]
"""Base epsilon to the amplified point of one sampler."""
Difference = Callable[[np.ndarray], np.ndarray]

_EQUAL = 1e-11
"""Two logarithms of delta closer than this are equal up to rounding: a sampler compared with its
twin never crosses."""


class Curves(s.ExperimentSettings, AmplificationCurves):
    """Mechanisms and samplers along a grid of base epsilon."""

    samplers: s.Samplers = SIX

    def check(self) -> None:
        _ = self.laws, self.epsilons

    @property
    def epsilons(self) -> np.ndarray:
        """The base epsilons step, 2 step, ..., epsilon_max, as the decimal numbers that they stand
        for."""
        step = self.epsilon_step
        top = checks.real(
            "epsilon_max", self.epsilon_max, at_least=step, at_most=MOST_POINTS * step
        )
        # Table 3 looks up its columns by equality: 0.30000000000000004 would not be found.
        return np.round(np.arange(1, round(top / step) + 1) * step, 10)

    @property
    def laws(self) -> dict[str, MultiplicityLaw]:
        """The multiplicity law of each sampler."""
        n, m, b = self.n, self.m, self.b
        return {
            name: sampling.of_sizes(name, n=n, m=m, b=b).multiplicity_law(n)
            for name in self.samplers
        }


class AmplificationGrid(Experiment):
    """(epsilon, delta) of the base mechanism and (epsilon', delta') of the subsampled one, with the
    category."""

    name: ClassVar[str] = "amplification_grid"
    stage = "account"
    columns: ClassVar[dict[str, str]] = {
        "replicate": "int64",
        "mechanism": "str",
        "ratio": "float64",
        "sampler": "str",
        "epsilon": "float64",
        "delta": "float64",
        "epsilon_amplified": "float64",
        "delta_amplified": "float64",
        "eta": "float64",
        "category": "str",
    }
    variants: ClassVar[tuple[str, ...]] = ("stated",)
    axes: ClassVar[tuple[str, ...]] = ("mechanisms", "ratios", "samplers")
    keys: ClassVar[tuple[str, ...]] = ("mechanism", "ratio", "sampler", "epsilon")

    class Settings(Curves):
        ratios: s.Listed[s.Positive] = Field(
            (0.25, 1), description="Sensitivity over noise scale, one grid each."
        )

    def records(self, settings: Settings, run: Run) -> pd.DataFrame:
        epsilons, laws = settings.epsilons, settings.laws
        parts = []
        for mechanism, ratio, sampler in product(settings.mechanisms, settings.ratios, laws):
            amplified = amplify(laws[sampler], noise.of(mechanism, ratio), epsilons)
            point = {name: getattr(amplified, name) for name in POINT}
            kinds = [category(*each) for each in np.column_stack([*point.values()]).tolist()]
            parts.append(
                pd.DataFrame(
                    {
                        "replicate": 0,
                        "mechanism": mechanism,
                        "ratio": ratio,
                        "sampler": sampler,
                        **point,
                        "eta": amplified.eta,
                        "category": kinds,
                    }
                )
            )
        return self.frame(pd.concat(parts, ignore_index=True))


def crossings(epsilons: np.ndarray, difference: Difference) -> list[float]:
    """Return the roots of `difference` that the grid `epsilons` separates, to 1e-14.

    Points where both curves are 0 or equal up to rounding count as no crossing.
    """
    # here, as loading it takes longer than most jobs
    from scipy.optimize import brentq

    values = difference(epsilons)
    # Differences that rounding can make have no sign.
    clear = np.flatnonzero(np.abs(values) > _EQUAL)
    left, right = clear[:-1], clear[1:]
    changes = np.sign(values[left]) != np.sign(values[right])
    return [
        float(
            brentq(
                lambda epsilon: float(difference(np.array([epsilon]))[0]),
                low,
                high,
                xtol=1e-14,
                rtol=1e-14,
            )
        )
        for low, high in zip(epsilons[left[changes]], epsilons[right[changes]], strict=True)
    ]


def gap(curve: Curve, other: Curve | None, epsilons: np.ndarray) -> np.ndarray:
    """Return log delta' of a curve over delta' of another one, or over its own delta, within
    [-1000, 1000].

    Where both are 0 it is 0.
    """
    point = curve(epsilons)
    below = point.log_delta if other is None else other(epsilons).log_delta_amplified
    with np.errstate(invalid="ignore"):
        # Logarithms keep crossings at small delta; a root finder needs finite ends where one curve
        # is 0.
        return np.nan_to_num(np.clip(point.log_delta_amplified - below, -1000.0, 1000.0), nan=0.0)


def last_points_below(epsilons: np.ndarray, difference: Difference) -> list[float]:
    """Return the points of the grid with `difference` < 0 before one with `difference` > 0.

    Where both curves end at 0 together (WOR, Laplace) there is none.
    """
    values = difference(epsilons)
    return epsilons[np.flatnonzero((values[:-1] < -_EQUAL) & (values[1:] > _EQUAL))].tolist()


class AmplificationCrossings(Experiment):
    """Thresholds of delta above which delta' < delta, and crossovers of the samplers' delta'
    curves.

    Variants: `stated` finds the exact roots in epsilon; `as_done` reports thresholds as the last
    point of the grid of epsilon at which delta' < delta (erratum E11).
    """

    name: ClassVar[str] = "amplification_crossings"
    stage = "account"
    columns: ClassVar[dict[str, str]] = {
        "replicate": "int64",
        "mechanism": "str",
        "kind": "str",
        "sampler": "str",
        "other": "str",
        "epsilon": "float64",
        "delta": "float64",
        "delta_amplified": "float64",
    }
    variants: ClassVar[tuple[str, ...]] = ("stated", "as_done")
    axes: ClassVar[tuple[str, ...]] = ("mechanisms",)
    keys: ClassVar[tuple[str, ...]] = ("mechanism", "kind", "sampler", "other", "epsilon")

    class Settings(Curves):
        ratio: s.Positive = Field(1, description="Sensitivity over noise scale.")
        samplers: s.Samplers = ("wor", "wr", *MUST)

    def records(self, settings: Settings, run: Run) -> pd.DataFrame:
        epsilons, exact = settings.epsilons, run.variant == "stated"
        laws, meet = settings.laws, crossings if exact else last_points_below
        rows = []
        for mechanism in settings.mechanisms:
            profile = noise.of(mechanism, settings.ratio)
            curves = {sampler: partial(amplify, law, profile) for sampler, law in laws.items()}
            questions = [("threshold", sampler, "") for sampler in curves]
            # In the variant as_done the thresholds alone are read off the grid.
            if exact:
                questions += [("crossover", *pair) for pair in combinations(curves, 2)]
            for kind, sampler, other in questions:
                for epsilon in meet(epsilons, partial(gap, curves[sampler], curves.get(other))):
                    point = curves[sampler](epsilon)
                    rows.append(
                        (
                            0,
                            mechanism,
                            kind,
                            sampler,
                            other,
                            epsilon,
                            float(point.delta),
                            float(point.delta_amplified),
                        )
                    )
        return self.frame(pd.DataFrame(rows, columns=list(self.columns)))


class DesignSurface(Experiment):
    """eta, delta and delta' of two-stage samplers at one base epsilon, over a grid of m and b.

    One law a grid point serves all mechanisms: delta' is its product with the vector of group
    profiles, which depends on neither m nor b.
    """

    name: ClassVar[str] = "design_surface"
    stage = "account"
    columns: ClassVar[dict[str, str]] = {
        "replicate": "int64",
        "sampler": "str",
        "m": "int64",
        "b": "int64",
        "mechanism": "str",
        "eta": "float64",
        "delta": "float64",
        "delta_amplified": "float64",
        "delta_difference": "float64",
    }
    variants: ClassVar[tuple[str, ...]] = ("stated",)
    axes: ClassVar[tuple[str, ...]] = ("samplers",)
    keys: ClassVar[tuple[str, ...]] = ("sampler", "m", "b", "mechanism")

    class Settings(s.ExperimentSettings):
        n: s.FrameSize = 1000
        # The ranges of Figure 5; its corner b = m = 150 rules out the printed label MUST.WO, which
        # needs b > m (erratum E12).
        m_min: s.SampleSize = 100
        m_max: s.SampleSize = 150
        b_min: s.FirstStage = 150
        b_max: s.FirstStage = 200
        step: s.Count = Field(1, description="Step in m and in b.")
        epsilon: s.Epsilon = 1
        ratio: s.Positive = Field(1, description="Sensitivity over noise scale.")
        samplers: s.Samplers = MUST
        mechanisms: s.Mechanisms = ("laplace", "gaussian")

        @property
        def m(self) -> range:
            return range(
                self.m_min, checks.integer("m_max", self.m_max, at_least=self.m_min) + 1, self.step
            )

        @property
        def b(self) -> range:
            return range(
                self.b_min, checks.integer("b_max", self.b_max, at_least=self.b_min) + 1, self.step
            )

        def check(self) -> None:
            # If the corners of the grid are possible, all sizes between them are.
            for sampler, m, b in product(
                self.samplers, (self.m[0], self.m[-1]), (self.b[0], self.b[-1])
            ):
                sampling.of_sizes(sampler, n=self.n, m=m, b=b)

    def records(self, settings: Settings, run: Run) -> pd.DataFrame:
        n, epsilon, rows = settings.n, settings.epsilon, []
        bases = {name: noise.of(name, settings.ratio) for name in settings.mechanisms}
        # The group profiles depend on neither m nor b: they are computed once.
        copies = np.arange(1, settings.m[-1] + 1)
        # Theorem 5: delta' = sum over u of w_u delta_u(epsilon).
        group_deltas = {
            name: np.exp(profile.group_log_delta(epsilon, copies))
            for name, profile in bases.items()
        }
        deltas = {name: float(profile.delta(epsilon)) for name, profile in bases.items()}
        for sampler, m, b in product(settings.samplers, settings.m, settings.b):
            law = sampling.of_sizes(sampler, n=n, m=m, b=b).multiplicity_law(n)
            weights = law.pmf[1:]
            for name, delta in deltas.items():
                amplified = float(weights @ group_deltas[name][: len(weights)])
                rows.append((0, sampler, m, b, name, law.eta, delta, amplified, amplified - delta))
        return self.frame(pd.DataFrame(rows, columns=list(self.columns)))
