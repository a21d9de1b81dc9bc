"""epsilon against the number of steps, all samplers at equal noise: no figure of the paper."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from dpsub.papers.must.artefacts.bands import band_figure, short
from dpsub.papers.must.artefacts.labels import in_order
from dpsub.papers.must.artefacts.rows import proved_rows
from dpsub.reproduce.artefact import Artefact, Records, values_frame
from dpsub.reproduce.figures import axis, finish

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
        figure, axes = band_figure(frame, x="n_compositions", lower="attack", upper="proved", pair="pair_upper")
        axes.set_xscale("log")
        axes.set_yscale("log")
        delta = float(frame["given"].iloc[0])
        axis(axes, x="number of steps k", y=f"ε at δ = {short(delta)}")
        kept = ["sampler", "adjacency", "noise_multiplier", "n_compositions", "pair_lower", "pair_upper", "attack",
                "proved"]
        return finish(figure, self.labels(records)), frame[kept].reset_index(drop=True)

    def _records(self, records: Records) -> pd.DataFrame:
        return in_order(self.needed(records, "proved_steps"), by=("sampler", "adjacency", "n_compositions"))
