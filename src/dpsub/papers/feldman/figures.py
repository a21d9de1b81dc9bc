"""Epsilon of k of t steps over that of Poisson samples."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from dpsub.reproduce.artefact import Artefact, Records
from dpsub.reproduce.figures import Panel, curves, draw_panels, level

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STEPS = 1024
LOOKS = {
    "epochs": {"label": "k epochs of 1 of t/k steps", "color": "#0072B2", "marker": "o"},
    "allocation": {"label": "k of t steps", "color": "#D55E00", "marker": "s"},
}


class SeveralFigure(Artefact):
    """Both epsilons by k, over those of Poisson samples."""

    title = "k of t steps and k epochs of 1 of t/k steps, over Poisson samples"
    name, kind, experiments = "figure_several", "figure", ("feldman_bounds",)
    caption = (
        "ε at δ = 10⁻⁶ over that of Poisson samples at rate k/t, for t = 1024 and noise multiplier "
        "0.6, against k: of k of t steps, and of k epochs of 1 of t/k steps, by which both "
        "packages bound them. Bands run from the least to the largest ratio that an attack and a "
        "proof allow. Both are below 1, the level of Poisson samples."
    )

    def draw(self, records: Records) -> tuple[Figure, pd.DataFrame]:
        frame = self.needed(records, "feldman_bounds")
        frame = frame[frame["t"] == STEPS]
        parts = [
            pd.DataFrame(
                {
                    "k": frame["k"],
                    "of": name,
                    "least": frame[f"{name}_lower"] / frame["poisson_upper"],
                    "most": frame[f"{name}_upper"] / frame["poisson_lower"],
                }
            )
            for name in LOOKS
        ]
        layers = [
            level(1.0, color="#666666", linestyle=":", label="Poisson samples"),
            curves(
                pd.concat(parts, ignore_index=True),
                "k",
                "most",
                by="of",
                styles=LOOKS,
                band=("least", "most"),
            ),
        ]
        figure = draw_panels(
            [Panel("", layers, {"ylim": (0.8, 1.05)})],
            width=5.0,
            xscale="log",
            xlabel="k",
            ylabel="ε over that of Poisson samples",
            labels=self.labels(records),
        )
        return figure, frame.drop(columns=["data", "replicate"])
