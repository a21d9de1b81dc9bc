"""Figure 4: aligned privacy profiles."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from dpsub.papers.must.artefacts.labels import in_order, without_twins
from dpsub.reproduce.artefact import Artefact, Records, values_frame
from dpsub.reproduce.figures import Panel, curves, draw_panels, level, where

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
        panels = [
            Panel(f"{name}, {sensitivity}/σ = {ratio:g}",
                  [level(0), curves(where(frame, mechanism=mechanism, ratio=ratio), "epsilon_ratio", "delta_difference",
                                    markevery=0.09)],
                  {"ylim": (-LIMITS[ratio], LIMITS[ratio])} if ratio in LIMITS else {})
            for mechanism, (name, sensitivity) in MECHANISMS.items()
            for ratio in sorted(frame["ratio"].unique())
        ]  # fmt: skip
        figure = draw_panels(panels, columns=max(1, len(panels) // 2), width=6.6, labels=self.labels(records),
                             xlabel="ε′ / ε", ylabel="δ′ − δ", xlim=(0.2, 0.9))  # fmt: skip
        kept = ["mechanism", "ratio", "sampler", "epsilon", "epsilon_ratio", "delta_difference", "category"]
        return figure, frame[kept].reset_index(drop=True)
