"""The law of recycled noise, drawn and computed (Jiang et al., Figure 2)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar

import numpy as np
import pandas as pd
from pydantic import Field

from dpsub import checks
from dpsub.papers.brdp.experiments.brdp_cells.methods import Budget
from dpsub.papers.brdp.settings import Amount
from dpsub.recycling import Recycled
from dpsub.reproduce.experiment import Experiment, Run
from dpsub.reproduce.settings import Delta, ExperimentSettings
from dpsub.streams import Streams

METHODS = ("gau_dp", "gau_br")


class BrdpNoise(Experiment):
    """Topics: "density" at points x; "histogram" of draws of the literal loop by bins with centre x; "summary".

    `value` is what was drawn, `law` what the law says; a density is not drawn. In the summary, `quantity` is
    acceptance, sd, or draws (mean number of kernel draws a release). The parameters are those of the paper.
    """

    name: ClassVar[str] = "brdp_noise"
    columns: ClassVar[dict[str, str]] = {
        "replicate": "int64", "topic": "str", "method": "str", "quantity": "str", "x": "float64", "value": "float64",
        "law": "float64", "n_samples": "int64", "sensitivity": "float64", "bound": "float64", "epsilon": "float64",
        "delta": "float64", "rate": "float64", "scale": "float64", "exact_delta": "float64",
    }  # fmt: skip
    variants: ClassVar[tuple[str, ...]] = ("stated",)

    class Settings(ExperimentSettings):
        sensitivity: Amount = 1
        bound: Amount = 1
        epsilon: Amount = 2
        delta: Delta = 1e-5
        n_samples: Annotated[int, Field(ge=2, le=10_000_000)] = Field(100000, description="Draws of the loop.")
        bins: Annotated[int, Field(ge=4, le=10_000_000)] = Field(60, description="Bins on each side of 0.")
        half_width: Amount = 12

        def check(self) -> None:
            Budget.of(self)
            checks.real("half_width", self.half_width, above=self.bound)

    def records(self, settings: Settings, run: Run) -> pd.DataFrame:
        return self.frame(pd.DataFrame(list(self._rows(settings, run.streams)), columns=list(self.columns)))

    def _rows(self, settings: Settings, streams: Streams) -> Iterator[dict[str, Any]]:
        budget, half = Budget.of(settings), float(settings.half_width)
        for method in METHODS:
            chosen = budget.chosen(method)
            law, count = chosen.law, int(settings.n_samples)
            base = {
                "replicate": 0, "method": method, "n_samples": count, "rate": law.rate, "scale": law.kernel.scale,
                "exact_delta": chosen.true_delta, "quantity": "density", **budget.fields,
            }  # fmt: skip
            key = {**budget.fields, "method": method}
            rng = streams.noise(key, 0)
            drawn = law.release_by_loop(np.zeros(count), rng)
            # an even number of bins has the bounds on edges if the half width is a multiple of the bound
            edges = np.linspace(-half, half, 2 * int(settings.bins) + 1)
            frequency = np.histogram(drawn.released, edges)[0] / (count * np.diff(edges))
            expected = np.diff(law.cdf(edges)) / np.diff(edges)
            for x, value, mean in zip((edges[:-1] + edges[1:]) / 2, frequency, expected, strict=True):
                yield {**base, "topic": "histogram", "x": x, "value": value, "law": mean}
            for x in self._points(law, half):
                density = float(np.exp(law.log_density(x)))
                yield {**base, "topic": "density", "x": x, "value": density, "law": density}
            inside = float((np.abs(drawn.released) <= law.upper).mean())
            for quantity, value, truth in (
                ("acceptance", inside, law.acceptance), ("sd", float(drawn.released.std()), law.sd),
                ("draws", float(drawn.draws.mean()), law.normaliser),
            ):  # fmt: skip
                yield {**base, "topic": "summary", "quantity": quantity, "x": 0.0, "value": value, "law": truth}

    def _points(self, law: Recycled, half: float) -> np.ndarray:
        """Places on both sides of each jump, so that it is drawn upright."""
        near = np.array([law.lower, law.upper])
        return np.sort(np.concatenate([np.linspace(-half, half, 241), np.nextafter(near, -np.inf),
                                       np.nextafter(near, np.inf)]))  # fmt: skip
