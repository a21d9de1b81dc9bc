"""Loss against cost at each privacy target, and what nothing else beats in all three."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pandas as pd

from dpsub.papers.fair.artefacts.labels import MEASURES, dataset_label, new_grid, style_of
from dpsub.papers.fair.artefacts.paired import NONPRIVATE, Group, first_measure, groups, with_interval
from dpsub.reproduce import statistics
from dpsub.reproduce.artefact import Artefact, Records, values_frame
from dpsub.reproduce.figures import axis, finish, panel_letter

if TYPE_CHECKING:
    from matplotlib.axes import Axes
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
        names = list(dict.fromkeys(found["dataset"]))
        labels = self.labels(records)
        figure, grid = new_grid(len(names), height=2.1, stand_in=bool(set(labels) - {"real"}))
        dashes = dict(zip(sorted(set(found["epsilon"])), DASHES, strict=False))
        for letter, axes, dataset in zip("abcdefghi", grid, names, strict=False):
            _paint(axes, found[found["dataset"] == dataset], dashes)
            level = frame.loc[(frame["dataset"] == dataset) & (frame["sampler"] == NONPRIVATE), first_measure(dataset)]
            if len(level):
                axes.axhline(level.mean(), color="black", linewidth=0.8, linestyle=":")
            axis(axes, x="distinct gradients a step", y=MEASURES[first_measure(dataset)])
            panel_letter(axes, f"({letter}) {dataset_label(dataset, frame)}")
        shown = {name: style_of(name) for name in dict.fromkeys(found["sampler"])}
        handles = [
            axes.plot([], [], color=style["color"], marker=style["marker"], linestyle="none", label=style["label"])[0]
            for style in shown.values()
        ]
        handles += [
            axes.plot([], [], color=LINE, linewidth=0.8, linestyle=dash, label=f"ε = {epsilon:g}")[0]
            for epsilon, dash in dashes.items()
        ]
        figure.legend(handles=handles, loc="outside lower center", ncols=min(6, len(handles)))
        return finish(figure, labels), found


def _paint(axes: Axes, part: pd.DataFrame, dashes: Mapping[float, Any]) -> None:
    """Draw one line a target; points at one cost stand next to each other, so that all of them can be seen."""
    width = float(part["gradients"].max() - part["gradients"].min()) or 1.0
    same = part[["sampler", "gradients"]].drop_duplicates("sampler").sort_values("gradients", kind="stable")
    rounded = (same["gradients"] / width).round(3)
    order = rounded.groupby(rounded).cumcount() - (rounded.groupby(rounded).transform("size") - 1) / 2
    shift = dict(zip(same["sampler"], BESIDE * width * order, strict=True))
    for epsilon, dash in dashes.items():
        line = part[part["epsilon"] == epsilon]
        places = [shift[name] for name in line["sampler"]]
        line = line.assign(at=line["gradients"] + places).sort_values("at")
        axes.plot(line["at"], line["loss"], color=LINE, linewidth=0.8, linestyle=dash, zorder=1)
        for point in line.to_dict("records"):
            style = style_of(point["sampler"])
            fill = style["color"] if point["on_front"] else "white"
            axes.errorbar(point["at"], point["loss"],
                          yerr=[[point["loss"] - point["lower"]], [point["upper"] - point["loss"]]],
                          fmt=style["marker"], color=style["color"], markerfacecolor=fill, markersize=4.5,
                          elinewidth=0.8)  # fmt: skip
