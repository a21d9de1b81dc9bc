"""Figure S3: epsilon' against epsilon, and delta' against delta."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from dpsub.papers.must.artefacts.labels import in_order, without_twins
from dpsub.reproduce.artefact import Artefact, Records, values_frame
from dpsub.reproduce.figures import axis, finish, new, panel_letter, sampler_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
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
        figure, grid = new(2, 3, width=7.0, height=4.7)
        first = frame.iloc[0]
        any_mechanism = frame[(frame["mechanism"] == first["mechanism"]) & (frame["ratio"] == first["ratio"])]
        _curves(grid[0, 0], any_mechanism, "epsilon", float(frame["epsilon"].max()))
        axis(grid[0, 0], x="ε", y="ε′")
        panel_letter(grid[0, 0], "(a) any mechanism")
        spots = [grid[0, 1], grid[0, 2], grid[1, 1], grid[1, 2]]
        for letter, axes, (mechanism, ratio, top) in zip("bcde", spots, DELTA_PANELS, strict=True):
            _curves(axes, frame[(frame["mechanism"] == mechanism) & (frame["ratio"] == ratio)], "delta", top)
            axis(axes, x="δ", y="δ′")
            panel_letter(axes, f"({letter}) {NAMES[mechanism]}, Δ/σ = {ratio:g}")
        handles, labels = grid[0, 0].get_legend_handles_labels()
        grid[1, 0].axis("off")
        grid[1, 0].legend(handles, labels, loc="center", fontsize=8)
        kept = ["mechanism", "ratio", "sampler", "epsilon", "delta", "epsilon_amplified", "delta_amplified"]
        return finish(figure, self.labels(records)), frame[kept].reset_index(drop=True)


def _curves(axes: Axes, frame: pd.DataFrame, name: str, top: float) -> None:
    axes.plot([0, top], [0, top], color="black", linewidth=0.8, label="no amplification")
    for position, sampler in enumerate(frame["sampler"].unique()):
        curve = frame[frame["sampler"] == sampler].sort_values(name)
        axes.plot(curve[name], curve[f"{name}_amplified"], markevery=(0.03 * position, 0.14),
                  **sampler_style(sampler))
    axes.set(xlim=(0, top), ylim=(0, top))
