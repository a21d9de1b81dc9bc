"""Figure S2: bounds of delta after k compositions."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dpsub.artefacts.base import Artefact, Records, values_frame
from dpsub.artefacts.must.labels import in_order
from dpsub.figures import axis, finish, new, panel_letter, scheme_label, scheme_style
from dpsub.published import row_key

FLOOR = 1e-12  # round-off of the Fourier transform; what is below says nothing
# method -> (label, dashes, how far its points stand beside k, as a share of the spacing)
METHODS = {
    "as_done": ("as done: with the aliasing term", "--", -0.06),
    "printed": ("as printed: Algorithm 1", ":", 0.06),
    "cell_mass": ("exact cell masses", "-", 0.0),
}


class FigureS2(Artefact):
    """Lower and upper bound of delta at epsilon = 1 against the number of compositions, one panel a sampler."""

    name = "figureS2"
    kind = "figure"
    caption = (
        "Bounds of delta at epsilon = 1 after k compositions of the subsampled Gaussian mechanism (scale 4) by the "
        "Fourier accountant: each bar spans lower to upper bound of the paper's pair, by three ways to discretise the "
        "same loss; a lower bound under 1e-12, the round-off floor, is drawn to the foot of the axis."
    )
    experiments = ("composition",)

    def values(self, records: Records) -> pd.DataFrame:
        """Return both bounds, keyed by sampler, method and number of compositions."""
        rows = []
        for record in self._curves(records).to_dict("records"):
            row = row_key(scheme=record["scheme"], method=record["method"], n_compositions=record["n_compositions"])
            rows += [
                {"row": row, "column": column, "variant": record["variant"], "value": record[column]}
                for column in ("delta_lower", "delta_upper")
            ]
        return values_frame(rows)

    def draw(self, records: Records) -> tuple[Figure, pd.DataFrame]:
        frame = self._curves(records)
        schemes = list(in_order(frame, by=("scheme",))["scheme"].unique())
        figure, grid = new(1, len(schemes), width=0.8 + 3.0 * len(schemes), height=3.2, sharey=True)
        for letter, axes, scheme in zip("abcd", grid[0], schemes, strict=False):
            _bounds(axes, frame[frame["scheme"] == scheme], str(scheme))
            axis(axes, x="number of compositions k", y="δ(1)")
            axes.label_outer()
            panel_letter(axes, f"({letter}) {scheme_label(str(scheme))}")
        lowest = frame.loc[frame["delta_lower"] > FLOOR, "delta_lower"]
        grid[0, 0].set_yscale("log")
        grid[0, 0].set_ylim(bottom=min(lowest.min() if len(lowest) else 1.0, frame["delta_upper"].min()) / 3)
        grid[0, 0].legend(loc="upper left")
        kept = ["variant", "scheme", "method", "n_compositions", "delta_lower", "delta", "delta_upper"]
        return finish(figure, self.labels(records)), frame[kept].reset_index(drop=True)

    def _curves(self, records: Records) -> pd.DataFrame:
        frame = self.needed(records, "composition")
        return in_order(frame[frame["table"] == "figure_s2"], by=("variant", "scheme"))


def _bounds(axes: Axes, frame: pd.DataFrame, scheme: str) -> None:
    """Draw each method's bars from lower to upper bound, joined at the upper ends."""
    steps = frame["n_compositions"].drop_duplicates().sort_values().diff().dropna()
    spacing = float(steps.min()) if len(steps) else 100.0
    colour = scheme_style(scheme)["color"]
    for method, (label, dashes, offset) in METHODS.items():
        part = frame[frame["method"] == method].sort_values("n_compositions")
        if part.empty:
            continue
        k = part["n_compositions"] + offset * spacing
        shade = colour if method == "cell_mass" else "#555555" if method == "as_done" else "black"
        foot = part["delta_lower"].where(part["delta_lower"] > FLOOR, FLOOR / 1e3)
        axes.vlines(k, foot, part["delta_upper"], colors=shade, linewidth=1.4)
        axes.plot(k, part["delta_upper"], linestyle=dashes, color=shade, marker="_", markersize=7, label=label)
        axes.plot(k, foot, linestyle="none", color=shade, marker="_", markersize=7)
