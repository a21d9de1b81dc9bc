"""Figures: the answers of other accountants, and Poisson's for shuffled batches, compared with the
epsilon that an attack attains."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import pandas as pd

from dpsub.papers.practice.settings import ACCOUNTANTS
from dpsub.reproduce.artefact import Artefact, Records
from dpsub.reproduce.digits import as_printed
from dpsub.reproduce.figures import Panel, curves, draw_panels, remark, sampler_style
from dpsub.reproduce.labels import WORDS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from dpsub.reproduce.figures.panels import Layer

BLOCKS = {
    "WOR, substitution": "sampler == 'wor'",
    "Poisson, add/remove": "sampler == 'poisson' and rate < 1 and mechanism == 'gaussian'",
    "no sampling, Gaussian noise": "rate == 1 and mechanism == 'gaussian'",
    "Laplace noise, add/remove": "mechanism == 'laplace'",
}
VERDICTS: dict[str, dict[str, Any]] = {
    "proved": {"color": "#117733", "marker": "o"},
    "open": {"color": "#595959", "marker": "o", "markerfacecolor": "white"},
    "refuted": {"color": "#B00020", "marker": "x"},
}


class AnswersOverAttack(Artefact):
    """Each answer over the epsilon that an attack attains, a row for each accountant."""

    title = "Answers of other accountants compared with an attack"
    name, kind, experiments = "figure_answers", "figure", ("practice_answers",)
    caption = (
        "ε that each accountant answers, divided by the ε that an attack on explicit data sets "
        "attains for the same release. An upper bound or an estimate to the left of the line at 1 "
        "is refuted, and a lower bound to the right of it: the lower bounds of prv-accountant are "
        "proved where they lie left of the line. Marks at 1 lie on each other; next to each row: "
        "how many answers are proved, open (between the attack and our proof) and refuted. No "
        "answer: the accountant has no method for these releases, or for the row 'noise over 2 C' "
        "the sensitivity is C."
    )

    def draw(self, records: Records) -> tuple[Figure, pd.DataFrame]:
        frame = self.needed(records, self.experiments[0])
        verdict = frame["holds"].map({1.0: "proved", 0.0: "refuted"}).fillna("open")
        frame = frame.assign(ratio=frame["claimed"] / frame["epsilon_lower"], verdict=verdict)
        names = [name for name in ACCOUNTANTS if name in set(frame["accountant"])]
        panels = [
            Panel(text, [partial(_rows, part=part, names=names)])
            for text, chosen in BLOCKS.items()
            if len(part := frame.query(chosen))
        ]
        figure = draw_panels(
            panels,
            columns=2,
            xlabel="answer / ε that an attack attains",
            xscale="log",
            # All panels have the same rows and the same axis.
            xlim=(0.85 * frame["ratio"].min(), 1.15 * frame["ratio"].max()),
            grid={"sharex": True, "sharey": True},
            labels=self.labels(records),
        )
        return figure, frame.drop(columns=["data", "replicate"])


def _rows(axes: Axes, part: pd.DataFrame, names: Sequence[str]) -> None:
    """Draw a row for each accountant, and next to it how many answers have each verdict."""
    axes.axvline(1, color="black", linewidth=0.7)
    for column, (verdict, look) in enumerate(VERDICTS.items()):
        chosen = part[part["verdict"] == verdict]
        rows = [names.index(name) for name in chosen["accountant"]]
        axes.plot(chosen["ratio"], rows, linestyle="none", markersize=4, label=verdict, **look)
        # A column of counts stands to the right of the panel, headed by the mark of the verdict.
        at, place = 1.05 + 0.075 * column, axes.get_yaxis_transform()
        axes.plot(at, -0.85, transform=place, linestyle="none", markersize=4, clip_on=False, **look)
        for row, name in enumerate(names):
            count = (chosen["accountant"] == name).sum()
            if name in set(part["accountant"]):
                axes.text(
                    at,
                    row,
                    str(count),
                    transform=place,
                    color=look["color"] if count else "#999999",
                    size=7,
                    ha="center",
                    va="center",
                )
    for row, name in enumerate(names):
        if name not in set(part["accountant"]):
            axes.text(1.12, row, "no answer", size=6.5, color="#404040", va="center")
    axes.set_yticks(range(len(names)), [name.replace(", ", ",\n") for name in names])
    axes.set_ylim(len(names) - 0.5, -0.5)


class ShufflingFigure(Artefact):
    """Both bounds on epsilon of shuffled batches, and Poisson's, over the noise."""

    title = "Shuffled batches and Poisson's ε, against the noise multiplier"
    name, kind, experiments = "figure_shuffling", "figure", ("practice_shuffling",)
    caption = (
        "ε against the noise multiplier for records in batches of m. The band belongs to shuffled "
        "batches: it runs from a lower bound (an attack on explicit data sets) to an upper bound "
        "(a proof, dashed, which uses amplification by shuffling where the noise is not small). "
        "The line with marks is Poisson sampling with as many steps, the same expected batch size "
        "and the same adjacency. Where it lies below the band, Poisson's ε is refuted for shuffled "
        "batches."
    )

    def draw(self, records: Records) -> tuple[Figure, pd.DataFrame]:
        frame = self.needed(records, self.experiments[0])
        shuffled = {"color": "#882255", "marker": ""}
        attained = {**shuffled, "label": "shuffled batches, attained by an attack"}
        proved = {**shuffled, "linestyle": "--", "label": "shuffled batches, proved"}
        poisson = {**sampler_style("poisson"), "label": "Poisson samples"}
        n, delta = frame["n"].iloc[0], as_printed(format(frame["delta"].iloc[0], "g"))
        panels: list[Panel] = []
        for (adjacency, m, epochs), part in frame.groupby(["adjacency", "m", "epochs"], sort=False):
            passes = "1 epoch" if epochs == 1 else f"{epochs} epochs"
            layers: list[Layer] = [
                curves(
                    part,
                    "noise_multiplier",
                    f"epsilon_{end}",
                    by="adjacency",
                    styles={adjacency: look},
                    band=("epsilon_lower", "epsilon_upper") if end == "lower" else None,
                )
                for end, look in (
                    ("lower", attained),
                    ("upper", proved),
                    ("poisson", poisson),
                )
            ]
            if not panels:
                layers.append(remark(f"n = {n:,}"))
            panels.append(Panel(f"{WORDS[str(adjacency)]}, m = {m}, {passes}", layers))
        figure = draw_panels(
            panels,
            height=1.75,
            xlabel="noise multiplier",
            ylabel=f"ε at δ = {delta}",
            xscale="log",
            yscale="log",
            grid={"sharex": True, "sharey": True},
            labels=self.labels(records),
        )
        return figure, frame.drop(columns=["data", "replicate"])


