"""Figure 1: design, sample, mechanism. Figure 2: random sizes. Figure E1: allocations."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from dpsub.reproduce.artefact import Artefact, Records, values_frame
from dpsub.reproduce.figures import axis, finish, new, panel_letter
from dpsub.reproduce.figures.diagrams import Box, arc, arrow, canvas, caption, draw_box

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CURVES = {
    ("stated", "upper"): ("upper, as printed", "#D55E00", "-"),
    ("stated", "lower"): ("lower, as printed", "#D55E00", ":"),
    ("consistent", "upper"): ("upper, corrected", "#0072B2", "-"),
    ("consistent", "lower"): ("lower, corrected", "#0072B2", ":"),
    ("rigorous", "upper"): ("exact worst loss", "black", (0, (4, 2))),
}
TOPICS = {
    "printed": ("as printed", "#D55E00", "o"),
    "uniform": ("uniform", "#0072B2", "s"),
    "log_uniform": ("log-uniform", "#009E73", "^"),
    "vertex": ("at the class limits", "#CC79A7", "D"),
    "piled": ("piled at the lower limits", "#666666", "v"),
}


class Figure1(Artefact):
    """Auxiliary data set the design, the design draws the sample, the mechanism sees the sample only."""

    paper = "bun"
    name = "figure1"
    kind = "figure"
    caption = (
        "Data-dependent sampling: auxiliary data H set the sampling scheme C(H), which draws the sample S from the "
        "population P, on which the epsilon-DP mechanism M runs. What is promised to the population is the privacy of "
        "the whole, M_C."
    )

    def values(self, records: Records) -> pd.DataFrame:
        return values_frame([])

    def draw(self, records: Records) -> tuple[Figure, pd.DataFrame]:
        figure, (axes,) = canvas(6.6, 1.9)
        shape = {"width": 0.12, "height": 0.24}
        texts = ("$P, H$", "$P,\\ \\mathcal{C}(H)$", "$S$", "$\\mathcal{M}(S)$")
        boxes = [Box(x, 0.56, text, level, **shape)
                 for level, (x, text) in enumerate(zip((0.08, 0.36, 0.64, 0.92), texts, strict=True))]  # fmt: skip
        steps = ("design", "sample", "ε-DP\nmechanism")
        for start, end, step in zip(boxes[:-1], boxes[1:], steps, strict=True):
            arrow(axes, start, end)
            caption(axes, (start.x + end.x) / 2, 0.66 + 0.05 * step.count("\n"), step)
        for box in boxes:
            draw_box(axes, box)
        arc(axes, (boxes[0].x, 0.43), (boxes[-1].x, 0.43), bend=0.18)
        caption(axes, 0.5, 0.06, "end to end: $\\mathcal{M}_{\\mathcal{C}}(H, P)$")
        names = ("population and\nauxiliary data", "sampling scheme", "sample", "release")
        for box, text in zip(boxes, names, strict=True):
            caption(axes, box.x, 0.86, text)
        numbers = pd.DataFrame({"from": [box.text for box in boxes[:-1]], "to": [box.text for box in boxes[1:]],
                                "step": steps})  # fmt: skip
        return figure, numbers


class Figure2(Artefact):
    """Bounds of the loss against the standard deviation of the sample's size."""

    paper = "bun"
    name = "figure2"
    kind = "figure"
    caption = (
        "Loss under substitution when the sample's size is a truncated Gaussian with mean n/2 (n = 10,000) and the "
        "mechanism is 0.01-DP under add_remove. The printed upper curve lies below the exact loss: it holds only for "
        "mechanisms that are 0.01-DP under substitution as well. Left: sigma on a linear axis; right: logarithmic."
    )
    experiments = ("bun_random_size",)
    keys = ("sigma",)

    def values(self, records: Records) -> pd.DataFrame:
        rows = []
        for record in self.needed(records, "bun_random_size").to_dict("records"):
            row = {"sigma": record["sigma"]}
            rows += [{**row, "column": name, "variant": record["variant"], "value": record[name]}
                     for name in ("lower", "upper")]  # fmt: skip
        return values_frame(rows)

    def draw(self, records: Records) -> tuple[Figure, pd.DataFrame]:
        frame = self.needed(records, "bun_random_size")
        figure, grid = new(1, 2, width=6.8, height=3.0, sharey=True)
        epsilon = float(frame["epsilon"].iloc[0])
        for letter, axes, scale in zip("ab", grid[0], ("linear", "log"), strict=True):
            for (variant, side), (label, colour, dashes) in CURVES.items():
                part = frame[frame["variant"] == variant].sort_values("sigma")
                if len(part):
                    axes.plot(part["sigma"], part[side], color=colour, linestyle=dashes, label=label)
            for level, text in ((epsilon, "ε"), (2 * epsilon, "2ε")):
                axes.axhline(level, color="#888888", linewidth=0.6)
                axes.annotate(text, (1, level), xycoords=("axes fraction", "data"), xytext=(3, 0), fontsize=7,
                              textcoords="offset points", va="center", color="#555555")  # fmt: skip
            axes.set_xscale(scale)
            axis(axes, x="standard deviation σ of the size", y="ε′ (nats)", ylim=(0.4 * epsilon, 2.1 * epsilon))
            axes.label_outer()
            panel_letter(axes, f"({letter})")
        grid[0, 1].legend(loc="center left", bbox_to_anchor=(0.02, 0.56))
        return finish(figure, self.labels(records)), frame.reset_index(drop=True)


class FigureE1(Artefact):
    """Change of the allocation, class by class."""

    paper = "bun"
    name = "figureE1"
    kind = "figure"
    caption = (
        "Change of each class's Neyman allocation (m = 10,000) when the smallest establishment is raised to the top "
        "code: as printed, and for synthetic populations (made-up class counts) with four ways to fill the classes. "
        "Only classes whose top one is piled up at its lower limit come near the printed change."
    )
    experiments = ("bun_neyman",)

    def values(self, records: Records) -> pd.DataFrame:
        return values_frame([])

    def draw(self, records: Records) -> tuple[Figure, pd.DataFrame]:
        frame = self.needed(records, "bun_neyman", variants=("consistent",)).copy()
        frame["change"] = frame["after"] - frame["before"]
        figure, grid = new(1, 1, width=6.4, height=3.2)
        axes = grid[0, 0]
        for place, (topic, (label, colour, marker)) in enumerate(TOPICS.items()):
            part = frame[frame["topic"] == topic].sort_values("stratum")
            x = part["stratum"] + 0.13 * (place - (len(TOPICS) - 1) / 2)
            axes.vlines(x, 0, part["change"], color=colour, linewidth=0.8)
            axes.plot(x, part["change"], color=colour, marker=marker, linestyle="none", label=label)
        axes.axhline(0, color="black", linewidth=0.6)
        classes = frame[frame["topic"] == "printed"].sort_values("stratum")
        axes.set_xticks(classes["stratum"])
        axes.set_xticklabels([f"{low}–\n{high}" for low, high in zip(classes["low"], classes["high"], strict=True)])
        axes.grid(axis="x", visible=False)
        # room above the highest point for the label of the data
        top = 1.25 * max(4, int(frame["change"].max()))
        axis(axes, x="employees of the establishment", y="change of the allocation", ylim=(None, top))
        axes.legend(loc="upper left")
        kept = ["topic", "stratum", "low", "high", "before", "after", "change"]
        return finish(figure, self.labels(records)), frame[kept].reset_index(drop=True)

    def labels(self, records: Records) -> tuple[str, ...]:
        return ("synthetic",)
