"""Figures: noise over Poisson's, the part of it that is unavoidable, losses by target, differences
from Poisson."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from textwrap import fill
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd

from dpsub.papers.tournament.settings import cell_of, why_not
from dpsub.papers.tournament.tables import (
    NOISE,
    PLACE,
    REGIMES,
    TRAINING,
    key_of,
    over_poisson,
    parts,
    shared,
    tournament_contests,
    without_privacy,
)
from dpsub.reproduce.artefact import Artefact, Records
from dpsub.reproduce.digits import as_printed
from dpsub.reproduce.figures import (
    Panel,
    curves,
    draw_panels,
    level,
    mark_keys,
    name_rows,
    remark,
    sampler_style,
    where,
)
from dpsub.reproduce.labels import WORDS, display, sampler_label
from dpsub.reproduce.paired import REFERENCE, with_interval
from dpsub.reproduce.tables import chosen
from dpsub.sampling.schemes import SCHEMES

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

STYLES = {name: sampler_style(name) for name in (*SCHEMES, "importance")}
SHOWN: dict[str, Any] = {"color": "#332288", "height": 0.6}
OPEN: dict[str, Any] = {"color": "#DDCC77", "height": 0.6}
THICK = (REFERENCE, "wor", "random_allocation", "shuffle")
"""Schemes that stand for all others in the curves of losses: the reference, fresh batches of one
size, and each record once an epoch with and without amplification."""
THIN: dict[str, Any] = {"markersize": 2, "linestyle": "-", "linewidth": 0.5, "zorder": 1}
"""Look of the other schemes, in the colours and with the marks that they have everywhere."""
ALIKE = 0.02
"""Relative difference up to which two curves are drawn as one."""
WIDE = 1.1
"""Ratio of the edges from which the lower edge of a band is drawn, too."""
QUIET = "#666666"
SMALL = 6.0
"""Size of letters within a panel."""
HEIGHT, AXES_HEIGHT = 2.5, 1.7
"""Heights in inches of a row of panels whose curves have names at their ends, and of its axes."""
TITLE = 26
"""Letters of a line of a panel's title: a longer one would push the columns of panels apart."""
OWN_DATA = {"", "real", "simulated"}
"""Labels of data that stand in for no others."""


