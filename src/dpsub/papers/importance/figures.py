"""Figures of Fay et al., and further ones: losses by group, when sampling helps, least errors, and
a map of the noise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd

from dpsub.papers.importance import labels
from dpsub.papers.importance.labels import MODES, SAMPLERS, TITLES, OnData, by_dataset, title_of
from dpsub.papers.importance.tables import TIMES, chosen_noise, medians, summary
from dpsub.reproduce.artefact import Artefact, Records
from dpsub.reproduce.figures import (
    Panel,
    curves,
    draw_panels,
    level,
    line,
    name_ends,
    remark,
    where,
)
from dpsub.reproduce.figures.panels import Layer
from dpsub.reproduce.tables import Column, Part, Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# from dark to light, as the numbers they stand for
SHADES = ("#0D0887", "#7201A8", "#BD3786", "#ED7953", "#FDB42F")
GREY = "#888888"


DRAWN = {name: SAMPLERS[name] for name in ("unif", "core", "opt")}
COMMON, RARE = "common records", "rare records"
# The common group is drawn wide and pale, so that the dashed line on top of it can be seen.
GROUPS: dict[str, dict[str, Any]] = {
    COMMON: {"linewidth": 2.4, "alpha": 0.5},
    RARE: {"linestyle": (0, (2, 1)), "linewidth": 1.0},
}


class _Figure(Artefact):
    """A figure without a printed number, and without numbers of its own."""

    kind = "figure"


class SamplingStrategies(OnData, _Figure):
    title = "Figure 1. Three sampling strategies for k-means on Song"
    name = "figure1"
    caption = (
        "One sample of each sampler in the first two principal components of all rows. The area of "
        "a marker grows with the weight of its row; the colour is the loss of the row at weight "
        "1. The text does not state size and target; those of the configuration are used."
    )
    experiments = ("importance_losses",)
    keys = ("panel",)
    largest: ClassVar[float] = 60.0  # points squared: area of the marker of the largest weight
    shown: ClassVar[int] = 1500  # rows a panel

    def draw(self, records: Records) -> tuple[Figure, pd.DataFrame]:
        frame = where(
            self.needed(records, "importance_losses", variants=("stated",)), topic="sample"
        )

        def marks(axes: Axes, sampler: str) -> None:
            part = where(frame, sampler=sampler)
            # Rows at equal distances, not at random: the figure is the same in every run.
            part = part.iloc[
                np.unique(
                    np.linspace(0, max(len(part) - 1, 0), min(self.shown, len(part))).astype(int)
                )
            ]
            # small markers last, so that they stay visible
            part = part.sort_values("weight", ascending=False)
            area = 1.5 + self.largest * part["weight"] / frame["weight"].max()
            axes.scatter(
                part["value"],
                part["second"],
                s=area,
                c=part["loss"],
                cmap="viridis",
                vmin=frame["loss"].min(),
                vmax=frame["loss"].max(),
                alpha=0.75,
                linewidths=0.2,
                edgecolors="white",
            )
            # The legend shows two powers of ten, as weights span orders of magnitude.
            top = 10.0 ** np.floor(np.log10(frame["weight"].max()))
            for weight in (top / 10, top):
                axes.scatter(
                    [],
                    [],
                    s=1.5 + self.largest * weight / frame["weight"].max(),
                    color=GREY,
                    linewidths=0,
                    label=f"weight {weight:g}",
                )
            axes.ticklabel_format(style="plain")

        panels = [
            Panel(SAMPLERS[name]["label"], [partial(marks, sampler=name)])
            for name in ("opt", "core", "unif")
        ]
        figure = draw_panels(
            panels,
            height=2.9,
            grid={"sharex": True, "sharey": True},
            xlabel="first component",
            ylabel="second component",
        )
        # One colour bar serves all panels, as all have the range of losses of the whole frame.
        figure.colorbar(
            figure.axes[2].collections[0],
            ax=figure.axes,
            label="loss at weight 1 (nats)",
            shrink=0.85,
        )
        if len(frame):
            figure.suptitle(title_of(frame), fontsize=8, weight="bold")
        return figure, frame.reset_index(drop=True)


class LaplaceSums(Table):
    title = "Figure 2. Sampling strategies for the Laplace sum mechanism"
    name = "figure2"
    kind = "figure"
    statements = ("c10", "c11")
    caption = (
        "Sums of 1,000 normal points with Laplace noise. The text does not state the target of the "
        "privacy-constrained weights; the rows show three readings. Left: importance weight of "
        "each point, ordered by ℓ₁ norm, at an expected sample size of 19. Right: mean squared "
        "error of the sum against the largest loss after sampling, one mark for each noise scale "
        "(bars: 95 % intervals over runs, mostly within the marks), and the exact error (lines). "
        "Water-filling is not in the paper: it has the smallest variance at losses no larger than "
        "the privacy-optimal ones, with samples twice as large."
    )
    keys = ("rule", "sampler", "scale", "panel")
    parts = (
        Part(
            "importance_sums",
            {
                "mse": Column("mse", standard_error="mse_error", replicates="runs"),
                "mse_exact": "mse_exact",
                "max_loss": "max_loss",
                "m": "m",
            },
            where={"topic": "curve"},
            constants={"panel": ""},
            # The scale is a key of the record: digits beyond the sixth are rounding.
            prepare=lambda f: f.assign(scale=f["scale"].round(6)),
        ),
    )
    rules: ClassVar[Mapping[str, str]] = {
        "free": "target: the loss without sampling",
        "fixed_eps": "target: one ε for all noise scales",
        "b1": "profile as printed, scale 1",
    }

    def draw(self, records: Records) -> tuple[Figure, pd.DataFrame]:
        frame = self.needed(records, "importance_sums")
        # A mean over a thousand runs is close to normal.
        width = 1.96 * frame["mse_error"]
        drawn = frame.assign(low=frame["mse"] - width, high=frame["mse"] + width)
        styles = {name: SAMPLERS[name] for name in ("unif", "var", "opt", "water")}
        # One range of weights for all readings, so that they can be compared.
        weighed = where(frame, topic="weight")["weight"]
        ends = 0.8 * weighed.min(), 1.25 * weighed.max()
        panels = []
        for rule, text in self.rules.items():
            if rule not in set(frame["rule"]):
                continue
            weights, errors = (
                where(drawn, rule=rule, topic="weight"),
                where(drawn, rule=rule, topic="curve"),
            )
            panels += [
                Panel(
                    text,
                    [
                        curves(
                            weights,
                            "rank",
                            "weight",
                            styles=styles,
                            linestyle="none",
                            markersize=1.6,
                            alpha=0.6,
                            markevery=1,
                            label="_",
                        ),
                    ],
                    {
                        "yscale": "log",
                        "xlabel": "rank of the ℓ₁ norm",
                        "ylabel": "weight",
                        "xlim": (0, None),
                        "ylim": ends,
                    },
                ),
                Panel(
                    # Exact errors are lines, those of runs are marks and bars: where they agree, a
                    # mark lies on its line.
                    text,
                    [
                        curves(
                            errors,
                            "max_loss",
                            "mse_exact",
                            styles=styles,
                            marker="",
                            linewidth=0.8,
                            label="_",
                            nested=0.7,
                        ),
                        partial(_bars_of_runs, part=errors),
                        curves(
                            errors,
                            "max_loss",
                            "mse",
                            styles=styles,
                            linestyle="none",
                            markersize=2.2,
                            markevery=1,
                            nested=1.1,
                        ),
                    ],
                    {
                        "xscale": "log",
                        "yscale": "log",
                        "xlabel": "largest loss (nats)",
                        "ylabel": "mean squared error",
                    },
                ),
            ]
        return draw_panels(panels, columns=2, height=2.2), frame.reset_index(drop=True)


def _bars_of_runs(axes: Axes, part: pd.DataFrame) -> None:
    axes.vlines(
        part["max_loss"],
        part["low"],
        part["high"],
        color="black",
        linewidth=0.8,
        label="95 % interval",
    )


BEYOND = (
    "Blocks of rows: the released code, the text as stated, the repaired algorithm. Lines are "
    "medians over repeats, bands quartiles. Each panel has its own range of costs, on a "
    "logarithmic axis where costs span more than a factor of eight. A data set with a label after "
    "its name is not the paper's: the stand-in has fewer rows and is sampled at the same rates."
)


class _CostFigure(OnData):
    """Cost of private k-means: a column for each data set, a block of rows for each mode."""

    kind = "figure"
    experiments = ("importance_clustering",)
    keys = ("panel",)
    datasets: ClassVar[tuple[str, ...]]
    # whether the cost is shown against the sample size, not against epsilon
    size: ClassVar[bool] = False
    caption = f"Cost of private k-means on all rows against ε, for three sample sizes. {BEYOND}"

    def _cells(self, records: Records) -> pd.DataFrame:
        frame = self.needed(records, "importance_clustering")
        return summary(frame[frame["dataset"].isin(self.datasets)])

    def rows(self, records: Records) -> list[dict[str, Any]]:
        """Return a value for each panel and mode: the share of cells in which the coreset's median
        is below the uniform's."""
        rows = []
        for (variant, dataset), part in self._cells(records).groupby(
            ["variant", "dataset"], sort=False
        ):
            # A cell is won if the median over repeats is smaller.
            wide = part.pivot_table(
                index=["m_paper", "epsilon"], columns="sampler", values="median"
            )
            better = {
                name: int((wide[name] < wide["unif"]).sum())
                for name in ("core", "opt")
                if name in wide
            }
            counts = [
                f"{SAMPLERS[name]['label']} below uniform in {count} of {len(wide)} cells"
                for name, count in better.items()
            ]
            note = "; ".join(
                filter(None, (labels.not_real(part["data_label"].iloc[0]), ", ".join(counts)))
            )
            rows.append(
                {
                    "panel": TITLES[str(dataset)],
                    "column": "panel",
                    "variant": variant,
                    "value": better.get("core", 0) / len(wide),
                    "note": note,
                    # The figure has one number for each panel, that of the coreset; the note has
                    # both.
                }
            )
        return rows

    def draw(self, records: Records) -> tuple[Figure, pd.DataFrame]:
        cells = self._cells(records)
        parts = by_dataset(cells, self.datasets)
        if not parts:
            return draw_panels(
                [Panel("", [remark("none of its data sets\nis in this run", "center")])]
            ), cells
        fixed_values = {name: self._fixed_values(part) for name, part in parts.items()}
        rows = [
            (variant, k)
            for variant in MODES
            if variant in set(cells["variant"])
            # Data sets may have different numbers of rows: the longest decides, and the others
            # leave gaps.
            for k in range(max(map(len, fixed_values.values())))
        ]
        panels = [
            self._panel(
                where(part, variant=variant),
                fixed_values[name][k],
                first=name == next(iter(parts)),
                titled=(variant, k) == rows[0],
            )
            if k < len(fixed_values[name])
            else None
            for variant, k in rows
            for name, part in parts.items()
        ]
        return draw_panels(
            panels,
            columns=len(parts),
            width=max(4.2, 1.85 * len(parts)),
            height=1.35,
            letters=False,
            xlabel="expected sample size m" if self.size else "ε (nats)",
            # Each panel has its own range of costs: in a common one, the differences between
            # samplers, which the paper shows, could not be seen.
            grid={"sharex": "col"},
        ), cells

    def _fixed_values(self, part: pd.DataFrame) -> list[float]:
        """Return the values that the rows of a block have, for one data set: targets or sizes."""
        chosen = (
            part.loc[part["sampler"] == "full", "epsilon"]
            if self.size
            else (part.loc[np.isinf(part["epsilon"]), "m_paper"])
        )
        return sorted(chosen.unique())

    def _panel(self, part: pd.DataFrame, fixed_value: float, *, first: bool, titled: bool) -> Panel:
        """Return the panel of one data set, mode, and target or size, with medians, quartiles and
        the levels that have no place on the axis."""
        # The mean squared norm is the cost of one centre: it gives all costs of a column one unit.
        power = max(0, int(np.floor(np.log10(part["mean_square"].iloc[0]))))
        fixed, x, name = ("epsilon", "m_paper", "ε") if self.size else ("m_paper", "epsilon", "m")
        costs = ["lower", "median", "upper", "mean_square"]
        chosen = where(part, **{fixed: fixed_value})
        chosen = chosen.assign(**{column: chosen[column] / 10.0**power for column in costs})
        # Cells without a place on the axis are levels: full data have no size, runs without noise
        # no epsilon.
        flat = chosen[(chosen["sampler"] == "full") | np.isinf(chosen["epsilon"])]
        layers: list[Layer] = [
            curves(
                chosen.drop(flat.index).dropna(subset="median"),
                x,
                "median",
                styles=DRAWN,
                band=("lower", "upper"),
                markersize=2.2,
                linewidth=0.9,
                markevery=1,
                nested=0.5,
            )
        ]
        for row in flat.dropna(subset="median").to_dict("records"):
            sampler = "full" if self.size else f"{row['sampler']}_nonprivate"
            layers.append(
                level(row["median"], **{**SAMPLERS[sampler], "marker": "", "linewidth": 0.9})
            )
            # Figures 4 and 7 show full data as a line with a band, as the paper does.
            if self.size:
                layers.append(partial(_span, low=row["lower"], high=row["upper"]))
        unit = f"\ncost in 10$^{power}$" if power else "\n"
        layers.append(
            partial(
                _scaled,
                top=chosen["mean_square"].iloc[0],
                size=self.size,
                title=f"{title_of(part)}{unit}" if titled else "",
            )
        )
        mode = MODES[part["variant"].iloc[0]]
        return Panel(
            f"{mode}, {name} = {fixed_value:g}", layers, {"ylabel": "cost" if first else ""}
        )


