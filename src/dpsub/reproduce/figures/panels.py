"""Figures as lists of panels and panels as lists of layers: the shapes that most figures of the
papers have.

A layer is any function that draws on the axes it gets; `curves`, `line`, `level` and `remark` make
the usual ones. A plain function in the place of a layer draws everything else.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from string import ascii_lowercase
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from dpsub.reproduce.figures.style import NEUTRAL, finish, new, panel_letter, sampler_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Layer = Callable[["Axes"], object]
Styles = Mapping[Any, Mapping[str, Any]] | Callable[[Any], Mapping[str, Any]]

LINE = 0.12  # inches between lines of text
MARKS = 8
"""Markers on a curve of many points; those of curves on each other stand at different places."""


def curves(
    frame: pd.DataFrame,
    x: str,
    y: str,
    *,
    by: str | Sequence[str] = "sampler",
    styles: Styles = sampler_style,
    band: tuple[str, str] | None = None,
    bars: tuple[str, str] | None = None,
    nested: float = 0.0,
    **changes: Any,
) -> Layer:
    """Return the layer of one curve for each key, sorted by `x`, or of points where the line style
    is "none".

    `by` names the columns that tell the curves apart; the key is a value, or a tuple of values.
    `styles` gives for a key arguments of ``Axes.plot``: a mapping also says which keys are drawn,
    and their order, a callable takes all in order of appearance; `changes` replace the style of
    every curve (``label="_"`` keeps them out of the legend). `band` and `bars` are columns of the
    lower and upper ends of a filled band, or of vertical bars; ends that are NaN are not drawn.
    Lines and markers of each curve are `nested` points wider than those of the next, drawn on top
    of it: where curves coincide, all of them are seen, and none is moved from its place.
    `markevery` counts points or, below 1, is a share of the diagonal of the axes; markers of
    different curves are staggered.
    """
    columns = [by] if isinstance(by, str) else list(by)
    parts = {}
    for key, part in frame.groupby(columns, sort=False, dropna=False):
        parts[key[0] if len(key) == 1 else key] = part.sort_values(x, kind="stable")
    # A mapping fixes the order of the legend, whatever order the records have.
    looks = {key: styles(key) for key in parts} if callable(styles) else styles
    shown = [key for key in looks if key in parts]

    def draw(axes: Axes) -> None:
        from matplotlib import rcParams

        for position, key in enumerate(shown):
            part = parts[key]
            # drawn first means below: it must be wider than all that come on top of it
            wider = nested * (len(shown) - 1 - position)
            style = {"markevery": max(1, len(part) // MARKS), **looks[key], **changes}
            every = style["markevery"]
            if isinstance(every, int | float):
                # markers of curves that coincide would hide each other
                style["markevery"] = (type(every)(position * every / len(shown)), every)
            (drawn,) = axes.plot(part[x], part[y], **style)
            drawn.set(
                linewidth=drawn.get_linewidth() + wider, markersize=drawn.get_markersize() + wider
            )
            if band and np.isfinite(part[list(band)].to_numpy(float)).any():
                axes.fill_between(
                    part[x],
                    part[band[0]],
                    part[band[1]],
                    color=style["color"],
                    alpha=0.2,
                    linewidth=0,
                )
            if bars:
                ends = [part[y] - part[bars[0]], part[bars[1]] - part[y]]
                axes.errorbar(
                    part[x],
                    part[y],
                    yerr=ends,
                    fmt="none",
                    ecolor=style["color"],
                    elinewidth=0.8 + wider,
                    capsize=rcParams["errorbar.capsize"] + wider,
                )

    return draw


def line(x: Sequence[float], y: Sequence[float], **style: Any) -> Layer:
    """Return the layer of a single line; one without points is an entry of the legend."""
    return lambda axes: axes.plot(x, y, **style)


def level(value: float, **style: Any) -> Layer:
    """Return the layer of a horizontal reference line, thin and black by default."""
    return lambda axes: axes.axhline(value, **{"color": "black", "linewidth": 0.7, **style})


def remark(text: str, place: str = "upper right") -> Layer:
    """Return the layer of a remark within the panel, at a place as legends know them."""

    def draw(axes: Axes) -> None:
        from matplotlib.offsetbox import AnchoredText

        box = AnchoredText(
            text, loc=place, prop={"size": 6.5, "color": "#404040"}, pad=0.1, borderpad=0.4
        )
        box.patch.set(edgecolor="none", alpha=0.8)
        axes.add_artist(box)

    return draw


def name_at(x: float, y: float, text: str, *, above: float = 0.0, **style: Any) -> Layer:
    """Return the layer of a name to the right of a point, such as the end of a curve.

    `above` moves it up by so many points, `style` has arguments of ``Axes.annotate``.
    """
    return lambda axes: axes.annotate(
        text,
        (x, y),
        xytext=(4, above),
        textcoords="offset points",
        va="center",
        annotation_clip=False,
        **{"fontsize": 7, **style},
    )


def name_ends(
    names: Mapping[str, tuple[float, str]],
    x: float,
    limits: tuple[float, float],
    inches: float,
    *,
    log: bool = False,
) -> Layer:
    """Return the layer that names curves behind their ends at `x`.

    `names` has the height and the colour of each text; texts are moved apart where they would
    touch, on an axis with these limits that is `inches` high, logarithmic or not.
    """
    from scipy.optimize import isotonic_regression

    texts = sorted(names, key=lambda text: names[text][0])
    heights = np.array([names[text][0] for text in texts])
    scale = np.array(limits)
    if log:
        heights, scale = np.log(heights), np.log(scale)
    lowest = LINE / inches * (scale[1] - scale[0]) * np.arange(len(texts))
    # The least moves, in squares, after which neighbours are a line apart.
    heights = isotonic_regression(heights - lowest).x + lowest
    places = np.exp(heights) if log else heights

    def draw(axes: Axes) -> None:
        for text, height in zip(texts, places, strict=True):
            axes.annotate(
                text,
                (x, height),
                xytext=(7, 0),
                textcoords="offset points",
                fontsize=7,
                color=names[text][1],
                va="center",
                annotation_clip=False,
            )

    return draw


def mark_keys(full: str, hollow: str) -> list[Layer]:
    """Return the entries of a legend for full and hollow marks, in no sampler's colour."""
    mark = {"color": NEUTRAL, "marker": "o", "linestyle": "none"}
    return [
        line([], [], **mark, label=full),
        line([], [], **mark, markerfacecolor="white", label=hollow),
    ]


