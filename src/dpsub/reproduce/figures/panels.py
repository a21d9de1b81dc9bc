"""Figures as lists of panels and panels as lists of layers: the shapes that most figures of the papers have.

A layer is any function that draws on the axes it gets; `curves`, `line`, `level` and `remark` make the usual ones. What
they cannot draw is a plain function in its place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from string import ascii_lowercase
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from dpsub.reproduce.figures.style import finish, new, panel_letter, sampler_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Layer = Callable[["Axes"], object]
Styles = Mapping[Any, Mapping[str, Any]] | Callable[[Any], Mapping[str, Any]]

MARKS = 8
"""Markers on a curve of many points; those of curves on each other stand at different places."""


def curves(frame: pd.DataFrame, x: str, y: str, *, by: str | Sequence[str] = "sampler", styles: Styles = sampler_style,
           band: tuple[str, str] | None = None, bars: tuple[str, str] | None = None, apart: float = 0.0,
           **changes: Any) -> Layer:  # fmt: skip
    """Return the layer of one curve a key, sorted by `x`, or of points where the line style is "none".

    `by` names the columns that tell the curves apart; the key is a value, or a tuple of values. `styles` gives for a
    key arguments of ``Axes.plot``: a mapping also says which keys are drawn, and their order, a callable takes all in
    order of appearance; `changes` replace the style of every curve (``label="_"`` keeps them out of the legend). `band`
    and `bars` are columns of the lower and upper ends of a filled band, or of vertical bars; ends that are NaN are not
    drawn. Curves stand `apart` points from one to the next across, so that marks do not hide each other.
    """
    columns = [by] if isinstance(by, str) else list(by)
    parts = {key[0] if len(key) == 1 else key: part.sort_values(x, kind="stable")
             for key, part in frame.groupby(columns, sort=False, dropna=False)}  # fmt: skip
    looks = {key: styles(key) for key in parts} if callable(styles) else styles
    shown = [key for key in looks if key in parts]

    def draw(axes: Axes) -> None:
        from matplotlib.transforms import ScaledTranslation

        for place, key in enumerate(shown):
            part = parts[key]
            step = max(1, len(part) // MARKS)
            style = {"markevery": (place * step // len(shown), step), **looks[key], **changes}
            drawn: list[Any] = axes.plot(part[x], part[y], **style)
            if band and np.isfinite(part[list(band)].to_numpy(float)).any():
                drawn.append(axes.fill_between(part[x], part[band[0]], part[band[1]], color=style["color"], alpha=0.2,
                                               linewidth=0))  # fmt: skip
            if bars:
                ends = [part[y] - part[bars[0]], part[bars[1]] - part[y]]
                drawn += axes.errorbar(part[x], part[y], yerr=ends, fmt="none", ecolor=style["color"],
                                       elinewidth=0.8).get_children()  # fmt: skip
            points = apart * (place - (len(shown) - 1) / 2)
            for artist in drawn if points else ():
                shift = ScaledTranslation(points / 72, 0, axes.figure.dpi_scale_trans)
                artist.set_transform(artist.get_transform() + shift)

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

        box = AnchoredText(text, loc=place, prop={"size": 6.5, "color": "#404040"}, pad=0.1, borderpad=0.4)
        box.patch.set(edgecolor="none", alpha=0.8)
        axes.add_artist(box)

    return draw


def where(frame: pd.DataFrame, **fields: object) -> pd.DataFrame:
    """Return the rows with these values of these columns."""
    for name, value in fields.items():
        frame = frame[frame[name] == value]
    return frame


@dataclass(frozen=True)
class Panel:
    """One panel: what it shows, its layers from bottom to top, and what is its own."""

    text: str
    """Written above its upper left corner; nothing, and no letter, if empty."""
    layers: Sequence[Layer]
    axes: Mapping[str, Any] = field(default_factory=dict)
    """Arguments of ``Axes.set``: `xlabel`, `ylim`, `yscale`, ...; before those that all panels have."""
    legend: str = ""
    """Place of a legend of its own ("upper right"); otherwise all panels share one."""


def draw_panels(panels: Iterable[Panel | None], *, columns: int = 3, width: float = 7.0, height: float = 2.3,
                letters: bool = True, labels: Iterable[str] = (), grid: Mapping[str, Any] | None = None,
                **axes: Any) -> Figure:  # fmt: skip
    """Return a figure of panels, row by row, with one legend: in the first empty place, or below.

    A panel None leaves a place empty; `width` is of the figure, `height` of a row of panels (inches), to which a legend
    below is added; `labels` of the data are printed if neither real nor simulated. `grid` has arguments of
    ``Figure.subplots`` (`sharex`, `sharey`, `height_ratios`, `subplot_kw`; along a shared axis only the outer panels
    name it), `axes` those of ``Axes.set`` for all. A logarithmic axis of less than two decades has plain numbers.
    """
    wanted, options = list(panels), dict(grid or {})
    columns = min(columns, len(wanted))
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
        _plain_numbers(spot)
    if not any(panel.legend for panel in wanted if panel):
        _shared_legend(figure, [spot for panel, spot in zip(wanted, places.flat, strict=True) if panel is None])
    return finish(figure, labels)


def _shared_legend(figure: Figure, empty: Sequence[Axes]) -> None:
    """Name every curve once."""
    found: dict[str, Any] = {}
    for axes in figure.axes:
        for handle, text in zip(*axes.get_legend_handles_labels(), strict=True):
            found.setdefault(text, handle)
    if found and empty:
        empty[0].legend(list(found.values()), list(found), loc="center")
    elif found:
        # a letter of the legend is 0.055 inches wide, a handle with its gaps takes half an inch
        columns = int(figure.get_figwidth() / (0.055 * max(map(len, found)) + 0.5))
        columns = max(1, min(columns, len(found)))
        lines = -(-len(found) // columns)
        figure.set_figheight(figure.get_figheight() + 0.1 + 0.15 * lines)
        figure.legend(list(found.values()), list(found), loc="outside lower center", ncols=columns)


def _plain_numbers(axes: Axes) -> None:
    """Write 2 and 0.5, not powers of ten, on logarithmic axes that are short or have ticks of their own."""
    from matplotlib.ticker import LogLocator, NullFormatter

    for axis, scale, (low, high) in ((axes.xaxis, axes.get_xscale(), axes.get_xlim()),
                                     (axes.yaxis, axes.get_yscale(), axes.get_ylim())):  # fmt: skip
        given = not isinstance(axis.get_major_locator(), LogLocator)
        if scale == "log" and (given or high < 100 * low):
            if not given:
                axis.set_major_locator(LogLocator(subs=range(1, 10) if high < 10 * low else (1, 2, 5)))
            axis.set_major_formatter("{x:g}")
            axis.set_minor_formatter(NullFormatter())