def _span(axes: Axes, low: float, high: float) -> None:
    axes.axhspan(low, high, color="black", alpha=0.12, linewidth=0)


def _scaled(axes: Axes, top: float, size: bool, title: str) -> None:
    """Mark the cost `top` of a single centre if it is near, choose the scales, and write the title
    of a column."""
    # A level far from the curves would squeeze them: it is drawn only where it is near.
    low, high = axes.dataLim.intervaly
    if low < top * 1.05 and high > top * 0.8:
        level(top, color=GREY, label="one centre at the mean")(axes)
    # Beyond a factor of eight the lower curves would lie on each other on a linear axis.
    if high > 8 * low:
        axes.set_yscale("log")
    axes.tick_params(labelsize=6.5)
    if size:
        axes.locator_params(axis="x", nbins=4)
    else:
        axes.set_xscale("log")
        # One range of epsilon for all data sets, so that columns can be compared.
        axes.set(xticks=[1, 10, 100, 1000], xlim=(0.4, 1250))
        axes.minorticks_off()
    if title:
        axes.set_title(title, fontsize=7.5, weight="bold", pad=18)


class FirstCostsByEpsilon(_CostFigure):
    title = "Figure 3. Cost of private k-means against ε, first four data sets"
    name = "figure3"
    statements = ("c29",)
    datasets = labels.MAIN


