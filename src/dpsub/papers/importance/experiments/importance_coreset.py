"""How far costs on samples lie from costs on all rows: Theorem 15's distribution, measured (Fay et al., Section 4)."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

import pandas as pd
from pydantic import Field

from dpsub import checks
from dpsub.importance import audit
from dpsub.papers.importance.experiments.importance_sets import OnPointSets, each
from dpsub.papers.importance.settings import Clusters, PointSets
from dpsub.reproduce.experiment import Run
from dpsub.reproduce.settings import ExperimentSettings, Replicates, Sizes


class ImportanceCoreset(OnPointSets):
    """One record a repeat: the largest relative deviation over random centres, and over centres fitted to the sample.

    Both are below the supremum over all centres, which the theorem bounds with a constant that it does not name. Kinds:
    independent draws, of which the theorem speaks, and the Poisson sampler, of which it does not.
    """

    name: ClassVar[str] = "importance_coreset"
    columns: ClassVar[dict[str, str]] = {
        "replicate": "int64", "dataset": "str", "data_label": "str", "kind": "str", "m": "int64", "size": "int64",
        "random": "float64", "fitted": "float64",
    }  # fmt: skip
    variants: ClassVar[tuple[str, ...]] = ("stated",)

    class Settings(ExperimentSettings):
        replicates: Replicates = 5
        sets: PointSets = PointSets(twins=("song", "miniboone"))
        sizes: Sizes = Field((200, 400, 800), description="Sample sizes.")
        clusters: Clusters = 25
        centre_sets: Annotated[int, Field(ge=1, le=1_000)] = Field(5, description="Sets of centres that are tried.")

        def check(self) -> None:
            for m in self.sizes:
                checks.integer("m", m, at_least=2 * self.clusters)

    def records(self, settings: Settings, run: Run) -> pd.DataFrame:
        rows: list[dict[str, Any]] = []
        k, sets = int(settings.clusters), int(settings.centre_sets)
        for points in each(settings, run.data):
            for kind in audit.CORESET_KINDS:
                for m in settings.sizes:
                    for replicate in run.replicates:
                        key = {"dataset": points.name, "kind": kind, "m": m}
                        rng = run.streams.sample(key, replicate)
                        sample = audit.coreset_sample(points.points, int(m), kind, rng)
                        random, fitted = audit.worst_coreset_deviation(points.points, sample, k, rng, sets=sets)
                        rows.append({
                            "replicate": replicate, "dataset": points.name, "data_label": points.label, "kind": kind,
                            "m": int(m), "size": sample.size, "random": random, "fitted": fitted,
                        })  # fmt: skip
        return self.frame(rows)
