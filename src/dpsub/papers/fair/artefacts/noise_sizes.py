"""Noise multiplier against b and against m, all else and the proved privacy fixed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from dpsub.errors import DataError
from dpsub.papers.fair.artefacts.labels import VARIANT_NAMES, style_of
from dpsub.reproduce.artefact import Artefact, Records, values_frame
from dpsub.reproduce.figures import axis, finish, new, panel_letter

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

BESIDE = 0.01  # of the width of a panel, from one sampler's bars to the next
PAIR: dict[str, Any] = {"linestyle": ":", "linewidth": 0.8, "marker": "x", "markersize": 4}
BAR = 0.8  # points, width of the bars from attack to proof
SETTING = ["dataset", "n", "steps", "target_epsilon", "target_delta"]


def sections(frame: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame, dict[str, Any]]:
    """Return the cells along b at fixed m, those along m at fixed b, and what is fixed for both.

    The setting is that of the first cell that is only calibrated; the fixed m and b are those with the most cells.

    Raises
    ------
    DataError
        If no cell with a first stage is only calibrated.
    """
    if not (frame["b"] * frame["surface"]).any():
        raise DataError(
            "noise against b needs a surface with a two-stage sampler, got none; add one to fair_noise.surface"
        )
    setting = frame.loc[frame["surface"] == 1, SETTING].iloc[0]
    cells = frame[(frame[SETTING] == setting).all(axis=1)].drop_duplicates(["variant", "sampler", "m", "b"])
    staged = cells[cells["b"] > 0]
    m = staged.groupby("m")["b"].nunique().idxmax()
    b = staged.groupby("b")["m"].nunique().idxmax()
    along_b = cells[cells["m"] == m].sort_values(["b"], kind="stable")
    along_m = cells[(cells["b"] == b) | (cells["b"] == 0)].sort_values(["m"], kind="stable")
    return along_b, along_m, {**{str(name): setting[name] for name in SETTING}, "m": m, "b": b}


class NoiseSizes(Artefact):
    """What sizes cost in noise at fixed privacy."""

    paper = "fair"
    name = "figure_noise"
    kind = "figure"
    caption = (
        "Noise multiplier that one target takes, (a) against the size b of the first stage, where levels are samplers "
        "with one stage, (b) against the batch size m. Markers on lines: proved under substitution; the bar below each "
        "reaches down to the noise with which an attack exceeds the target, so the best proof lies on it. "
        "Crosses: noise for which the papers' pair meets the target, no guarantee. Samplers stand slightly apart."
    )
    experiments = ("fair_noise",)

    def values(self, records: Records) -> pd.DataFrame:
        return values_frame([])

    def draw(self, records: Records) -> tuple[Figure, pd.DataFrame]:
        frame = self.needed(records, "fair_noise")
        along_b, along_m, fixed = sections(frame)
        figure, grid = new(1, 2, width=7.0, height=3.1)
        for axes, cells, size in ((grid[0, 0], along_b, "b"), (grid[0, 1], along_m, "m")):
            beside = BESIDE * float(cells[size].max() - cells.loc[cells[size] > 0, size].min())
            drawn = 0
            for name, part in cells.groupby("sampler", sort=False):
                if size == "b" and not part["b"].any():
                    _level(axes, str(name), part)
                elif part[size].nunique() > 1 or cells[size].nunique() == 1:  # a lone point is no line
                    _line(axes, str(name), part, size, drawn * beside)
                    drawn += 1
            axes.set_yscale("log")
            axes.yaxis.set_major_formatter("{x:g}")
            axes.yaxis.set_minor_formatter("{x:g}")
        privacy = f"n = {fixed['n']}, {fixed['steps']} steps, ε = {fixed['target_epsilon']:g}"
        axis(grid[0, 0], x="b", y="noise multiplier")
        axis(grid[0, 1], x="m", y="noise multiplier")
        panel_letter(grid[0, 0], f"(a) m = {fixed['m']}; {privacy}")
        panel_letter(grid[0, 1], f"(b) b = {fixed['b']}; {privacy}")
        handles, labels = [], []
        for axes in grid[0]:
            for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
                if label not in labels:
                    handles.append(handle)
                    labels.append(label)
        for handle in _signs():
            handles.append(handle)
            labels.append(str(handle.get_label()))
        figure.legend(handles, labels, loc="outside lower center", ncols=4)
        numbers = pd.concat([along_b.assign(section="b"), along_m.assign(section="m")], ignore_index=True)
        return finish(figure, self.labels(records)), numbers.drop(columns=["data", "replicate", "surface"])


def _signs() -> tuple[Line2D, Line2D]:
    """Return the keys of what is drawn alike for every sampler, in no sampler's colour."""
    from matplotlib.lines import Line2D

    bar: dict[str, Any] = {"linestyle": "none", "marker": "|", "markersize": 9, "markeredgewidth": BAR}
    return (
        Line2D([], [], color="0.35", label=VARIANT_NAMES["consistent"], **PAIR),
        Line2D([], [], color="0.35", label="from attack up to proof", **bar),
    )


def _line(axes: Axes, name: str, part: pd.DataFrame, size: str, beside: float) -> None:
    style = style_of(name)
    proved = part[part["variant"] == "rigorous"]
    below = (proved["noise_multiplier"] - proved["necessary"]).where(proved["necessary"] > 0, 0.0)
    axes.errorbar(proved[size] + beside, proved["noise_multiplier"], yerr=[below, 0 * below], color=style["color"],
                  marker=style["marker"], label=style["label"], linewidth=1.0, elinewidth=BAR)  # fmt: skip
    pairs = part[part["variant"] == "consistent"]
    axes.plot(pairs[size] + beside, pairs["noise_multiplier"], **PAIR, color=style["color"], zorder=5)


def _level(axes: Axes, name: str, part: pd.DataFrame) -> None:
    style = style_of(name)
    for noise in part.loc[part["variant"] == "rigorous", "noise_multiplier"]:
        axes.axhline(noise, color=style["color"], linestyle=style["linestyle"], linewidth=1.0, label=style["label"])
