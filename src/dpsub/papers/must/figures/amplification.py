"""Figures 4, 5, S1 and S3 of the MUST paper: amplified privacy along the base epsilon and over the
sizes."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd

from dpsub.errors import DataError
from dpsub.papers.must.figures import MustFigure
from dpsub.papers.must.tables import RANKS
from dpsub.reproduce.artefact import Records
from dpsub.reproduce.figures import (
    Panel,
    curves,
    draw_panels,
    level,
    line,
    sampler_style,
    where,
)
from dpsub.reproduce.labels import sampler_label
from dpsub.reproduce.tables import Part, ordered

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAMES = {"laplace": "Laplace", "gaussian": "Gaussian"}
# Equal curves would hide each other: one is drawn, and the caption says for which samplers it
# stands.
SAME_LAW = {"poisson": "wor", "must_wo": "wr"}
"""Samplers whose curve is that of another one, which the figures draw."""


def with_twin(sampler: str) -> dict[str, Any]:
    """Return the style of a sampler, whose label names the sampler with the same curve."""
    twins = [sampler_label(twin) for twin, drawn in SAME_LAW.items() if drawn == sampler]
    style = sampler_style(sampler)
    return style | {"label": " and ".join([style["label"], *twins])}


def without_twins(frame: pd.DataFrame) -> pd.DataFrame:
    """Return `frame` by sampler, without those whose curve is that of another one in it."""
    twins = frame["sampler"].map(SAME_LAW)
    return ordered(frame[~twins.isin(set(frame["sampler"]))], ("sampler",), RANKS)


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
    statements = ("fig4_",)
    caption = (
        "δ′ − δ and the ratio ε′ / ε as the base ε grows, for the Laplace and Gaussian mechanisms "
        "at two ratios of sensitivity to scale. Amplification is strong below the horizontal line "
        "and weak above it. Poisson has the curve of WOR, and MUST.WO that of WR. The axes are "
        "those of the printed figure."
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
                        styles=with_twin,
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
        "Amplified parameters as functions of the base parameters: (a) ε in nats, for any "
        "mechanism; (b) to (e) δ, for the Laplace and Gaussian mechanisms at two ratios of "
        "sensitivity to scale. On the black line there is no amplification. Poisson has the curve "
        "of WOR, and MUST.WO that of WR."
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
        # Where delta is 0 for many epsilon, delta' still falls with epsilon: a curve along which
        # delta rises has the points in the order of falling epsilon.
        falling = frame.sort_values("epsilon", ascending=False, kind="stable")
        shown: list[Any] = [
            # epsilon' depends on eta alone: one mechanism's records serve panel (a).
            ("any mechanism", any_mechanism, "epsilon", "ε", float(frame["epsilon"].max()), 1.0)
        ]
        shown += [
            (
                f"{NAMES[mechanism]}, Δ/σ = {ratio:g}",
                where(falling, mechanism=mechanism, ratio=ratio),
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
                    curves(part, name, f"{name}_amplified", styles=with_twin, markevery=0.2),
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
    """Return a quantity of one sampler and mechanism, one row for each b and one column for each m;
    DataError if one of either."""
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
    statements: ClassVar[tuple[str, ...]] = ("fig5_",)
    caption = (
        "Inclusion probability η and δ′ − δ at ε = 1 (sensitivity equal to scale) as functions of "
        "the sizes m and b of the second and the first stage, one row of panels for each sampler. "
        "Numbers on the contours give the values. Shading is lighter where the value is larger, "
        "on one scale for each column of panels."
    )
    keys: ClassVar[tuple[str, ...]] = ("sampler", "quantity", "mechanism")
    together = ("sampler",)
    parts = tuple(
        Part(
            "design_surface",
            # The statements of Section 4.1 about the surfaces, in one number each: 1 or 0 is
            # monotone (erratum E12).
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
        """Draw a row of panels for each sampler; they share the levels of a quantity, so that rows
        compare by eye."""
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
    statements = ()
    caption = (
        "The functions of Figure 5 as surfaces: inclusion probability η and δ′ − δ at ε = 1 over "
        "the sizes m and b of the second and the first stage, one row of panels for each sampler, "
        "on the same vertical axis in each column."
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
        axes.set_zlim(levels["vmin"], levels["vmax"])
        axes.set_xlabel("m", labelpad=-4)
        axes.set_ylabel("b", labelpad=-4)
        axes.tick_params(labelsize=6.5, pad=-2)
        axes.tick_params(axis="z", pad=2)
        axes.locator_params(nbins=4)
        axes.view_init(elev=26, azim=-128)
        axes.set_box_aspect(None, zoom=0.92)


def _stride(intervals: int) -> int:
    """Return the number of intervals that a face spans: a divisor, since faces of unequal size are
    drawn from unset memory."""
    stride = next(
        (
            step
            for step in range(1, intervals + 1)
            if intervals % step == 0 and intervals // step <= 20
        ),
        1,
    )
    return stride if intervals // stride >= 5 else 1
