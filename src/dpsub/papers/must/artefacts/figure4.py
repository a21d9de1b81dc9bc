"""Figure 4: aligned privacy profiles."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from dpsub.papers.must.artefacts.labels import in_order, without_twins
from dpsub.reproduce.artefact import Artefact, Records, values_frame
from dpsub.reproduce.figures import axis, finish, new, panel_letter, sampler_style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LIMITS = {0.25: 0.1, 1.0: 0.3}  # printed range of delta' - delta
MECHANISMS = {"laplace": ("Laplace", "Δ₁"), "gaussian": ("Gaussian", "Δ₂")}


class Figure4(Artefact):
    """delta' - delta against epsilon' / epsilon along the base epsilon, one panel a mechanism and ratio."""

    name = "figure4"
    kind = "figure"
    caption = (
        "Aligned privacy profiles: delta' - delta against epsilon' / epsilon as the base epsilon grows, for the "
        "Laplace and Gaussian mechanisms at two ratios of sensitivity to scale; below the line amplification is "
        "strong, above it weak. Poisson coincides with WOR, MUST.WO with WR."
    )
    experiments = ("amplification_grid",)
    keys = ("ratio", "mechanism", "sampler")

    def values(self, records: Records) -> pd.DataFrame:
        """Return, for each curve, whether it stays in the strong quadrant or on its border, and its highest point."""
        rows = []
        frame = in_order(self.needed(records, "amplification_grid"))
        for (variant, mechanism, ratio, sampler), cell in frame.groupby(
            ["variant", "mechanism", "ratio", "sampler"], sort=False
        ):
            row = {"ratio": ratio, "mechanism": mechanism, "sampler": sampler}
            above = cell["delta_amplified"] - cell["delta"]
            rows += [
                {**row, "column": "never_weak", "variant": variant, "value": float((above <= 0).all())},
                {**row, "column": "largest_difference", "variant": variant, "value": float(above.max())},
            ]
        return values_frame(rows)

    def draw(self, records: Records) -> tuple[Figure, pd.DataFrame]:
        frame = without_twins(self.needed(records, "amplification_grid", variants=("stated",)))
        frame = frame.assign(
            epsilon_ratio=frame["epsilon_amplified"] / frame["epsilon"],
            delta_difference=frame["delta_amplified"] - frame["delta"],
        )
        panels = [(mechanism, ratio) for mechanism in MECHANISMS for ratio in sorted(frame["ratio"].unique())]
        columns = max(1, len(panels) // 2)
        figure, grid = new(2, columns, width=6.6, height=4.9)
        for letter, axes, (mechanism, ratio) in zip("abcdefgh", grid.flat, panels, strict=False):
            here = frame[(frame["mechanism"] == mechanism) & (frame["ratio"] == ratio)]
            axes.axhline(0, color="black", linewidth=0.6)
            for sampler in frame["sampler"].unique():
                curve = here[here["sampler"] == sampler].sort_values("epsilon")
                axes.plot(curve["epsilon_ratio"], curve["delta_difference"], markevery=0.09,
                          **sampler_style(sampler))
            limit = LIMITS.get(ratio)
            axis(axes, x="ε′ / ε", y="δ′ − δ", xlim=(0.2, 0.9), ylim=None if limit is None else (-limit, limit))
            name, sensitivity = MECHANISMS[mechanism]
            panel_letter(axes, f"({letter}) {name}, {sensitivity}/σ = {ratio:g}")
        grid[0, 0].legend(loc="upper right")
        kept = ["mechanism", "ratio", "sampler", "epsilon", "epsilon_ratio", "delta_difference", "category"]
        return finish(figure, self.labels(records)), frame[kept].reset_index(drop=True)
