"""Figures 5 and S1: eta and delta' - delta over the sizes of both stages, as contours and as surfaces."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from dpsub.errors import DataError
from dpsub.reproduce.artefact import Artefact, Records, values_frame
from dpsub.reproduce.figures import Panel, draw_panels, where
from dpsub.reproduce.labels import sampler_label

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MAP = "viridis"
LEVELS = 7
# panel -> (mechanism whose rows are read, column, label); eta does not depend on the mechanism
PANELS = (
    ("laplace", "eta", "η"),
    ("laplace", "delta_difference", "δ′ − δ, Laplace"),
    ("gaussian", "delta_difference", "δ′ − δ, Gaussian"),
)


def surface(frame: pd.DataFrame, sampler: str, mechanism: str, column: str) -> pd.DataFrame:
    """Return the values of one panel, one row a b and one column an m.

    Raises
    ------
    DataError
        If there are fewer than two sizes of a stage: no surface.
    """
    table = where(frame, sampler=sampler, mechanism=mechanism).pivot(index="b", columns="m", values=column)
    if min(table.shape) < 2:
        raise DataError(f"a surface needs at least 2 sizes of each stage, got {table.shape[1]} of m and "
                        f"{table.shape[0]} of b for {sampler}; take a smaller step")
    return table


class Figure5(Artefact):
    """Contours over m (across) and b (up), both in records."""

    name = "figure5"
    kind = "figure"
    caption = (
        "Contours of the inclusion probability eta and of delta' - delta at epsilon = 1 (ratio of sensitivity to scale "
        "1) over the sizes of the second stage, m, and of the first, b; one row of panels a sampler."
    )
    experiments = ("design_surface",)
    keys = ("sampler", "quantity", "mechanism")

    def values(self, records: Records) -> pd.DataFrame:
        """Return the share of grid steps in m, and in b, along which each surface rises."""
        frame = self.needed(records, "design_surface", variants=("stated",))
        rows = []
        for sampler in frame["sampler"].unique():
            for mechanism, column, _ in PANELS:
                table = surface(frame, sampler, mechanism, column).to_numpy()
                row = {"sampler": sampler, "quantity": column, "mechanism": mechanism}
                rows += [
                    {**row, "column": f"rises_with_{name}", "variant": "stated",
                     "value": float(np.mean(np.diff(table, axis=direction) > 0))}
                    for direction, name in ((1, "m"), (0, "b"))
                ]
        return values_frame(rows)

    def draw(self, records: Records) -> tuple[Figure, pd.DataFrame]:
        frame = self.needed(records, "design_surface", variants=("stated",))
        figure = draw_panels(_panels(frame, _contours), width=7.2, letters=False, labels=self.labels(records),
                             grid={"sharex": True, "sharey": True}, xlabel="m", ylabel="b")  # fmt: skip
        return figure, _plotted(frame)


class FigureS1(Artefact):
    """The six surfaces of Figure 5 in three dimensions."""

    name = "figureS1"
    kind = "figure"
    caption = (
        "The surfaces of Figure 5: eta and delta' - delta at epsilon = 1 over the sizes m and b of the two stages; "
        "one row of panels a sampler."
    )
    experiments = ("design_surface",)

    def values(self, records: Records) -> pd.DataFrame:
        return values_frame([])

    def draw(self, records: Records) -> tuple[Figure, pd.DataFrame]:
        frame = self.needed(records, "design_surface", variants=("stated",))
        figure = draw_panels(_panels(frame, _surface), width=7.4, height=2.5, letters=False,
                             labels=self.labels(records), grid={"subplot_kw": {"projection": "3d"}})  # fmt: skip
        return figure, _plotted(frame)


def _panels(frame: pd.DataFrame, paint: Any) -> list[Panel]:
    """Return the panels, a row a sampler; the samplers share the levels of a quantity, so that rows compare by eye."""
    panels = []
    for sampler in frame["sampler"].unique():
        for mechanism, quantity, label in PANELS:
            table = surface(frame, sampler, mechanism, quantity)
            values = where(frame, mechanism=mechanism)[quantity]
            layer = partial(paint, table=table, low=float(values.min()), high=float(values.max()))
            panels.append(Panel(f"{sampler_label(sampler)}: {label}", [layer]))
    return panels


def _contours(axes: Axes, table: pd.DataFrame, low: float, high: float) -> None:
    m, b = table.columns.to_numpy(float), table.index.to_numpy(float)
    axes.imshow(table.to_numpy(), cmap=MAP, vmin=low, vmax=high, alpha=0.45, origin="lower", aspect="auto",
                extent=(m.min(), m.max(), b.min(), b.max()), interpolation="bilinear")
    from matplotlib.ticker import MaxNLocator

    levels = MaxNLocator(LEVELS).tick_values(float(table.min().min()), float(table.max().max()))
    lines = axes.contour(m, b, table.to_numpy(), levels=levels, colors="black", linewidths=0.7,
                         negative_linestyles="solid")
    for text in axes.clabel(lines, fontsize=6, fmt=_number, inline=False, colors="black"):
        text.set_bbox({"facecolor": "white", "alpha": 0.75, "pad": 0.6, "linewidth": 0})
    axes.grid(False)


def _number(value: float) -> str:
    return f"{value:.4g}".replace("-", "−")


def _surface(axes: Any, table: pd.DataFrame, low: float, high: float) -> None:
    m, b = np.meshgrid(table.columns.to_numpy(float), table.index.to_numpy(float))
    axes.plot_surface(m, b, table.to_numpy(), cmap=MAP, vmin=low, vmax=high, linewidth=0.2, edgecolor="#404040",
                      alpha=0.9, rstride=_stride(table.shape[0] - 1), cstride=_stride(table.shape[1] - 1))
    axes.set_xlabel("m", labelpad=-4)
    axes.set_ylabel("b", labelpad=-4)
    axes.tick_params(labelsize=5.5, pad=-2)
    axes.tick_params(axis="z", pad=1)
    axes.locator_params(nbins=4)
    axes.view_init(elev=26, azim=-128)
    axes.set_box_aspect(None, zoom=0.9)


def _stride(intervals: int) -> int:
    """Return how many intervals a face spans: a divisor, since faces of unequal size are drawn from unset memory."""
    stride = next((step for step in range(1, intervals + 1) if intervals % step == 0 and intervals // step <= 20), 1)
    return stride if intervals // stride >= 5 else 1


def _plotted(frame: pd.DataFrame) -> pd.DataFrame:
    kept = ["sampler", "m", "b", "mechanism", "eta", "delta", "delta_amplified", "delta_difference"]
    return frame[kept].reset_index(drop=True)
