"""Figures 3 and 6 (cost against epsilon) and 4 and 7 (cost against the sample size), a block of rows a mode."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pandas as pd

from dpsub.papers.importance.artefacts.costs import EXPERIMENT, summary
from dpsub.papers.importance.artefacts.labels import APPENDIX, MAIN, MODES, SAMPLERS, TITLES, OnData, not_real, title_of
from dpsub.reproduce.artefact import Records, values_frame
from dpsub.reproduce.figures import finish, new, panel_letter

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DRAWN = ("unif", "core", "opt")
CUT = 4.0  # times the cost of a single centre at the mean
BEYOND = (
    "Rows in blocks: the released code, the text as stated, the repaired algorithm. Lines: medians over repeats; "
    "bands: quartiles; grey: the mean squared norm, the cost of one centre at the mean. A data set whose name has a "
    "label is not the paper's: a stand-in has fewer rows, and samples of the same rates. Costs above four times the "
    "grey line are cut."
)


class _CostFigure(OnData):
    """Panels of one figure: a column a data set, a block of rows a mode."""

    kind = "figure"
    experiments = (EXPERIMENT,)
    keys = ("panel",)
    datasets: ClassVar[tuple[str, ...]]
    across: ClassVar[str]  # what the horizontal axis shows

    @abstractmethod
    def _places(self, part: pd.DataFrame) -> list[float]:
        """What the rows of a block are, for one data set."""

    @abstractmethod
    def _panel(self, axes: Axes, part: pd.DataFrame, place: float) -> str:
        """Draw the cells of one data set and mode, and return what distinguishes the panel."""

    def values(self, records: Records) -> pd.DataFrame:
        """Return a value a panel and mode: the share of cells in which the core-set's median is below the uniform's."""
        cells, rows = self._cells(records), []
        for (variant, dataset), part in cells.groupby(["variant", "dataset"], sort=False):
            wide = part.pivot_table(index=["m_paper", "epsilon"], columns="sampler", values="median")
            better = {name: int((wide[name] < wide["unif"]).sum()) for name in ("core", "opt") if name in wide}
            note = ", ".join(f"{SAMPLERS[name]['label']} below uniform in {count} of {len(wide)} cells"
                             for name, count in better.items())  # fmt: skip
            label = not_real(str(part["data_label"].iloc[0]))
            rows.append({"panel": TITLES[str(dataset)], "column": "panel", "variant": variant,
                         "value": better.get("core", 0) / len(wide),
                         "note": "; ".join(filter(None, (label, note)))})  # fmt: skip
        return values_frame(rows)

    def draw(self, records: Records) -> tuple[Figure, pd.DataFrame]:
        cells = self._cells(records)
        columns = [name for name in self.datasets if name in set(cells["dataset"])]
        modes = [variant for variant in MODES if variant in set(cells["variant"])]
        if not columns:
            figure, grid = new(1, 1, width=3.4, height=1.6)
            grid[0, 0].annotate("none of its data sets\nis in this run", (0.5, 0.5), ha="center", va="center")
            grid[0, 0].set_axis_off()
            return figure, cells
        places = {name: self._places(cells[cells["dataset"] == name]) for name in columns}
        block = max(len(found) for found in places.values())
        figure, grid = new(block * len(modes), len(columns), width=max(4.2, 1.85 * len(columns)), sharex="col",
                           height=1.0 + 1.3 * block * len(modes))  # fmt: skip
        for j, name in enumerate(columns):
            whole = cells[cells["dataset"] == name]
            for i, variant in enumerate(modes):
                part = whole[whole["variant"] == variant]
                for k, place in enumerate(places[name]):
                    axes = grid[i * block + k, j]
                    panel_letter(axes, f"{MODES[variant]}, {self._panel(axes, part, place)}")
                    _limit(axes, float(whole["mean_square"].iloc[0]))
                    axes.tick_params(labelsize=6)
            power = max(0, int(np.floor(np.log10(whole["mean_square"].iloc[0]))))
            for axes in grid[:, j]:
                axes.yaxis.set_major_formatter(lambda value, _, unit=10.0**power: f"{value / unit:.3g}")
            unit = f"\ncost in 10$^{power}$" if power else "\n"
            grid[0, j].set_title(title_of(name, whole["data_label"]) + unit, fontsize=7.5, weight="bold", pad=18)
            grid[-1, j].set_xlabel(self.across)
        for axes in grid[:, 0]:
            axes.set_ylabel("cost")
        found = {text: handle for axes in grid.flat
                 for handle, text in zip(*axes.get_legend_handles_labels(), strict=True)}  # fmt: skip
        figure.legend(list(found.values()), list(found), loc="outside lower center", ncols=3)
        return finish(figure), cells

    def _cells(self, records: Records) -> pd.DataFrame:
        frame = self.needed(records, EXPERIMENT)
        return summary(frame[frame["dataset"].isin(self.datasets)])


def _limit(axes: Axes, top: float) -> None:
    """Mark the cost of a single centre if it is near, and cut what is far above it."""
    low, high = axes.get_ylim()
    high = min(high, CUT * top)
    if low < top * 1.05 and high > top * 0.8:
        axes.axhline(top, color="#888888", linewidth=0.7)
        high = max(high, 1.04 * top)
    axes.set_ylim(min(low, 0.95 * high), high)


def _curves(axes: Axes, part: pd.DataFrame, x: str) -> None:
    for sampler in DRAWN:
        curve = part[part["sampler"] == sampler].sort_values(x)
        if curve["median"].notna().any():
            style = {**SAMPLERS[sampler], "markersize": 2.5, "linewidth": 1.0}
            axes.plot(curve[x], curve["median"], **style)
            axes.fill_between(curve[x], curve["lower"], curve["upper"], color=style["color"], alpha=0.18, linewidth=0)


def _level(axes: Axes, sampler: str, row: pd.DataFrame, *, band: bool) -> None:
    if len(row) and np.isfinite(row["median"].iloc[0]):
        style = {name: value for name, value in SAMPLERS[sampler].items() if name != "marker"}
        axes.axhline(float(row["median"].iloc[0]), **style | {"linewidth": 0.9})
        if band:
            low, high = float(row["lower"].iloc[0]), float(row["upper"].iloc[0])
            axes.axhspan(low, high, color="black", alpha=0.12, linewidth=0)


class _AgainstEpsilon(_CostFigure):
    across = "ε (nats)"

    def _places(self, part: pd.DataFrame) -> list[float]:
        without = part[np.isinf(part["epsilon"])]
        return sorted(without["m_paper"].unique().tolist())

    def _panel(self, axes: Axes, part: pd.DataFrame, place: float) -> str:
        chosen = part[part["m_paper"] == place]
        _curves(axes, chosen[np.isfinite(chosen["epsilon"])], "epsilon")
        for sampler in ("unif", "core"):
            rows = chosen[(chosen["sampler"] == sampler) & np.isinf(chosen["epsilon"])]
            _level(axes, f"{sampler}_nonprivate", rows, band=False)
        axes.set_xscale("log")
        axes.set_xticks([0.1, 1, 10, 100, 1000], ["0.1", "1", "10", "100", "1000"])
        axes.set_xlim(0.1, 1300)
        axes.minorticks_off()
        return f"m = {place:g}"


class _AgainstSize(_CostFigure):
    across = "expected sample size m"

    def _places(self, part: pd.DataFrame) -> list[float]:
        return sorted(part.loc[part["sampler"] == "full", "epsilon"].unique().tolist())

    def _panel(self, axes: Axes, part: pd.DataFrame, place: float) -> str:
        chosen = part[part["epsilon"] == place]
        _curves(axes, chosen[chosen["sampler"] != "full"], "m_paper")
        _level(axes, "full", chosen[chosen["sampler"] == "full"], band=True)
        axes.ticklabel_format(axis="x", style="plain")
        axes.locator_params(axis="x", nbins=4)
        return f"ε = {place:g}"


class Figure3(_AgainstEpsilon):
    """Cost against the target, main data sets."""

    name = "figure3"
    datasets = MAIN
    caption = "Cost of private k-means on all rows against epsilon, three sizes. " + BEYOND


class Figure6(_AgainstEpsilon):
    """Cost against the target, data sets of the appendix."""

    name = "figure6"
    datasets = APPENDIX
    caption = "Cost of private k-means on all rows against epsilon, three sizes. " + BEYOND


class Figure4(_AgainstSize):
    """Cost against the size, main data sets."""

    name = "figure4"
    datasets = MAIN
    caption = "Cost of private k-means on all rows against the expected sample size, two targets. " + BEYOND


class Figure7(_AgainstSize):
    """Cost against the size, data sets of the appendix."""

    name = "figure7"
    datasets = APPENDIX
    caption = "Cost of private k-means on all rows against the expected sample size, two targets. " + BEYOND
