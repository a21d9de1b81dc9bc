"""Figures 7 and 8: answers of six methods on subsets of Adult and of Gowalla."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar

import pandas as pd

from dpsub.papers.brdp.artefacts.styles import OURS, SHORT, STYLES, line, scientific
from dpsub.reproduce.artefact import Artefact, Records, values_frame
from dpsub.reproduce.figures import axis, finish, new, panel_letter

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

METHODS = ("gau_dp", "lap_dp", "gau_br", "lap_br", "gau_smp", "lap_smp")
QUERIES = {"sum": "sum", "avg": "average", "cnt": "count"}


class _Answers(Artefact):
    """Boxes of drawn answers, curves of acceptance."""

    paper = "brdp"
    kind = "figure"
    experiment: ClassVar[str]
    described: ClassVar[str]

    def values(self, records: Records) -> pd.DataFrame:
        rows = []
        for record in self.needed(records, self.experiment).to_dict("records"):
            row = {"panel": record["panel"], "epsilon": record["epsilon"], "method": record["method"]}
            columns = ["acceptance", "sampling_rate", "exact_delta", *(["drawn"] if record["view"] == "box" else [])]
            rows += [{**row, "column": name, "variant": "stated", "value": record[name]} for name in columns]
        return values_frame(rows)

    def draw(self, records: Records) -> tuple[Figure, pd.DataFrame]:
        frame = self.needed(records, self.experiment)
        figure, grid = new(3, 2, width=7.2, height=7.6, width_ratios=(1.5, 1))
        for axes, (panel, part) in zip(grid.ravel(), frame.groupby("panel"), strict=False):
            first = part.iloc[0]
            text = f"({panel}) {QUERIES[first['query']]}, D = {first['sensitivity']:g}, θ = {first['bound']:g}"
            if first["view"] == "box":
                _boxes(axes, part, panel_text=f"{text}, ε = {first['epsilon']:g}")
            else:
                _curves(axes, part)
                panel_letter(axes, text)
        figure.legend(*grid[0, 1].get_legend_handles_labels(), loc="outside lower center", ncols=3)
        kept = [name for name in frame.columns if name not in ("replicate", "data")]
        return finish(figure, self.labels(records)), frame[kept].reset_index(drop=True)


def _boxes(axes: Axes, part: pd.DataFrame, panel_text: str) -> None:
    part = part.set_index("method").loc[list(METHODS)]
    stats = [
        {"whislo": row["low_whisker"], "q1": row["low_box"], "med": row["median"], "q3": row["high_box"],
         "whishi": row["high_whisker"], "fliers": []}
        for row in part.to_dict("records")
    ]  # fmt: skip
    made = axes.bxp(stats, showfliers=False, patch_artist=True, widths=0.55)
    for box, median, method in zip(made["boxes"], made["medians"], METHODS, strict=True):
        box.set(facecolor=STYLES[method]["color"], alpha=0.6, linewidth=0.6)
        median.set(color="black", linewidth=0.8)
    theta = float(part["bound"].iloc[0])
    for bound in (-theta, theta):
        axes.axhline(bound, color="#B00020", linewidth=0.7, linestyle=(0, (4, 2)))
    labels = [f"{SHORT[method].replace('SMP-', 'SMP-' + chr(10))}\nA {part['drawn'][method]:.3f}\n"
              f"δ {scientific(float(part['exact_delta'][method]))}" for method in METHODS]  # fmt: skip
    axes.set_xticks(range(1, len(METHODS) + 1), labels, fontsize=5.6)
    top = max(1.15 * theta, 1.1 * float(part["high_whisker"].max()))
    # linear within the bound, so that the box of the best and of the worst method can both be seen
    axes.set_yscale("symlog", linthresh=theta)
    decades = [10.0**k for k in range(math.ceil(math.log10(3 * theta)), math.ceil(math.log10(2 * top)))]
    axes.set_yticks([*(-place for place in reversed(decades)), -theta, 0, theta, *decades])
    axes.yaxis.set_major_formatter("{x:g}")
    axes.minorticks_off()
    axes.set_ylim(-2 * top, 2 * top)
    axes.set_ylabel("answer less truth")
    axes.grid(axis="x", visible=False)
    panel_letter(axes, panel_text)


def _curves(axes: Axes, part: pd.DataFrame) -> None:
    placed = 0
    for method in METHODS:
        worst = float((part.loc[part["method"] == method, "exact_delta"]).max())
        line(axes, part, method, "epsilon", "acceptance", marker=STYLES[method]["marker"], markersize=2.5,
             label=SHORT[method])  # fmt: skip
        if worst > 1.01 * float(part["delta"].iloc[0]):
            end = part[part["method"] == method].sort_values("epsilon").iloc[0]
            axes.annotate(f"{SHORT[method]}: δ ≤ {scientific(worst)}", (end["epsilon"], end["acceptance"]),
                          xycoords="data", xytext=(0.03, 0.92 - 0.07 * placed),
                          textcoords="axes fraction", fontsize=5.6, ha="left",
                          color=STYLES[method]["color"])  # fmt: skip
            placed += 1
    axes.set_xscale("log")
    axis(axes, x="ε", y="acceptance", ylim=(0, 1.45))
    axes.set_yticks([0, 0.25, 0.5, 0.75, 1])


class Figure7(_Answers):
    """Adult."""

    name = "figure7"
    experiment = "brdp_adult"
    experiments = ("brdp_adult",)
    keys = ("panel", "epsilon", "method")
    caption = (
        "Six methods on subsets of 1,000 Adult records (capital gain in 1000 dollars, clipped to [0, 22] or [0, 12]; "
        "count: gain above 0). Left: 1,000 answers a subset, less the true one; boxes hold 50 %, whiskers 95 %, on an "
        "axis that is linear within the bound (dashed) and logarithmic beyond; A is the share within the bound, delta "
        "what the release really has at the stated epsilon. Right: acceptance against epsilon, and the largest exact "
        "delta on the curve where it exceeds the stated one. Where sampled methods collapse, Equation 13 has sent the "
        "sampling rate to its lower end. {OURS}the attribute and the range of epsilon."
    )


class Figure8(_Answers):
    """Gowalla."""

    name = "figure8"
    experiment = "brdp_gowalla"
    experiments = ("brdp_gowalla",)
    keys = ("panel", "epsilon", "method")
    caption = (
        "As Figure 7, on check-ins of Gowalla (days from a user's first to last check-in, clipped to [0, 22] or [0, "
        "12]; count: more than 150 days). Where the full file cannot be obtained, users of one city stand for it (seven"
        f" subsets of 1,000), labelled so. {OURS}the attribute and the range of epsilon."
    )
