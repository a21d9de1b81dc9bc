"""Figure 2: weights, and error against loss, of weighted sums under three readings of an unstated rule."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from dpsub.papers.importance.artefacts.labels import SAMPLERS
from dpsub.reproduce.artefact import Artefact, Records, values_frame
from dpsub.reproduce.figures import finish, new, panel_letter

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

RULES = {
    "free": "target: the loss without sampling",
    "fixed_eps": "target: one ε for all noise scales",
    "b1": "profile as printed, scale 1",
}
WEIGHTS, CURVES = ("unif", "var", "opt"), ("unif", "var", "opt", "water")


class Figure2(Artefact):
    """A row of panels a reading: weights by rank; error against the largest loss."""

    paper = "importance"
    name = "figure2"
    kind = "figure"
    caption = (
        "Sums of 1,000 normal points with Laplace noise. Left: importance weight of each point, ordered by its l1 "
        "norm, at an expected size of 19. Right: mean squared error of the sum against the largest loss after "
        "sampling, one mark a noise scale (bars: 95 % intervals over runs, mostly within the marks; lines: the exact "
        "error). The text does not state the target of the privacy-constrained weights; rows show three readings. "
        "water-filling, not in the paper: the least variance at losses no larger than the privacy-optimal ones, at "
        "twice their size."
    )
    experiments = ("importance_sums",)
    keys = ("rule", "sampler", "scale", "panel")

    def values(self, records: Records) -> pd.DataFrame:
        rows = []
        frame = self.needed(records, "importance_sums")
        for record in frame[frame["topic"] == "curve"].to_dict("records"):
            row = {"rule": record["rule"], "sampler": record["sampler"], "scale": round(record["scale"], 6)}
            found: dict[str, dict[str, Any]] = {
                "mse": {"value": record["mse"], "standard_error": record["mse_error"], "replicates": record["runs"]},
                "mse_exact": {"value": record["mse_exact"]},
                "max_loss": {"value": record["max_loss"]},
                "m": {"value": record["m"]},
            }
            rows += [{**row, "column": name, "variant": record["variant"], **value}
                     for name, value in found.items()]  # fmt: skip
        return values_frame(rows)

    def draw(self, records: Records) -> tuple[Figure, pd.DataFrame]:
        frame = self.needed(records, "importance_sums")
        rules = [rule for rule in RULES if rule in set(frame["rule"])]
        figure, grid = new(len(rules), 2, width=7.0, height=0.5 + 2.1 * len(rules))
        for (left, right), rule in zip(grid, rules, strict=True):
            part = frame[frame["rule"] == rule]
            _weights(left, part[part["topic"] == "weight"])
            panel_letter(left, RULES[rule])
            _errors(right, part[part["topic"] == "curve"])
        handles, labels = grid[0, 1].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=4)
        return finish(figure), frame.reset_index(drop=True)


def _weights(axes: Axes, part: pd.DataFrame) -> None:
    for sampler in WEIGHTS:
        found = part[part["sampler"] == sampler].sort_values("rank")
        style = SAMPLERS[sampler]
        axes.plot(found["rank"], found["weight"], linestyle="none", marker=style["marker"], color=style["color"],
                  markersize=1.6, alpha=0.6)  # fmt: skip
    axes.set_yscale("log")
    axes.set_xlabel("rank of the l1 norm")
    axes.set_ylabel("weight")


def _errors(axes: Axes, part: pd.DataFrame) -> None:
    for sampler in CURVES:
        found = part[part["sampler"] == sampler].sort_values("scale")
        style = SAMPLERS[sampler]
        axes.plot(found["max_loss"], found["mse_exact"], color=style["color"], linestyle=style["linestyle"],
                  linewidth=0.8)  # fmt: skip
        axes.errorbar(found["max_loss"], found["mse"], yerr=1.96 * found["mse_error"], linestyle="none",
                      color=style["color"], marker=style["marker"], markersize=3, label=style["label"])  # fmt: skip
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("largest loss (nats)")
    axes.set_ylabel("mean squared error")
