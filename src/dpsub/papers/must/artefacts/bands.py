"""Bands from what is refuted to what is proved, one sampler and relation each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pandas as pd

from dpsub.papers.must.artefacts.labels import in_order
from dpsub.reproduce.figures import new, sampler_style
from dpsub.reproduce.labels import sampler_label

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PAIR_DOTS = (0, (1, 1.6))
_RELATIONS = {"add_remove": "add or remove", "substitute": "substitute"}


def short(value: float) -> str:
    """Return a number without the zeros of its exponent: 1e-5."""
    return f"{value:g}".replace("e-0", "e-")


def by_sampler(frame: pd.DataFrame, x: str) -> Iterator[tuple[pd.DataFrame, dict[str, Any]]]:
    """Yield the records of each sampler and relation, sorted by `x`, and how they are drawn.

    A sampler under the second of two relations has open markers and names the relation.
    """
    ordered = in_order(frame, by=("sampler",))
    several = ordered.groupby("sampler")["adjacency"].nunique()
    for (sampler, adjacency), part in ordered.groupby(["sampler", "adjacency"], sort=False):
        style = sampler_style(str(sampler)) | {"linestyle": "-"}
        if several.loc[str(sampler)] > 1:
            style["label"] = f"{sampler_label(str(sampler))}, {_RELATIONS[str(adjacency)]}"
            style["markerfacecolor"] = "white" if adjacency == "substitute" else style["color"]
        yield part.sort_values(x), style


def draw_band(axes: Axes, x: pd.Series, lower: pd.Series, upper: pd.Series, style: dict[str, Any]) -> None:
    """Draw the proved end as a line with markers, the refuted end as a thin one, and what lies between."""
    axes.fill_between(x, lower, upper, color=style["color"], alpha=0.18, linewidth=0)
    axes.plot(x, lower, color=style["color"], linewidth=0.6)
    axes.plot(x, upper, **style)


def band_figure(frame: pd.DataFrame, *, x: str, lower: str, upper: str, pair: str) -> tuple[Figure, Axes]:
    """Return a figure of one column's width: a band for each sampler and relation, the paper's pair dotted."""
    figure, grid = new(1, 1, width=3.5, height=3.6)
    axes: Axes = grid[0, 0]
    for part, style in by_sampler(frame, x):
        axes.plot(part[x], part[pair], color=style["color"], linestyle=PAIR_DOTS, linewidth=1.0)
        draw_band(axes, part[x], part[lower], part[upper], style)
    axes.plot([], [], color="black", linestyle=PAIR_DOTS, linewidth=1.0, label="the paper's pair")
    figure.legend(loc="outside lower center", ncols=2)
    return figure, axes
