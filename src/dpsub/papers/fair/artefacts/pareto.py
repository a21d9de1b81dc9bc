"""Loss against cost at each privacy target, and what nothing else beats in all three."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from dpsub.papers.fair.artefacts.labels import MEASURES, dataset_label, style_of
from dpsub.papers.fair.artefacts.paired import NONPRIVATE, Group, first_measure, groups, with_interval
from dpsub.reproduce import statistics
from dpsub.reproduce.artefact import Artefact, Records, values_frame
from dpsub.reproduce.figures import Panel, curves, draw_panels, level, line, where
from dpsub.reproduce.figures.panels import Layer

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DASHES = ("-", "--", "-.", (0, (1, 1)))
LINE = "#777777"
BESIDE = 0.025  # of the width, between points at one cost


def points(frame: pd.DataFrame) -> pd.DataFrame:
    """Return one row a data set, target and sampler: loss with its interval, expected gradients a step, `on_front`.

    A point is off the front if another sampler of the same data set, at the same or a smaller target and at no more
    gradients, has a loss that is smaller by more than the 95 % interval of the paired difference.
    """
    found = list(groups(frame))
    losses = {(g.dataset, g.epsilon, name): g.losses[name] for g in found for name in g.samplers}
    rows = [row for group in found for row in _points(group)]
    for row in rows:
        own = losses[row["dataset"], row["epsilon"], row["sampler"]]
        row["on_front"] = not any(
            statistics.paired_difference(own.to_numpy(), losses[key].to_numpy()).lower > 0
            for other in rows
            if (key := (other["dataset"], other["epsilon"], other["sampler"]))
            and other is not row
            and other["dataset"] == row["dataset"]
            and other["epsilon"] <= row["epsilon"]
            and other["gradients"] <= row["gradients"] * (1 + 1e-9)
        )
    return pd.DataFrame(rows)


def _points(group: Group) -> list[dict]:
    cost = group.frame.groupby("sampler")["gradients_expected"].first()
    rows = []
    for name in group.samplers:
        loss = with_interval(statistics.mean(group.losses[name].to_numpy()))
        rows.append({"dataset": group.dataset, "epsilon": group.epsilon, "sampler": name,
                     "gradients": float(cost[name]), "loss": loss.value, "lower": loss.lower,
                     "upper": loss.upper})  # fmt: skip
    return rows


class Pareto(Artefact):
    """Front of epsilon, loss and cost, at proved privacy."""

    paper = "fair"
    name = "figure_pareto"
    kind = "figure"
    caption = (
        "Loss against the expected number of distinct gradients a step, at proved privacy; one line a target, from "
        "cheap to costly ones, and the loss without privacy as a dotted level. Bars are 95 % Student intervals over "
        "seeds. Filled: on the front of epsilon, loss and cost; hollow: another sampler at no more epsilon and cost "
        "has a smaller loss, beyond the 95 % interval of the paired difference."
    )
    experiments = ("fair_comparison",)
    keys = ("dataset", "epsilon", "sampler")

    def values(self, records: Records) -> pd.DataFrame:
        frame = self.needed(records, "fair_comparison", variants=("rigorous",))
        return values_frame([
            {"dataset": row["dataset"], "epsilon": row["epsilon"], "sampler": row["sampler"],
             "column": "on_front", "variant": "rigorous", "value": float(row["on_front"])}
            for row in points(frame).to_dict("records")
        ])  # fmt: skip

    def draw(self, records: Records) -> tuple[Figure, pd.DataFrame]:
        frame = self.needed(records, "fair_comparison", variants=("rigorous",))
        found = points(frame)
        # a filled mark on the front, a hollow one off it
        styles = {(name, front): style_of(name) | ({} if front else {"markerfacecolor": "white"})
                  for name in found["sampler"].unique() for front in (True, False)}  # fmt: skip
        dashes = {epsilon: {"linestyle": dash, "color": LINE, "label": f"ε = {epsilon:g}"}
                  for epsilon, dash in zip(sorted(found["epsilon"].unique()), DASHES, strict=False)}  # fmt: skip
        panels = []
        for dataset in found["dataset"].unique():
            measure, here = first_measure(dataset), _side_by_side(where(found, dataset=dataset))
            layers: list[Layer] = [
                curves(here, "at", "loss", by=("sampler", "on_front"), styles=styles, bars=("lower", "upper"),
                       linestyle="none", markersize=4.5, zorder=3, label="_"),
                curves(here, "at", "loss", by="epsilon", styles=dashes, linewidth=0.8, zorder=1, label="_"),
            ]  # fmt: skip
            without = where(frame, dataset=dataset, sampler=NONPRIVATE)[measure]
            layers += [level(without.mean(), linestyle=":")] if len(without) else []
            panels.append(Panel(dataset_label(dataset, frame), layers, {"ylabel": MEASURES[measure]}))
        # keys of all samplers and targets in their order, also of those that the first panel lacks
        keys = [line([], [], **style_of(name) | {"linestyle": "none"}) for name in found["sampler"].unique()]
        keys += [line([], [], linewidth=0.8, **style) for style in dashes.values()]
        panels[0] = Panel(panels[0].text, [*keys, *panels[0].layers], panels[0].axes)
        figure = draw_panels(panels, xlabel="distinct gradients a step", labels=self.labels(records))
        return figure, found


def _side_by_side(part: pd.DataFrame) -> pd.DataFrame:
    """Return the points with their place `at`: those at one cost next to each other, so that all can be seen."""
    width = float(part["gradients"].max() - part["gradients"].min()) or 1.0
    same = part.drop_duplicates("sampler").sort_values("gradients", kind="stable").set_index("sampler")["gradients"]
    rounded = (same / width).round(3)
    order = rounded.groupby(rounded).cumcount() - (rounded.groupby(rounded).transform("size") - 1) / 2
    return part.assign(at=part["gradients"] + BESIDE * width * part["sampler"].map(order))
