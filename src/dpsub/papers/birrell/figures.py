"""The paper's bounds on one step, on the training, and on draws with replacement."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from dpsub.reproduce.artefact import Artefact, Records
from dpsub.reproduce.figures import Panel, curves, draw_panels, line

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from dpsub.reproduce.figures.panels import Layer

PAPER: dict[str, Any] = {"color": "#0072B2", "marker": "", "label": "the paper's theorem"}
WANG: dict[str, Any] = {
    "color": "#666666",
    "marker": "",
    "linestyle": ":",
    "label": "Wang et al. 2019",
}
ATTACK: dict[str, Any] = {
    "color": "#B00020",
    "marker": "",
    "linestyle": "--",
    "label": "Rényi divergence of an attack",
}
ENDS: dict[str, Any] = {
    "color": "#117733",
    "marker": "",
    "label": "ε: attained (lower edge) to proved (upper edge)",
}
NAMES = {
    "3.4": "WOR, substitution",
    "3.3": "WOR, add/remove",
    "3.6": "WR, add/remove",
    "C.9": "Poisson, substitution",
}


class BoundsFigure(Artefact):
    """One step by order, and the training by delta, a column for each theorem."""

    title = "Figures 2, 3, 6, 7 and 9. Bounds on one step and on the training"
    name, kind, experiments = "figure_bounds", "figure", ("birrell_renyi", "birrell_epsilon")
    caption = (
        "Above: the Rényi divergence of one step against its order α, by the paper's theorem "
        "(expanded to degree 5) and of an attack, which is a lower bound. Below: ε of the whole "
        "training against δ: made from the theorem, from the bound of Wang et al. (samples without "
        "replacement, a record replaced), and from the exact Rényi divergence of the attack, which "
        "is the least that any Rényi bound gives by this conversion; then our two bounds, made "
        "without Rényi divergences. Where only the dashed curve is seen, the solid one lies under "
        "it: the theorem is exact there. Each column is one sampler and adjacency: Theorems 3.4, "
        "3.3, 3.6 and C.9."
    )

    def draw(self, records: Records) -> tuple[Figure, pd.DataFrame]:
        step = self.needed(records, "birrell_renyi")
        step = step[step["degree"] == step["degree"].max()]
        training = self.needed(records, "birrell_epsilon")
        names = [name for name in NAMES if name in set(step["theorem"])]
        panels = []
        for name in names:
            part = step[step["theorem"] == name]
            layers: list[Layer] = [
                _curve(part, "alpha", column, look)
                for column, look in (("bound", PAPER), ("wang", WANG), ("attained", ATTACK))
            ]
            # an entry of the legend without a curve in this row
            layers.append(line([], [], **ENDS, linewidth=4, alpha=0.4))
            axes = {"xlabel": "α", "ylabel": r"$D_\alpha$ of one step", "yscale": "log"}
            panels.append(Panel(NAMES[name], layers, axes))
        for name in names:
            part = training[training["theorem"] == name]
            layers = [
                _curve(part, "delta", column, {**look, "label": "_"})
                for column, look in (
                    ("epsilon_paper", PAPER),
                    ("epsilon_wang", WANG),
                    ("epsilon_renyi", ATTACK),
                )
            ]
            layers.append(_ends(part))
            axes = {"xlabel": "δ", "ylabel": "ε of the training", "xscale": "log"}
            panels.append(Panel(NAMES[name], layers, axes))
        figure = draw_panels(panels, columns=len(names), width=9.0, labels=self.labels(records))
        return figure, training.drop(columns=["data", "replicate"])


def _curve(part: pd.DataFrame, x: str, y: str, look: dict[str, Any]) -> Layer:
    """Return the layer of one column, nothing where it has no number."""
    known = part[part[y].notna()].sort_values(x)
    if known.empty:
        return line([], [])
    return line(known[x].to_list(), known[y].to_list(), **look)


def _ends(part: pd.DataFrame) -> Layer:
    band = ("epsilon_lower", "epsilon_upper")
    styles = {name: {**ENDS, "label": "_"} for name in part["theorem"].unique()}
    return curves(part, "delta", "epsilon_upper", by="theorem", styles=styles, band=band)


class DrawsFigure(Artefact):
    """Draws with replacement by the size of batches."""

    title = "Figure 8. Draws with replacement, by the size of batches"
    name, kind, experiments = "figure_draws", "figure", ("birrell_draws",)
    caption = (
        "Rényi divergence of order 2 that an attack on one step of draws with replacement attains, "
        "against the size of batches, at 0.001 expected copies of a record. It jumps where a batch "
        "that consists of one record alone decides it, which happens with a chance far below any δ."
    )

    def draw(self, records: Records) -> tuple[Figure, pd.DataFrame]:
        frame = self.needed(records, "birrell_draws")
        colours = ("#56B4E9", "#0072B2", "#009E73", "#D55E00", "#002B55")
        noises = sorted(frame["noise_multiplier"].unique())
        styles = {
            noise: {"label": f"noise {noise:g}", "color": colour, "marker": ""}
            for noise, colour in zip(noises, colours, strict=False)
        }
        layer = curves(frame, "batch", "attained", by="noise_multiplier", styles=styles)
        panel = Panel("", [layer], {"yscale": "log"})
        figure = draw_panels(
            [panel],
            width=4.5,
            xlabel="size of batches",
            ylabel="$D_2$ of one step, attained",
            labels=self.labels(records),
        )
        return figure, frame[["noise_multiplier", "batch", "attained"]]