class LastCostsByEpsilon(_CostFigure):
    title = "Figure 6. Cost of private k-means against ε, last four data sets"
    name = "figure6"
    statements = ("c30", "c31", "c32", "c33", "c34")
    datasets = labels.APPENDIX


class _SizeFigure(_CostFigure):
    """Cost of private k-means against the sample size at two targets."""

    size = True
    caption = (
        "Cost of private k-means on all rows against the expected sample size, for two "
        f"targets. {BEYOND}"
    )


class FirstCostsBySize(_SizeFigure):
    title = "Figure 4. Cost of private k-means against sample size, first four data sets"
    name = "figure4"
    statements = ("c29",)
    datasets = labels.MAIN


class LastCostsBySize(_SizeFigure):
    title = "Figure 7. Cost of private k-means against sample size, last four data sets"
    name = "figure7"
    statements = ("c30", "c32", "c33", "c34")
    datasets = labels.APPENDIX


class RelativeTimes(OnData, _Figure):
    title = "Figure 5. Relative computation times and subset sizes"
    name = "figure5"
    timed = True
    experiments = (TIMES,)
    keys = ("panel",)
    caption = (
        "Time of weights, sampling and DP-Lloyd relative to full data (medians over turns) against "
        "the expected sample size, by data set and sampler, and the share of the records drawn. "
        "Last panel: parts of the relative time at one size. Processor time on this machine. The "
        "vectorised DP-Lloyd is faster than the paper's, so weights and sampling take a larger "
        "share."
    )
    # The five data sets of Figure 5, left; Covertype at 20,000 is its right panel.
    shown: ClassVar[tuple[str, ...]] = ("covertype", "ijcnn1", "pose", "kdd_protein", "fma")
    bar_size: ClassVar[float] = 20000.0

    def draw(self, records: Records) -> tuple[Figure, pd.DataFrame]:
        times = medians(self.needed(records, TIMES))
        # The loop over rows is timed at one size only and makes no curve.
        vectorised = times[(times["backend"] == "vectorised") & (times["sampler"] != "full")]
        # A run without any of the five shows the first five that it has.
        parts = by_dataset(vectorised, self.shown) or dict([*by_dataset(vectorised).items()][:5])
        drawn = {
            "vectorised": {"color": "black", "linestyle": ":", "marker": "", "label": "share drawn"}
        }
        panels = [
            Panel(
                title_of(part),
                [
                    curves(part, "m_paper", "rel_total_time", styles=DRAWN, markevery=1),
                    curves(
                        part.drop_duplicates("m_paper"),
                        "m_paper",
                        "m_over_n_percent",
                        by="backend",
                        styles=drawn,
                    ),
                    lambda axes: axes.locator_params(axis="x", nbins=4),
                ],
                {"xlabel": "expected sample size m"},
            )
            for part in parts.values()
        ]
        bars = next(iter(parts.values()))
        m = self.bar_size if self.bar_size in set(bars["m_paper"]) else bars["m_paper"].max()
        panels.append(
            Panel(f"{title_of(bars)},\nm = {m:g}", [partial(_bars, part=where(bars, m_paper=m))])
        )
        return draw_panels(
            panels, width=7.2, height=2.1, ylabel="relative time (%)", ylim=(0, None)
        ), times


