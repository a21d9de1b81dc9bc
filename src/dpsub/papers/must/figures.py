"""Figures of the MUST paper, and two of this project on the same mechanisms."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd

from dpsub.errors import DataError
from dpsub.papers.must.tables import RANKS, MustTable, NoiseAtEqualPrivacy, both_sides, sides
from dpsub.reproduce import statistics
from dpsub.reproduce.artefact import Records
from dpsub.reproduce.figures import (
    Panel,
    axis,
    curves,
    draw_panels,
    level,
    line,
    new,
    sampler_style,
    where,
)
from dpsub.reproduce.figures.diagrams import Box, arrow, canvas, caption, dots, draw_box
from dpsub.reproduce.figures.panels import Layer, Styles
from dpsub.reproduce.labels import VARIANT_LABELS, sampler_label
from dpsub.reproduce.tables import Part, Row, ordered
from dpsub.reproduce.verdicts import VARIANTS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NAMES = {"laplace": "Laplace", "gaussian": "Gaussian"}
# Equal curves would hide each other: one is drawn, and the caption says for which samplers it
# stands.
SAME_LAW = {"poisson": "wor", "must_wo": "wr"}
"""Samplers whose curve is that of another one, which the figures draw."""


class MustFigure(MustTable):
    """A figure, whose values are declared as those of a table are."""

    kind = "figure"


def without_twins(frame: pd.DataFrame) -> pd.DataFrame:
    """Return `frame` by sampler, without those whose curve is that of another one in it."""
    twins = frame["sampler"].map(SAME_LAW)
    return ordered(frame[~twins.isin(set(frame["sampler"]))], ("sampler",), RANKS)


# Figures 1 to 3: diagrams

# MUST is a family: each stage may be drawn with or without replacement.
STEP = "WR or WOR"
QUADRANTS = (
    ("type-I weak", "ε′ < ε,  δ′ ≥ δ", 0.5, 0.5, "#FBE5D5"),
    ("dilution", "ε′ ≥ ε,  δ′ ≥ δ", 1.5, 0.5, "#F6D5D5"),
    ("strong", "ε′ < ε,  δ′ < δ", 0.5, -0.5, "#DDEEDD"),
    ("type-II weak", "ε′ ≥ ε,  δ′ < δ", 1.5, -0.5, "#FBF3D0"),
)
"""Kind of amplification, its condition, x and y of the middle of its quadrant (ε′ / ε, δ′ − δ), and
its tint."""


class MultistageProcedure(MustFigure):
    title = "Figure 1. The general multistage procedure"
    name = "figure1"
    caption = (
        "Multistage sampling: every subset is sampled again, with replacement (WR) or without "
        "(WOR), into s₁ subsets at stage I, s₂ subsets of each of these at stage II, and so on. "
        "The number in a box is the size of the data set."
    )

    def draw(self, records: Records) -> tuple[Figure, pd.DataFrame]:
        figure, (axes,) = canvas(6.4, 3.1)
        root = Box(0.07, 0.52, "$n$", 0)
        first = [Box(0.34, y, "$b$", 1) for y in (0.79, 0.25)]
        second = [Box(0.61, y, "$m$", 2) for y in (0.9, 0.68, 0.36, 0.14)]
        # The diagram breaks off between stage II and stage J.
        last = [Box(0.92, box.y, "$m_{J}$", 3) for box in second]
        for box, end in zip(second, last, strict=True):
            arrow(axes, box, Box(0.79, box.y, "", 3, width=0.06))
            dots(axes, 0.777, box.y, "⋯")
            arrow(axes, Box(0.74, box.y, "", 2), end)
        arrows = [
            *((root, box) for box in first),
            *((first[i // 2], box) for i, box in enumerate(second)),
        ]
        captions = [
            (0.07, 0.0, "data\n$n$ records"),
            (0.34, 0.0, "stage I\n$s_1$ subsets"),
            (0.61, 0.0, "stage II\n$s_1 s_2$ subsets"),
            (0.92, 0.0, "stage $J$\n$s_1 s_2 \\cdots s_J$ subsets"),
            *((x, 0.97, STEP) for x in (0.205, 0.475, 0.777)),
        ]
        left_out = [(0.34, 0.52), (0.61, 0.79), (0.61, 0.25), (0.92, 0.52)]
        return figure, _diagram(axes, [root, *first, *second, *last], arrows, left_out, captions)


class TwoStageProcedures(MustFigure):
    title = "Figure 2. Two-stage procedures"
    name = "figure2"
    caption = (
        "Two-stage sampling. (a) s subsets of size b are drawn from n records, and r subsets of "
        "size m from each of these. (b) The special case r = 1, as used for s queries: each query "
        "has its own subset at both stages."
    )

    def draw(self, records: Records) -> tuple[Figure, pd.DataFrame]:
        figure, panels = canvas(7.0, 3.1, panels=2)
        shapes = (
            ("(a)", (0.78, 0.22), (0.11, -0.11), "$s\\,r$ subsets"),
            ("(b)", (0.84, 0.6, 0.16), (0.0,), "$s$ subsets, $r = 1$"),
        )
        return figure, pd.concat(map(_two_stages, panels, shapes), ignore_index=True)


def _two_stages(
    axes: Axes, shape: tuple[str, tuple[float, ...], tuple[float, ...], str]
) -> pd.DataFrame:
    """Draw one panel: its letter, heights of the first stage, of the second above these, and the
    number of subsets."""
    letter, heights, offsets, total = shape
    size = {"width": 0.14, "height": 0.09}
    root = Box(0.09, 0.5, "$n$", 0, **size)
    first = [Box(0.48, y, "$b$", 1, **size) for y in heights]
    second = [
        (box, Box(0.87, box.y + offset, "$m$", 2, **size)) for box in first for offset in offsets
    ]
    # Dots stand for the subsets between the last two that are drawn.
    between = (first[-2].y + first[-1].y) / 2
    left_out = [(0.48, between), (0.87, between)]
    captions = [
        (0.09, -0.03, "data\n$n$ records"),
        (0.48, -0.03, f"stage I: {STEP}\n$s$ subsets"),
        (0.87, -0.03, f"stage II: {STEP}\n{total}"),
    ]
    if len(offsets) > 1:
        left_out += [(0.87, box.y) for box in first]
        captions += [(0.975, box.y, "$r$") for box in first]
    axes.text(0.0, 0.98, letter, fontsize=8, ha="left", va="center")
    boxes = [root, *first, *(end for _, end in second)]
    return _diagram(
        axes, boxes, [*((root, box) for box in first), *second], left_out, captions, letter
    )


def _diagram(
    axes: Axes,
    boxes: list[Box],
    arrows: list[tuple[Box, Box]],
    left_out: list[tuple[float, float]],
    captions: list[tuple[float, float, str]],
    panel: str = "",
) -> pd.DataFrame:
    """Draw boxes, arrows, dots where some are left out, and captions; return the boxes and what
    each is drawn from."""
    for start, end in arrows:
        arrow(axes, start, end)
    for box in boxes:
        draw_box(axes, box)
    for x, y in left_out:
        dots(axes, x, y)
    for x, y, text in captions:
        caption(axes, x, y, text)
    parent = {end: start.text.strip("$") for start, end in arrows}
    rows = [
        (panel, box.x, box.y, box.text.strip("$"), box.level, parent.get(box, "")) for box in boxes
    ]
    return pd.DataFrame(rows, columns=["panel", "x", "y", "size", "stage", "drawn_from"])


class AmplificationKinds(MustFigure):
    """Definition 5 as the caption of the figure means it."""

    title = "Figure 3. Kinds of privacy amplification"
    name = "figure3"
    caption = (
        "Kinds of amplification: strong amplification lowers both ε and δ, weak amplification of "
        "type I lowers ε only, weak amplification of type II lowers δ only, and dilution lowers "
        "neither."
    )

    def draw(self, records: Records) -> tuple[Figure, pd.DataFrame]:
        figure, ((axes,),) = new(1, 1, width=4.4, height=3.0)
        for name, condition, x, y, fill in QUADRANTS:
            axes.fill_between([x - 0.5, x + 0.5], y - 0.5, y + 0.5, color=fill, linewidth=0)
            axes.text(x, y + 0.07, name, ha="center", va="center", fontsize=9)
            axes.text(x, y - 0.13, condition, ha="center", va="center", fontsize=7.5)
        # Definition 5 splits at epsilon' = epsilon and delta' = delta; its print repeats two
        # conditions (erratum E13).
        axes.axvline(1, color="black", linewidth=0.8)
        axes.axhline(0, color="black", linewidth=0.8)
        axes.grid(False)
        axis(axes, x="ε′ / ε", y="δ′ − δ", xlim=(0, 2), ylim=(-1, 1))
        axes.set(xticks=[0, 1], yticks=[-1, 0, 1])
        names = ["category", "condition", "epsilon_ratio", "delta_difference"]
        return figure, pd.DataFrame([row[:-1] for row in QUADRANTS], columns=names)


# Amplification

# The printed vertical ranges: curves of the larger ratio would flatten those of the smaller one.
RANGES = {0.25: 0.1, 1.0: 0.3}
"""Ratio -> printed range of delta' - delta in Figure 4."""
DELTA_PANELS = (
    ("laplace", 1.0, 0.4, 0.1),
    ("gaussian", 1.0, 0.4, 0.1),
    ("laplace", 0.25, 0.11, 0.02),
    ("gaussian", 0.25, 0.09, 0.02),
)
"""Mechanism, ratio, printed range of both axes in Figure S3, and step of their labels."""


