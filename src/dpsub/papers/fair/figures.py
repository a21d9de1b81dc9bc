"""Figures: loss against cost, the papers' ranking against the fair one, and what sizes cost in noise."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import pandas as pd

from dpsub.errors import DataError
from dpsub.papers.fair.paired import REFERENCE, Group, groups, in_variants, label_of, with_interval
from dpsub.papers.fair.settings import NONPRIVATE, TASKS
from dpsub.papers.fair.tables import COMPARED
from dpsub.reproduce import statistics
from dpsub.reproduce.artefact import Artefact, Records
from dpsub.reproduce.figures import Panel, curves, draw_panels, level, line, sampler_style, where
from dpsub.reproduce.figures.panels import Layer

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DATASETS = {
    "linear": "linear model", "adult": "Adult", "breast_cancer": "breast cancer", "digits": "digits, odd or even",
    "ijcnn1": "ijcnn1", "bootstrap_mean": "bootstrap mean",
}  # fmt: skip
MEASURES = {
    "log_loss": "test log loss (nats)", "coefficient_error": "error of coefficients",
    "estimate_error": "error of the mean",
}  # fmt: skip
VARIANTS = {
    "stated": ("as the paper", "s", "#999999"),
    "consistent": ("papers' pair, no guarantee", "o", "#0072B2"),
    "rigorous": ("proved", "D", "#D55E00"),
}
"""Name, marker and colour."""

DASHES = ("-", "--", "-.", (0, (1, 1)))
PAIR: dict[str, Any] = {"linestyle": ":", "linewidth": 0.8, "marker": "x", "markersize": 4}
BAR: dict[str, Any] = {"linestyle": "none", "marker": "|", "markersize": 9, "markeredgewidth": 0.8}
SETTING = ["dataset", "n", "steps", "target_epsilon", "target_delta"]


def style_of(sampler: str) -> dict[str, Any]:
    """Return how a sampler is drawn; a chain looks like a multistage sampler and is labelled by its stages."""
    return sampler_style("multistage") | {"label": sampler} if ":" in sampler else sampler_style(sampler)


def title(dataset: str, frame: pd.DataFrame) -> str:
    """Return a data set's display name, with its label where the data are a stand-in."""
    labels = sorted(set(frame.loc[frame["dataset"] == dataset, "data_label"]) - {"real", "simulated"})
    return DATASETS.get(dataset, dataset) + (f" ({', '.join(labels)})" if labels else "")


class FairFigure(Artefact):
    """A figure of the comparison, by default without values in the comparison with printed numbers."""

    kind = "figure"
    experiments: ClassVar[tuple[str, ...]] = COMPARED[:1]


class Pareto(FairFigure):
    """Front of epsilon, loss and cost, at proved privacy."""

    title = "Loss against cost at one proved privacy"
    name = "figure_pareto"
    caption = (
        "Loss against the expected number of distinct gradients a step, at proved privacy; one line a target, from "
        "cheap to costly ones, and the loss without privacy as a dotted level. Bars are 95 % Student intervals over "
        "seeds. Filled: on the front of epsilon, loss and cost; hollow: another sampler at no more epsilon and cost "
        "has a smaller loss, beyond the 95 % interval of the paired difference."
    )
    keys = ("dataset", "epsilon", "sampler")

    def rows(self, records: Records) -> list[dict[str, Any]]:
        found = points(self.needed(records, COMPARED[0], variants=("rigorous",))).rename(columns={"on_front": "value"})
        rows = found[[*self.keys, "value"]].assign(column="on_front", variant="rigorous").to_dict("records")
        return [{str(name): value for name, value in row.items()} for row in rows]

    def draw(self, records: Records) -> tuple[Figure, pd.DataFrame]:
        frame = self.needed(records, COMPARED[0], variants=("rigorous",))
        found = points(frame)
        # a filled mark on the front, a hollow one off it
        styles = {(name, front): style_of(name) | ({} if front else {"markerfacecolor": "white"})
                  for name in found["sampler"].unique() for front in (True, False)}  # fmt: skip
        dashes = {epsilon: {"linestyle": dash, "color": "#777777", "label": f"ε = {epsilon:g}"}
                  for epsilon, dash in zip(sorted(found["epsilon"].unique()), DASHES, strict=False)}  # fmt: skip
        # keys of all samplers and targets in their order, also of those that the first panel lacks
        keys = [line([], [], **style_of(name) | {"linestyle": "none"}) for name in found["sampler"].unique()]
        keys += [line([], [], linewidth=0.8, **style) for style in dashes.values()]
        panels: list[Panel | None] = []
        for dataset in found["dataset"].unique():
            measure, here = TASKS[dataset].measure, _side_by_side(where(found, dataset=dataset))
            layers: list[Layer] = [
                *(() if panels else keys),
                curves(here, "at", "loss", by=("sampler", "on_front"), styles=styles, bars=("lower", "upper"),
                       linestyle="none", markersize=4.5, zorder=3, label="_"),
                curves(here, "at", "loss", by="epsilon", styles=dashes, linewidth=0.8, zorder=1, label="_"),
            ]  # fmt: skip
            without = where(frame, dataset=dataset, sampler=NONPRIVATE)[measure]
            layers += [level(without.mean(), linestyle=":")] if len(without) else []
            panels.append(Panel(title(dataset, frame), layers, {"ylabel": MEASURES[measure]}))
        return draw_panels(panels, xlabel="distinct gradients a step", labels=self.labels(records)), found


