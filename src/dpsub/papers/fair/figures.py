"""Figures: loss by sampler at proved privacy, the papers' ranking and the fair one, and noise by
size and by adjacency relation."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import pandas as pd

from dpsub.errors import DataError
from dpsub.papers.fair.paired import fair_contests, keys_of
from dpsub.papers.fair.settings import SAMPLERS, TASKS
from dpsub.papers.fair.tables import COMPARISON, WITH_STATED, ranked
from dpsub.reproduce import statistics
from dpsub.reproduce.artefact import Artefact, Records
from dpsub.reproduce.figures import (
    NEUTRAL,
    Panel,
    draw_panels,
    line,
    mark_keys,
    name_rows,
    remark,
    sampler_style,
    where,
)
from dpsub.reproduce.labels import WORDS, display, sampler_label
from dpsub.reproduce.paired import REFERENCE, with_interval
from dpsub.reproduce.records import NO_FIRST_STAGE
from dpsub.reproduce.study.cells import NONPRIVATE
from dpsub.reproduce.study.contests import OWN_DATA, Contest
from dpsub.sampling.base import STAGES

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from dpsub.reproduce.figures.panels import Layer

MEASURES = {
    "log_loss": "test log loss (nats)",
    "coefficient_error": "error of coefficients",
    "estimate_error": "error of the mean",
}
VARIANTS: dict[str, dict[str, Any]] = {
    "stated": {
        "label": "the paper's own comparison",
        "marker": "o",
        "color": "#999999",
        "markerfacecolor": "white",
    },
    "consistent": {"label": "papers' pair, no guarantee", "marker": "x", "color": "#666666"},
    "rigorous": {"label": "proved", "marker": "D", "color": "black"},
}
"""Style of the variants where all have one colour, which is no sampler's."""

BAR: dict[str, Any] = {"linewidth": 2.5, "alpha": 0.5, "solid_capstyle": "butt"}
SETTING = ["dataset", "n", "steps", "target_epsilon", "target_delta"]
RELATIONS = (
    ("add_remove", "noise_add_remove", "necessary_add_remove"),
    ("zero_out", "noise_zero_out", "necessary_zero_out"),
    ("substitute", "noise_multiplier", "necessary"),
)
"""Adjacency relations, with the columns of proved and of refuted noise."""


def style_of(sampler: str) -> dict[str, Any]:
    """Return the style of a sampler; a chain looks like a multistage sampler and is labelled by its
    stages, a sampler with a size of its own by that size."""
    if ":" not in sampler:
        return sampler_style(sampler)
    stages = [stage.split(":") for stage in sampler.split(",")]
    name = stages[0][0]
    style = sampler_style("multistage" if name in STAGES else name)
    return style | {"label": "\n".join(f"{sampler_label(kind)} {size}" for kind, size in stages)}


def title(dataset: str, frame: pd.DataFrame) -> str:
    """Return a data set's display name, with its label where the data are a stand-in."""
    labels = set(where(frame, dataset=dataset)["data_label"]) - OWN_DATA
    stand_in = f" ({', '.join(sorted(labels))})" if labels else ""
    return display("dataset", dataset, plain=True) + stand_in


class FairFigure(Artefact):
    """A figure of the comparison, by default without values in the comparison with printed
    numbers."""

    kind = "figure"
    experiments: ClassVar[tuple[str, ...]] = (COMPARISON,)


