"""Figures: colours, style, and the builder of panels."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dpsub.reproduce.figures import (
    Panel,
    curves,
    draw_panels,
    figure_bytes,
    finish,
    new,
    sampler_style,
    styled,
)
from dpsub.reproduce.figures import (
    line as single_line,
)
from dpsub.reproduce.labels import sampler_label
from dpsub.sampling import REGISTRY as SAMPLERS

OKABE_ITO = {"#E69F00", "#56B4E9", "#009E73", "#F0E442", "#0072B2", "#D55E00", "#CC79A7", "#000000", "#999999"}


def panels(figure: Figure) -> list[Axes]:
    return [axes for axes in figure.axes if axes.axison]


def test_colours_are_safe_distinct_and_the_samplers_own() -> None:
    names = ("poisson", "wor", "wr", "must_wo", "must_ow", "must_ww")
    styles = [sampler_style(name) for name in (*names, "nonprivate")]
    assert len({style["color"] for style in styles}) == len({style["marker"] for style in styles}) == 7
    assert sampler_style("nonprivate")["color"] == "black"
    for name in names:
        assert sampler_style(name)["color"] == SAMPLERS.get(name).colour
        assert SAMPLERS.get(name).colour in OKABE_ITO
        assert sampler_label(name) == SAMPLERS.get(name).label


def test_style_does_not_leak_or_follow_the_users_own() -> None:
    import matplotlib as mpl

    with mpl.rc_context({"font.size": 30.0, "axes.facecolor": "red"}):
        figure, grid = new(1, 1, width=2, height=2)
        grid[0, 0].plot([0, 1])
        loud = figure_bytes(finish(figure), "png")
        assert mpl.rcParams["font.size"] == 30.0
    figure, grid = new(1, 1, width=2, height=2)
    with styled():
        grid[0, 0].plot([0, 1])
    assert loud != b""
    assert grid[0, 0].xaxis.label.get_fontsize() == 8
    assert grid[0, 0].get_facecolor() == (1, 1, 1, 1)


def test_a_mapping_of_styles_chooses_the_curves_and_one_legend_names_each_once() -> None:
    frame = pd.DataFrame({"method": ["b", "b", "a", "a", "c"], "x": [2, 1, 1, 2, 1], "y": [4.0, 3.0, 1.0, 2.0, 9.0],
                          "lower": 0.5, "upper": 10.0})  # fmt: skip
    styles = {name: {"label": name, "color": "black"} for name in ("a", "b", "absent")}
    layer = curves(frame, "x", "y", by="method", styles=styles, bars=("lower", "upper"), apart=4, linestyle="none")
    figure = draw_panels([Panel("left", [layer]), Panel("right", [layer])], grid={"sharey": True}, ylabel="y")
    first, second = panels(figure)
    drawn = {line.get_label(): list(line.get_ydata()) for line in first.get_lines() if line.get_label() in styles}
    assert drawn == {"a": [1.0, 2.0], "b": [3.0, 4.0]}
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["a", "b"]
    assert (first.get_ylabel(), second.get_ylabel()) == ("y", "")
    assert [axes.texts[0].get_text() for axes in (first, second)] == ["(a) left", "(b) right"]


def test_a_short_logarithmic_axis_has_plain_numbers_and_the_legend_takes_the_empty_place() -> None:
    named = single_line([1, 30], [0.5, 5], label="one")
    figure = draw_panels([Panel("", [named]), None], xscale="log")
    axes, empty = figure.axes
    assert axes.xaxis.get_major_formatter()(20) == "20"
    assert empty.get_legend() is not None and not figure.legends
