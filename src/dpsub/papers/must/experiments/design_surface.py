"""eta and delta' - delta over the sizes of both stages (MUST, Figures 5 and S1)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from dpsub import checks, noise, sampling
from dpsub.reproduce.experiment import Experiment


def sizes(settings: Mapping[str, Any], name: str) -> range:
    """Return the sizes `name`_min, `name`_min + step, ..., at most `name`_max.

    Raises
    ------
    ArgumentError
        If a limit or the step is below 1, or the limits are reversed.
    """
    low = checks.integer(f"{name}_min", settings[f"{name}_min"], at_least=1)
    high = checks.integer(f"{name}_max", settings[f"{name}_max"], at_least=low)
    return range(low, high + 1, checks.integer("step", settings["step"], at_least=1))


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

    def check(self, settings: Mapping[str, Any]) -> None:
        checks.real("epsilon", settings["epsilon"], above=0)
        for mechanism in settings["mechanisms"]:
            noise.of(mechanism, settings["ratio"])
        m, b = sizes(settings, "m"), sizes(settings, "b")
        for sampler, m_end, b_end in product(settings["samplers"], (m[0], m[-1]), (b[0], b[-1])):
            sampling.of_sizes(sampler, n=settings["n"], m=m_end, b=b_end)

    def run(
        self, *, settings: Mapping[str, Any], variant: str, replicates: range, root: int, data: Mapping[str, Path]
    ) -> pd.DataFrame:
        return self.frame(pd.DataFrame(list(self._rows(settings)), columns=list(self.columns)))

    def _rows(self, settings: Mapping[str, Any]) -> Iterator[tuple[Any, ...]]:
        n, epsilon = settings["n"], float(settings["epsilon"])
        bases = {name: noise.of(name, settings["ratio"]) for name in settings["mechanisms"]}
        copies = np.arange(1, sizes(settings, "m")[-1] + 1)
        group_deltas = {name: np.exp(profile.group_log_delta(epsilon, copies)) for name, profile in bases.items()}
        deltas = {name: float(profile.delta(epsilon)) for name, profile in bases.items()}
        for sampler, m, b in product(settings["samplers"], sizes(settings, "m"), sizes(settings, "b")):
            law = sampling.of_sizes(sampler, n=n, m=m, b=b).multiplicity_law(n)
            weights = law.pmf[1:]
            for name, delta in deltas.items():
                amplified = float(weights @ group_deltas[name][: len(weights)])
                yield 0, sampler, m, b, name, law.eta, delta, amplified, amplified - delta
