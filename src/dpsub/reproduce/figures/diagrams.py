"""Boxes and arrows: data sets and the sampling steps between them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dpsub.reproduce.figures.style import new

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

EDGE = "#404040"
FILLS = ("#F2F2F2", "#DCEAF5", "#FBE5D5", "#E3F1E8")  # original data, then one tint a stage


@dataclass(frozen=True)
class Box:
    """A data set, drawn as a box with its size; `level` is the number of sampling steps behind
    it."""

    x: float
    y: float
    text: str
    level: int

    width: float = 0.11
    height: float = 0.09


def canvas(width: float, height: float, panels: int = 1) -> tuple[Figure, list[Axes]]:
    """Return a figure with `panels` empty drawing areas, each with coordinates from 0 to 1."""
    figure, grid = new(1, panels, width=width, height=height)
    for axes in grid[0]:
        axes.set(xlim=(0, 1), ylim=(0, 1))
        axes.axis("off")
    return figure, list(grid[0])


def draw_box(axes: Axes, box: Box) -> None:
    """Draw one box."""
    from matplotlib.patches import FancyBboxPatch

    corner = (box.x - box.width / 2, box.y - box.height / 2)
    form: dict[str, Any] = {
        "boxstyle": "round,pad=0,rounding_size=0.012",
        "edgecolor": EDGE,
        "linewidth": 0.8,
    }
    # More stages than tints share the last one.
    fill = FILLS[min(box.level, len(FILLS) - 1)]
    axes.add_patch(FancyBboxPatch(corner, box.width, box.height, facecolor=fill, **form))
    axes.text(box.x, box.y, box.text, ha="center", va="center", fontsize=8)


def arrow(axes: Axes, start: Box, end: Box) -> None:
    """Draw an arrow from the right side of one box to the left side of another."""
    _line(
        axes,
        (start.x + start.width / 2, start.y),
        (end.x - end.width / 2, end.y),
        shrinkA=1,
        shrinkB=1,
    )


def arc(axes: Axes, start: tuple[float, float], end: tuple[float, float], *, bend: float) -> None:
    """Draw a dashed arrow from one point to another, bent by the share `bend` of their distance."""
    _line(axes, start, end, connectionstyle=f"arc3,rad={bend}", linestyle="--")


def _line(axes: Axes, start: tuple[float, float], end: tuple[float, float], **form: Any) -> None:
    from matplotlib.patches import FancyArrowPatch

    axes.add_patch(
        FancyArrowPatch(
            start, end, arrowstyle="-|>", mutation_scale=7, linewidth=0.8, color=EDGE, **form
        )
    )


def dots(axes: Axes, x: float, y: float, text: str = "⋮") -> None:
    """Draw dots for boxes that are left out between two boxes."""
    axes.text(x, y, text, ha="center", va="center", fontsize=10, color=EDGE)


def caption(axes: Axes, x: float, y: float, text: str) -> None:
    """Write a short text under or over a column of boxes."""
    axes.text(x, y, text, ha="center", va="center", fontsize=7.5)