class GroupsFigure(Artefact):
    """Three bounds for users with several records, against the number of records."""

    title = "Users with several records: three proved bounds"
    name, kind, experiments = "figure_groups", "figure", ("practice_groups",)
    caption = (
        "Proved ε for all records of a user together, Poisson sampling under add/remove, against "
        "the number of records. Lowest line: by the distribution of how many of them are drawn, "
        "which is exact. Dashed: the curve of one record composed with itself at each step. "
        "Dotted: group privacy of the composed ε, at the smaller δ that it needs; it ends where "
        "that δ is smaller than any that is computed."
    )

    def draw(self, records: Records) -> tuple[Figure, pd.DataFrame]:
        frame = self.needed(records, self.experiments[0])
        looks: dict[str, dict[str, Any]] = {
            "converted": {"label": "group privacy of ε", "color": "#B00020", "linestyle": ":"},
            "composed": {"label": "curve of one record", "color": "#882255", "linestyle": "--"},
            "direct": {
                "label": "distribution of the number drawn",
                "color": "#117733",
                "marker": "o",
            },
        }
        panels = []
        for (rate, noise, steps), part in frame.groupby(
            ["rate", "noise_multiplier", "steps"], sort=False
        ):
            layer = curves(part, "group", "epsilon_upper", by="bound", styles=looks)
            title = f"rate {rate:g}, noise multiplier {noise:g}, {steps:,} steps"
            panels.append(Panel(title, [layer]))
        figure = draw_panels(
            panels,
            xlabel="records of a user",
            ylabel="ε",
            yscale="log",
            labels=self.labels(records),
        )
        return figure, frame.drop(columns=["data", "replicate"])
