"""Figures of groups under composition."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from dpsub.reproduce.artefact import Artefact, Records
from dpsub.reproduce.figures import Panel, draw_panels, line, remark

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from dpsub.reproduce.figures.panels import Layer

LOOKS: dict[str, dict[str, Any]] = {
    "the group's own pair": {"color": "#117733"},
    "group privacy property, from one record": {"color": "#0072B2", "linestyle": "--"},
    "group privacy, from the group (released code)": {"color": "#B00020", "linestyle": ":"},
}
SOURCES = ("stated", "specific_upper"), ("stated", "posthoc_upper"), ("as_done", "posthoc_upper")
CURVES = [
    (*source, {**look, "label": label, "marker": ""})
    for source, (label, look) in zip(SOURCES, LOOKS.items(), strict=True)
]
LEAST = 1e-20  # smallest delta that is drawn
NEAR_ONE = 0.9  # a bound from here on is not told from 1 on the axis


class ComposedFigure(Artefact):
    """delta of a group by the number of steps, a panel for each noise and rate."""

    title = "Figures 6, 18 and 19. A group after many steps"
    name, kind, experiments = "figure_composed", "figure", ("schuchardt_composed",)
    caption = (
        "δ at ε = 2 of a group of 16 records in Poisson samples against the number of steps, for "
        "four pairs of noise σ and rate r: by the group's own dominating pair, by the group "
        "privacy property applied to δ of one record, and by the same property applied to δ of the "
        "group, as the released code does. Each curve is a proved upper bound; an attack on the "
        "first attains at least 95 % of it. The first two are close: the group's own pair "
        "gains little under composition. δ is drawn from 1e-20 up to 1; each panel has its own "
        "axis. The first two begin at the number of steps that each panel names."
    )

    def draw(self, records: Records) -> tuple[Figure, pd.DataFrame]:
        frame = self.needed(records, "schuchardt_composed")
        panels = []
        for (noise, rate), part in frame.groupby(["noise", "rate"]):
            layers: list[Layer] = []
            lowest = 1e-4  # the axis begins there at the latest
            for variant, column, look in CURVES:
                known = part[(part["variant"] == variant) & part[column].notna()]
                delta = known[column].clip(upper=1)
                lowest = min(lowest, delta.min() / 10)
                layers.append(line(known["steps"].to_list(), delta.to_list(), **look))
            layers.append(remark(_said(part), "lower left"))
            axes = {"ylim": (max(LEAST, lowest), 2)}
            panels.append(Panel(f"σ = {noise:g}, r = {rate:g}", layers, axes))
        figure = draw_panels(
            panels,
            columns=2,
            xscale="log",
            yscale="log",
            xlabel="steps",
            ylabel="δ at ε = 2",
            labels=self.labels(records),
        )
        return figure, frame.drop(columns=["data", "replicate"])


def _said(part: pd.DataFrame) -> str:
    """Return the remark of a panel: the number of steps at which its curves begin, and whether they
    show anything but 1."""
    start = part.loc[part["specific_upper"].notna(), "steps"].min()
    least = min(part.loc[part["variant"] == variant, name].min() for variant, name in SOURCES)
    empty = f"all three above {NEAR_ONE:g}\n" if least > NEAR_ONE else ""
    return f"{empty}solid and dashed: from {start:,.0f} steps on"