class Pareto(FairFigure):
    """Loss by sampler, sorted by cost, at proved privacy."""

    title = "Loss and cost at equal proved privacy"
    name = "figure_pareto"
    caption = (
        "Loss at proved privacy. Samplers are sorted by the expected number of distinct gradients "
        "per step, which follows each name; a line joins the samplers with the same target ε. "
        "Bars: 95 % Student intervals over seeds. A hollow mark is off the front: another sampler "
        "with no more ε and no more gradients has a smaller loss, beyond the 95 % interval of the "
        "paired difference."
    )
    keys = ("dataset", "epsilon", "sampler")

    def rows(self, records: Records) -> list[dict[str, Any]]:
        marks = points(self.needed(records, COMPARISON, variants=("rigorous",)))
        values = marks[[*self.keys, "on_front"]].rename(columns={"on_front": "value"})
        rows = values.assign(column="on_front", variant="rigorous").to_dict("records")
        return [{str(name): value for name, value in row.items()} for row in rows]

    def draw(self, records: Records) -> tuple[Figure, pd.DataFrame]:
        frame = self.needed(records, COMPARISON, variants=("rigorous",))
        marks = points(frame)
        keys = mark_keys("on the front", "off the front")
        keys.append(line([], [], linestyle="none", label="number: gradients per step"))
        panels: list[Panel] = []
        for dataset in marks["dataset"].unique():
            measure = TASKS[dataset].measure
            # NaN where the run trains nothing without privacy.
            without = where(frame, dataset=dataset, sampler=NONPRIVATE)[measure].mean()
            part = where(marks, dataset=dataset)
            losses = partial(_losses, part=part, without=without)
            layers: list[Layer] = [losses] if panels else [*keys, losses]
            panels.append(Panel(title(dataset, frame), layers, {"xlabel": MEASURES[measure]}))
        return draw_panels(panels, labels=self.labels(records)), marks


def _losses(axes: Axes, part: pd.DataFrame, without: float) -> None:
    """Draw a row for each sampler, from cheap to costly, and a line for each target; `without` is
    the loss without privacy."""
    by_sampler = part.drop_duplicates("sampler").set_index("sampler")
    # Expected gradients depend on the sampler and its sizes, not on the target: one row for each
    # sampler. Samplers of one law cost the same up to rounding: equal costs keep one order in all
    # panels.
    cost = by_sampler["gradients"].round(6).loc[in_order(by_sampler.index)]
    cost = cost.sort_values(kind="stable")
    rows = {name: row for row, name in enumerate(cost.index)}
    part = part.assign(row=part["sampler"].map(rows)).sort_values("row")
    for epsilon, target in part.groupby("epsilon"):
        axes.plot(target["loss"], target["row"], color=NEUTRAL, linewidth=0.8, zorder=1)
        # The target stands at the head of its line.
        first = target.iloc[0]
        axes.annotate(
            f"ε = {epsilon:g}",
            (first["loss"], first["row"]),
            xytext=(0, 5),
            textcoords="offset points",
            size=6.5,
            ha="center",
        )
    for mark in part.to_dict("records"):
        look, loss = style_of(mark["sampler"]), mark["loss"]
        axes.errorbar(
            loss,
            mark["row"],
            xerr=[[loss - mark["lower"]], [mark["upper"] - loss]],
            color=look["color"],
            marker=look["marker"],
            markersize=4.5,
            elinewidth=0.8,
            markerfacecolor=look["color"] if mark["on_front"] else "white",
        )
    if not math.isnan(without):
        axes.axvline(without, color="black", linestyle=":", linewidth=0.9, label="without privacy")
    labels = [f"{style_of(str(name))['label']}  {count:.3g}" for name, count in cost.items()]
    name_rows(axes, labels, size=7)
    # Room for the targets above the first row.
    axes.set_ylim(len(labels) - 0.5, -0.75)


def in_order(samplers: Iterable[str]) -> list[str]:
    """Return samplers in the order of the study, chains of stages last."""
    return sorted(samplers, key=lambda name: (":" in name, [*SAMPLERS, name].index(name), name))


def points(frame: pd.DataFrame) -> pd.DataFrame:
    """Return one row for each data set, target and sampler: loss with its interval, expected
    gradients per step, `on_front`.

    A point is off the front if another sampler of the same data set, at the same or a smaller
    target and at no more gradients, has a loss that is smaller by more than the 95 % interval of
    the paired difference.
    """
    rows: list[dict[str, Any]] = []
    for contest in fair_contests(frame):
        gradients = contest.records.groupby("sampler")["gradients_expected"].first()
        for name in contest.samplers:
            values = contest.losses[name].to_numpy()
            loss = with_interval(values)
            row: dict[str, Any] = {
                **keys_of(contest),
                "sampler": name,
                "gradients": float(gradients[name]),
                "loss": loss.value,
                "lower": loss.lower,
                "upper": loss.upper,
                "values": values,
            }
            rows.append(row)
    # seeds are paired within a data set, over its targets, too: a sampler leaves the front where
    # another one is shown to be better at no more cost
    for row in rows:
        row["on_front"] = not any(
            # The whole interval above zero: the other loss is smaller beyond chance.
            statistics.paired_difference(row["values"], other["values"]).lower > 0
            for other in rows
            if other is not row
            and other["dataset"] == row["dataset"]
            and other["epsilon"] <= row["epsilon"]
            # Samplers of one law cost the same up to rounding.
            and other["gradients"] <= row["gradients"] * (1 + 1e-9)
        )
    return pd.DataFrame(rows).drop(columns="values")


