"""Figure 1: design, sample, mechanism. Figure 2: random sizes. Figure E1: allocations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from dpsub.papers.bun.tables import change
from dpsub.reproduce.artefact import Artefact, Records
from dpsub.reproduce.figures import Panel, curves, draw_panels, level, name_at
from dpsub.reproduce.figures.diagrams import Box, arc, arrow, canvas, caption, draw_box

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PRINTED, CORRECTED = "#D55E00", "#0072B2"
CURVES: dict[tuple[str, str], dict[str, Any]] = {
    ("stated", "upper"): {"color": "#F5C6A0", "linewidth": 5.0, "label": "_"},
    ("stated", "lower"): {"color": PRINTED, "linewidth": 2.5, "label": "_"},
    ("consistent", "upper"): {"color": "#A6CDE8", "linewidth": 5.0, "label": "_"},
    ("consistent", "lower"): {"color": CORRECTED, "linewidth": 2.5, "label": "_"},
    ("rigorous", "upper"): {"color": "black", "linestyle": (0, (4, 2)), "label": "_"},
}
"""Variant and side -> style; bounds that all but coincide lie on each other, wide to narrow."""
SPREAD = "#999999"
"""Label of populations whose establishments are spread over their classes."""
TOPICS = {
    "printed": {"label": "as printed", "color": PRINTED, "marker": "o"},
    "uniform": {"label": "synthetic, uniform within classes", "color": SPREAD, "marker": "s"},
    "log_uniform": {"label": "synthetic, log-uniform", "color": SPREAD, "marker": "^"},
    "vertex": {"label": "synthetic, at both class limits", "color": SPREAD, "marker": "D"},
    "piled": {"label": "synthetic, at the lower class limits", "color": CORRECTED, "marker": "v"},
}


class DataDependentScheme(Artefact):
    """Auxiliary data set the design, the design draws the sample, the mechanism sees the sample
    only."""

    kind = "figure"
    title = "Figure 1. A data-dependent sampling scheme"
    name = "figure1"
    caption = (
        "Data-dependent sampling. Auxiliary data H determine the sampling scheme C(H), which "
        "draws the sample S from the population P; an ε-DP mechanism M runs on S. Privacy is "
        "measured end to end, for the mechanism M_C that maps H and P to the release."
    )

    def draw(self, records: Records) -> tuple[Figure, pd.DataFrame]:
        figure, (axes,) = canvas(6.6, 1.9)
        names = ("population and\nauxiliary data", "sampling scheme", "sample", "release")
        texts = ("$P, H$", "$P,\\ \\mathcal{C}(H)$", "$S$", "$\\mathcal{M}(S)$")
        steps = ("design", "sample", "ε-DP\nmechanism")
        boxes = [
            Box(0.08 + 0.28 * stage, 0.56, text, stage, 0.12, 0.24)
            for stage, text in enumerate(texts)
        ]
        for start, end, step in zip(boxes[:-1], boxes[1:], steps, strict=True):
            arrow(axes, start, end)
            caption(axes, (start.x + end.x) / 2, 0.66 + 0.05 * step.count("\n"), step)
        for box, name in zip(boxes, names, strict=True):
            draw_box(axes, box)
            caption(axes, box.x, 0.86, name)
        arc(axes, (boxes[0].x, 0.43), (boxes[-1].x, 0.43), bend=0.18)
        caption(axes, 0.5, 0.06, "end to end: $\\mathcal{M}_{\\mathcal{C}}(H, P)$")
        return figure, pd.DataFrame({"from": texts[:-1], "to": texts[1:], "step": steps})


class RandomSizeBounds(Artefact):
    """Bounds of the loss against the standard deviation of the sample's size."""

    kind = "figure"
    title = "Figure 2. Bounds of Theorem 3.1 for a random sample size"
    name = "figure2"
    statements = ("U013", "U014", "U015", "U016", "U017", "U018", "U019")
    caption = (
        "Privacy loss ε′ under substitution when the sample size is a truncated Gaussian with mean "
        "n/2 (n = 10,000) and the mechanism is ε-DP under add/remove, ε = 0.01. The exact loss is "
        "about twice the printed upper bound, which holds only for mechanisms that are ε-DP under "
        "substitution as well. Upper and lower bounds are closer than the width of a line."
    )
    experiments = ("bun_random_size",)

    def draw(self, records: Records) -> tuple[Figure, pd.DataFrame]:
        frame = self.needed(records, "bun_random_size")
        epsilon = float(frame["epsilon"].iloc[0])
        # One curve for each variant and side: the printed pair, the corrected pair, the exact loss.
        sides = frame.melt(["variant", "sigma"], ["upper", "lower"], "side", "loss")
        least, largest = frame["sigma"].min(), frame["sigma"].max()
        names = {
            # Twice epsilon is the limit that a mechanism reaches that is epsilon-DP under
            # add/remove, when all records are sampled (erratum BN1).
            ("rigorous", "upper"): (
                "exact worst-case loss\n(dashed), corrected\nbounds",
                "black",
            ),
            ("stated", "upper"): ("printed upper and\nlower bound (one line)", PRINTED),
        }
        last = frame[frame["sigma"] == largest].set_index("variant")
        layers = [
            curves(sides, "sigma", "loss", by=("variant", "side"), styles=CURVES),
            *(
                level(times * epsilon, color="#888888", linewidth=0.6, linestyle=":")
                for times in (1, 2)
            ),
            *(
                name_at(largest, float(last[side][variant]), text, color=colour)
                for (variant, side), (text, colour) in names.items()
            ),
        ]
        panel = Panel(
            "",
            layers,
            {
                "xlim": (least, largest),
                "yticks": [0.5 * epsilon, epsilon, 1.5 * epsilon, 2 * epsilon],
                "yticklabels": ["ε/2", "ε", "3ε/2", "2ε"],
            },
        )
        figure = draw_panels(
            [panel],
            columns=1,
            width=6.4,
            height=2.9,
            labels=self.labels(records),
            xlabel="standard deviation σ of the sample size",
            ylabel="ε′ (nats)",
            ylim=(0.4 * epsilon, 2.1 * epsilon),
        )
        return figure, frame.reset_index(drop=True)


