"""Colours, markers and labels of samplers, axes, the visible data label, and figures as bytes."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dpsub.reproduce.labels import looks
from dpsub.sampling import kind_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# dates and versions would make other bytes of the same picture
_METADATA: dict[str, dict[str, None]] = {
    "pdf": {"CreationDate": None, "Producer": None, "Creator": None},
    "png": {"Software": None},
}


NEUTRAL = "#595959"
"""Colour of legend entries that stand for all samplers."""


@contextmanager
def styled() -> Iterator[None]:
    """Draw in the house style, whatever the user's own settings are."""
    from matplotlib import style

    with style.context(Path(__file__).with_name("dpsub.mplstyle"), after_reset=True):
        yield


def new(
    rows: int, columns: int, *, width: float, height: float, **options: Any
) -> tuple[Figure, np.ndarray]:
    """Return an empty figure in the house style and its axes, shape (rows, columns); sizes in
    inches."""
    from matplotlib.figure import Figure

    with styled():
        figure = Figure(figsize=(width, height), layout="constrained")
        axes = figure.subplots(rows, columns, squeeze=False, **options)
    return figure, axes


def sampler_style(sampler: str) -> dict[str, Any]:
    """Return label, colour, marker and dashes of a sampler, schedule or scheme as keyword arguments
    of ``Axes.plot``.

    Curves that lie on each other stay visible by their dashes.
    """
    if sampler in looks():
        return dict(looks()[sampler])
    kind = kind_of(sampler)
    return {
        "label": kind.label,
        "color": kind.colour,
        "marker": kind.marker,
        "linestyle": kind.line_style,
    }


def axis(axes: Axes, *, x: str, y: str, xlim: Any = None, ylim: Any = None) -> None:
    """Name the axes and fix their limits where given."""
    axes.set(xlabel=x, ylabel=y)
    if xlim is not None:
        axes.set_xlim(xlim)
    if ylim is not None:
        axes.set_ylim(ylim)


def panel_letter(axes: Axes, text: str) -> None:
    """Write the letter and the title of a panel above its upper left corner; a box in three
    dimensions leaves that corner empty."""
    height = 0.9 if axes.name == "3d" else 1.0
    axes.annotate(
        text,
        (0, height),
        xycoords="axes fraction",
        xytext=(0, 4),
        textcoords="offset points",
        fontsize=8,
        ha="left",
        va="bottom",
    )


def finish(figure: Figure, data_labels: Iterable[str] = ()) -> Figure:
    """Print the label of the data above the panels, unless the data are real or simulated."""
    from matplotlib.transforms import ScaledTranslation

    odd = sorted(set(data_labels) - {"", "real"})
    if odd:
        # Room above the panels: the label must not cover what it is about.
        figure.set_layout_engine("constrained", rect=(0, 0, 1, 1 - 0.2 / figure.get_figheight()))
        corner = figure.transFigure + ScaledTranslation(-4 / 72, -4 / 72, figure.dpi_scale_trans)
        figure.text(
            1,
            1,
            f"{', '.join(odd)} data",
            transform=corner,
            ha="right",
            va="top",
            fontsize=8,
            color="#B00020",
            weight="bold",
            bbox={"facecolor": "white", "edgecolor": "#B00020", "pad": 2},
        )
    return figure


def figure_bytes(figure: Figure, form: str) -> bytes:
    """Return the file content of `figure` as "pdf" or "png": the same whenever and wherever it is
    written."""
    buffer = io.BytesIO()
    with styled():
        figure.savefig(buffer, format=form, metadata=_METADATA[form])
    # Constrained layout takes as long as drawing: further forms have the layout of the first one.
    figure.set_layout_engine("none")
    return buffer.getvalue()
