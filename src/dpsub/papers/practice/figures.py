"""Figures: how far answers of other accountants, and Poisson's for shuffled batches, are from what
is attained."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pandas as pd

from dpsub.papers.practice.settings import ACCOUNTANTS
from dpsub.reproduce.artefact import Artefact, Records
from dpsub.reproduce.digits import as_printed
from dpsub.reproduce.figures import Panel, curves, draw_panels, line, sampler_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BLOCKS = {
    "WOR, substitute": "sampler == 'wor'",
    "Poisson, add or remove": "sampler == 'poisson' and rate < 1 and mechanism == 'gaussian'",
    "all records, Gaussian noise": "rate == 1 and mechanism == 'gaussian'",
    "Laplace noise": "mechanism == 'laplace'",
}
VERDICTS: dict[str, dict[str, Any]] = {
    "proved": {"color": "#117733", "marker": "o"},
    "open": {"color": "#595959", "marker": "o", "markerfacecolor": "white"},
    "refuted": {"color": "#B00020", "marker": "x"},
}


class AnswersOverAttack(Artefact):
    """Each answer over the epsilon that an attack attains, a row an accountant."""

    title = "Answers of other accountants over what an attack attains"
    name, kind, experiments = "figure_answers", "figure", ("practice_answers",)
    caption = (
        "ε that accountants answer, divided by the ε that an attack on explicit data sets attains "
        "for the same releases, each at 60 settings where it has a method. An upper bound left of "
        "the line is refuted; hollow marks lie between what is attained and what is proved."
    )

    def draw(self, records: Records) -> tuple[Figure, pd.DataFrame]:
        frame = self.needed(records, self.experiments[0])
        verdict = frame["holds"].map({1.0: "proved", 0.0: "refuted"}).fillna("open")
        frame = frame.assign(ratio=frame["claimed"] / frame["epsilon_lower"], verdict=verdict)
        panels = [
            Panel(text, [partial(_rows, part=part)], {"xscale": "log"})
            for text, chosen in BLOCKS.items()
            if len(part := frame.query(chosen))
        ]
        figure = draw_panels(
            panels, columns=2, xlabel="answer / attained", labels=self.labels(records)
        )
        return figure, frame.drop(columns=["data", "replicate"])


def _rows(axes: Axes, part: pd.DataFrame) -> None:
    """Draw a row an accountant."""
    names = [name for name in ACCOUNTANTS if name in set(part["accountant"])]
    axes.axvline(1, color="black", linewidth=0.7)
    for verdict, look in VERDICTS.items():
        chosen = part[part["verdict"] == verdict]
        rows = [names.index(name) for name in chosen["accountant"]]
        axes.plot(chosen["ratio"], rows, linestyle="none", markersize=4, label=verdict, **look)
    # three labelled ticks
    axes.set_xlim(min(0.48, 0.9 * part["ratio"].min()), max(2.1, 1.1 * part["ratio"].max()))
    axes.set_yticks(range(len(names)), [name.replace(", ", ",\n") for name in names])
    axes.set_ylim(len(names) - 0.5, -0.5)


class ShufflingFigure(Artefact):
    """Both ends of epsilon of shuffled batches, and Poisson's, over the noise."""

    title = "Shuffled batches and Poisson's ε at the same noise"
    name, kind, experiments = "figure_shuffling", "figure", ("practice_shuffling",)
    caption = (
        "ε over the noise multiplier, for records in batches of m; a record is put to 0 "
        "(zero-out) or replaced (substitute). Band: shuffled batches, from what an attack on "
        "explicit data sets attains to what is proved (dashed: no amplification at all). Line "
        "with marks: Poisson sampling with as many steps of expected size m, under the same "
        "adjacency. Where it lies below the band, Poisson's ε is refuted for shuffled batches."
    )

    def draw(self, records: Records) -> tuple[Figure, pd.DataFrame]:
        frame = self.needed(records, self.experiments[0])
        poisson, band = sampler_style("poisson"), {"color": "#882255", "marker": ""}
        panels = []
        for (adjacency, m, epochs), part in frame.groupby(["adjacency", "m", "epochs"], sort=False):
            passes = "1 epoch" if epochs == 1 else f"{epochs} epochs"
            relation = str(adjacency).replace("_", "-")
            panels.append(
                Panel(
                    f"{relation}, m = {m}, {passes}",
                    [
                        curves(
                            part,
                            "noise_multiplier",
                            "epsilon_lower",
                            by="adjacency",
                            band=("epsilon_lower", "epsilon_upper"),
                            styles=lambda _: {**band, "label": "shuffled, attack"},
                        ),
                        curves(
                            part,
                            "noise_multiplier",
                            "epsilon_upper",
                            by="adjacency",
                            styles=lambda _: {
                                **band,
                                "linestyle": "--",
                                "label": "shuffled, proved",
                            },
                        ),
                        curves(
                            part,
                            "noise_multiplier",
                            "epsilon_poisson",
                            by="adjacency",
                            styles=lambda _: {**poisson, "label": "Poisson"},
                        ),
                    ],
                )
            )
        sizes = f"n = {frame['n'].iloc[0]}, δ = {as_printed(format(frame['delta'].iloc[0], 'g'))}"
        panels[0] = replace(
            panels[0], layers=[*panels[0].layers, line([], [], linestyle="none", label=sizes)]
        )
        figure = draw_panels(
            panels,
            height=1.75,
            xlabel="noise multiplier",
            ylabel="ε",
            xscale="log",
            yscale="log",
            grid={"sharex": True, "sharey": True},
            labels=self.labels(records),
        )
        return figure, frame.drop(columns=["data", "replicate"])
