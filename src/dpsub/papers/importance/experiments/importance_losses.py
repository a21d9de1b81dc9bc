"""Losses record by record, by sampler and named group, and one sampled set of each sampler (Fay et al., Figure 1)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar

import numpy as np
import pandas as pd
from pydantic import Field

from dpsub.data.point_sets import PointSet
from dpsub.importance.losses import loss_when_removed
from dpsub.importance.samplers import PoissonImportance
from dpsub.papers.importance.experiments.importance_cells import MODES, SAMPLERS, Cell, noise_of
from dpsub.papers.importance.experiments.importance_sets import OnPointSets, each
from dpsub.papers.importance.settings import FirstSizes, Lloyd, OnSets, PointSetName, check_size
from dpsub.reproduce.experiment import Run
from dpsub.reproduce.settings import ExperimentSettings, Positive, SampleSize
from dpsub.streams import Streams

QUANTILES = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)
NEAR = 0.1  # of the largest loss


class ImportanceLosses(OnPointSets):
    """Topics: "histogram", shares of records by loss; "group", quantiles by group; "sample", the rows of one sample.

    Losses are those proved for each record at the noise of its cell (target and size of the settings); `full` has no
    sampling. Samples are drawn on the data set `example` and shown in its first two principal components.
    """

    name: ClassVar[str] = "importance_losses"
    columns: ClassVar[dict[str, str]] = {
        "replicate": "int64", "topic": "str", "dataset": "str", "data_label": "str", "group": "str", "sampler": "str",
        "m": "float64", "epsilon": "float64", "place": "float64", "value": "float64", "second": "float64",
        "weight": "float64", "loss": "float64",
    }  # fmt: skip
    variants: ClassVar[tuple[str, ...]] = ("stated", "consistent")

    class Settings(ExperimentSettings, OnSets, Lloyd, FirstSizes):
        epsilon: Positive = Field(3, description="Target, in nats.")
        bins: Annotated[int, Field(ge=2, le=1_000)] = Field(40, description="Bins of the histograms.")
        example: PointSetName = Field("song", description="Data set of the sampled set.")
        example_m: SampleSize = Field(50000, description="Its expected size.")
        example_epsilon: Positive = Field(3, description="Its target, in nats.")

        def check(self) -> None:
            super().check()
            check_size(self.example, self.example_m)

    def records(self, settings: Settings, run: Run) -> pd.DataFrame:
        rows: list[dict[str, Any]] = []
        for points in each(settings, run.data):
            if points.name in settings.sizes:
                rows += self._losses(points, settings, run.variant)
            if points.name == settings.example:
                rows += self._sample(points, settings, run.variant, run.streams)
        return self.frame(pd.DataFrame(rows).assign(replicate=0))

    def _losses(self, points: PointSet, settings: Settings, variant: str) -> Iterator[dict[str, Any]]:
        groups = np.full(len(points.points), "all") if points.groups is None else points.groups
        epsilon = float(settings.epsilon)
        edges = np.linspace(0, epsilon, int(settings.bins) + 1)
        for sampler in (*SAMPLERS, "full"):
            cell = Cell(sampler, 0.0 if sampler == "full" else float(settings.sizes[points.name]), epsilon)
            noise = noise_of(cell, points, settings, variant)
            if not noise.feasible:
                continue
            norms = np.minimum(points.norms, noise.facts.radius)
            rates = noise.rates(norms)
            losses = loss_when_removed(noise.slopes(norms) / rates, rates)
            base = {"dataset": points.name, "data_label": points.label, "sampler": sampler, "m": noise.m,
                    "epsilon": epsilon, "second": np.nan, "weight": np.nan, "loss": np.nan}  # fmt: skip
            for group in np.unique(groups).tolist():
                chosen = losses[groups == group]
                shares = np.histogram(np.clip(chosen, 0, epsilon * (1 - 1e-12)), edges)[0] / chosen.size
                for place, share in zip(((edges[:-1] + edges[1:]) / 2).tolist(), shares.tolist(), strict=True):
                    yield {**base, "topic": "histogram", "group": group, "place": place, "value": share}
                for place, value in zip(QUANTILES, np.quantile(chosen, QUANTILES).tolist(), strict=True):
                    yield {**base, "topic": "group", "group": group, "place": place, "value": value,
                           "weight": float(np.mean(rates[groups == group])),
                           "loss": float(np.mean(chosen > (1 - NEAR) * losses.max()))}  # fmt: skip

    def _sample(
        self, points: PointSet, settings: Settings, variant: str, streams: Streams
    ) -> Iterator[dict[str, Any]]:
        epsilon = float(settings.example_epsilon)
        rows = points.points
        _, directions = np.linalg.eigh(np.asarray(rows.T @ rows, dtype=float))
        # signs are free: make the largest entry of each direction positive
        axes = directions[:, :-3:-1]
        axes = axes * np.sign(axes[np.abs(axes).argmax(axis=0), range(2)])
        uniforms = streams.sample({"dataset": points.name}, 0).random(
            len(rows)
        )
        for sampler in SAMPLERS:
            noise = noise_of(Cell(sampler, float(settings.example_m), epsilon), points, settings, variant)
            if not noise.feasible:
                continue
            drawn = PoissonImportance(noise.rates(np.minimum(points.norms, noise.facts.radius))).select(uniforms)
            places = rows[drawn.indices].astype(float) @ axes
            unsampled = noise.slopes(points.norms[drawn.indices])
            for (first, second), weight, loss in zip(places.tolist(), drawn.weights.tolist(), unsampled.tolist(),
                                                     strict=True):  # fmt: skip
                yield {"topic": "sample", "dataset": points.name, "data_label": points.label, "group": MODES[variant],
                       "sampler": sampler, "m": noise.m, "epsilon": epsilon, "place": first, "value": first,
                       "second": second, "weight": weight, "loss": loss}  # fmt: skip