class GrowingEstablishment(Artefact):
    """Change of the allocation, class by class."""

    kind = "figure"
    title = "Appendix E.1. Neyman allocation when one establishment grows"
    name = "figureE1"
    caption = (
        "Change of the Neyman allocation (m = 10,000), class by class, when the smallest "
        "establishment grows to the top code: as printed, and for synthetic populations with "
        "made-up class counts. The printed change is approached only if all establishments of the "
        "top class sit at its lower limit (blue); establishments spread over their classes (grey) "
        "change it by 0 or 1."
    )
    experiments = ("bun_neyman",)

    def draw(self, records: Records) -> tuple[Figure, pd.DataFrame]:
        frame = self.needed(records, "bun_neyman", variants=("consistent",)).assign(change=change)
        classes = frame[frame["topic"] == "printed"]
        shown = frame[frame["topic"].isin(TOPICS)]
        # Five populations a class: moved sideways, so that their stems do not cover each other.
        offset = {topic: 0.14 * (number - 2) for number, topic in enumerate(TOPICS)}
        shown = shown.assign(at=shown["stratum"] + shown["topic"].map(offset))
        layers = [
            level(0, linewidth=0.6),
            lambda axes: axes.grid(axis="x", visible=False),
            lambda axes: axes.vlines(
                shown["at"],
                0,
                shown["change"],
                linewidth=0.8,
                colors=[TOPICS[topic]["color"] for topic in shown["topic"]],
            ),
            curves(shown, "at", "change", by="topic", styles=TOPICS, linestyle="none", markevery=1),
        ]
        panel = Panel(
            "",
            layers,
            {
                "xlabel": "class of establishments, by employees",
                "ylabel": "change of the allocation (establishments)",
                "xticks": classes["stratum"],
                # Classes are unequal in width, and the last one ends at the top code (erratum BN9).
                "xticklabels": [
                    f"{low}–\n{high}"
                    for low, high in zip(classes["low"], classes["high"], strict=True)
                ],
            },
            "upper left",
        )
        figure = draw_panels([panel], columns=1, width=6.4, height=3.2, labels=self.labels(records))
        columns = ["topic", "stratum", "low", "high", "before", "after", "change"]
        return figure, frame[columns].reset_index(drop=True)