def points(frame: pd.DataFrame) -> pd.DataFrame:
    """Return one row a data set, target and sampler: loss with its interval, expected gradients a step, `on_front`.

    A point is off the front if another sampler of the same data set, at the same or a smaller target and at no more
    gradients, has a loss that is smaller by more than the 95 % interval of the paired difference.
    """
    rows: list[dict[str, Any]] = []
    for group in groups(frame):
        cost = group.frame.groupby("sampler")["gradients_expected"].first()
        for name in group.samplers:
            values = group.losses[name].to_numpy()
            loss = with_interval(values)
            rows.append({**group.place, "sampler": name, "gradients": float(cost[name]), "loss": loss.value,
                         "lower": loss.lower, "upper": loss.upper, "values": values})  # fmt: skip
    for row in rows:
        row["on_front"] = not any(
            statistics.paired_difference(row["values"], other["values"]).lower > 0
            for other in rows
            if other is not row
            and other["dataset"] == row["dataset"]
            and other["epsilon"] <= row["epsilon"]
            and other["gradients"] <= row["gradients"] * (1 + 1e-9)
        )
    return pd.DataFrame(rows).drop(columns="values")


def _side_by_side(part: pd.DataFrame) -> pd.DataFrame:
    """Return the points with their place `at`: those at one cost next to each other, so that all can be seen."""
    width = float(part["gradients"].max() - part["gradients"].min()) or 1.0
    same = part.drop_duplicates("sampler").sort_values("gradients", kind="stable").set_index("sampler")["gradients"]
    rounded = (same / width).round(3)
    order = rounded.groupby(rounded).cumcount() - (rounded.groupby(rounded).transform("size") - 1) / 2
    return part.assign(at=part["gradients"] + 0.025 * width * part["sampler"].map(order))


class Rankings(FairFigure):
    """Paired differences from Poisson in the three variants, a panel a data set."""

    title = "Loss compared with Poisson, under three notions of equal privacy"
    name = "figure_rankings"
    caption = (
        "Paired difference of the loss from Poisson, in percent of Poisson's, at each data set's smallest target, with "
        "95 % Student intervals over seeds; left of the line is better than Poisson. Squares: the main paper's own "
        "comparison at equal epsilon' a query; circles: noise for which the papers' pair meets the target, no "
        "guarantee (for Poisson a pair of data sets that differ by one record more, for the others by a shift both "
        "ways, which needs more noise); diamonds: noise for which the target is proved."
    )
    experiments = COMPARED

    def draw(self, records: Records) -> tuple[Figure, pd.DataFrame]:
        frames = [self.needed(records, name) for name in COMPARED]
        found = [group for group in in_variants(*frames) if REFERENCE in group.samplers]
        names = dict.fromkeys(group.dataset for group in found)
        least = {name: min(group.epsilon for group in found if group.dataset == name) for name in names}
        numbers = pd.DataFrame([row for g in found if g.epsilon == least[g.dataset] for row in _relative(g)])
        panels = [Panel(f"{title(dataset, frames[0])}, ε = {epsilon:g}",
                        [partial(_differences, part=where(numbers, dataset=dataset))])
                  for dataset, epsilon in least.items()]  # fmt: skip
        return draw_panels(panels, xlabel="difference from Poisson (%)", labels=self.labels(records)), numbers


def _relative(group: Group) -> list[dict[str, Any]]:
    base = float(group.losses[REFERENCE].mean())
    found = {name: group.difference(name) for name in group.samplers if name != REFERENCE}
    return [
        {**group.place, "variant": group.variant, "sampler": name, "percent": 100 * one.value / base,
         "lower": 100 * one.lower / base, "upper": 100 * one.upper / base} for name, one in found.items()
    ]  # fmt: skip