def name_rows(axes: Axes, names: Iterable[str], *, size: float) -> None:
    """Name the rows of a panel from the top down; a name of several lines is written smaller."""
    texts = list(names)
    axes.set_yticks(range(len(texts)), texts)
    for tick in axes.get_yticklabels():
        tick.set_fontsize(5.5 if tick.get_text().count("\n") > 1 else size)
    axes.set_ylim(len(texts) - 0.5, -0.5)


def where(frame: pd.DataFrame, **fields: object) -> pd.DataFrame:
    """Return the rows with these values of these columns."""
    for name, value in fields.items():
        frame = frame[frame[name] == value]
    return frame


@dataclass(frozen=True)
class Panel:
    """One panel: its content, its layers from bottom to top, and its own settings."""

    text: str
    """Written above its upper left corner; nothing, and no letter, if empty."""
    layers: Sequence[Layer]
    axes: Mapping[str, Any] = field(default_factory=dict)
    """Arguments of ``Axes.set``: `xlabel`, `ylim`, `yscale`, ...; they precede those of all
    panels."""
    legend: str = ""
    """Place of a legend of its own ("upper right"); otherwise all panels share one."""


def draw_panels(
    panels: Iterable[Panel | None],
    *,
    columns: int = 3,
    width: float = 7.0,
    height: float = 2.3,
    letters: bool = True,
    labels: Iterable[str] = (),
    grid: Mapping[str, Any] | None = None,
    **axes: Any,
) -> Figure:
    """Return a figure of panels, row by row, with one legend: in the first empty place, or below.

    A panel None leaves a place empty; `width` is of the figure, `height` of a row of panels
    (inches), to which a legend below is added; `labels` of the data are printed if neither real nor
    simulated. `grid` has arguments of ``Figure.subplots`` (`sharex`, `sharey`, `height_ratios`,
    `subplot_kw`; along a shared axis only the outer panels name it), `axes` those of ``Axes.set``
    for all. Logarithmic axes have labels at 1, 2 and 5 where these have room.
    """
    wanted, options = list(panels), dict(grid or {})
    columns = min(columns, len(wanted))
    # Rounded up.
    rows = -(-len(wanted) // columns)
    wanted += [None] * (rows * columns - len(wanted))
    figure, places = new(rows, columns, width=width, height=height * rows, **options)
    names = iter(ascii_lowercase if letters and len(wanted) > 1 else [""] * len(wanted))
    for index, (panel, spot) in enumerate(zip(wanted, places.flat, strict=True)):
        if panel is None:
            spot.set_axis_off()
            continue
        for layer in panel.layers:
            layer(spot)
        settings = {**axes, **panel.axes}
        # The lowest panel of a column may stand above an empty place: it still names the axis.
        lowest = all(below is None for below in wanted[index + columns :: columns])
        if lowest and options.get("sharex"):
            spot.tick_params(labelbottom=True)
        elif options.get("sharex"):
            settings.pop("xlabel", None)
        if index % columns and options.get("sharey"):
            settings.pop("ylabel", None)
        # a scale puts ticks of its own, so it comes before ticks that are given
        spot.set(**{name: settings[name] for name in ("xscale", "yscale") if name in settings})
        spot.set(**settings)
        if panel.text:
            letter = next(names)
            panel_letter(spot, f"({letter}) {panel.text}" if letter else panel.text)
        if panel.legend:
            spot.legend(loc=panel.legend)
    for spot in places.flat:
        _logarithmic_ticks(spot)
        _whole_at_the_edge(spot)
    if not any(panel.legend for panel in wanted if panel):
        spots = zip(wanted, places.flat, strict=True)
        _shared_legend(figure, [spot for panel, spot in spots if panel is None])
    return finish(figure, labels)


def _shared_legend(figure: Figure, empty: Sequence[Axes]) -> None:
    """Name every curve once."""
    entries: dict[str, Any] = {}
    for axes in figure.axes:
        for handle, text in zip(*axes.get_legend_handles_labels(), strict=True):
            # Curves of one name look alike in all panels: the first handle stands for them.
            entries.setdefault(text, handle)
    handles, texts = list(entries.values()), list(entries)
    if entries and empty:
        empty[0].legend(handles, texts, loc="center")
    elif entries:
        # a letter of the legend is 0.055 inches wide, a handle with its gaps takes half an inch
        columns = int(figure.get_figwidth() / (0.055 * max(map(len, texts)) + 0.5))
        lines = -(-len(texts) // max(1, columns))
        columns = -(-len(texts) // lines)  # lines of equal length
        figure.set_figheight(figure.get_figheight() + 0.1 + 0.15 * lines)
        figure.legend(handles, texts, loc="outside lower center", ncols=columns)


def _logarithmic_ticks(axes: Axes) -> None:
    """Label logarithmic axes at 1, 2 and 5, short ones at each digit, long ones at powers of ten.

    Numbers from 0.001 to 10,000 are written out.
    """
    from matplotlib.ticker import LogFormatterSciNotation, LogLocator, NullFormatter, NullLocator

    for axis, scale, (low, high), inches, label in (
        (axes.xaxis, axes.get_xscale(), axes.get_xlim(), axes.bbox.width / axes.figure.dpi, 0.3),
        (axes.yaxis, axes.get_yscale(), axes.get_ylim(), axes.bbox.height / axes.figure.dpi, 0.16),
    ):
        if scale != "log":
            continue
        axis.set_minor_formatter(NullFormatter())
        if isinstance(axis.get_major_locator(), LogLocator):  # otherwise the ticks were given
            decades = math.log10(high / low)
            if 3 * decades < min(9, inches / label):
                ticks = np.asarray(LogLocator(subs=(1, 2, 5)).tick_values(low, high))
                few = np.sum((low <= ticks) & (ticks <= high)) < 2
                axis.set_major_locator(LogLocator(subs=range(1, 10) if few else (1, 2, 5)))
            elif decades > 5:
                axis.set_minor_locator(NullLocator())
        else:
            axis.set_minor_locator(NullLocator())
        shown = [tick for tick in axis.get_majorticklocs() if low <= tick <= high]
        # One form for all labels of an axis.
        short = not shown or (min(shown) >= 1e-3 and max(shown) <= 1e4)
        axis.set_major_formatter(
            "{x:g}" if short else LogFormatterSciNotation(minor_thresholds=(math.inf, math.inf))
        )


def _whole_at_the_edge(axes: Axes) -> None:
    """Draw curves that stay within the axes, and their markers, whole where they touch an edge."""
    limits = [sorted(axes.get_xlim()), sorted(axes.get_ylim())]
    for curve in axes.get_lines():
        values = [np.asarray(part, float) for part in curve.get_data(orig=False)]
        beyond = [
            ((part < low) | (part > high)).any()
            for part, (low, high) in zip(values, limits, strict=True)
        ]
        # a curve that leaves the axes is cut at their edge: outside, it would stand in margins
        if not any(beyond):
            curve.set(clip_on=False, in_layout=False)
