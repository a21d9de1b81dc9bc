"""Figures: noise over Poisson's, what of it is the scheme's, losses by target and by cost,
differences from Poisson."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd

from dpsub.papers.tournament.tables import (
    NOISE,
    REGIMES,
    TRAINING,
    key_of,
    over_poisson,
    parts,
    tournament_contests,
    without_privacy,
)
from dpsub.reproduce.artefact import Artefact, Records
from dpsub.reproduce.digits import as_printed
from dpsub.reproduce.figures import (
    NEUTRAL,
    Panel,
    curves,
    draw_panels,
    level,
    line,
    mark_keys,
    name_rows,
    sampler_style,
    where,
)
from dpsub.reproduce.labels import display, sampler_label
from dpsub.reproduce.paired import REFERENCE, with_interval
from dpsub.reproduce.tables import chosen
from dpsub.sampling.schemes import SCHEMES

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

STYLES = {name: sampler_style(name) for name in (*SCHEMES, "importance")}
OF_THE_SCHEME: dict[str, Any] = {"color": "#332288", "height": 0.34}
OF_THE_PROOF: dict[str, Any] = {"color": "#DDCC77", "height": 0.72}


def section(frame: pd.DataFrame, fixed: Sequence[str]) -> pd.DataFrame:
    """Return the rows of one setting of the columns `fixed`: that with most schemes, all of them
    with many rows, of several the middle one."""
    rows = frame.groupby([*fixed, "sampler"], sort=True).size().groupby(list(fixed), sort=True)
    sizes = rows.agg(["size", "min", "sum"])
    # Many schemes first, then many rows of the poorest one, then many rows in all.
    largest = sizes.sort_values(["size", "min", "sum"]).iloc[-1]
    tied = sizes.index[(sizes == largest).all(axis=1)].to_frame(index=False)
    # Of settings that are as good the middle one, so that no end of the grid is shown as typical.
    middle = tied.iloc[len(tied) // 2]
    return chosen(frame, {str(name): value for name, value in middle.items()})


def setting(frame: pd.DataFrame, *names: str) -> str:
    """Return what is the same in all rows, in few letters."""
    signs = {"epsilon": "ε", "target_epsilon": "ε", "target_delta": "δ"}
    said = {name: as_printed(f"{frame[name].iloc[0]:.4g}") for name in names}
    words = [
        f"{signs.get(name, name)} = {value}" for name, value in said.items() if name != "epochs"
    ]
    passes = said.get("epochs", "")
    return ", ".join([*words, f"{passes} epoch{'s' * (passes != '1')}"] if passes else words)


def relation(adjacency: str) -> str:
    return adjacency.replace("_", " or " if adjacency == "add_remove" else " ")


class TournamentFigure(Artefact):
    """A figure of the tournament, without values in the comparison with printed numbers."""

    kind = "figure"
    experiments: ClassVar[tuple[str, ...]] = (TRAINING,)


class NoiseRatios(TournamentFigure):
    """Noise over Poisson's, over the target and over the batch size."""

    title = "Noise over Poisson's at equal proved privacy"
    name = "figure_noise"
    caption = (
        "Noise multiplier that is proved to meet the target, divided by Poisson's; below the line "
        "a scheme needs less. Upper row: over the target ε; lower row: over n / m, the steps of "
        "an epoch; a column a relation. Bands: between what an attack refutes over what is proved "
        "for Poisson, and what is proved over what an attack refutes for Poisson; curves without "
        "a band have no attack."
    )
    experiments = (NOISE,)

    def draw(self, records: Records) -> tuple[Figure, pd.DataFrame]:
        ratios = over_poisson(self.needed(records, NOISE))
        ratios = ratios.assign(ratio_of_sizes=ratios["n"] / ratios["m"])
        # in the same order whatever a panel lacks
        keys = [line([], [], **STYLES[name]) for name in drawn(ratios)]
        panels, numbers = [], []
        for along, label, fixed in (
            ("target_epsilon", "ε", ("target_delta", "n", "m", "epochs")),
            ("ratio_of_sizes", "n / m", ("target_delta", "n", "epochs", "target_epsilon")),
        ):
            for adjacency, of_relation in ratios.groupby("adjacency", sort=False):
                part = section(of_relation, fixed)
                heading = f"{relation(str(adjacency))}\n{setting(part, *fixed[1:])}"
                shown = curves(part, along, "ratio", styles=STYLES, band=("lower", "upper"))
                axis = {"xlabel": label, "xticks": part[along].unique()}
                panels.append(Panel(heading, [*keys, shown, level(1)], axis))
                numbers.append(part.assign(along=along))
        figure = draw_panels(
            panels,
            columns=ratios["adjacency"].nunique(),
            xscale="log",
            yscale="log",
            ylabel="noise over Poisson's",
            labels=self.labels(records),
        )
        return figure, pd.concat(numbers)


