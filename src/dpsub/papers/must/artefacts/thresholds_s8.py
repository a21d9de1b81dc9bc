"""Thresholds and crossovers of Section S8: where delta' falls below delta, and where two delta' curves meet."""

from __future__ import annotations

import pandas as pd

from dpsub.papers.must.artefacts.labels import MULTISETS, in_order
from dpsub.reproduce.artefact import Artefact, Quote, Records, values_frame
from dpsub.reproduce.labels import sampler_label
from dpsub.reproduce.layout import Layout


class ThresholdsS8(Artefact):
    """Exact roots next to the last points of the grid that the printed thresholds come from."""

    name = "thresholds_s8"
    kind = "table"
    caption = (
        "Thresholds: the delta above which delta' < delta; crossovers: the (delta, delta') at which two samplers have "
        "the same delta', for all pairs. as stated: exact roots; as done: the last points of a grid of epsilon."
    )
    experiments = ("amplification_crossings",)
    keys = ("mechanism", "kind", "sampler", "other")
    layout = Layout(panels=("kind", "mechanism"), stub=("sampler", "other"), heads=("column",))

    def quotes(self) -> list[Quote]:
        return [
            Quote(
                {"mechanism": mechanism, "kind": "threshold", "sampler": sampler, "column": "delta"}, "claims",
                {"claim": f"s8_threshold_{mechanism}_{sampler_label(sampler)}", "column": "delta_threshold"},
            )
            for mechanism in ("laplace", "gaussian")
            for sampler in MULTISETS
        ]  # fmt: skip

    def values(self, records: Records) -> pd.DataFrame:
        frame = in_order(self.needed(records, "amplification_crossings"), by=("variant", "sampler"))
        # WOR amplifies strongly wherever delta > 0: the last such point of a grid is no threshold.
        frame = frame[(frame["kind"] != "threshold") | (frame["sampler"] != "wor")]
        rows = []
        for kind, columns in (
            ("threshold", ("epsilon", "delta")),
            ("crossover", ("epsilon", "delta", "delta_amplified")),
        ):
            for record in frame[frame["kind"] == kind].to_dict("records"):
                other = {"other": record["other"]} if record["other"] else {}
                row = {"mechanism": record["mechanism"], "kind": kind, "sampler": record["sampler"], **other}
                rows += [
                    {**row, "column": name, "variant": record["variant"], "value": record[name]}
                    for name in columns
                ]
        return values_frame(rows)
