"""One epoch by epsilon, and noise by epochs and sizes of batches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from dpsub.reproduce.artefact import Artefact, Records
from dpsub.reproduce.figures import Panel, curves, draw_panels, line, sampler_style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from dpsub.reproduce.figures.panels import Layer

LOOKS: dict[str, dict[str, Any]] = {
    "deterministic": {"color": sampler_style("deterministic")["color"], "label": "fixed order"},
    "persistent_shuffle": {"color": "#CC6677", "label": "shuffled once"},
    "shuffle": {"color": sampler_style("shuffle")["color"], "label": "shuffled again each epoch"},
    "poisson": {"color": sampler_style("poisson")["color"], "label": "Poisson samples"},
}
FORMULAS = {name: {**look, "label": "_", "linestyle": ":"} for name, look in LOOKS.items()}
FORMULA: dict[str, Any] = {"color": "black", "linestyle": ":", "label": "formula of the code"}
LEAST = 1e-20  # smallest delta that is drawn


class EpochFigure(Artefact):
    """delta of one epoch by epsilon, a panel for each noise multiplier."""

    title = "One epoch: δ by ε at the noise multipliers of the code's example and above"
    name, kind, experiments = "figure_epoch", "figure", ("chua_epoch",)
    caption = (
        "δ of one epoch of 1000 steps against ε, one record at 0, for three noise multipliers σ; "
        "0.35 is that of the code's example. Bands run from what an attack attains to what is "
        "proved; those of a fixed order and of Poisson samples are as thin as their lines. Dotted: "
        "the formulas of the code for a fixed order and, from below, for shuffled batches. Curves "
        "end where δ falls below 10⁻²⁰."
    )

    def draw(self, records: Records) -> tuple[Figure, pd.DataFrame]:
        frame = self.needed(records, "chua_epoch")
        panels = []
        for noise, part in frame.groupby("noise"):
            layers: list[Layer] = []
            for name, sampler in (
                ("fixed", "deterministic"),
                ("shuffle", "shuffle"),
                ("poisson", "poisson"),
            ):
                band = (f"{name}_lower", f"{name}_upper")
                shown = part[part[band[0]] > LEAST].assign(sampler=sampler)
                layers.append(_band(shown, "epsilon", band))
            for column in ("fixed", "cube"):
                label = FORMULA["label"] if column == "cube" else "_"
                shown = part[part[column] > LEAST]
                layers.append(
                    line(
                        shown["epsilon"].to_list(),
                        shown[column].to_list(),
                        **{**FORMULA, "label": label, "marker": ""},
                    )
                )
            lowest = max(LEAST, float(part["poisson_upper"].min()) / 10)
            panels.append(Panel(f"σ = {noise:g}", layers, {"ylim": (lowest, 2)}))
        figure = draw_panels(
            panels,
            columns=3,
            width=8.0,
            yscale="log",
            xlabel="ε",
            ylabel="δ",
            labels=self.labels(records),
        )
        return figure, frame.drop(columns=["data", "replicate"])


class NoiseFigure(Artefact):
    """Noise multiplier of the target by epochs, and by the size of batches."""

    title = "Figures 3 and 6. Noise of one target by epochs and by the size of batches"
    name, kind, experiments = "figure_noise", "figure", ("chua_epochs", "chua_batches")
    caption = (
        "Noise multiplier for ε = 5 and δ = 2.7 × 10⁻⁸, one record at 0: by the number of epochs "
        "with batches of 65,536 (Figure 6), and by the size of batches for 1 and 5 epochs (the "
        "middle of Figure 3). Bands run from the noise that an attack refutes to the one that is "
        "proved; dotted, the formula of the code, for shuffled batches a lower bound. The noise "
        "proved for one order is nearly that of a fixed order, and with one epoch both kinds of "
        "shuffled batches are the same."
    )

    def draw(self, records: Records) -> tuple[Figure, pd.DataFrame]:
        by_epochs, by_batches = (self.needed(records, name) for name in self.experiments)
        batch = f"batches of {by_epochs['batch'].iloc[0]:,}"
        panels = [_panel(batch, by_epochs, "epochs", "epochs")]
        both = pd.concat([by_epochs, by_batches], ignore_index=True)
        for epochs in sorted(by_batches["epochs"].unique()):
            name = f"{epochs} epoch{'s' if epochs > 1 else ''}"
            part = both[both["epochs"] == epochs].drop_duplicates(["sampler", "batch"])
            panels.append(_panel(name, part, "batch", "size of batches"))
        figure = draw_panels(
            panels,
            columns=len(panels),
            width=9.0,
            ylabel="noise multiplier",
            yscale="log",
            labels=self.labels(records),
        )
        return figure, both.drop(columns=["data", "replicate"])


def _panel(name: str, frame: pd.DataFrame, x: str, label: str) -> Panel:
    layers = [_band(frame, x, ("noise_lower", "noise_upper"))]
    known = frame[frame["noise_paper"].notna()]
    layers.append(curves(known, x, "noise_paper", styles=FORMULAS, marker="", color="black"))
    # an entry of the legend for the dotted lines
    layers.append(line([], [], **FORMULA))
    return Panel(name, layers, {"xscale": "log", "xlabel": label})


def _band(frame: pd.DataFrame, x: str, band: tuple[str, str]) -> Layer:
    known = frame[frame["sampler"].isin(LOOKS)]
    return curves(known, x, band[1], styles=LOOKS, band=band, marker="")