class LossDifferences(FairFigure):
    """Paired differences from Poisson in the three variants, a panel for each data set."""

    title = "Loss compared with Poisson, under three notions of equal privacy"
    name = "figure_rankings"
    caption = (
        "Loss compared with Poisson, paired by seed, in percent of Poisson's loss, at the smallest "
        "target of each data set, with 95 % Student intervals; a sampler to the left of the line "
        "is better than Poisson. Circles: the main paper's own comparison at equal ε′ per query, "
        "on two data sets and without MUST.OO. Crosses: noise for which the papers' pair meets the "
        "target, no guarantee; Poisson's pair is for add/remove and takes about half the noise of "
        "the others, so that these differences mostly show the relation, not the sampler. "
        "Diamonds: noise for which the target is proved."
    )
    experiments = WITH_STATED

    def draw(self, records: Records) -> tuple[Figure, pd.DataFrame]:
        frame = self.needed(records, COMPARISON)
        compared = [contest for contest in ranked(self, records) if REFERENCE in contest.samplers]
        rows = [row for contest in compared for row in _relative(contest)]
        differences = pd.DataFrame(rows)
        # the smallest target of each data set, where noise counts most
        smallest = differences.groupby("dataset", sort=False)["epsilon"].min()
        at_smallest = differences["epsilon"] == differences["dataset"].map(smallest)
        numbers = differences[at_smallest].reset_index(drop=True)
        panels = [
            Panel(
                f"{title(str(dataset), frame)}, ε = {epsilon:g}",
                [partial(_differences, part=where(numbers, dataset=dataset))],
            )
            for dataset, epsilon in smallest.items()
        ]
        return draw_panels(
            panels, xlabel="loss relative to Poisson's (%)", labels=self.labels(records)
        ), numbers


def _relative(contest: Contest) -> Iterator[dict[str, Any]]:
    """Yield the paired differences from Poisson in percent of its loss."""
    # Percent of one number, Poisson's mean loss: the interval is scaled and keeps its level.
    base = float(contest.losses[REFERENCE].mean())
    for name in contest.samplers:
        if name == REFERENCE:
            continue
        difference = contest.difference(name)
        yield {
            **keys_of(contest),
            "variant": contest.variant,
            "sampler": name,
            "percent": 100 * difference.value / base,
            "lower": 100 * difference.lower / base,
            "upper": 100 * difference.upper / base,
        }


def _differences(axes: Axes, part: pd.DataFrame) -> None:
    """Draw points with intervals, a row for each sampler, the variants one below the other."""
    order = in_order(part["sampler"].unique())
    axes.axvline(0, color="black", linewidth=0.7)
    for number, (variant, look) in enumerate(VARIANTS.items()):
        chosen = where(part, variant=variant)
        # Variants of a sampler stand a fifth of a row apart.
        rows = [order.index(name) + 0.22 * (number - 1) for name in chosen["sampler"]]
        ends = [chosen["percent"] - chosen["lower"], chosen["upper"] - chosen["percent"]]
        axes.errorbar(
            chosen["percent"],
            rows,
            xerr=ends,
            linestyle="none",
            markersize=3.5,
            elinewidth=0.8,
            capsize=1.5,
            **look,
        )
    name_rows(axes, (style_of(name)["label"] for name in order), size=7)
    if where(part, variant="stated").empty:
        # In a row of its own, where it hides nothing.
        axes.set_ylim(len(order) - 0.5, -1)
        remark("not in the paper", "upper right")(axes)


