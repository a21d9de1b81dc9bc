"""Epsilon by noise for each sampler, and delta of both orders by epsilon."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from dpsub.reproduce.artefact import Artefact, Records
from dpsub.reproduce.figures import Panel, curves, draw_panels, sampler_style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LOOKS: dict[tuple[str, str], dict[str, Any]] = {
    ("wor", "substitute"): {
        "color": sampler_style("wor")["color"],
        "label": "without replacement, substitution",
    },
    ("wor", "zero_out"): {
        "color": sampler_style("wor")["color"],
        "linestyle": "--",
        "label": "without replacement, zero-out",
    },
    ("poisson", "substitute"): {
        "color": sampler_style("poisson")["color"],
        "label": "Poisson, substitution",
    },
    ("poisson", "add_remove"): {
        "color": sampler_style("poisson")["color"],
        "linestyle": "--",
        "label": "Poisson, add/remove",
    },
}
ORDERS: dict[str, dict[str, Any]] = {
    "remove": {"color": "#0072B2", "label": "a record removed"},
    "add": {"color": "#D55E00", "linestyle": "--", "label": "a record added"},
}


class SamplersFigure(Artefact):
    """epsilon by noise multiplier, a curve for each sampler and adjacency."""

    title = "ε by noise, for Poisson samples and for samples without replacement"
    name, kind, experiments = "figure_samplers", "figure", ("lebeda_samplers",)
    caption = (
        "ε at δ = 10⁻⁶ after 1000 steps with 1000 of a million records, by noise multiplier, for "
        "both samplers and two adjacencies each. Bands run from what an attack attains to what is "
        "proved. With little noise the sampler decides, not the adjacency; with much noise the "
        "adjacency does."
    )

    def draw(self, records: Records) -> tuple[Figure, pd.DataFrame]:
        frame = self.needed(records, "lebeda_samplers")
        layer = curves(
            frame,
            "noise",
            "epsilon_upper",
            by=["sampler", "adjacency"],
            styles=LOOKS,
            band=("epsilon_lower", "epsilon_upper"),
            marker="",
        )
        panel = Panel("", [layer], {"xscale": "log", "yscale": "log"})
        figure = draw_panels(
            [panel],
            width=6.0,
            xlabel="noise multiplier",
            ylabel="ε at δ = 10⁻⁶",
            labels=self.labels(records),
        )
        return figure, frame.drop(columns=["data", "replicate"])


class OrdersFigure(Artefact):
    """delta by epsilon of both orders, a panel for each number of steps with Laplace noise."""

    title = "Laplace noise on Poisson samples: a record removed, and one added"
    name, kind, experiments = "figure_orders", "figure", ("lebeda_directions",)
    caption = (
        "δ of Laplace noise of scale 1 on Poisson samples of rate 0.5 against ε, after so many "
        "steps, where a record is removed and where one is added; the proved bound, an attack is "
        "within 0.001. In one step the added record is the worse one at no ε; in two and in five "
        "steps it is, at small ε."
    )

    def draw(self, records: Records) -> tuple[Figure, pd.DataFrame]:
        frame = self.needed(records, "lebeda_directions")
        frame = frame[frame["law"] == "laplace"]
        panels = []
        for steps, part in frame.groupby("steps"):
            long = pd.concat(
                [
                    part.assign(order=order, delta=part[f"{order}_upper"].clip(lower=0))
                    for order in ORDERS
                ]
            )
            layer = curves(long, "epsilon", "delta", by="order", styles=ORDERS, marker="")
            panels.append(Panel(f"{steps} step{'s' if steps != 1 else ''}", [layer]))
        figure = draw_panels(
            panels,
            columns=min(4, len(panels)),
            width=9.0,
            xlabel="ε",
            ylabel="δ",
            labels=self.labels(records),
        )
        return figure, frame.drop(columns=["data", "replicate"])
