"""Figures 1 to 3 of the MUST paper: diagrams, which need no records."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from dpsub.papers.must.figures import MustFigure
from dpsub.reproduce.artefact import Records
from dpsub.reproduce.figures import axis, new
from dpsub.reproduce.figures.diagrams import Box, arrow, canvas, caption, dots, draw_box

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# MUST is a family: each stage may be drawn with or without replacement.
STEP = "WR or WOR"
QUADRANTS = (
    ("type-I weak", "ε′ < ε,  δ′ ≥ δ", 0.5, 0.5, "#FBE5D5"),
    ("dilution", "ε′ ≥ ε,  δ′ ≥ δ", 1.5, 0.5, "#F6D5D5"),
    ("strong", "ε′ < ε,  δ′ < δ", 0.5, -0.5, "#DDEEDD"),
    ("type-II weak", "ε′ ≥ ε,  δ′ < δ", 1.5, -0.5, "#FBF3D0"),
)
"""Kind of amplification, its condition, x and y of the middle of its quadrant (ε′ / ε, δ′ − δ), and
its tint."""


class MultistageProcedure(MustFigure):
    title = "Figure 1. The general multistage procedure"
    name = "figure1"
    caption = (
        "Multistage sampling: every subset is sampled again, with replacement (WR) or without "
        "(WOR), into s₁ subsets at stage I, s₂ subsets of each of these at stage II, and so on. "
        "The number in a box is the size of the data set."
    )

    def draw(self, records: Records) -> tuple[Figure, pd.DataFrame]:
        figure, (axes,) = canvas(6.4, 3.1)
        root = Box(0.07, 0.52, "$n$", 0)
        first = [Box(0.34, y, "$b$", 1) for y in (0.79, 0.25)]
        second = [Box(0.61, y, "$m$", 2) for y in (0.9, 0.68, 0.36, 0.14)]
        # The diagram breaks off between stage II and stage J.
        last = [Box(0.92, box.y, "$m_{J}$", 3) for box in second]
        for box, end in zip(second, last, strict=True):
            arrow(axes, box, Box(0.79, box.y, "", 3, width=0.06))
            dots(axes, 0.777, box.y, "⋯")
            arrow(axes, Box(0.74, box.y, "", 2), end)
        arrows = [
            *((root, box) for box in first),
            *((first[i // 2], box) for i, box in enumerate(second)),
        ]
        captions = [
            (0.07, 0.0, "data\n$n$ records"),
            (0.34, 0.0, "stage I\n$s_1$ subsets"),
            (0.61, 0.0, "stage II\n$s_1 s_2$ subsets"),
            (0.92, 0.0, "stage $J$\n$s_1 s_2 \\cdots s_J$ subsets"),
            *((x, 0.97, STEP) for x in (0.205, 0.475, 0.777)),
        ]
        left_out = [(0.34, 0.52), (0.61, 0.79), (0.61, 0.25), (0.92, 0.52)]
        return figure, _diagram(axes, [root, *first, *second, *last], arrows, left_out, captions)


class TwoStageProcedures(MustFigure):
    title = "Figure 2. Two-stage procedures"
    name = "figure2"
    caption = (
        "Two-stage sampling. (a) s subsets of size b are drawn from n records, and r subsets of "
        "size m from each of these. (b) The special case r = 1, as used for s queries: each query "
        "has its own subset at both stages."
    )

    def draw(self, records: Records) -> tuple[Figure, pd.DataFrame]:
        figure, panels = canvas(7.0, 3.1, panels=2)
        shapes = (
            ("(a)", (0.78, 0.22), (0.11, -0.11), "$s\\,r$ subsets"),
            ("(b)", (0.84, 0.6, 0.16), (0.0,), "$s$ subsets, $r = 1$"),
        )
        return figure, pd.concat(map(_two_stages, panels, shapes), ignore_index=True)


def _two_stages(
    axes: Axes, shape: tuple[str, tuple[float, ...], tuple[float, ...], str]
) -> pd.DataFrame:
    """Draw one panel: its letter, heights of the first stage, of the second above these, and the
    number of subsets."""
    letter, heights, offsets, total = shape
    size = {"width": 0.14, "height": 0.09}
    root = Box(0.09, 0.5, "$n$", 0, **size)
    first = [Box(0.48, y, "$b$", 1, **size) for y in heights]
    second = [
        (box, Box(0.87, box.y + offset, "$m$", 2, **size)) for box in first for offset in offsets
    ]
    # Dots stand for the subsets between the last two that are drawn.
    between = (first[-2].y + first[-1].y) / 2
    left_out = [(0.48, between), (0.87, between)]
    captions = [
        (0.09, -0.03, "data\n$n$ records"),
        (0.48, -0.03, f"stage I: {STEP}\n$s$ subsets"),
        (0.87, -0.03, f"stage II: {STEP}\n{total}"),
    ]
    if len(offsets) > 1:
        left_out += [(0.87, box.y) for box in first]
        captions += [(0.975, box.y, "$r$") for box in first]
    axes.text(0.0, 0.98, letter, fontsize=8, ha="left", va="center")
    boxes = [root, *first, *(end for _, end in second)]
    return _diagram(
        axes, boxes, [*((root, box) for box in first), *second], left_out, captions, letter
    )


def _diagram(
    axes: Axes,
    boxes: list[Box],
    arrows: list[tuple[Box, Box]],
    left_out: list[tuple[float, float]],
    captions: list[tuple[float, float, str]],
    panel: str = "",
) -> pd.DataFrame:
    """Draw boxes, arrows, dots where some are left out, and captions; return the boxes, each with
    the box from which it is drawn."""
    for start, end in arrows:
        arrow(axes, start, end)
    for box in boxes:
        draw_box(axes, box)
    for x, y in left_out:
        dots(axes, x, y)
    for x, y, text in captions:
        caption(axes, x, y, text)
    parent = {end: start.text.strip("$") for start, end in arrows}
    rows = [
        (panel, box.x, box.y, box.text.strip("$"), box.level, parent.get(box, "")) for box in boxes
    ]
    return pd.DataFrame(rows, columns=["panel", "x", "y", "size", "stage", "drawn_from"])


class AmplificationKinds(MustFigure):
    """Definition 5 as the caption of the figure means it."""

    title = "Figure 3. Kinds of privacy amplification"
    name = "figure3"
    caption = (
        "Kinds of amplification: strong amplification lowers both ε and δ, weak amplification of "
        "type I lowers ε only, weak amplification of type II lowers δ only, and dilution lowers "
        "neither."
    )

    def draw(self, records: Records) -> tuple[Figure, pd.DataFrame]:
        figure, ((axes,),) = new(1, 1, width=4.4, height=3.0)
        for name, condition, x, y, fill in QUADRANTS:
            axes.fill_between([x - 0.5, x + 0.5], y - 0.5, y + 0.5, color=fill, linewidth=0)
            axes.text(x, y + 0.07, name, ha="center", va="center", fontsize=9)
            axes.text(x, y - 0.13, condition, ha="center", va="center", fontsize=7.5)
        # Definition 5 splits at epsilon' = epsilon and delta' = delta; its print repeats two
        # conditions (erratum E13).
        axes.axvline(1, color="black", linewidth=0.8)
        axes.axhline(0, color="black", linewidth=0.8)
        axes.grid(False)
        axis(axes, x="ε′ / ε", y="δ′ − δ", xlim=(0, 2), ylim=(-1, 1))
        axes.set(xticks=[0, 1], yticks=[-1, 0, 1])
        names = ["category", "condition", "epsilon_ratio", "delta_difference"]
        return figure, pd.DataFrame([row[:-1] for row in QUADRANTS], columns=names)
