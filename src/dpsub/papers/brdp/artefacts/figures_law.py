"""Figure 2: the law of recycled noise. Figure 3: recycling rates."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from dpsub.papers.brdp.artefacts.styles import GAUSSIAN, LAPLACE, OURS, STYLES, remark, scientific
from dpsub.reproduce.artefact import Artefact, Records, values_frame
from dpsub.reproduce.figures import axis, finish, new, panel_letter

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RATES = {"baseline": ("Theorem 2", "#999999", ":"), "algorithm1": ("Algorithm 1", GAUSSIAN, "-"),
         "exact": ("exact", "black", (0, (4, 1.5)))}  # fmt: skip


class Figure2(Artefact):
    """Density and histogram."""

    paper = "brdp"
    name = "figure2"
    kind = "figure"
    caption = (
        "(a) Density of recycled Gaussian noise and of the Gaussian mechanism with the same stated budget. (b) 100,000 "
        "draws of the literal loop, by bins, and the law (lines). The exact delta of the recycled noise at the stated "
        f"epsilon stands in the panel. {OURS}sensitivity 1."
    )
    experiments = ("brdp_noise",)
    keys = ("method", "quantity")

    def values(self, records: Records) -> pd.DataFrame:
        frame = self.needed(records, "brdp_noise")
        rows = []
        for record in frame[frame["topic"] == "summary"].to_dict("records"):
            row = {"method": record["method"], "quantity": record["quantity"]}
            rows += [{**row, "column": name, "variant": "stated", "value": record[name]}
                     for name in ("value", "law")]  # fmt: skip
        return values_frame(rows)

    def draw(self, records: Records) -> tuple[Figure, pd.DataFrame]:
        frame = self.needed(records, "brdp_noise")
        figure, grid = new(1, 2, width=6.8, height=2.8, sharey=True)
        for method in ("gau_dp", "gau_br"):
            style = {**STYLES[method], "marker": "", "linestyle": "-" if method == "gau_br" else (0, (4, 1.5))}
            colour = GAUSSIAN if method == "gau_br" else "#777777"
            density = frame[(frame["topic"] == "density") & (frame["method"] == method)].sort_values("x")
            grid[0, 0].plot(density["x"], density["law"], **{**style, "color": colour})
            bars = frame[(frame["topic"] == "histogram") & (frame["method"] == method)].sort_values("x")
            width = float(np.diff(bars["x"]).min())
            grid[0, 1].bar(bars["x"], bars["value"], width=width, color=colour, alpha=0.35, linewidth=0)
            grid[0, 1].step(bars["x"], bars["law"], where="mid", **{**style, "color": colour, "linewidth": 0.9})
        highest = float(frame.loc[frame["topic"] == "density", "law"].max())
        for axes, letter, y in zip(grid[0], "ab", ("density", "frequency / width"), strict=True):
            reach = 3.2 * float(frame["scale"].max())
            axis(axes, x="noise", y=y, xlim=(-reach, reach), ylim=(0, 1.45 * highest))
            panel_letter(axes, f"({letter})")
        grid[0, 0].legend(loc="upper left")
        summary = frame[frame["topic"] == "summary"].set_index(["method", "quantity"])
        budget, drawn = summary.iloc[0], summary["value"]
        lines = [f"ε {budget['epsilon']:g}, δ {scientific(budget['delta'])}, θ {budget['bound']:g}"]
        for method, name in (("gau_dp", "Gaussian"), ("gau_br", "recycled")):
            share, sd = (float(drawn[method, quantity]) for quantity in ("acceptance", "sd"))
            lines.append(f"{name}: within θ {share:.3f}, sd {sd:.2f}")
        lines.append(f"recycled: exact δ {scientific(float(summary['exact_delta']['gau_br', 'sd']))}")
        remark(grid[0, 1], "\n".join(lines))
        return finish(figure, self.labels(records)), frame.reset_index(drop=True)


class Figure3(Artefact):
    """Rate by the kernel's share, and what delta it really gives."""

    paper = "brdp"
    name = "figure3"
    kind = "figure"
    caption = (
        "Top: recycling rate q against the epsilon that the Gaussian kernel spends, by Theorem 2, by Algorithm 1, and "
        "the largest that the exact profile allows. Bottom: exact delta over the stated delta (cut off at 1e-40; a "
        f"guarantee lies at or below 1). {OURS}the three deltas."
    )
    experiments = ("brdp_rates",)
    keys = ("delta", "epsilon_y", "method")

    def values(self, records: Records) -> pd.DataFrame:
        rows = []
        for record in self.needed(records, "brdp_rates").to_dict("records"):
            row = {"delta": record["delta"], "epsilon_y": record["epsilon_y"], "method": record["method"]}
            rows += [{**row, "column": name, "variant": record["variant"], "value": record[name]}
                     for name in ("rate", "exact_delta")]  # fmt: skip
        return values_frame(rows)

    def draw(self, records: Records) -> tuple[Figure, pd.DataFrame]:
        frame = self.needed(records, "brdp_rates")
        deltas = sorted(frame["delta"].unique(), reverse=True)
        figure, grid = new(2, len(deltas), width=7.0, height=4.2, sharex=True, sharey="row")
        for column, delta in enumerate(deltas):
            part = frame[frame["delta"] == delta]
            for method, (label, colour, dashes) in RATES.items():
                curve = part[part["method"] == method].sort_values("epsilon_y")
                grid[0, column].plot(curve["epsilon_y"], curve["rate"], color=colour, linestyle=dashes, label=label)
                ratio = np.maximum(curve["exact_delta"] / delta, 1e-40)
                grid[1, column].plot(curve["epsilon_y"], ratio, color=colour, linestyle=dashes)
            grid[1, column].axhline(1, color=LAPLACE, linewidth=0.6)
            grid[1, column].set_yscale("log")
            panel_letter(grid[0, column], f"δ = {scientific(delta)}")
            grid[1, column].set_xlabel("ε of the kernel, $ε_y$")
        grid[0, 0].set_ylabel("recycling rate q")
        grid[1, 0].set_ylabel("exact δ / stated δ")
        grid[1, 0].set_ylim(1e-40, 1e6)
        grid[0, 0].legend(loc="lower left")
        epsilon = float(frame["epsilon"].iloc[0])
        for axes in grid.ravel():
            axes.set_xlim(0, epsilon)
        return finish(figure, self.labels(records)), frame.reset_index(drop=True)