class NoiseSizes(FairFigure):
    """Noise for one target, by size."""

    title = "Noise for one privacy target, by batch size and first stage"
    name = "figure_noise"
    caption = (
        "Noise multiplier that each sampler needs for one target: above for several sizes b of the "
        "first stage at one batch size m, below for several m at one b (samplers of one stage have "
        "no b). Each bar runs from the largest noise at which an attack exceeds the target to the "
        "noise that is proved to meet it under substitution; the least sufficient noise lies on "
        "the bar. Crosses: noise for which the papers' pair meets the target, no guarantee; "
        "Poisson's pair is for add/remove."
    )
    experiments = ("fair_noise",)

    def draw(self, records: Records) -> tuple[Figure, pd.DataFrame]:
        along_b, along_m, fixed = sections(self.needed(records, "fair_noise"))
        sizes = [
            (along_b, b) for b in sorted(along_b.loc[along_b["b"] != NO_FIRST_STAGE, "b"].unique())
        ]
        # The panel of the fixed m is among those along b already.
        sizes += [(part, fixed["b"]) for m, part in along_m.groupby("m") if m != fixed["m"]]
        shown = [cells[cells["b"].isin((NO_FIRST_STAGE, b))] for cells, b in sizes]
        # A sampler that was computed for one size only is left out: panels have the same rows.
        shared = set.intersection(*(set(cells["sampler"]) for cells in shown))
        panels = []
        for (section, b), cells in zip(sizes, shown, strict=True):
            # The panels of one m share their axis.
            noise = section["noise_multiplier"]
            drawn = cells[cells["sampler"].isin(shared)]
            panels.append(
                Panel(
                    f"m = {cells['m'].iloc[0]}, b = {b}",
                    [partial(_needed_noise, cells=drawn)],
                    {"xlim": (0.9 * noise.min(), 1.04 * noise.max())},
                )
            )
        setting = f"{fixed['steps']} steps, n = {fixed['n']:,}, ε = {fixed['target_epsilon']:g}"
        panels[0] = replace(
            panels[0], layers=[*panels[0].layers, line([], [], linestyle="none", label=setting)]
        )
        figure = draw_panels(
            [*panels, None], height=1.9, xlabel="noise multiplier", labels=self.labels(records)
        )
        numbers = pd.concat(
            [along_b.assign(section="b"), along_m.assign(section="m")], ignore_index=True
        )
        return figure, numbers.drop(columns=["data", "replicate", "surface"])


class NoiseRelations(FairFigure):
    """Noise for one target under each adjacency relation."""

    title = "Noise for one privacy target, under three adjacency relations"
    name = "figure_relations"
    caption = (
        "Noise multiplier that each sampler needs for one target, a row of panels for each batch "
        "size m, a column for each adjacency relation: add/remove (for samplers of fixed size both "
        "data sets are sampled in the same way), zero-out with the number of records public, and "
        "substitution. Compare samplers within a panel: the relations promise different things. "
        "Each bar runs from the largest noise at which an attack exceeds the target to the noise "
        "that is proved to meet it. Left out: there is a bound, and its search takes too long for "
        "a grid of this size."
    )
    experiments = ("fair_noise",)

    def draw(self, records: Records) -> tuple[Figure, pd.DataFrame]:
        _, along_m, fixed = sections(self.needed(records, "fair_noise", variants=("rigorous",)))
        # The other figure has the fixed m; with no other m this one falls back to it.
        shown = (
            along_m[along_m["m"] != fixed["m"]] if (along_m["m"] != fixed["m"]).any() else along_m
        )
        numbers = pd.concat(
            [
                shown.assign(relation=relation, proved=shown[proved], refuted=shown[refuted])
                for relation, proved, refuted in RELATIONS
            ],
            ignore_index=True,
        )[["relation", *SETTING, "sampler", "m", "b", "proved", "refuted"]]
        panels = []
        for m, cells in numbers.groupby("m"):
            # Panels of one m share their axis: within a row noise can be compared across relations.
            axis = {"xlim": (0.9 * cells["refuted"].min(), 1.04 * cells["proved"].max())}
            panels += [
                Panel(f"{WORDS[relation]}, m = {m}", [partial(_at_relation, cells=part)], axis)
                for relation, part in cells.groupby("relation", sort=False)
            ]
        setting = (
            f"{fixed['steps']} steps, n = {fixed['n']:,}, ε = {fixed['target_epsilon']:g}, b "
            f"= {fixed['b']}"
        )
        panels[0] = replace(
            panels[0], layers=[*panels[0].layers, line([], [], linestyle="none", label=setting)]
        )
        figure = draw_panels(
            panels,
            height=1.9,
            xlabel="noise multiplier",
            grid={"sharey": True},
            labels=self.labels(records),
        )
        return figure, numbers.dropna(subset="proved")


