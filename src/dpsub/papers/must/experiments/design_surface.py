"""eta and delta' - delta over the sizes of both stages (MUST, Figures 5 and S1)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from pydantic import Field

from dpsub import checks, noise, sampling
from dpsub.reproduce.experiment import Experiment, Run
from dpsub.reproduce.settings import (
    Count,
    Epsilon,
    ExperimentSettings,
    FirstStage,
    FrameSize,
    Mechanisms,
    Positive,
    Samplers,
    SampleSize,
)


def sizes(settings: DesignSurface.Settings, name: str) -> range:
    """Return the sizes `name`_min, `name`_min + step, ..., at most `name`_max.

    Raises
    ------
    ArgumentError
        If the limits are reversed.
    """
    low, high = getattr(settings, f"{name}_min"), getattr(settings, f"{name}_max")
    return range(low, checks.integer(f"{name}_max", high, at_least=low) + 1, settings.step)


class DesignSurface(Experiment):
    """eta, delta and delta' of two-stage samplers at one base epsilon, over a grid of m and b.

    One law a grid point serves all mechanisms: delta' is its product with the vector of group profiles, which depends
    on neither m nor b.
    """

    name: ClassVar[str] = "design_surface"
    columns: ClassVar[dict[str, str]] = {
        "replicate": "int64", "sampler": "str", "m": "int64", "b": "int64", "mechanism": "str", "eta": "float64",
        "delta": "float64", "delta_amplified": "float64", "delta_difference": "float64",
    }  # fmt: skip
    variants: ClassVar[tuple[str, ...]] = ("stated",)

    class Settings(ExperimentSettings):
        n: FrameSize = 1000
        m_min: SampleSize = 100
        m_max: SampleSize = 150
        b_min: FirstStage = 150
        b_max: FirstStage = 200
        step: Count = Field(1, description="Step in m and in b.")
        epsilon: Epsilon = 1
        ratio: Positive = Field(1, description="Sensitivity over noise scale.")
        samplers: Samplers = ("must_ow", "must_ww")
        mechanisms: Mechanisms = ("laplace", "gaussian")

        def check(self) -> None:
            for mechanism in self.mechanisms:
                noise.of(mechanism, self.ratio)
            m, b = sizes(self, "m"), sizes(self, "b")
            for sampler, m_end, b_end in product(self.samplers, (m[0], m[-1]), (b[0], b[-1])):
                sampling.of_sizes(sampler, n=self.n, m=m_end, b=b_end)

    def records(self, settings: Settings, run: Run) -> pd.DataFrame:
        return self.frame(pd.DataFrame(list(self._rows(settings)), columns=list(self.columns)))

    def _rows(self, settings: Settings) -> Iterator[tuple[Any, ...]]:
        n, epsilon = settings.n, settings.epsilon
        bases = {name: noise.of(name, settings.ratio) for name in settings.mechanisms}
        copies = np.arange(1, sizes(settings, "m")[-1] + 1)
        group_deltas = {name: np.exp(profile.group_log_delta(epsilon, copies)) for name, profile in bases.items()}
        deltas = {name: float(profile.delta(epsilon)) for name, profile in bases.items()}
        for sampler, m, b in product(settings.samplers, sizes(settings, "m"), sizes(settings, "b")):
            law = sampling.of_sizes(sampler, n=n, m=m, b=b).multiplicity_law(n)
            weights = law.pmf[1:]
            for name, delta in deltas.items():
                amplified = float(weights @ group_deltas[name][: len(weights)])
                yield 0, sampler, m, b, name, law.eta, delta, amplified, amplified - delta
