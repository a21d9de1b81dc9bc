"""Bands from what is refuted to what is proved, one sampler and relation each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd
from matplotlib.axes import Axes

from dpsub.artefacts.must.labels import in_order
from dpsub.figures import scheme_label, scheme_style

PAIR_DOTS = (0, (1, 1.6))
_RELATIONS = {"add_remove": "add or remove", "substitute": "substitute"}


def short(value: float) -> str:
    """Return a number without the zeros of its exponent: 1e-5."""
    return f"{value:g}".replace("e-0", "e-")


def by_sampler(frame: pd.DataFrame, x: str) -> Iterator[tuple[pd.DataFrame, dict[str, Any]]]:
    """Yield the records of each sampler and relation, sorted by `x`, and how they are drawn.

    A sampler under the second of two relations has open markers and names the relation.
    """
    ordered = in_order(frame, by=("scheme",))
    several = ordered.groupby("scheme")["adjacency"].nunique()
    for (scheme, adjacency), part in ordered.groupby(["scheme", "adjacency"], sort=False):
        style = scheme_style(str(scheme)) | {"linestyle": "-"}
        if several[scheme] > 1:
            style["label"] = f"{scheme_label(str(scheme))}, {_RELATIONS[str(adjacency)]}"
            style["markerfacecolor"] = "white" if adjacency == "substitute" else style["color"]
        yield part.sort_values(x), style


def draw_band(axes: Axes, x: pd.Series, lower: pd.Series, upper: pd.Series, style: dict[str, Any]) -> None:
    """Draw the proved end as a line with markers, the refuted end as a thin one, and what lies between."""
    axes.fill_between(x, lower, upper, color=style["color"], alpha=0.18, linewidth=0)
    axes.plot(x, lower, color=style["color"], linewidth=0.6)
    axes.plot(x, upper, **style)


def draw_pair(axes: Axes, x: pd.Series, values: pd.Series, style: dict[str, Any]) -> None:
    """Draw what the paper's pair gives, dotted and without a label of its own."""
    axes.plot(x, values, color=style["color"], linestyle=PAIR_DOTS, linewidth=1.0)
