"""How far costs on samples lie from costs on all rows: Theorem 15's distribution, measured (Fay et al., Section 4)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd

from dpsub import checks
from dpsub.importance import audit
from dpsub.papers.importance.experiments.importance_sets import OnPointSets, each
from dpsub.streams import stream


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

    def check(self, settings: Mapping[str, Any]) -> None:
        self.check_sets(settings)
        k = checks.integer("clusters", settings["clusters"], at_least=1)
        for m in settings["sizes"]:
            checks.integer("m", m, at_least=2 * k)
        checks.integer("centre_sets", settings["centre_sets"], at_least=1)

    def run(
        self, *, settings: Mapping[str, Any], variant: str, replicates: range, root: int, data: Mapping[str, Path]
    ) -> pd.DataFrame:
        rows: list[dict[str, Any]] = []
        k, sets = int(settings["clusters"]), int(settings["centre_sets"])
        for points in each(settings, data):
            for kind in audit.CORESET_KINDS:
                for m in settings["sizes"]:
                    for replicate in replicates:
                        key = {"dataset": points.name, "kind": kind, "m": m}
                        rng = stream(root, experiment=self.name, cell=key, role="sample", replicate=replicate)
                        sample = audit.coreset_sample(points.points, int(m), kind, rng)
                        random, fitted = audit.worst_coreset_deviation(points.points, sample, k, rng, sets=sets)
                        rows.append({
                            "replicate": replicate, "dataset": points.name, "data_label": points.label, "kind": kind,
                            "m": int(m), "size": sample.size, "random": random, "fitted": fitted,
                        })  # fmt: skip
        return self.frame(rows)