class AlignedProfiles(MustFigure):
    title = "Figure 4. Aligned privacy profiles"
    name = "figure4"
    caption = (
        "δ′ − δ against the ratio ε′ / ε as the base ε grows, for the Laplace and Gaussian "
        "mechanisms at two ratios of sensitivity to scale. Amplification is strong below the "
        "horizontal line and weak above it. The curve of Poisson is that of WOR, and the curve of "
        "MUST.WO is that of WR."
    )
    keys = ("ratio", "mechanism", "sampler")
    parts = (
        Part(
            "amplification_grid",
            {
                # The two statements that Section 4.1 reads off this figure.
                "never_weak": lambda curve: (curve["delta_amplified"] <= curve["delta"]).all(),
                "largest_difference": lambda curve: (
                    curve["delta_amplified"] - curve["delta"]
                ).max(),
            },
        ),
    )

    def draw(self, records: Records) -> tuple[Figure, pd.DataFrame]:
        frame = without_twins(self.needed(records, "amplification_grid"))
        frame = frame.assign(
            # The aligned profile of Section 3: the base epsilon is the parameter along the curve.
            epsilon_ratio=frame["epsilon_amplified"] / frame["epsilon"],
            delta_difference=frame["delta_amplified"] - frame["delta"],
        )
        panels = [
            Panel(
                f"{NAMES[mechanism]}, {sensitivity}/σ = {ratio:g}",
                [
                    level(0),
                    curves(
                        where(frame, mechanism=mechanism, ratio=ratio),
                        "epsilon_ratio",
                        "delta_difference",
                        nested=0.6,
                        markevery=0.14,
                    ),
                ],
                {"ylim": (-RANGES[ratio], RANGES[ratio])} if ratio in RANGES else {},
            )
            for mechanism, sensitivity in (("laplace", "Δ₁"), ("gaussian", "Δ₂"))
            for ratio in sorted(frame["ratio"].unique())
        ]
        figure = draw_panels(
            panels,
            columns=max(1, len(panels) // 2),
            width=6.6,
            labels=self.labels(records),
            xlabel="ε′ / ε",
            ylabel="δ′ − δ",
            # The printed axis; what lies outside it is in the plotted frame.
            xlim=(0.2, 0.9),
        )
        columns = [
            "mechanism",
            "ratio",
            "sampler",
            "epsilon",
            "epsilon_ratio",
            "delta_difference",
            "category",
        ]
        return figure, frame[columns].reset_index(drop=True)


class AmplifiedParameters(MustFigure):
    title = "Figure S3. Amplified against base parameters"
    name = "figureS3"
    caption = (
        "Amplified against base privacy parameters: (a) ε in nats, for any mechanism; (b) to (e) "
        "δ, for the Laplace and Gaussian mechanisms at two ratios of sensitivity to scale. On the "
        "black line there is no amplification. The curve of Poisson is that of WOR, and the curve "
        "of MUST.WO is that of WR."
    )
    keys = ("mechanism", "ratio", "sampler")
    parts = (
        Part(
            "amplification_grid",
            {
                # Remark 2 for every epsilon, and how much of the grid has delta' < delta.
                "epsilon_smaller": lambda curve: (
                    curve["epsilon_amplified"] < curve["epsilon"]
                ).all(),
                "share_delta_smaller": lambda curve: (
                    curve["delta_amplified"] < curve["delta"]
                ).mean(),
            },
        ),
    )

    def draw(self, records: Records) -> tuple[Figure, pd.DataFrame]:
        frame = without_twins(self.needed(records, "amplification_grid"))
        any_mechanism = where(
            frame, mechanism=frame["mechanism"].iloc[0], ratio=frame["ratio"].iloc[0]
        )
        shown: list[Any] = [
            # epsilon' depends on eta alone: one mechanism's records serve panel (a).
            ("any mechanism", any_mechanism, "epsilon", "ε", float(frame["epsilon"].max()), 1.0)
        ]
        shown += [
            (
                f"{NAMES[mechanism]}, Δ/σ = {ratio:g}",
                where(frame, mechanism=mechanism, ratio=ratio),
                "delta",
                "δ",
                *axis,
            )
            for mechanism, ratio, *axis in DELTA_PANELS
        ]
        panels: list[Panel | None] = [
            Panel(
                text,
                [
                    line(
                        [0, top], [0, top], color="black", linewidth=0.8, label="no amplification"
                    ),
                    curves(part, name, f"{name}_amplified", markevery=0.2),
                ],
                {
                    "xlabel": sign,
                    "ylabel": f"{sign}′",
                    "xlim": (0, top),
                    "ylim": (0, top),
                    "xticks": np.arange(0, top + 1e-9, step),
                    "yticks": np.arange(0, top + 1e-9, step),
                },
            )
            for text, part, name, sign, top, step in shown
        ]
        # Panels of one mechanism stand below each other: ratio 1 above, ratio 0.25 below.
        figure = draw_panels([*panels[:3], None, *panels[3:]], labels=self.labels(records))
        columns = [
            "mechanism",
            "ratio",
            "sampler",
            "epsilon",
            "delta",
            "epsilon_amplified",
            "delta_amplified",
        ]
        return figure, frame[columns].reset_index(drop=True)


# Surfaces over the sizes of both stages

SURFACES = (
    ("laplace", "eta", "η"),
    ("laplace", "delta_difference", "δ′ − δ, Laplace"),
    ("gaussian", "delta_difference", "δ′ − δ, Gaussian"),
)
"""Mechanism whose records are read, quantity, and its label; eta does not depend on the
mechanism."""


def surface(frame: pd.DataFrame, quantity: str) -> pd.DataFrame:
    """Return a quantity of one sampler and mechanism, one row a b and one column an m; DataError if
    one of either."""
    table = frame.pivot(index="b", columns="m", values=quantity)
    # Contours need a rectangle; a smoke run may have one size only.
    if min(table.shape) < 2:
        raise DataError(
            f"a surface needs at least 2 sizes of each stage, got {table.shape[1]} of m and "
            f"{table.shape[0]} of b for {frame['sampler'].iloc[0]}; take a smaller step"
        )
    return table


def rises(quantity: str, direction: int) -> Callable[[pd.DataFrame], float]:
    """Return the function for the share of steps along a direction of the surface in which it
    rises."""
    return lambda frame: float(
        np.mean(np.diff(surface(frame, quantity).to_numpy(), axis=direction) > 0)
    )


class StageSizeContours(MustFigure):
    title = "Figure 5. Contours of η and δ′ − δ over the sizes of the stages"
    name = "figure5"
    caption = (
        "Inclusion probability η and δ′ − δ at ε = 1 (sensitivity equal to scale) as functions of "
        "the sizes m and b of the second and the first stage, one row of panels for each sampler. "
        "The numbers on the contours give the value; the shading, from dark to light, shows it "
        "rising."
    )
    keys: ClassVar[tuple[str, ...]] = ("sampler", "quantity", "mechanism")
    together = ("sampler",)
    parts = tuple(
        Part(
            "design_surface",
            # What Section 4.1 says about the surfaces, in one number each: 1 or 0 is monotone
            # (erratum E12).
            {"rises_with_m": rises(quantity, 1), "rises_with_b": rises(quantity, 0)},
            where={"mechanism": mechanism},
            constants={"quantity": quantity},
        )
        for mechanism, quantity, _ in SURFACES
    )
    options: ClassVar[dict[str, Any]] = {
        "width": 7.2,
        "grid": {"sharex": True, "sharey": True},
        "xlabel": "size of the second stage, m",
        "ylabel": "size of the first stage, b",
    }

    def draw(self, records: Records) -> tuple[Figure, pd.DataFrame]:
        """Draw a row of panels a sampler; they share the levels of a quantity, so that rows compare
        by eye."""
        frame = self.needed(records, "design_surface")
        panels = []
        for sampler in frame["sampler"].unique():
            for mechanism, quantity, label in SURFACES:
                every = where(frame, mechanism=mechanism)
                levels = {
                    "vmin": float(every[quantity].min()),
                    "vmax": float(every[quantity].max()),
                }
                layer = partial(
                    self.paint,
                    table=surface(where(every, sampler=sampler), quantity),
                    levels=levels,
                )
                panels.append(Panel(f"{sampler_label(sampler)}: {label}", [layer]))
        figure = draw_panels(panels, labels=self.labels(records), **self.options)
        columns = [
            "sampler",
            "m",
            "b",
            "mechanism",
            "eta",
            "delta",
            "delta_amplified",
            "delta_difference",
        ]
        return figure, frame[columns].reset_index(drop=True)

    def paint(self, axes: Any, table: pd.DataFrame, levels: dict[str, float]) -> None:
        """Draw one panel."""
        from matplotlib.ticker import MaxNLocator

        m, b, heights = table.columns.to_numpy(float), table.index.to_numpy(float), table.to_numpy()
        axes.imshow(
            heights,
            cmap="viridis",
            **levels,
            # Pale, so that the numbers on the contours can be read.
            alpha=0.45,
            origin="lower",
            aspect="auto",
            extent=(m.min(), m.max(), b.min(), b.max()),
            interpolation="bilinear",
        )
        # Each panel has levels of its own where the colours are shared: eta of both samplers would
        # leave few lines in one range.
        ticks = MaxNLocator(7).tick_values(float(heights.min()), float(heights.max()))
        lines = axes.contour(
            m, b, heights, levels=ticks, colors="black", linewidths=0.7, negative_linestyles="solid"
        )
        decimals = max(0, math.ceil(-math.log10(ticks[1] - ticks[0])))
        numbers = axes.clabel(
            lines,
            fontsize=6,
            inline=False,
            colors="black",
            fmt=lambda value: f"{value:.{decimals}f}".replace("-", "−"),
        )
        for text in numbers:
            text.set(
                bbox={"facecolor": "white", "alpha": 0.75, "pad": 0.6, "linewidth": 0},
                clip_on=False,
            )
        axes.grid(False)


class StageSizeSurfaces(StageSizeContours):
    title = "Figure S1. Surfaces of η and δ′ − δ over the sizes of the stages"
    name = "figureS1"
    caption = (
        "The functions of Figure 5 as surfaces: inclusion probability η and δ′ − δ at ε = 1 over "
        "the sizes m and b of the second and the first stage, one row of panels for each sampler."
    )
    experiments = StageSizeContours.experiments
    # The values are those of Figure 5, and compared there.
    keys = ()
    parts = ()
    options: ClassVar[dict[str, Any]] = {
        "width": 7.4,
        "height": 2.5,
        "grid": {"subplot_kw": {"projection": "3d"}},
    }

    def paint(self, axes: Any, table: pd.DataFrame, levels: dict[str, float]) -> None:
        m, b = np.meshgrid(table.columns.to_numpy(float), table.index.to_numpy(float))
        rows, columns = (_stride(size - 1) for size in table.shape)
        axes.plot_surface(
            m,
            b,
            table.to_numpy(),
            cmap="viridis",
            **levels,
            linewidth=0.2,
            edgecolor="#404040",
            alpha=0.9,
            rstride=rows,
            cstride=columns,
        )
        axes.set_xlabel("m", labelpad=-4)
        axes.set_ylabel("b", labelpad=-4)
        axes.tick_params(labelsize=6.5, pad=-2)
        axes.tick_params(axis="z", pad=2)
        axes.locator_params(nbins=4)
        axes.view_init(elev=26, azim=-128)
        axes.set_box_aspect(None, zoom=0.92)


def _stride(intervals: int) -> int:
    """Return how many intervals a face spans: a divisor, since faces of unequal size are drawn from
    unset memory."""
    stride = next(
        (
            step
            for step in range(1, intervals + 1)
            if intervals % step == 0 and intervals // step <= 20
        ),
        1,
    )
    return stride if intervals // stride >= 5 else 1


# Losses along the iterations


def means(frame: pd.DataFrame, value: str, by: list[str]) -> pd.DataFrame:
    """Return mean and 95 % interval over replicates (NaN for one) of each printed curve at each
    iteration.

    MUST.WO, whose law is that of WR, is left out, as in print.
    """
    rows = []
    printed = frame[frame["sampler"] != "must_wo"]
    for fields, cell in printed.groupby([*by, "iteration"], sort=False, dropna=False):
        # One run, as printed, has no interval: NaN draws no band.
        estimate = statistics.mean(cell[value].to_numpy())
        rows.append((*fields, estimate.value, *statistics.interval(estimate), estimate.replicates))
    return pd.DataFrame(rows, columns=[*by, "iteration", value, "lower", "upper", "replicates"])


def trace(frame: pd.DataFrame, value: str) -> Layer:
    """Return the curves of one panel with their bands, the non-private one last."""
    by_rank = ordered(frame, ("sampler",), RANKS)
    # On top: the noisy curves of several samplers lie on each other, and the baseline below them
    # would be hidden.
    last = by_rank["sampler"] == "nonprivate"
    return curves(
        pd.concat([by_rank[~last], by_rank[last]]),
        "iteration",
        value,
        band=("lower", "upper"),
        linewidth=0.9,
        markersize=3.5,
        nested=0.2,
    )


def second_half(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the records of the iterations in which a curve counts as settled."""
    # The paper's remarks are about curves that have levelled off; a half is our choice.
    return frame[frame["iteration"] > frame["iteration"].max() / 2]


class RegressionTraces(MustFigure):
    title = "Figure 6. Experiment 2: training loss of linear regression"
    name = "figure6"
    caption = (
        "Mean squared error on the full data after each iteration of experiment 2, one run, at "
        "two values of ε′ and in every variant. The vertical axis is that of the printed figure; "
        "some curves leave it. Bands, where there are several runs, are 95 % Student intervals."
    )
    keys = ("sampler", "epsilon_amplified")
    order = ()
    parts = (
        Part(
            "linear_regression_trace",
            {"settled_mse": lambda curve: curve["mse"].mean()},
            prepare=second_half,
        ),
    )

    def draw(self, records: Records) -> tuple[Figure, pd.DataFrame]:
        frame = self.needed(records, "linear_regression_trace")
        lines = means(frame, "mse", ["variant", "sampler", "epsilon_amplified"])
        epsilons = sorted(frame["epsilon_amplified"].dropna().unique(), reverse=True)
        here = {
            epsilon: lines[lines["epsilon_amplified"].isin([epsilon, np.nan])]
            for epsilon in epsilons
        }
        panels = [
            Panel(
                f"ε′ = {epsilon:g}, {VARIANT_LABELS[variant]}",
                [trace(where(here[epsilon], variant=variant), "mse")],
            )
            for variant in VARIANTS
            if variant in set(frame["variant"])
            for epsilon in epsilons
        ]
        figure = draw_panels(
            panels,
            columns=len(epsilons),
            grid={"sharex": True, "sharey": True},
            xlabel="iteration",
            ylabel="mean squared error",
            xlim=(0, lines["iteration"].max()),
            # The printed axis of Figure 6; at epsilon' = 0.001 consistent noise is larger, and its
            # curves leave it (erratum E4).
            ylim=(0, 9.0),
            labels=self.labels(records),
        )
        return figure, lines


def largest_gap(frame: pd.DataFrame) -> float:
    """Return the largest distance between two curves at one iteration."""
    wide = frame.groupby(["iteration", "sampler"])["loss"].mean().unstack()
    return float((wide.max(axis=1) - wide.min(axis=1)).max())


class LogisticTraces(MustFigure):
    title = "Figure S4. Experiment 3: training loss of logistic regression on Adult"
    name = "figureS4"
    caption = (
        "Cross-entropy on the training data (nats) after each iteration of experiment 3, one run "
        "for each sampler, in every variant. The vertical axis is that of the printed figure. "
        "Bands, where there are several runs, are 95 % Student intervals."
    )
    keys = ("sampler", "quantity")
    order = ()
    parts = (
        Part(
            "adult_logistic_trace",
            {"final_loss": lambda last: last["loss"].mean()},
            prepare=lambda frame: frame[frame["iteration"] == frame["iteration"].max()],
        ),
        Part(
            "adult_logistic_trace",
            {"largest_late_gap": largest_gap},
            prepare=second_half,
            keys={"sampler": None},
            constants={"quantity": "curves_overlap"},
        ),
    )

    def draw(self, records: Records) -> tuple[Figure, pd.DataFrame]:
        frame = self.needed(records, "adult_logistic_trace")
        lines = means(frame, "loss", ["variant", "sampler"])
        panels = [
            Panel(VARIANT_LABELS[name], [trace(where(lines, variant=name), "loss")])
            for name in VARIANTS
            if name in set(frame["variant"])
        ]
        figure = draw_panels(
            panels,
            grid={"sharey": True},
            labels=self.labels(records),
            xlabel="iteration",
            ylabel="training loss",
            xlim=(0, lines["iteration"].max()),
            # The printed axis of Figure S4.
            ylim=(0, 3.5),
        )
        return figure, lines


# From what is refuted to what is proved

FLOOR = 1e-12  # round-off of the Fourier transform; what is below says nothing
PRINTED: dict[str, dict[str, Any]] = {
    "as_done": {
        "label": "Algorithm 1 as done: with the aliasing term",
        "linestyle": "-",
        "color": "#BBBBBB",
    },
    "printed": {"label": "Algorithm 1 as printed", "linestyle": ":", "color": "black"},
}
"""Method -> how its upper end is drawn, with a bar down to the lower one."""
EXACT_PAIR = {
    "paper_pair": {
        "label": "the paper's pair, exact; no guarantee",
        "color": "black",
        "linewidth": 1.0,
    }
}
# In this order everywhere: what is refuted (lower), what is proved (upper).
ENDS = ("attack", "proved")
BOTH_SIDES = {"paper_pair": ("pair_lower", "pair_upper"), "attack_and_proof": ENDS}
"""Method -> columns of its ends in the proved records."""
GREY = "#606060"  # of what is drawn alike for all samplers, in the legend
DOTTED: dict[str, Any] = {"linestyle": (0, (1, 1.6)), "linewidth": 1.0}
ATTACK = line([], [], color=GREY, linewidth=0.6, label="attack (lower)")
RELATIONS = {"add_remove": "add or remove", "substitute": "substitute"}


def band(
    frame: pd.DataFrame,
    x: str,
    ends: tuple[str, str],
    by: str | Sequence[str],
    styles: Styles,
    nested: float = 0.0,
) -> list[Layer]:
    """Return the proved end as a line with markers, the refuted end as a thin one, and what lies
    between."""
    low, high = ends
    thin = curves(
        frame, x, low, by=by, styles=styles, marker="", linestyle="-", linewidth=0.6, label="_"
    )
    return [thin, curves(frame, x, high, by=by, styles=styles, band=ends, nested=nested)]


class ComposedDelta(MustFigure):
    title = "Figure S2. Bounds of δ after k compositions"
    name = "figureS2"
    caption = (
        "δ at ε = 1 after k compositions of the subsampled Gaussian mechanism with noise "
        "multiplier 4. Lines with bars: bounds from the paper's Fourier accountant, as printed "
        "and as done; the bar reaches down to the lower bound, or to the foot of the axis where "
        "that bound is below the round-off of 1e-12. Black line: the exact value for the paper's "
        "pair, which is no guarantee. Coloured band: from what explicit data sets attain (attack) "
        "to what is proved for clipped sums when one record is substituted."
    )
    experiments = ("composition", "proved_composition")
    keys = ("sampler", "method", "n_compositions")

    def rows(self, records: Records) -> list[Row]:
        return [
            {
                **{key: record[key] for key in self.keys},
                "column": end,
                "variant": record["variant"],
                "value": record[end],
            }
            for record in self._numbers(records).to_dict("records")
            for end in ("delta_lower", "delta_upper")
        ]

    def draw(self, records: Records) -> tuple[Figure, pd.DataFrame]:
        frame = self._numbers(records)
        frame = frame[frame["method"].isin([*PRINTED, *BOTH_SIDES])].reset_index(drop=True)
        lowest = frame.loc[frame["delta_lower"] > FLOOR, "delta_lower"].min()
        # A log axis has no 0: its foot is a third of the lowest number that is drawn.
        foot = float(min(frame["delta_upper"].min(), lowest if lowest > 0 else 1.0)) / 3
        bars = frame.assign(
            # A lower bound that round-off swallows is put below the foot, so that its bar leaves
            # the panel and shows no end.
            delta_lower=frame["delta_lower"].where(frame["delta_lower"] > FLOOR, foot / 1e3)
        )
        x, ends = "n_compositions", ("delta_lower", "delta_upper")
        panels = []
        # The paper has MUST.OW alone and says that MUST.WW fails numerically; it has a panel of its
        # own here (erratum E16).
        for name in ordered(frame, ("sampler",), RANKS)["sampler"].unique():
            styles = {
                name: sampler_style(name) | {"label": f"{sampler_label(name)}, proved (upper)"}
            }
            panels.append(
                Panel(
                    sampler_label(name),
                    [
                        curves(
                            where(bars, sampler=name),
                            x,
                            ends[1],
                            by="method",
                            styles=PRINTED,
                            bars=ends,
                            nested=2.5,
                        ),
                        curves(
                            where(frame, sampler=name), x, ends[1], by="method", styles=EXACT_PAIR
                        ),
                        ATTACK,
                        *band(
                            where(frame, sampler=name, method="attack_and_proof"),
                            x,
                            ends,
                            "sampler",
                            styles,
                        ),
                    ],
                )
            )
        figure = draw_panels(
            panels,
            width=1.2 + 2.6 * len(panels),
            height=2.9,
            grid={"sharey": True},
            yscale="log",
            ylim=(foot, 1),
            xticks=sorted(frame[x].unique()),
            xlabel="number of compositions k",
            ylabel="δ at ε = 1",
            labels=self.labels(records),
        )
        return figure, frame

    def _numbers(self, records: Records) -> pd.DataFrame:
        """Return all bounds as rows of variant, sampler, method, n_compositions, delta_lower,
        delta_upper."""
        columns = ["variant", "sampler", "method", "n_compositions", "delta_lower", "delta_upper"]
        composed, proved = (
            where(self.needed(records, name), table="figure_s2") for name in self.experiments
        )
        frames = [composed[columns]]
        for method, (lower, upper) in BOTH_SIDES.items():
            frames.append(
                proved.assign(method=method, delta_lower=proved[lower], delta_upper=proved[upper])[
                    columns
                ]
            )
        return ordered(pd.concat(frames, ignore_index=True), self.order, RANKS).reset_index(
            drop=True
        )


class BandFigure(MustFigure):
    """One panel of bands from refuted to proved by sampler and relation, with the paper's pair
    dotted."""

    order = ("sampler", "adjacency", "n_compositions")
    x: ClassVar[str]
    ends: ClassVar[tuple[str, str]]  # columns of what is refuted and proved
    pair: ClassVar[str]
    delta: ClassVar[str]
    titles: ClassVar[tuple[str, str]]  # labels of x and y, with delta
    plotted: ClassVar[tuple[str, ...]]  # columns of the plotted frame

    def draw(self, records: Records) -> tuple[Figure, pd.DataFrame]:
        """Draw the records; a sampler under the second of two relations has open markers and names
        the relation."""
        frame = ordered(self.needed(records, self.experiments[0]), self.order, RANKS)
        by, styles = ("sampler", "adjacency"), {}
        shown = ordered(frame[list(by)].drop_duplicates(), ("sampler",), RANKS)
        # Poisson alone is shown under two relations: its name needs the relation, those of the
        # others do not.
        several = shown["sampler"].value_counts() > 1
        for sampler, adjacency in shown.itertuples(index=False):
            style = styles[sampler, adjacency] = sampler_style(sampler)
            if several[sampler]:
                style["label"] = f"{sampler_label(sampler)}, {RELATIONS[adjacency]}"
                style["markerfacecolor"] = "white" if adjacency == "substitute" else style["color"]
        pairs = curves(
            frame,
            self.x,
            self.pair,
            by=by,
            styles=styles,
            nested=0.4,
            marker="",
            label="_",
            **DOTTED,
        )
        name = line([], [], color=GREY, label="the paper's pair, no guarantee", **DOTTED)
        panel = Panel(
            "", [*band(frame, self.x, self.ends, by, styles, nested=0.25), ATTACK, pairs, name]
        )
        # delta is one number for all records of these figures, a power of ten by setting.
        exponent = round(math.log10(frame[self.delta].iloc[0]))
        x, y = (title.format(f"$10^{{{exponent}}}$") for title in self.titles)
        figure = draw_panels(
            [panel, None],
            columns=2,
            width=6.6,
            height=3.3,
            grid={"width_ratios": (2, 1)},
            xscale="log",
            yscale="log",
            labels=self.labels(records),
            xticks=frame[self.x].unique(),
            xlabel=x,
            ylabel=y,
        )
        return figure, frame[list(self.plotted)].reset_index(drop=True)


class PrivacyBySteps(BandFigure):
    title = "Privacy of each sampler at equal noise, by number of steps"
    name = "privacy_by_steps"
    caption = (
        "ε at δ = 1e-5 after k steps, in the sizes of Figure S2 and with the same noise on the "
        "sum for every sampler. Each band reaches from what explicit data sets attain (thin line, "
        "attack) to what is proved for clipped sums (line with markers). One record is "
        "substituted; Poisson is also shown for one record added or removed. Dotted, in the "
        "colour of the sampler: the value for the paper's pair, which is no guarantee and hardly "
        "differs between samplers."
    )
    keys = BandFigure.order
    parts = (Part("proved_steps", sides("epsilon"), prepare=both_sides),)
    x, ends, pair, delta = "n_compositions", ENDS, "pair_upper", "given"
    titles = ("number of steps k", "ε at δ = {}")
    plotted = (
        "sampler",
        "adjacency",
        "noise_multiplier",
        "n_compositions",
        "pair_lower",
        "pair_upper",
        *ENDS,
    )


class NoiseByTarget(BandFigure):
    title = "Noise of each sampler against the privacy target"
    name = "noise_by_target"
    caption = (
        f"{NoiseAtEqualPrivacy.setting}. Each band reaches from the noise at which an attack "
        "still exceeds the target (thin line) to the noise for which the target is proved (line "
        "with markers). One record is substituted; Poisson is also shown for one record added or "
        "removed. Dotted, in the colour of the sampler: the noise for which the paper's pair "
        "meets the target, which is no guarantee."
    )
    keys = NoiseAtEqualPrivacy.keys
    order = NoiseAtEqualPrivacy.order
    parts = NoiseAtEqualPrivacy.parts
    x, ends, pair, delta = "target_epsilon", ("refuted", "proved"), "pair", "delta"
    titles = ("target ε at δ = {}", "noise multiplier s")
    plotted = (
        "sampler",
        "adjacency",
        "n_compositions",
        "target_epsilon",
        "proved",
        "refuted",
        "pair",
    )
