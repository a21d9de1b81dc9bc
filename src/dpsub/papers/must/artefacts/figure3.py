"""Figure 3: the four kinds of privacy amplification as quadrants."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from dpsub.reproduce.artefact import Artefact, Records, values_frame
from dpsub.reproduce.figures import axis, new

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# x and y of the middle of each quadrant: (epsilon' / epsilon, delta' - delta)
QUADRANTS = (
    ("type-I weak", "ε′ < ε,  δ′ ≥ δ", 0.5, 0.5, "#FBE5D5"),
    ("dilution", "ε′ ≥ ε,  δ′ ≥ δ", 1.5, 0.5, "#F6D5D5"),
    ("strong", "ε′ < ε,  δ′ < δ", 0.5, -0.5, "#DDEEDD"),
    ("type-II weak", "ε′ ≥ ε,  δ′ < δ", 1.5, -0.5, "#FBF3D0"),
)


class Figure3(Artefact):
    """Definition 5 as the caption of the figure means it."""

    name = "figure3"
    kind = "figure"
    caption = (
        "What sampling can do to the privacy of a base mechanism: strong amplification lowers both parameters, weak "
        "amplification of type I lowers epsilon only, of type II delta only, dilution raises both."
    )

    def values(self, records: Records) -> pd.DataFrame:
        return values_frame([])

    def draw(self, records: Records) -> tuple[Figure, pd.DataFrame]:
        figure, grid = new(1, 1, width=3.6, height=3.0)
        axes = grid[0, 0]
        for name, condition, x, y, fill in QUADRANTS:
            axes.fill_between([x - 0.5, x + 0.5], y - 0.5, y + 0.5, color=fill, linewidth=0)
            axes.text(x, y + 0.07, name, ha="center", va="center", fontsize=9)
            axes.text(x, y - 0.13, condition, ha="center", va="center", fontsize=7.5)
        axes.axvline(1, color="black", linewidth=0.8)
        axes.axhline(0, color="black", linewidth=0.8)
        axes.grid(False)
        axis(axes, x="ε′ / ε", y="δ′ − δ", xlim=(0, 2), ylim=(-1, 1))
        axes.set_xticks([1])
        axes.set_yticks([0])
        numbers = pd.DataFrame(
            [(name, condition, x, y) for name, condition, x, y, _ in QUADRANTS],
            columns=["category", "condition", "epsilon_ratio", "delta_difference"],
        )
        return figure, numbers
