"""Figure S3: epsilon' against epsilon, and delta' against delta."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from dpsub.papers.must.artefacts.labels import in_order, without_twins
from dpsub.reproduce.artefact import Artefact, Records, values_frame
from dpsub.reproduce.figures import Panel, curves, draw_panels, line, where

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# panel -> (mechanism, ratio, printed range of both axes)
DELTA_PANELS = (
    ("laplace", 1.0, 0.4),
    ("gaussian", 1.0, 0.4),
    ("laplace", 0.25, 0.11),
    ("gaussian", 0.25, 0.09),
)
NAMES = {"laplace": "Laplace", "gaussian": "Gaussian"}


class FigureS3(Artefact):
    """One panel for epsilon, which no mechanism enters, and four for delta."""

    name = "figureS3"
    kind = "figure"
    caption = (
        "Amplified against base parameters: (a) epsilon (nats), for any mechanism, (b) to (e) delta for the Laplace "
        "and Gaussian mechanisms at two ratios of sensitivity to scale; the black line is no amplification. Poisson "
        "coincides with WOR, MUST.WO with WR."
    )
    experiments = ("amplification_grid",)
    keys = ("mechanism", "ratio", "sampler")

    def values(self, records: Records) -> pd.DataFrame:
        """Return whether epsilon' stays below epsilon, and the share of the curve with delta' below delta."""
        rows = []
        grid = in_order(self.needed(records, "amplification_grid"))
        for (variant, mechanism, ratio, sampler), cell in grid.groupby(
            ["variant", "mechanism", "ratio", "sampler"], sort=False
        ):
            row = {"mechanism": mechanism, "ratio": ratio, "sampler": sampler}
            smaller = (
                ("epsilon_smaller", float((cell["epsilon_amplified"] < cell["epsilon"]).all())),
                ("share_delta_smaller", float((cell["delta_amplified"] < cell["delta"]).mean())),
            )
            rows += [{**row, "column": name, "variant": variant, "value": value} for name, value in smaller]
        return values_frame(rows)

    def draw(self, records: Records) -> tuple[Figure, pd.DataFrame]:
        frame = without_twins(self.needed(records, "amplification_grid", variants=("stated",)))
        first = frame.iloc[0]
        any_mechanism = where(frame, mechanism=first["mechanism"], ratio=first["ratio"])
        panels: list[Panel | None] = [
            _panel("any mechanism", any_mechanism, "epsilon", "ε", float(frame["epsilon"].max())),
            *(_panel(f"{NAMES[mechanism]}, Δ/σ = {ratio:g}", where(frame, mechanism=mechanism, ratio=ratio), "delta",
                     "δ", top) for mechanism, ratio, top in DELTA_PANELS),
        ]  # fmt: skip
        figure = draw_panels([*panels[:3], None, *panels[3:]], labels=self.labels(records))
        kept = ["mechanism", "ratio", "sampler", "epsilon", "delta", "epsilon_amplified", "delta_amplified"]
        return figure, frame[kept].reset_index(drop=True)


def _panel(text: str, frame: pd.DataFrame, name: str, sign: str, top: float) -> Panel:
    layers = [
        line([0, top], [0, top], color="black", linewidth=0.8, label="no amplification"),
        curves(frame, name, f"{name}_amplified", markevery=0.1),
    ]
    return Panel(text, layers, {"xlabel": sign, "ylabel": f"{sign}′", "xlim": (0, top), "ylim": (0, top)})
