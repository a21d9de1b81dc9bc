"""Figure 1: privacy profiles of base mechanisms and of subsampled ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from dpsub.papers.balle.artefacts.figure_properties import CURVES, PROPERTIES
from dpsub.reproduce.artefact import Artefact, Records, values_frame
from dpsub.reproduce.figures import axis, finish, new, panel_letter, sampler_style
from dpsub.reproduce.predicates import LackingError, of_variant

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

STATUS = "structure reproduced, parameters chosen"
BASES: dict[str, dict[str, Any]] = {
    "randomised_response": {"label": "rand. response", "color": "#CC79A7", "linestyle": "-"},
    "laplace": {"label": "Laplace", "color": "#0072B2", "linestyle": (0, (4, 1.5))},
    "gaussian": {"label": "Gaussian", "color": "#D55E00", "linestyle": (0, (1, 1.2))},
}
SIZES = ("#56B4E9", "#0072B2", "#002B55")  # light to dark with m
OTHERS: dict[str, Any] = {"wr_no_group": (0, (1, 1.2)), "wr_black_box": (0, (4, 1.5))}


class Figure1(Artefact):
    """Five panels, all properties of which are checked; the paper's parameters stand in its images only."""

    paper = "balle"
    name = "figure1"
    kind = "figure"
    caption = (
        "Structure reproduced, parameters chosen: the values in the paper's legends are not part of its text. (a) "
        "Profiles of three mechanisms with equal delta at epsilon = 0. (b) Gaussian and (c) Laplace mechanism "
        "subsampled with (WR) and without (WOR) replacement. (d) Laplace under WR with and without the group effect. "
        "(e) Laplace under WR with white-box and black-box groups."
    )
    experiments = ("balle_curves",)
    keys = ("panel", "property")

    def values(self, records: Records) -> pd.DataFrame:
        """Return whether the properties of each panel hold."""
        rows = []
        for row, (panel, ask) in PROPERTIES.items():
            base = {"panel": panel, "property": row, "column": "holds", "variant": "stated"}
            try:
                answer = ask({CURVES: of_variant(records, CURVES, "stated")})
                rows.append({**base, "value": float(answer.holds), "note": f"{STATUS}; {answer.note}"})
            except LackingError as reason:
                rows.append({**base, "note": str(reason)})
        return values_frame(rows)

    def draw(self, records: Records) -> tuple[Figure, pd.DataFrame]:
        frame = self.needed(records, CURVES, variants=("stated",))
        frame = frame[frame["point"] == "grid"].sort_values(["panel", "curve", "level", "m", "x"], kind="stable")
        figure, grid = new(2, 3, width=7.2, height=4.6)
        _bases(grid[0, 0], frame[frame["panel"] == "a"])
        for axes, panel, name in ((grid[0, 1], "b", "Gaussian"), (grid[0, 2], "c", "Laplace")):
            _sampled(axes, frame[frame["panel"] == panel], f"({panel}) {name}")
        for axes, panel, other, text in (
            (grid[1, 0], "d", "wr_no_group", "(d) Laplace, WR: group effect"),
            (grid[1, 1], "e", "wr_black_box", "(e) Laplace, WR: groups"),
        ):
            _groups(axes, frame[frame["panel"] == panel], other, text)
        _remark(grid[1, 2], frame)
        kept = ["panel", "curve", "level", "m", "eta", "x", "delta", "log_delta"]
        return finish(figure, self.labels(records)), frame[kept].reset_index(drop=True)


def _bases(axes: Axes, frame: pd.DataFrame) -> None:
    for name, style in BASES.items():
        for position, (_, curve) in enumerate(frame[frame["curve"] == name].groupby("level")):
            axes.plot(curve["x"], curve["delta"], **{**style, "label": style["label"] if position == 0 else "_"})
    axis(axes, x="ε", y="δ", xlim=(0, frame["x"].max()), ylim=(0, None))
    axes.legend(loc="upper right", handlelength=1.8)
    panel_letter(axes, "(a) equal δ(0)")


def _sampled(axes: Axes, frame: pd.DataFrame, text: str) -> None:
    for sampler in ("wor", "wr"):
        curve = frame[frame["curve"] == sampler]
        style = {**sampler_style(sampler), "label": f"{sampler.upper()}, m = {int(curve['m'].iloc[0])}"}
        axes.plot(curve["x"], curve["delta"], markevery=0.12, **style)
    axis(axes, x="ε′", y="δ′", xlim=(0, frame["x"].max()), ylim=(0, None))
    start = frame.loc[frame["curve"] == "none", "delta"].max()
    axes.text(0.97, 0.56, f"no sampling: δ(0) = {start:.3f},\noutside the frame", transform=axes.transAxes, ha="right",
              fontsize=6.5, color="#404040")
    axes.legend(loc="upper right")
    panel_letter(axes, text)


def _groups(axes: Axes, frame: pd.DataFrame, other: str, text: str) -> None:
    for colour, (m, part) in zip(SIZES, frame.groupby("m"), strict=False):
        for name, dashes in (("wr", "-"), (other, OTHERS[other])):
            curve = part[part["curve"] == name]
            axes.plot(curve["x"], curve["delta"], color=colour, linestyle=dashes,
                      label=f"m = {m}" if name == "wr" else "_")
    names = {"wr_no_group": ("with", "without"), "wr_black_box": ("white-box", "black-box")}[other]
    for label, dashes in zip(names, ("-", OTHERS[other]), strict=True):
        axes.plot([], [], color="#606060", linestyle=dashes, label=label)
    axis(axes, x="ε′", y="δ′", xlim=(0, frame["x"].max()), ylim=(0, None))
    axes.legend(loc="upper right")
    panel_letter(axes, text)


def _remark(axes: Axes, frame: pd.DataFrame) -> None:
    axes.axis("off")
    sampled = frame[frame["curve"] == "wor"].iloc[0]
    n = round(int(sampled["m"]) / float(sampled["eta"]))
    starts = ", ".join(f"{level:g}" for level in sorted(frame.loc[frame["panel"] == "a", "level"].unique()))
    lines = [STATUS, "", f"(a) δ(0) = {starts}", f"(b) to (e) n = {n}, Δ/scale = {float(sampled['level']):g}"]
    axes.text(0.0, 0.95, "\n".join(lines), transform=axes.transAxes, fontsize=7, va="top", linespacing=1.5)
