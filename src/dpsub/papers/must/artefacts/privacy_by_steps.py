"""epsilon against the number of steps, all samplers at equal noise: no figure of the paper."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from dpsub.papers.must.artefacts.bands import band_panel, short
from dpsub.papers.must.artefacts.labels import in_order
from dpsub.papers.must.artefacts.rows import proved_rows
from dpsub.reproduce.artefact import Artefact, Records, values_frame
from dpsub.reproduce.figures import draw_panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class PrivacyBySteps(Artefact):
    """Bands of epsilon from attack to proof over the number of steps, and the paper's pair."""

    name = "privacy_by_steps"
    kind = "figure"
    caption = (
        "epsilon at delta = 1e-5 after k steps in the sizes of Figure S2, with the same noise on the sum for every "
        "sampler: each band spans from what explicit data sets attain (thin line, attack) to what is proved for "
        "clipped sums (line with markers). One record is substituted; Poisson is also shown for one record added or "
        "removed. Dotted: the paper's pair, which is no guarantee and hardly tells the samplers apart."
    )
    experiments = ("proved_steps",)
    keys = ("sampler", "adjacency", "n_compositions")

    def values(self, records: Records) -> pd.DataFrame:
        rows = []
        for record in self._records(records).to_dict("records"):
            fields = {name: record[name] for name in ("sampler", "adjacency", "n_compositions")}
            rows += proved_rows(fields, "epsilon", record)
        return values_frame(rows)

    def draw(self, records: Records) -> tuple[Figure, pd.DataFrame]:
        frame = self._records(records)
        panel = band_panel(frame, "n_compositions", "attack", "proved", "pair_upper")
        figure = draw_panels([panel], width=3.5, height=3.0, xscale="log", yscale="log", xlabel="number of steps k",
                             ylabel=f"ε at δ = {short(float(frame['given'].iloc[0]))}",
                             labels=self.labels(records))  # fmt: skip
        kept = ["sampler", "adjacency", "noise_multiplier", "n_compositions", "pair_lower", "pair_upper", "attack",
                "proved"]
        return figure, frame[kept].reset_index(drop=True)

    def _records(self, records: Records) -> pd.DataFrame:
        return in_order(self.needed(records, "proved_steps"), by=("sampler", "adjacency", "n_compositions"))