def section(frame: pd.DataFrame, fixed: Sequence[str]) -> pd.DataFrame:
    """Return the rows of one setting of the columns `fixed`: the setting with the most curves, then
    with the most rows; among several such settings the middle one."""
    curve = list(dict.fromkeys([*fixed, "adjacency", "sampler"]))
    rows = frame.groupby(curve, sort=True).size().groupby(list(fixed), sort=True)
    sizes = rows.agg(["size", "min", "sum"])
    # Many curves first, then many rows of the poorest one, then many rows in all.
    largest = sizes.sort_values(["size", "min", "sum"]).iloc[-1]
    tied = sizes.index[(sizes == largest).all(axis=1)].to_frame(index=False)
    # Of settings that are as good the middle one, so that no end of the grid is shown as typical.
    middle = tied.iloc[len(tied) // 2]
    return chosen(frame, {str(name): value for name, value in middle.items()})


def setting(frame: pd.DataFrame, *names: str) -> str:
    """Return the values that all rows share, in few letters."""
    signs = {"epsilon": "ε", "target_epsilon": "ε", "target_delta": "δ"}
    said = {name: as_printed(f"{frame[name].iloc[0]:.4g}") for name in names}
    words = [
        f"{signs.get(name, name)} = {value}" for name, value in said.items() if name != "epochs"
    ]
    passes = said.get("epochs", "")
    return ", ".join([*words, f"{passes} epoch{'s' * (passes != '1')}"] if passes else words)


LEFT_OUT = (
    "Left out: no bound is proved under this relation, or its search takes too long for a grid of "
    "this size."
)


class TournamentFigure(Artefact):
    """A figure of the tournament, without values in the comparison with printed numbers."""

    kind = "figure"
    experiments: ClassVar[tuple[str, ...]] = (TRAINING,)


class NoiseRatios(TournamentFigure):
    """Noise over Poisson's, over the target and over the batch size."""

    title = "Noise over Poisson's at the same proved privacy"
    name = "figure_noise"
    caption = (
        "Noise multiplier that is proved to meet the target, divided by Poisson's; below 1 a "
        "scheme needs less noise than Poisson. Left: over the target ε; right: over n / m, the "
        "number of steps of an epoch; a row for each adjacency relation. Each band runs from a "
        "lower bound (noise refuted by an attack over noise proved for Poisson) to an upper bound "
        "(noise proved over noise refuted for Poisson). Curves within 2 % of each other are drawn "
        "as one and carry all their names. The lower edge of a band of more than 10 % is dotted, "
        f"with hollow marks, in the colour of its scheme. {LEFT_OUT}"
    )
    experiments = (NOISE,)

    def draw(self, records: Records) -> tuple[Figure, pd.DataFrame]:
        ratios = shared(over_poisson(self.needed(records, NOISE)))
        ratios = ratios.assign(ratio_of_sizes=ratios["n"] / ratios["m"])
        # One delta, n and number of epochs for all panels.
        over_target = section(ratios, ("target_delta", "n", "m", "epochs"))
        common = {name: over_target[name].iloc[0] for name in ("target_delta", "n", "epochs")}
        over_sizes = section(chosen(ratios, common), ("target_epsilon",))
        numbers = pd.concat(
            [over_target.assign(along="target_epsilon"), over_sizes.assign(along="ratio_of_sizes")]
        )
        limits = _limits(numbers[["lower", "ratio"]])
        names = drawn(ratios)
        figure = draw_panels(
            [
                _noise_panel(where(numbers, adjacency=adjacency, along=along), names, limits)
                for adjacency in numbers["adjacency"].unique()
                for along in ("target_epsilon", "ratio_of_sizes")
            ],
            columns=2,
            height=HEIGHT,
            xscale="log",
            yscale="log",
            ylim=limits,
            ylabel="noise over Poisson's",
            labels=self.labels(records),
        )
        return figure, numbers


def _noise_panel(
    part: pd.DataFrame, names: Sequence[str], limits: tuple[float, float]
) -> Panel | None:
    """Return the panel of one relation over targets or sizes; it may have none."""
    if part.empty:
        return None
    adjacency, along = (str(part[name].iloc[0]) for name in ("adjacency", "along"))
    over_targets = along == "target_epsilon"
    fixed = ("n", "m", "epochs") if over_targets else ("n", "target_epsilon", "epochs")
    layers = _noise_layers(part, along, limits)
    if lacking := _left_out(part, names):
        layers.append(remark(f"left out: {lacking}", "upper left"))
    axis = {"xlabel": "target ε" if over_targets else "n / m", "xticks": part[along].unique()}
    return Panel(f"{WORDS[adjacency]}\n{setting(part, *fixed)}", layers, axis)


def _limits(values: pd.DataFrame) -> tuple[float, float]:
    """Return the limits of a logarithmic axis, with room above for a remark."""
    low, high = min(1.0, np.nanmin(values)), max(1.0, np.nanmax(values))
    return 0.93 * low, 1.8 * high


def _noise_layers(part: pd.DataFrame, along: str, limits: tuple[float, float]) -> list[Any]:
    """Return the curves and bands of a panel, each curve with its names at its end."""
    ends = [CurveName("Poisson", "black", part[along].max(), 1.0)]
    styles = {}
    for names in coinciding(part, along):
        first = STYLES[names[0]]
        styles[names[0]] = {**first, "linestyle": "-", "markersize": 3}
        last = where(part, sampler=names[0]).sort_values(along).iloc[-1]
        text = ",\n".join(sampler_label(name) for name in names)
        ends.append(CurveName(text, first["color"], last[along], last["ratio"]))
    bands = {name: {**STYLES[name], "linewidth": 0, "marker": ""} for name in drawn(part)}
    widths = (part["ratio"] / part["lower"]).groupby(part["sampler"]).max()
    edges = {
        name: {**STYLES[name], "linestyle": ":", "markersize": 3, "markerfacecolor": "white"}
        for name in drawn(part)
        if widths[name] > WIDE
    }
    layers = [
        curves(part, along, "ratio", styles=bands, band=("lower", "upper"), label="_"),
        level(1),
        curves(part, along, "lower", styles=edges, label="_", linewidth=0.8),
        curves(part, along, "ratio", styles=styles, label="_"),
    ]
    return [*layers, partial(name_ends, ends=ends, limits=limits)]


def coinciding(part: pd.DataFrame, along: str) -> list[list[str]]:
    """Return the schemes of a panel in groups whose curves cannot be told apart."""
    wide = part.pivot_table(index=along, columns="sampler", values="ratio")
    groups: list[list[str]] = []
    for name in drawn(part):
        for group in groups:
            if np.allclose(wide[name], wide[group[0]], rtol=ALIKE, atol=0, equal_nan=True):
                group.append(name)
                break
        else:
            groups.append([name])
    return groups


def _left_out(part: pd.DataFrame, names: Iterable[str]) -> str:
    """Return the schemes that are missing from a panel because no bound is used for them."""
    place: dict[str, Any] = dict(zip(PLACE, part[PLACE].iloc[0], strict=True))
    lacking = [
        sampler_label(name)
        for name in names
        if name not in set(part["sampler"]) and why_not(cell_of(sampler=name, **place))
    ]
    return ", ".join(lacking)


@dataclass(frozen=True)
class CurveName:
    """The name of a curve at its end."""

    text: str
    color: str
    x: float
    y: float

    @property
    def lines(self) -> int:
        return self.text.count("\n") + 1


def name_ends(axes: Axes, ends: Sequence[CurveName], limits: tuple[float, float]) -> None:
    """Write the name of each curve right of its end, on a logarithmic axis with these limits."""
    low, high = map(math.log, limits)
    ordered = sorted(ends, key=lambda end: end.y)
    places = [(math.log(end.y) - low) / (high - low) for end in ordered]
    # Names of curves that end close together are moved apart: first up, then back below the top.
    line_height = 1.15 * SMALL / 72 / AXES_HEIGHT
    gaps = [
        line_height * (one.lines + other.lines) / 2 for one, other in itertools.pairwise(ordered)
    ]
    apart = list(places)
    for index, gap in enumerate(gaps, 1):
        apart[index] = max(apart[index], apart[index - 1] + gap)
    apart[-1] = min(apart[-1], 1.0)
    for index, gap in reversed(list(enumerate(gaps))):
        apart[index] = min(apart[index], apart[index + 1] - gap)
    for end, place in zip(ordered, apart, strict=True):
        axes.annotate(
            end.text,
            (end.x, end.y),
            xytext=(1.06, place),
            textcoords="axes fraction",
            fontsize=SMALL,
            color=end.color,
            ha="left",
            va="center",
            linespacing=1.0,
            # From the middle of the left edge, so that it crosses no other name.
            arrowprops={
                "arrowstyle": "-",
                "color": end.color,
                "linewidth": 0.4,
                "relpos": (0, 0.5),
                "shrinkA": 1,
                "shrinkB": 2,
            },
            annotation_clip=False,
        )


class PartsFigure(TournamentFigure):
    """The unavoidable part and the open part of the extra noise of each scheme."""

    title = "How much of the extra noise is unavoidable?"
    name = "figure_parts"
    caption = (
        "Proved noise multiplier over Poisson's, geometric mean over settings, on a logarithmic "
        "axis. Dark: extra noise that an attack shows to be necessary; no better proof can remove "
        "it. Light: open to a better attack or a better proof. Mark: the proved ratio. Vertical "
        "line: Poisson. Rows of "
        f"panels: Poisson's proved noise multiplier below 1, and 1 or more. {LEFT_OUT}"
    )
    experiments = (NOISE,)

    def draw(self, records: Records) -> tuple[Figure, pd.DataFrame]:
        differences = parts(self.needed(records, NOISE))
        names = drawn(differences)
        differences = differences.dropna(subset="difference")
        relations = differences["adjacency"].unique()
        ratios = np.exp(differences[["of_the_scheme", "difference"]].to_numpy() / 100)
        panels = []
        for size, adjacency in itertools.product(REGIMES, relations):
            part = where(differences, adjacency=adjacency, regime=size)
            # A relation may have no setting with small noise.
            if len(part):
                bars = partial(_stacked, part=part, names=names)
                panels.append(Panel(f"{WORDS[adjacency]}\n{size}", [bars]))
        figure = draw_panels(
            panels,
            columns=len(relations),
            xscale="log",
            xlim=(0.93 * min(1.0, ratios.min()), 1.1 * ratios.max()),
            xlabel="noise over Poisson's (log scale)",
            grid={"sharex": True, "sharey": True},
            labels=self.labels(records),
        )
        return figure, differences


def drawn(rows: pd.DataFrame) -> list[str]:
    """Return the schemes other than Poisson, in the order of their rows."""
    return [name for name in STYLES if name in set(rows["sampler"]) - {REFERENCE}]


def _stacked(axes: Axes, part: pd.DataFrame, names: list[str]) -> None:
    """Draw a row for each scheme: from Poisson's noise to the noise that an attack refutes, and on
    to the proved one."""
    rows = [names.index(name) for name in part["sampler"]]
    # From means of logarithms in percent to ratios.
    refuted, proved = (np.exp(part[name] / 100) for name in ("of_the_scheme", "difference"))
    # An attack below Poisson's noise shows no extra noise.
    shown = refuted.clip(lower=1.0)
    axes.barh(rows, shown - 1, left=1, label="shown by an attack", **SHOWN)
    axes.barh(rows, proved - refuted, left=refuted, label="open", **OPEN)
    mark: dict[str, Any] = {"color": "black", "marker": "|", "markersize": 7, "linestyle": "none"}
    axes.plot(proved, rows, label="proved", **mark)
    axes.axvline(1, color="black", linewidth=0.7)
    for row in sorted(set(range(len(names))) - set(rows)):
        axes.annotate(
            "left out",
            (1, row),
            xytext=(3, 0),
            textcoords="offset points",
            va="center",
            fontsize=SMALL,
            color=QUIET,
        )
    name_rows(axes, map(sampler_label, names), size=6.5)


def points(records: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each contest and scheme: loss with its interval, label of the data, loss
    without privacy, and the paired difference from Poisson in percent of its loss, with its
    interval and whether it is significant."""
    rows: list[dict[str, Any]] = []
    for contest in tournament_contests(records):
        base = float(contest.losses[REFERENCE].mean())
        free = without_privacy(records, contest)["test_loss"].mean()
        for name in contest.samplers:
            loss = with_interval(contest.losses[name].to_numpy())
            difference = contest.difference(name)
            row = {
                **key_of(contest),
                "sampler": name,
                "data": contest.records["data_label"].iloc[0],
                "loss": loss.value,
                "lower": loss.lower,
                "upper": loss.upper,
                "without_privacy": free,
                "percent": 100 * difference.value / base,
                "percent_lower": 100 * difference.lower / base,
                "percent_upper": 100 * difference.upper / base,
                "told_apart": contest.differs.get(name, False),
            }
            rows.append(row)
    return pd.DataFrame(rows)


def tasks(marks: pd.DataFrame) -> tuple[list[tuple[str, pd.DataFrame]], str]:
    """Return the points of each task under the relation with most of them, with the task's name;
    and the name of the relation."""
    # Relations promise different things: all panels of a figure show the same one.
    part = section(marks, ["adjacency"])
    each = [
        (fill(display("dataset", str(dataset), plain=True), TITLE), of_task)
        for dataset, of_task in part.groupby("dataset", sort=False)
    ]
    return each, WORDS[part["adjacency"].iloc[0]]


def badges(part: pd.DataFrame, place: str) -> list[Any]:
    """Return the label of a panel whose data stand in for others."""
    odd = sorted(set(part["data"]) - OWN_DATA)
    return [partial(_badge, text=f"{', '.join(odd)} data", place=place)] if odd else []


def _badge(axes: Axes, text: str, place: str) -> None:
    from matplotlib.offsetbox import AnchoredText

    look = {"size": SMALL, "color": "#B00020", "weight": "bold"}
    box = AnchoredText(text, loc=place, prop=look, pad=0.2, borderpad=0.2)
    box.patch.set(edgecolor="#B00020", linewidth=0.6)
    axes.add_artist(box)


def free_level(part: pd.DataFrame) -> list[Any]:
    """Return the layer of the loss without privacy; none where it was not trained."""
    free = part["without_privacy"].iloc[0]
    return [] if np.isnan(free) else [level(free, linestyle=":", label="without privacy")]


class LossCurves(TournamentFigure):
    """Test loss over the target, a panel for each task."""

    title = "Test loss over ε"
    name = "figure_loss"
    caption = (
        "Test loss over the target ε with noise that is proved to meet it, at one batch size and "
        "number of epochs for each task. Thick: Poisson, WOR (fresh batches of one size), random "
        "allocation and shuffle (each record once an epoch), with bars, 95 % Student intervals "
        "over seeds; thin, without bars: the other schemes. Dotted: without privacy, tuned by the "
        "same rule. The loss is the cross-entropy in nats; for the linear model and Song the "
        "squared error, for k-means the squared distance to the nearest centre. Each panel has its "
        "own axis of losses, which does not begin at 0."
    )

    def draw(self, records: Records) -> tuple[Figure, pd.DataFrame]:
        each, relation = tasks(points(self.needed(records, TRAINING)))
        shown = [(text, section(part, ("m", "epochs"))) for text, part in each]
        numbers = pd.concat([part for _, part in shown])
        targets = sorted(numbers["epsilon"].unique())
        panels = [
            Panel(
                f"{text}\n{setting(part, 'm', 'epochs')}",
                [*_loss_layers(part, targets), *free_level(part), *badges(part, "upper right")],
            )
            for text, part in shown
        ]
        figure = draw_panels(
            panels,
            xlabel=f"target ε ({relation})",
            ylabel="test loss",
            xscale="log",
            xticks=targets,
            xlim=(0.8 * targets[0], 1.25 * targets[-1]),
        )
        return figure, numbers


def _loss_layers(part: pd.DataFrame, targets: Sequence[float]) -> list[Any]:
    """Return the curves of a task, and which targets it lacks."""
    thin = {name: {**STYLES[name], **THIN} for name in STYLES if name not in THICK}
    thick = {name: {**STYLES[name], "linestyle": "-", "markersize": 2.5} for name in THICK}
    layers = [
        curves(part, "epsilon", "loss", styles=thick, bars=("lower", "upper"), nested=0.5),
        curves(part, "epsilon", "loss", styles=thin),
    ]
    lacking = [f"{target:g}" for target in targets if target not in set(part["epsilon"])]
    if lacking:
        layers.append(remark(f"not trained at\nε = {', '.join(lacking)}", "upper right"))
    return layers


class LossDifferences(TournamentFigure):
    """Paired differences from Poisson, a panel for each task."""

    title = "Test loss compared with Poisson's"
    name = "figure_differences"
    caption = (
        "Paired difference of the test loss from Poisson's in percent of the latter, at the same "
        "target for all tasks, with one batch size and number of epochs for each; 95 % Student "
        "intervals over seeds. Left of the line the scheme is better than Poisson. Full marks: "
        "significant by Holm's procedure at 5 % over the schemes; hollow marks: not significant. "
        "Importance sampling, which one task alone uses, is in the table of losses."
    )

    def draw(self, records: Records) -> tuple[Figure, pd.DataFrame]:
        marks = points(self.needed(records, TRAINING))
        each, relation = tasks(marks[marks["sampler"].isin(SCHEMES)])
        # The smallest of the targets that most tasks have: noise counts most there.
        counts = pd.concat([part for _, part in each]).groupby("epsilon")["dataset"].nunique()
        target = counts.idxmax()
        shown = [
            (text, section(part[part["epsilon"] == target], ("m", "epochs")))
            for text, part in each
            if target in set(part["epsilon"])
        ]
        numbers = pd.concat([part for _, part in shown])
        names = drawn(numbers)
        panels = [
            Panel(
                f"{text}\n{setting(part, 'm', 'epsilon', 'epochs')}",
                [
                    partial(_differences, part=part[part["sampler"] != REFERENCE], names=names),
                    *badges(part, "upper right"),
                ],
            )
            for text, part in shown
        ]
        # Full and hollow marks are explained once, in the first panel.
        keys = mark_keys("significant (Holm)", "not significant")
        panels[0] = replace(panels[0], layers=[*panels[0].layers, *keys])
        figure = draw_panels(
            panels,
            xlabel=f"test loss relative to\nPoisson's (%), {relation}",
            grid={"sharey": True},
        )
        return figure, numbers


def _differences(axes: Axes, part: pd.DataFrame, names: list[str]) -> None:
    """Draw a row for each scheme."""
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
