"""Epsilon of both samplers against the noise."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from dpsub.papers.dong.experiments import BALANCED, POISSON
from dpsub.reproduce.artefact import Artefact, Records
from dpsub.reproduce.figures import Panel, curves, draw_panels, sampler_style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LOOKS = {
    POISSON: {**sampler_style("poisson"), "label": "Poisson samples", "marker": ""},
    BALANCED: {"label": "5 of 100 steps", "color": "#D55E00", "marker": ""},
}


class ExtremesFigure(Artefact):
    """epsilon by the noise, and both samplers' ratio."""

    title = "ε of 5 of 100 steps and of Poisson samples, by the noise"
    name, kind, experiments = "figure_extremes", "figure", ("dong_extremes",)
    caption = (
        "Left: ε at δ = 10⁻⁵ after 100 steps, where a record is replaced by 0: for a record in 5 "
        "random steps, and for Poisson samples at rate 0.05. Bands run from an attack to a "
        "proof; most are narrower than the lines. Right: the first over the second, from the least "
        "to the largest ratio that our bounds allow. The saving is large where the noise is small, "
        "and falls towards none as the noise rises."
    )

    def draw(self, records: Records) -> tuple[Figure, pd.DataFrame]:
        frame = self.needed(records, "dong_extremes")
        wide = frame.pivot(
            index="noise", columns="sampler", values=["epsilon_lower", "epsilon_upper"]
        )
        ratio = pd.DataFrame(
            {
                "noise": wide.index,
                "least": wide["epsilon_lower", BALANCED] / wide["epsilon_upper", POISSON],
                "most": wide["epsilon_upper", BALANCED] / wide["epsilon_lower", POISSON],
                "of": "ratio",
            }
        ).reset_index(drop=True)
        both = curves(
            frame,
            "noise",
            "epsilon_upper",
            by="sampler",
            styles=LOOKS,
            band=("epsilon_lower", "epsilon_upper"),
        )
        styles = {"ratio": {"label": "_", "color": "#D55E00", "marker": ""}}
        one = curves(ratio, "noise", "most", by="of", styles=styles, band=("least", "most"))
        panels = [
            Panel("", [both], {"ylabel": "ε at δ = 10⁻⁵", "yscale": "log"}),
            Panel("", [one], {"ylabel": "ε over that of Poisson samples", "ylim": (0.6, 1.02)}),
        ]
        figure = draw_panels(
            panels,
            columns=2,
            width=7.0,
            xscale="log",
            xlabel="noise multiplier",
            labels=self.labels(records),
        )
        return figure, frame.drop(columns=["data", "replicate"])
