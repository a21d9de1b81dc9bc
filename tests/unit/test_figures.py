"""Figures: colours, style, and the builder of panels."""

from __future__ import annotations

import itertools

import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dpsub.reproduce.figures import (
    Panel,
    curves,
    draw_panels,
    figure_bytes,
    finish,
    name_ends,
    new,
    sampler_style,
    styled,
)
from dpsub.reproduce.figures import (
    line as single_line,
)
from dpsub.reproduce.labels import looks, sampler_label
from dpsub.sampling import REGISTRY as SAMPLERS
from dpsub.sampling.schemes import SCHEMES

OKABE_ITO = {
    "#E69F00",
    "#56B4E9",
    "#009E73",
    "#F0E442",
    "#0072B2",
    "#D55E00",
    "#CC79A7",
    "#000000",
    "#999999",
}


def panels(figure: Figure) -> list[Axes]:
    return [axes for axes in figure.axes if axes.axison]


def test_colours_are_safe_distinct_and_the_samplers_own() -> None:
    names = ("poisson", "wor", "wr", "must_wo", "must_ow", "must_ww")
    styles = [sampler_style(name) for name in (*names, "nonprivate")]
    assert (
        len({style["color"] for style in styles}) == len({style["marker"] for style in styles}) == 7
    )
    assert sampler_style("nonprivate")["color"] == "black"
    for name in names:
        assert sampler_style(name)["color"] == SAMPLERS.get(name).colour
        assert SAMPLERS.get(name).colour in OKABE_ITO
        assert sampler_label(name) == SAMPLERS.get(name).label


def test_schemes_can_be_told_apart_by_colour_marker_and_dashes_each() -> None:
    styles = [sampler_style(name) for name in {*SCHEMES, *looks()}]
    for what in ("label", "color", "marker"):
        assert len({style[what] for style in styles}) == len(styles), what
    solid = [style["label"] for style in styles if style["linestyle"] == "-"]
    assert {*solid} == {"WOR", "three stages", "non-private"}


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
    frame = pd.DataFrame(
        {
            "method": ["b", "b", "a", "a", "c"],
            "x": [2, 1, 1, 2, 1],
            "y": [4.0, 3.0, 1.0, 2.0, 9.0],
            "lower": 0.5,
            "upper": 10.0,
        }
    )
    styles = {name: {"label": name, "color": "black"} for name in ("a", "b", "absent")}
    layer = curves(
        frame,
        "x",
        "y",
        by="method",
        styles=styles,
        bars=("lower", "upper"),
        nested=2,
        linestyle="none",
    )
    figure = draw_panels(
        [Panel("left", [layer]), Panel("right", [layer])], grid={"sharey": True}, ylabel="y"
    )
    first, second = panels(figure)
    drawn = {
        line.get_label(): list(line.get_ydata())
        for line in first.get_lines()
        if line.get_label() in styles
    }
    assert drawn == {"a": [1.0, 2.0], "b": [3.0, 4.0]}
    sizes = [line.get_markersize() for line in first.get_lines() if line.get_label() in styles]
    assert sizes[0] == sizes[1] + 2, "marks at one place must differ in size"
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["a", "b"]
    assert (first.get_ylabel(), second.get_ylabel()) == ("y", "")
    assert [axes.texts[0].get_text() for axes in (first, second)] == ["(a) left", "(b) right"]


@pytest.mark.parametrize(
    ("low", "high", "labels"),
    [
        (1, 30, ["1", "2", "5", "10", "20"]),
        (3, 8, ["3", "4", "5", "6", "7", "8"]),
        (0.01, 1e4, ["0.01", "0.1", "1", "10", "100", "1000", "10000"]),
        (
            1e-6,
            1e-4,
            [
                "10^{-6}",
                r"2\times10^{-6}",
                r"5\times10^{-6}",
                "10^{-5}",
                r"2\times10^{-5}",
                r"5\times10^{-5}",
                "10^{-4}",
            ],
        ),
    ],
)
def test_logarithmic_axes_have_labels_at_1_2_and_5(
    low: float, high: float, labels: list[str]
) -> None:
    figure = draw_panels(
        [Panel("", [single_line([low, high], [0, 1])])], xscale="log", xlim=(low, high)
    )
    axis = figure.axes[0].xaxis
    shown = axis.get_major_formatter().format_ticks(
        [tick for tick in axis.get_majorticklocs() if low <= tick <= high]
    )
    assert [text.removeprefix(r"$\mathdefault{").removesuffix("}$") for text in shown] == labels


def test_a_curve_is_whole_at_the_edge_unless_it_leaves_the_axes() -> None:
    layers = [
        single_line([0, 1], [0, 1]),
        single_line([0, 1], [0, 2]),
        single_line([], [], label="named only"),
    ]
    figure = draw_panels([Panel("", layers), None], xlim=(0, 1), ylim=(0, 1))
    axes, empty = figure.axes
    assert [line.get_clip_on() for line in axes.get_lines()][:2] == [False, True]
    assert empty.get_legend() is not None and not figure.legends, "the legend takes the empty place"
    assert figure_bytes(figure, "png")


@pytest.mark.parametrize("log", [False, True])
def test_names_of_curves_that_end_together_are_moved_apart(log: bool) -> None:
    heights = {"far": 1.0, "third": 5.02, "first": 5.0, "second": 5.01}
    names = {text: (height, "black") for text, height in heights.items()}
    figure = draw_panels(
        [Panel("", [name_ends(names, 1.0, (0.5, 10), 2.0, log=log)])],
        yscale="log" if log else "linear",
        ylim=(0.5, 10),
        xlim=(0, 1),
    )
    figure.draw_without_rendering()
    (axes,) = figure.axes
    boxes = {text.get_text(): text.get_window_extent() for text in axes.texts}
    places = [boxes[text] for text in ("far", "first", "second", "third")]
    assert all(lower.y1 <= upper.y0 for lower, upper in itertools.pairwise(places))
    assert [text.xy[1] for text in axes.texts if text.get_text() == "far"] == [pytest.approx(1)]  # type: ignore[attr-defined]