def _bars(axes: Axes, part: pd.DataFrame) -> None:
    """Draw the parts of the relative time, in no sampler's colour."""
    below, positions = np.zeros(len(part)), np.arange(len(part))
    for name, colour, label in (
        ("t_dp_lloyd", "#4D4D4D", "DP-Lloyd"),
        ("t_sampling", "#999999", "sampling"),
        ("t_weights", "#D9D9D9", "weights"),
    ):
        # Each part in percent of full data's time, so that the bar ends at the curve of the total.
        height = (part[name] * part["rel_total_time"] / part["t_total"]).to_numpy()
        axes.bar(positions, height, bottom=below, color=colour, label=label, width=0.6)
        below = below + height
    axes.axhline(part["m_over_n_percent"].iloc[0], color="black", linestyle=":", linewidth=1.2)
    axes.set_xticks(
        positions, [SAMPLERS[name]["label"].replace("-", "-\n") for name in part["sampler"]]
    )
    axes.grid(axis="x", visible=False)


class LossDistribution(OnData, _Figure):
    title = "Who gets which privacy: distribution of the losses"
    name = "losses"
    caption = (
        "Distribution function of the records' privacy losses at one target, by sampler, for two "
        "groups of records: common ones (the negative class, or large clusters of a stand-in) and "
        "rare ones (the positive class, or small clusters). With the privacy-optimal sampler every "
        "record has the target loss, except those always taken. The others protect records near "
        "the mean far better than the target. Calibrated as in the text."
    )
    experiments = ("importance_losses",)

    def draw(self, records: Records) -> tuple[Figure, pd.DataFrame]:
        frame = where(
            self.needed(records, "importance_losses", variants=("stated",)), topic="histogram"
        )
        # Shares of a histogram add up to the distribution function.
        summed = frame.groupby(["dataset", "group", "sampler"], sort=False)["value"].cumsum()
        drawn = frame.assign(share=summed).sort_values("group", kind="stable")
        panels = [
            Panel(
                title_of(part),
                [
                    curves(
                        part,
                        "place",
                        "share",
                        by=("group", "sampler"),
                        styles=_of_group,
                        drawstyle="steps-mid",
                        marker="",
                    )
                ],
            )
            for part in by_dataset(drawn).values()
        ]
        # Groups are explained once, in no sampler's colour.
        keys = [
            line([], [], **{**look, "color": GREY, "label": text})
            for text, look in GROUPS.items()
            if set(drawn["group"]) != {"all"}
        ]
        panels[0] = replace(panels[0], layers=[*panels[0].layers, *keys])
        figure = draw_panels(
            panels,
            columns=4,
            width=max(3.6, 1.9 * min(4, len(panels))),
            height=2.0,
            ylim=(0, 1),
            xlabel="loss (nats)",
            ylabel="share of the group",
            grid={"sharey": True},
        )
        return figure, frame.reset_index(drop=True)


