"""Bands from what is refuted to what is proved, one sampler and relation each."""

from __future__ import annotations

from typing import Any

import pandas as pd

from dpsub.papers.must.artefacts.labels import in_order
from dpsub.reproduce.figures import Panel, curves, line, sampler_style
from dpsub.reproduce.figures.panels import Layer, Styles
from dpsub.reproduce.labels import sampler_label

PAIR: dict[str, Any] = {"linestyle": (0, (1, 1.6)), "linewidth": 1.0}
_KEY = ("sampler", "adjacency")
_RELATIONS = {"add_remove": "add or remove", "substitute": "substitute"}


def short(value: float) -> str:
    """Return a number without the zeros of its exponent: 1e-5."""
    return f"{value:g}".replace("e-0", "e-")


def band(frame: pd.DataFrame, x: str, lower: str, upper: str, by: str | tuple[str, ...], styles: Styles) -> list[Layer]:
    """Return the proved end as a line with markers, the refuted end as a thin one, and what lies between."""
    thin = curves(frame, x, lower, by=by, styles=styles, marker="", linestyle="-", linewidth=0.6, label="_")
    return [thin, curves(frame, x, upper, by=by, styles=styles, band=(lower, upper), linestyle="-")]


def band_panel(frame: pd.DataFrame, x: str, lower: str, upper: str, pair: str) -> Panel:
    """Return a band for each sampler and relation, and the paper's pair dotted.

    A sampler under the second of two relations has open markers and names the relation.
    """
    ordered = in_order(frame, by=("sampler",))
    several = ordered.groupby("sampler")["adjacency"].nunique() > 1
    styles = {}
    for sampler, adjacency in ordered[list(_KEY)].drop_duplicates().itertuples(index=False):
        style = styles[sampler, adjacency] = sampler_style(sampler)
        if several[sampler]:
            style["label"] = f"{sampler_label(sampler)}, {_RELATIONS[adjacency]}"
            style["markerfacecolor"] = "white" if adjacency == "substitute" else style["color"]
    pairs = curves(frame, x, pair, by=_KEY, styles=styles, marker="", label="_", **PAIR)
    name = line([], [], color="black", label="the paper's pair", **PAIR)
    return Panel("", [*band(frame, x, lower, upper, _KEY, styles), pairs, name])