def _differences(axes: Axes, part: pd.DataFrame) -> None:
    """Draw points with intervals across, a line a sampler, the variants one below the other."""
    order = list(part["sampler"].unique())
    for place, (variant, (label, marker, colour)) in enumerate(VARIANTS.items()):
        chosen = where(part, variant=variant)
        at = [order.index(name) + 0.22 * (place - 1) for name in chosen["sampler"]]
        errors = [chosen["percent"] - chosen["lower"], chosen["upper"] - chosen["percent"]]
        axes.errorbar(chosen["percent"], at, xerr=errors, fmt=marker, color=colour, markersize=3.5, elinewidth=0.8,
                      capsize=1.5, label=label)  # fmt: skip
    axes.axvline(0, color="black", linewidth=0.7)
    axes.set_yticks(range(len(order)), [label_of(name).replace(",", ",\n") for name in order])
    for text, name in zip(axes.get_yticklabels(), order, strict=True):
        text.set_fontsize(5 if ":" in name else 7)
    axes.invert_yaxis()


class NoiseSizes(FairFigure):
    """What sizes cost in noise at fixed privacy."""

    title = "Noise that one privacy target takes, by size of batch and first stage"
    name = "figure_noise"
    caption = (
        "Noise multiplier that one target takes, (a) against the size b of the first stage, where levels are samplers "
        "with one stage, (b) against the batch size m. Markers on lines: proved under substitution; the bar below each "
        "reaches down to the noise with which an attack exceeds the target, so the best proof lies on it. "
        "Crosses: noise for which the papers' pair meets the target, no guarantee."
    )
    experiments = ("fair_noise",)

    def draw(self, records: Records) -> tuple[Figure, pd.DataFrame]:
        along_b, along_m, fixed = sections(self.needed(records, "fair_noise"))
        privacy = f"n = {fixed['n']}, {fixed['steps']} steps, ε = {fixed['target_epsilon']:g}"
        # what is drawn alike for every sampler has a key in no sampler's colour
        keys = [line([], [], color="0.35", label=VARIANTS["consistent"][0], **PAIR),
                line([], [], color="0.35", label="from attack up to proof", **BAR)]  # fmt: skip
        panels = [
            Panel(f"m = {fixed['m']}; {privacy}", _layers(along_b, "b"), {"xlabel": "b"}),
            Panel(f"b = {fixed['b']}; {privacy}", [*_layers(along_m, "m"), *keys], {"xlabel": "m"}),
        ]
        figure = draw_panels(panels, height=2.7, yscale="log", ylabel="noise multiplier", labels=self.labels(records))
        numbers = pd.concat([along_b.assign(section="b"), along_m.assign(section="m")], ignore_index=True)
        return figure, numbers.drop(columns=["data", "replicate", "surface"])


def sections(frame: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame, dict[str, Any]]:
    """Return the cells along b at fixed m, those along m at fixed b, and what is fixed for both.

    The setting is that of the first cell that is only calibrated; the fixed m and b are those with the most cells.
    """
    if not (frame["b"] * frame["surface"]).any():
        raise DataError(
            "noise against b needs a surface with a two-stage sampler, got none; add one to fair_noise.surface"
        )
    setting = frame.loc[frame["surface"] == 1, SETTING].iloc[0]
    cells = frame[(frame[SETTING] == setting).all(axis=1)].drop_duplicates(["variant", "sampler", "m", "b"])
    staged = cells[cells["b"] > 0]
    m = staged.groupby("m")["b"].nunique().idxmax()
    b = staged.groupby("b")["m"].nunique().idxmax()
    along_b = cells[cells["m"] == m].sort_values(["b"], kind="stable")
    along_m = cells[(cells["b"] == b) | (cells["b"] == 0)].sort_values(["m"], kind="stable")
    return along_b, along_m, {**{str(name): setting[name] for name in SETTING}, "m": m, "b": b}


def _layers(cells: pd.DataFrame, size: str) -> list[Layer]:
    """Return lines with bars along a size; along b, a sampler of one stage is a level. A lone point is no line."""
    by_sampler = cells.groupby("sampler")
    one_stage = (by_sampler["b"].transform("max") == 0) & (size == "b")
    lone = (by_sampler[size].transform("nunique") == 1) & (cells[size].nunique() > 1)
    levels = where(cells[one_stage], variant="rigorous")
    proved, pairs = (where(cells[~one_stage & ~lone], variant=name) for name in ("rigorous", "consistent"))
    refuted = proved["necessary"].where(proved["necessary"] > 0, proved["noise_multiplier"])
    return [
        *(level(noise, **style_of(name) | {"marker": "", "linewidth": 1.0})
          for name, noise in zip(levels["sampler"], levels["noise_multiplier"], strict=True)),
        curves(proved.assign(attack=refuted), size, "noise_multiplier", styles=style_of, nested=0.6, linestyle="-",
               bars=("attack", "noise_multiplier"), linewidth=1.0),
        curves(pairs, size, "noise_multiplier", styles=style_of, nested=0.6, zorder=5, **PAIR, label="_"),
    ]  # fmt: skip