def _of_group(key: tuple[str, str]) -> dict[str, Any]:
    """Return the style of a sampler's losses in a group: the rarer of two is dashed, on the pale
    line of the other."""
    group, sampler = key
    rare = group in ("positive class", "small clusters")
    look = GROUPS[RARE if rare else COMMON]
    label = "_" if rare else SAMPLERS[sampler]["label"]
    return {"color": SAMPLERS[sampler]["color"], "label": label, **look}


def shaded(keys: pd.Series, label: str) -> dict[Any, dict[str, Any]]:
    """Return a colour and a label for each of the different numbers."""
    numbers = sorted(keys.unique())
    return {
        key: {"color": colour, "label": label.format(key)}
        for colour, key in zip(SHADES, numbers, strict=False)
    }


class SampledLosses(_Figure):
    title = "Loss after sampling against the inclusion probability"
    name = "profiles"
    caption = (
        "(a) to (d) Loss after sampling over the loss without sampling, against the inclusion "
        "probability q, for losses c wᵖ at weight w. A ring marks curves to which Proposition 16 "
        "applies (some probability lowers the loss), a cross those of Proposition 17 (none does); "
        "neither applies to curves without a mark. (e) Loss of one sample kept for all 10 rounds "
        "over the loss of a new sample in each round, at the same noise, against the loss without "
        "sampling."
    )
    experiments = ("importance_profiles",)

    def draw(self, records: Records) -> tuple[Figure, pd.DataFrame]:
        frame = self.needed(records, "importance_profiles")
        power, rounds = where(frame, topic="power"), where(frame, topic="rounds")
        power = power.assign(ratio=power["psi"] / power["unsampled"])
        # One range for all profiles, so that they can be compared.
        ends = 0.7 * power["ratio"].min(), 1.4 * power["ratio"].max()
        panels: list[Panel] = []
        for exponent, part in power.groupby("exponent"):
            looks = shaded(part["scale"], "(a) to (d): c = {:g}")
            for scale, curve in part.groupby("scale"):
                # A ring where Proposition 16 applies, a cross where Proposition 17 does; neither
                # applies to all.
                mark = (
                    "o" if curve["helps"].iloc[0] else "x" if curve["never_helps"].iloc[0] else ""
                )
                looks[scale] |= {
                    "marker": mark,
                    "fillstyle": "none",
                    "markersize": 6,
                    "markevery": [len(curve) // 2],
                    # One mark in the middle of a curve: it speaks of the whole curve, not of a
                    # probability.
                }
            panels.append(
                Panel(
                    f"p = {exponent:g}",
                    [
                        curves(part, "q", "ratio", by="scale", styles=looks, label="_"),
                        level(1, color=GREY),
                    ],
                    {
                        "xlabel": "inclusion probability q",
                        "ylabel": "loss after / without sampling",
                        "ylim": ends,
                    },
                )
            )
        rounds = rounds.assign(ratio=rounds["psi"] / rounds["other"])
        looks = shaded(rounds["q"], "(e): q = {:g}")
        # Rings and crosses have no colour of their own: the first panel explains them once.
        panels[0] = replace(
            panels[0],
            layers=[
                *panels[0].layers,
                *(
                    line([], [], **look)
                    for look in shaded(power["scale"], "(a) to (d): c = {:g}").values()
                ),
                *(
                    line(
                        [],
                        [],
                        color="black",
                        marker=mark,
                        fillstyle="none",
                        markersize=6,
                        linestyle="none",
                        label=label,
                    )
                    for mark, label in (
                        ("o", "sampling can lower the loss"),
                        ("x", "sampling never does"),
                    )
                ),
            ],
        )
        panels.append(
            Panel(
                "one sample / new samples",
                [
                    curves(
                        rounds, "unsampled", "ratio", by="q", styles=looks, marker=".", markevery=1
                    ),
                    level(1, color=GREY),
                ],
                {
                    "xlabel": "loss without sampling (nats)",
                    "ylabel": "loss, one sample / new ones",
                },
            )
        )
        figure = draw_panels([*panels, None], width=7.2, height=2.2, xscale="log", yscale="log")
        return figure, frame.reset_index(drop=True)


class LossAndError(_Figure):
    title = "Loss and error of the best inclusion probabilities"
    name = "pareto"
    caption = (
        "Sums with Laplace noise of one scale, against the expected sample size: (a) largest loss, "
        "(b) mean squared error relative to uniform sampling of the same size. Inclusion "
        "probabilities are those of smallest error that keep a target (water-filling). Each line "
        "starts at the privacy-optimal sampler of its target (triangle)."
    )
    experiments = ("importance_sums",)

    def draw(self, records: Records) -> tuple[Figure, pd.DataFrame]:
        frame = where(self.needed(records, "importance_sums"), topic="pareto")
        # Uniform rates know no target: one point for each size is enough.
        uniform = where(frame, sampler="unif").sort_values("m").drop_duplicates("m").set_index("m")
        water = where(frame, sampler="water").sort_values("m").drop_duplicates(["target", "m"])
        # Equal sizes are equal floats: the experiment gives both samplers the same ones.
        water = water.assign(ratio=water["mse_exact"] / water["m"].map(uniform["mse_exact"]))
        looks = shaded(water["target"], "target {:.3g} nats")
        # The smallest size at a target is that of the privacy-optimal sampler.
        first = water.drop_duplicates("target")
        panels = [
            Panel(
                text,
                [
                    base,
                    curves(
                        water,
                        "m",
                        column,
                        by="target",
                        styles=looks,
                        marker=".",
                        markevery=1,
                        nested=0.5,
                    ),
                    curves(
                        first,
                        "m",
                        column,
                        by="target",
                        styles=looks,
                        marker=SAMPLERS["opt"]["marker"],
                        markersize=6,
                        linestyle="none",
                        label="_",
                    ),
                    line(
                        [],
                        [],
                        color=GREY,
                        marker=SAMPLERS["opt"]["marker"],
                        linestyle="none",
                        label="privacy-optimal",
                    ),
                ],
                {"ylabel": text, "yscale": scale},
            )
            for base, column, text, scale in (
                (
                    line(
                        [*uniform.index],
                        [*uniform["max_loss"]],
                        color="black",
                        linestyle=":",
                        label="uniform",
                    ),
                    "max_loss",
                    "largest loss (nats)",
                    "log",
                ),
                (
                    level(1, linestyle=":", linewidth=1.2),
                    "ratio",
                    "error / that of uniform sampling",
                    "linear",
                ),
            )
        ]
        figure = draw_panels(
            panels, columns=2, width=6.6, height=2.9, xscale="log", xlabel="expected sample size"
        )
        return figure, frame.reset_index(drop=True)


class NoiseAtlas(OnData, _Figure):
    title = "How much noise importance sampling saves"
    name = "noise_atlas"
    caption = (
        "Scale of the noise on sums, calibrated as in the text, against the target ε. (a) Uniform "
        "over coreset sampling, from Table 1 alone. (b) Coreset over privacy-optimal sampling, "
        "which takes the norms of the data in this run; these need not be the paper's. One curve "
        "for each data set (median over expected sample sizes); bands run from the smallest to the "
        "largest ratio over sizes. No point: no noise meets the target at any size."
    )
    experiments = ("importance_noise",)

    def draw(self, records: Records) -> tuple[Figure, pd.DataFrame]:
        frame = chosen_noise(self.needed(records, "importance_noise", variants=("stated",)))
        # Full data have no size.
        frame = frame[frame["m_paper"] > 0]
        scales = frame.pivot(
            index=["dataset", "m_paper", "epsilon"], columns="sampler", values="beta_sum"
        )
        panels = []
        for more, fewer in (("unif", "core"), ("core", "opt")):
            if not {more, fewer} <= {*scales}:
                continue
            ratios = (scales[more] / scales[fewer]).dropna().groupby(["dataset", "epsilon"])
            drawn = ratios.agg(["min", "median", "max"]).reset_index()
            text = f"{SAMPLERS[more]['label']} / {SAMPLERS[fewer]['label']}"
            layers = [
                level(1, color=GREY),
                curves(
                    drawn,
                    "epsilon",
                    "median",
                    by="dataset",
                    styles={name: {"color": SAMPLERS[more]["color"]} for name in TITLES},
                    label="_",
                    band=("min", "max"),
                    linewidth=1.0,
                    marker="",
                ),
            ]
            last = drawn.sort_values("epsilon").groupby("dataset").last()
            names = {TITLES[str(name)]: (end["median"], "black") for name, end in last.iterrows()}
            low, high = min(1.0, drawn["min"].min()), drawn["max"].max()
            limits = low - 0.05 * (high - low), high + 0.05 * (high - low)
            layers.append(name_ends(names, last["epsilon"].max(), limits, inches=2.6))
            panels.append(Panel(text, layers, {"ylim": limits}))
        figure = draw_panels(
            panels,
            columns=2,
            width=7.0,
            height=3.2,
            xscale="log",
            xlabel="target ε (nats)",
            ylabel="ratio of the noise scales",
        )
        return figure, frame.reset_index(drop=True)