def _at_relation(axes: Axes, cells: pd.DataFrame) -> None:
    """Draw a row for each sampler: the bar from attack to proof."""
    for row, cell in enumerate(cells.to_dict("records")):
        if math.isnan(cell["proved"]):
            axes.text(
                0.05,
                row,
                "left out",
                transform=axes.get_yaxis_transform(),
                size=6.5,
                color="#404040",
                va="center",
            )
            continue
        look = style_of(cell["sampler"])
        axes.plot(cell["proved"], row, color=look["color"], marker=look["marker"])
        axes.plot([cell["refuted"], cell["proved"]], [row, row], color=look["color"], **BAR)
    axes.plot([], [], color=NEUTRAL, marker="o", linestyle="none", label="proved")
    axes.plot([], [], color=NEUTRAL, **BAR, label="from attack to proof")
    name_rows(axes, (style_of(name)["label"] for name in cells["sampler"]), size=7)


def sections(frame: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame, dict[str, Any]]:
    """Return the cells along b at fixed m, the cells along m at fixed b, and the values that are
    fixed in both.

    The setting is that of the first cell that is only calibrated; the fixed m and b are those with
    the most cells.
    """
    if not (frame["b"] * frame["surface"]).any():
        raise DataError(
            "noise against b needs a surface with a two-stage sampler, got none; add one to "
            "fair_noise.surface"
        )
    # Cells that are only calibrated are of one setting; trained cells of that setting join them.
    setting = frame.loc[frame["surface"] == 1, SETTING].iloc[0]
    cells = frame[(frame[SETTING] == setting).all(axis=1)].drop_duplicates(
        ["variant", "sampler", "m", "b"]
    )
    staged = cells[cells["b"] != NO_FIRST_STAGE]
    # With several sizes the longest section says most.
    m = staged.groupby("m")["b"].nunique().idxmax()
    b = staged.groupby("b")["m"].nunique().idxmax()
    along_b = cells[cells["m"] == m].sort_values(["b"], kind="stable")
    along_m = cells[(cells["b"] == b) | (cells["b"] == NO_FIRST_STAGE)].sort_values(
        ["m"], kind="stable"
    )
    return along_b, along_m, {**{str(name): setting[name] for name in SETTING}, "m": m, "b": b}


def _needed_noise(axes: Axes, cells: pd.DataFrame) -> None:
    """Draw a row for each sampler: the bar from attack to proof, and the noise of the papers'
    pair."""
    order = list(cells["sampler"].unique())
    for cell in cells.to_dict("records"):
        look, row = style_of(cell["sampler"]), order.index(cell["sampler"])
        proved = cell["variant"] == "rigorous"
        noise, color = cell["noise_multiplier"], look["color"]
        axes.plot(noise, row, color=color, marker=look["marker"] if proved else "x")
        # 0 stands for no known attack, and then there is no bar.
        if cell["necessary"] > 0:
            axes.plot([cell["necessary"], noise], [row, row], color=color, **BAR)
    # Marks that all samplers share have a key in no sampler's colour
    axes.plot([], [], color=NEUTRAL, marker="o", linestyle="none", label="proved")
    axes.plot([], [], color=NEUTRAL, **BAR, label="from attack to proof")
    axes.plot(
        [], [], color=NEUTRAL, marker="x", linestyle="none", label="papers' pair, no guarantee"
    )
    name_rows(axes, (style_of(name)["label"] for name in order), size=7)