class PartsFigure(TournamentFigure):
    """The scheme's part and the proof's part of each difference from Poisson."""

    title = "How much of the difference is the scheme, and how much our proof's gap"
    name = "figure_parts"
    caption = (
        "Difference of the proved noise multiplier from Poisson's in percent (100 times the "
        "natural logarithm of the ratio), means over settings (mark). Narrow bar: the part that "
        "an attack shows, which no better proof can take away; wide bar: what is left to a better "
        "attack or a better proof. Rows of panels: Poisson's proved noise multiplier below 1, and "
        "1 or more."
    )
    experiments = (NOISE,)

    def draw(self, records: Records) -> tuple[Figure, pd.DataFrame]:
        differences = parts(self.needed(records, NOISE)).dropna(subset="difference")
        names = drawn(differences)
        relations = differences["adjacency"].unique()
        panels = []
        for size, adjacency in itertools.product(REGIMES, relations):
            part = where(differences, adjacency=adjacency, regime=size)
            # A relation may have no setting with small noise.
            if len(part):
                bars = partial(_stacked, part=part, names=names)
                panels.append(Panel(f"{relation(adjacency)}\n{size}", [bars]))
        figure = draw_panels(
            panels,
            columns=len(relations),
            xlabel="100 log(noise over Poisson's)",
            grid={"sharey": True},
            labels=self.labels(records),
        )
        return figure, differences


def drawn(rows: pd.DataFrame) -> list[str]:
    """Return the schemes other than Poisson, in the order of their rows."""
    return [name for name in STYLES if name in set(rows["sampler"]) - {REFERENCE}]


def _stacked(axes: Axes, part: pd.DataFrame, names: list[str]) -> None:
    """Draw a row a scheme: from 0 to what an attack shows, and from there to what is proved."""
    rows = [names.index(name) for name in part["sampler"]]
    # The wide bar starts where the narrow one ends: together they are the whole difference.
    axes.barh(
        rows,
        part["of_the_proof"],
        left=part["of_the_scheme"],
        label="of the proof, at most",
        **OF_THE_PROOF,
    )
    axes.barh(rows, part["of_the_scheme"], label="of the scheme, at least", **OF_THE_SCHEME)
    axes.plot(part["difference"], rows, color="black", marker="|", linestyle="none", label="proved")
    axes.axvline(0, color="black", linewidth=0.7)
    name_rows(axes, map(sampler_label, names), size=6.5)


def points(records: pd.DataFrame) -> pd.DataFrame:
    """Return a row a contest and scheme: loss with its interval, mean gradients, loss without
    privacy, and the paired difference from Poisson in percent of its loss, with its interval and
    whether it is shown."""
    rows: list[dict[str, Any]] = []
    for contest in tournament_contests(records):
        base = float(contest.losses[REFERENCE].mean())
        # Observed, as batches of random size evaluate more in one seed than in another.
        gradients = contest.records.groupby("sampler")["gradients"].mean()
        free = without_privacy(records, contest)["test_loss"].mean()
        for name in contest.samplers:
            loss = with_interval(contest.losses[name].to_numpy())
            difference = contest.difference(name)
            row = {
                **key_of(contest),
                "sampler": name,
                "loss": loss.value,
                "lower": loss.lower,
                "upper": loss.upper,
                "gradients": float(gradients[name]),
                "without_privacy": free,
                "percent": 100 * difference.value / base,
                "percent_lower": 100 * difference.lower / base,
                "percent_upper": 100 * difference.upper / base,
                "told_apart": contest.differs.get(name, False),
            }
            rows.append(row)
    return pd.DataFrame(rows)


def tasks(marks: pd.DataFrame) -> tuple[list[tuple[str, pd.DataFrame]], list[Any]]:
    """Return the points of each task, under the relation with most of them, with its name; and that
    in the legend."""
    # Relations promise different things: all panels of a figure show one, named in the legend.
    part = section(marks, ["adjacency"])
    named = line([], [], linestyle="none", label=relation(part["adjacency"].iloc[0]))
    return [
        (display("dataset", str(dataset), plain=True), of_task)
        for dataset, of_task in part.groupby("dataset", sort=False)
    ], [named]


def free_level(part: pd.DataFrame) -> list[Any]:
    """Return the layer of the loss without privacy, the least of what is shown; none where there is
    none."""
    # Sizes and epochs may differ within a panel: the best of their trainings is the level.
    least = part["without_privacy"].min()
    return [] if np.isnan(least) else [level(least, linestyle=":", label="non-private")]


