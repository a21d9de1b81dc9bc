"""Figures 1 and 2: diagrams of multistage sampling; they show no numbers of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from dpsub.reproduce.artefact import Artefact, Records, values_frame
from dpsub.reproduce.figures.diagrams import Box, arrow, canvas, caption, dots, draw_box

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

STEP = "WR or WOR"


class Figure1(Artefact):
    """Any number of stages: every subset of one stage is sampled again in the next."""

    name = "figure1"
    kind = "figure"
    caption = (
        "Multistage sampling in general: each subset is sampled again, with (WR) or without (WOR) replacement, so that "
        "s1, s2, ... subsets a step multiply; the boxes hold the sizes."
    )

    def values(self, records: Records) -> pd.DataFrame:
        return values_frame([])

    def draw(self, records: Records) -> tuple[Figure, pd.DataFrame]:
        figure, (axes,) = canvas(6.4, 3.1)
        root = Box(0.07, 0.52, "$n$", 0)
        first = [Box(0.34, 0.79, "$b$", 1), Box(0.34, 0.25, "$b$", 1)]
        second = [Box(0.61, y, "$m$", 2) for y in (0.9, 0.68, 0.36, 0.14)]
        boxes = [root, *first, *second]
        arrows = [(root, box) for box in first]
        arrows += [(first[position // 2], box) for position, box in enumerate(second)]
        for start, end in arrows:
            arrow(axes, start, end)
        for box in second:
            arrow(axes, box, Box(0.79, box.y, "", 3, width=0.06))
            dots(axes, 0.777, box.y, "⋯")
            arrow(axes, Box(0.74, box.y, "", 2), Box(0.92, box.y, "", 3))
            boxes.append(Box(0.92, box.y, "$m_{J}$", 3))
        for box in boxes:
            draw_box(axes, box)
        for x, y in ((0.34, 0.52), (0.61, 0.79), (0.61, 0.25), (0.92, 0.52)):
            dots(axes, x, y)
        for x, text in ((0.07, "data"), (0.34, "stage I\n$s_1$ subsets"), (0.61, "stage II\n$s_1 s_2$ subsets"),
                        (0.92, "stage $J$\n$s_1 s_2 \\cdots s_J$ subsets")):  # fmt: skip
            caption(axes, x, 0.0, text)
        for x in (0.205, 0.475, 0.777):
            caption(axes, x, 0.97, STEP)
        return figure, _numbers(boxes, arrows)


class Figure2(Artefact):
    """Two stages, (a) with r second-stage subsets each, (b) with r = 1 as in stochastic gradient descent."""

    name = "figure2"
    kind = "figure"
    caption = (
        "Two-stage sampling: (a) s subsets of size b, each sampled r times into subsets of size m; (b) the special "
        "case r = 1, one pair of draws for each of s queries."
    )

    def values(self, records: Records) -> pd.DataFrame:
        return values_frame([])

    def draw(self, records: Records) -> tuple[Figure, pd.DataFrame]:
        figure, (left, right) = canvas(7.0, 3.1, panels=2)
        frames = [
            _two_stages(left, "(a)", repeats=2, totals=("$s$ subsets", "$s\\,r$ subsets")),
            _two_stages(right, "(b)", repeats=1, totals=("$s$ subsets", "$s$ subsets, $r = 1$")),
        ]
        return figure, pd.concat(frames, ignore_index=True)


def _two_stages(axes: Axes, letter: str, *, repeats: int, totals: tuple[str, str]) -> pd.DataFrame:
    shape = {"width": 0.14, "height": 0.09}
    root = Box(0.09, 0.5, "$n$", 0, **shape)
    heights = (0.78, 0.22) if repeats == 2 else (0.84, 0.6, 0.16)
    first = [Box(0.48, y, "$b$", 1, **shape) for y in heights]
    offsets = (0.11, -0.11) if repeats == 2 else (0.0,)
    second = [(box, Box(0.87, box.y + offset, "$m$", 2, **shape)) for box in first for offset in offsets]
    arrows = [*((root, box) for box in first), *second]
    boxes = [root, *first, *(end for _, end in second)]
    for start, end in arrows:
        arrow(axes, start, end)
    for box in boxes:
        draw_box(axes, box)
    middle = (first[-2].y + first[-1].y) / 2
    for x in (0.48, 0.87):
        dots(axes, x, middle)
    if repeats == 2:
        for box in first:
            dots(axes, 0.87, box.y)
            caption(axes, 0.975, box.y, "$r$")
    for x, text in ((0.09, "data"), (0.48, f"stage I: {STEP}\n{totals[0]}"), (0.87, f"stage II: {STEP}\n{totals[1]}")):
        caption(axes, x, 0.0, text)
    axes.text(0.0, 0.98, letter, fontsize=8, ha="left", va="center")
    return _numbers(boxes, arrows, panel=letter)


def _numbers(boxes: list[Box], arrows: list[tuple[Box, Box]], panel: str = "") -> pd.DataFrame:
    """Return the drawn boxes, each with the box that it is sampled from."""
    parent = {end: start for start, end in arrows}
    return pd.DataFrame({
        "panel": panel,
        "x": [box.x for box in boxes],
        "y": [box.y for box in boxes],
        "size": [box.text.strip("$") for box in boxes],
        "stage": [box.level for box in boxes],
        "drawn_from": [parent[box].text.strip("$") if box in parent else "" for box in boxes],
    })
