"""Figure S2: bounds of delta after k compositions, next to what is refuted and proved."""

from __future__ import annotations

import string
from typing import TYPE_CHECKING

import pandas as pd

from dpsub.papers.must.artefacts.bands import draw_band
from dpsub.papers.must.artefacts.labels import in_order
from dpsub.reproduce.artefact import Artefact, Records, values_frame
from dpsub.reproduce.figures import axis, finish, new, panel_letter, sampler_style
from dpsub.reproduce.labels import sampler_label

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FLOOR = 1e-12  # round-off of the Fourier transform; what is below says nothing
PRINTED = {
    "as_done": ("as done: with the aliasing term", "--", "#777777", -0.06),
    "printed": ("as printed: Algorithm 1", ":", "black", 0.06),
}
"""Method -> label, dashes, colour, and how far its points stand to the side of k, as a share of the spacing."""
BOTH_SIDES = {"paper_pair": ("pair_lower", "pair_upper"), "attack_and_proof": ("attack", "proved")}
"""Method -> columns of its ends in the proved records."""


class FigureS2(Artefact):
    """Lower and upper bound of delta at epsilon = 1 against the number of compositions, one panel a sampler."""

    name = "figureS2"
    kind = "figure"
    caption = (
        "delta at epsilon = 1 after k compositions of the subsampled Gaussian mechanism (noise multiplier 4). Bars: "
        "bounds of the paper's pair by the Fourier accountant, as printed and as done; a lower bound under 1e-12, the "
        "round-off floor, is drawn to the foot of the axis. Black line: the paper's pair itself, bracketed to within "
        "the line; it is no guarantee. Band: from what explicit data sets attain (thin line, attack) to what is proved "
        "for clipped sums when one record is substituted (line with markers)."
    )
    experiments = ("composition", "proved_composition")
    keys = ("sampler", "method", "n_compositions")

    def values(self, records: Records) -> pd.DataFrame:
        """Return both bounds, keyed by sampler, method and number of compositions."""
        rows = []
        for record in self._numbers(records).to_dict("records"):
            row = {"sampler": record["sampler"], "method": record["method"], "n_compositions": record["n_compositions"]}
            rows += [
                {**row, "column": column, "variant": record["variant"], "value": record[column]}
                for column in ("delta_lower", "delta_upper")
            ]
        return values_frame(rows)

    def draw(self, records: Records) -> tuple[Figure, pd.DataFrame]:
        frame = self._numbers(records)
        frame = frame[frame["method"].isin([*PRINTED, *BOTH_SIDES])].reset_index(drop=True)
        samplers = list(in_order(frame, by=("sampler",))["sampler"].unique())
        figure, grid = new(1, len(samplers), width=1.2 + 2.6 * len(samplers), height=3.4, sharey=True)
        for letter, axes, sampler in zip(string.ascii_lowercase, grid[0], samplers, strict=False):
            _curves(axes, frame[frame["sampler"] == sampler], str(sampler))
            axis(axes, x="number of compositions k", y="δ(1)")
            axes.label_outer()
            panel_letter(axes, f"({letter}) {sampler_label(str(sampler))}")
        lowest = frame.loc[frame["delta_lower"] > FLOOR, "delta_lower"]
        grid[0, 0].set_yscale("log")
        grid[0, 0].set_ylim(bottom=min(lowest.min() if len(lowest) else 1.0, frame["delta_upper"].min()) / 3, top=1)
        for column, axes in enumerate(grid[0]):
            for line in axes.get_lines() if column else ():
                # the legend names each kind of curve once, and the bands of both samplers
                if not str(line.get_label()).startswith(sampler_label(str(samplers[column]))):
                    line.set_label("_")
        figure.legend(loc="outside lower center", ncols=2)
        return finish(figure, self.labels(records)), frame

    def _numbers(self, records: Records) -> pd.DataFrame:
        """Return all bounds as rows of variant, sampler, method, n_compositions, delta_lower, delta_upper."""
        kept = ["variant", "sampler", "method", "n_compositions", "delta_lower", "delta_upper"]
        composed = self.needed(records, "composition")
        frames = [composed[composed["table"] == "figure_s2"][kept]]
        proved = self.needed(records, "proved_composition")
        proved = proved[proved["table"] == "figure_s2"]
        for method, (lower, upper) in BOTH_SIDES.items():
            ends = {"delta_lower": proved[lower], "delta_upper": proved[upper]}
            frames.append(proved.assign(method=method, **ends)[kept])
        return in_order(pd.concat(frames, ignore_index=True), by=("variant", "sampler")).reset_index(drop=True)


def _curves(axes: Axes, frame: pd.DataFrame, sampler: str) -> None:
    """Draw the printed methods as bars, the pair as a line, attack and proof as a band."""
    steps = frame["n_compositions"].drop_duplicates().sort_values().diff().dropna()
    spacing = float(steps.min()) if len(steps) else 100.0
    by_method = {str(name): part.sort_values("n_compositions") for name, part in frame.groupby("method")}
    for method, (label, dashes, shade, offset) in PRINTED.items():
        if method not in by_method:
            continue
        part = by_method[method]
        k = part["n_compositions"] + offset * spacing
        foot = part["delta_lower"].where(part["delta_lower"] > FLOOR, FLOOR / 1e3)
        axes.vlines(k, foot, part["delta_upper"], colors=shade, linewidth=1.2)
        axes.plot(k, part["delta_upper"], linestyle=dashes, color=shade, marker="_", markersize=6, label=label)
        axes.plot(k, foot, linestyle="none", color=shade, marker="_", markersize=6)
    if "paper_pair" in by_method:
        part = by_method["paper_pair"]
        axes.plot(part["n_compositions"], part["delta_upper"], color="black", linewidth=1.0,
                  label="the paper's pair, exact: no guarantee")
    if "attack_and_proof" in by_method:
        part = by_method["attack_and_proof"]
        style = sampler_style(sampler) | {"linestyle": "-", "label": f"{sampler_label(sampler)}: attack to proof"}
        draw_band(axes, part["n_compositions"], part["delta_lower"], part["delta_upper"], style)