class LossCurves(TournamentFigure):
    """Test loss over the target, a panel a task."""

    title = "Test loss over ε"
    name = "figure_loss"
    caption = (
        "Test loss over the target ε with noise that is proved to meet it, by scheme, at one "
        "batch size and number of epochs for each task. Bars: 95 % Student intervals over seeds. "
        "Dotted: without privacy, tuned by the same rule."
    )

    def draw(self, records: Records) -> tuple[Figure, pd.DataFrame]:
        each, named = tasks(points(self.needed(records, TRAINING)))
        shown = [(text, section(part, ("m", "epochs"))) for text, part in each]
        panels = [
            Panel(
                f"{text}\n{setting(part, 'm', 'epochs')}",
                [
                    *named,
                    *free_level(part),
                    curves(part, "epsilon", "loss", styles=STYLES, bars=("lower", "upper")),
                ],
                {"xticks": part["epsilon"].unique()},
            )
            for text, part in shown
        ]
        figure = draw_panels(
            panels, xlabel="ε", ylabel="test loss", xscale="log", labels=self.labels(records)
        )
        return figure, pd.concat([part for _, part in shown])


class Gradients(TournamentFigure):
    """Test loss over gradient evaluations, a panel a task."""

    title = "Test loss over gradient evaluations"
    name = "figure_gradients"
    caption = (
        "Test loss over the number of distinct gradients that the whole training evaluates, at "
        "one target for each task; a mark a scheme, batch size and number of epochs, with 95 % "
        "Student intervals over seeds. Stairs: the front, the least mean loss for so many "
        "gradients. Dotted: without privacy."
    )

    def draw(self, records: Records) -> tuple[Figure, pd.DataFrame]:
        marks = points(self.needed(records, TRAINING))
        each, named = tasks(marks.assign(thousands=marks["gradients"] / 1000))
        shown = [(text, section(part, ("epsilon",))) for text, part in each]
        panels = [
            Panel(
                f"{text}\n{setting(part, 'epsilon')}",
                [
                    *named,
                    partial(_front, part=part),
                    curves(
                        part,
                        "thousands",
                        "loss",
                        styles=STYLES,
                        bars=("lower", "upper"),
                        linestyle="none",
                        markevery=1,
                    ),
                    *free_level(part),
                ],
            )
            for text, part in shown
        ]
        figure = draw_panels(
            panels,
            xlabel="gradients (thousands)",
            ylabel="test loss",
            xscale="log",
            labels=self.labels(records),
        )
        return figure, pd.concat([part for _, part in shown])


def _front(axes: Axes, part: pd.DataFrame) -> None:
    # In order of cost, so that the running minimum is the least loss for so many gradients.
    ordered = part.sort_values("thousands", kind="stable")
    axes.step(
        ordered["thousands"],
        ordered["loss"].cummin(),
        where="post",
        color=NEUTRAL,
        linewidth=0.8,
        label="front",
    )


class Differences(TournamentFigure):
    """Paired differences from Poisson, a panel a task."""

    title = "Test loss compared with Poisson's"
    name = "figure_differences"
    caption = (
        "Paired difference of the test loss from Poisson's in percent of the latter, at the "
        "smallest target, one batch size and number of epochs for each task, with 95 % Student "
        "intervals over seeds; left of the line is better than Poisson. Full marks: the "
        "difference is shown by Holm's procedure over the schemes at 5 %; hollow marks: no "
        "difference can be shown."
    )

    def draw(self, records: Records) -> tuple[Figure, pd.DataFrame]:
        each, named = tasks(points(self.needed(records, TRAINING)))
        # At the smallest target noise counts most, and schemes differ most.
        least = [(text, part[part["epsilon"] == part["epsilon"].min()]) for text, part in each]
        shown = [(text, section(part, ("m", "epochs"))) for text, part in least]
        names = drawn(pd.concat([part for _, part in shown]))
        panels = [
            Panel(
                f"{text}\n{setting(part, 'm', 'epochs', 'epsilon')}",
                [partial(_differences, part=part[part["sampler"] != REFERENCE], names=names)],
            )
            for text, part in shown
        ]
        # Full and hollow marks are explained once, in the first panel.
        keys = mark_keys("shown", "not shown")
        panels[0] = replace(panels[0], layers=[*panels[0].layers, *named, *keys])
        figure = draw_panels(
            panels,
            xlabel="difference from Poisson (%)",
            grid={"sharey": True},
            labels=self.labels(records),
        )
        return figure, pd.concat([part for _, part in shown])


def _differences(axes: Axes, part: pd.DataFrame, names: list[str]) -> None:
    """Draw a row a scheme."""
    axes.axvline(0, color="black", linewidth=0.7)
    for mark in part.to_dict("records"):
        look, value = STYLES[mark["sampler"]], mark["percent"]
        ends = [[value - mark["percent_lower"]], [mark["percent_upper"] - value]]
        axes.errorbar(
            value,
            names.index(mark["sampler"]),
            xerr=ends,
            color=look["color"],
            marker=look["marker"],
            markersize=4.5,
            elinewidth=0.8,
            capsize=1.5,
            markerfacecolor=look["color"] if mark["told_apart"] else "white",
        )
    name_rows(axes, map(sampler_label, names), size=6.5)
