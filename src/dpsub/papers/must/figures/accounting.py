"""From attack to proof: Figure S2 of the MUST paper, and three figures of this project."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd

from dpsub.papers.must.figures import MustFigure
from dpsub.papers.must.settings import MUST, SizesOfFigureS2
from dpsub.papers.must.tables import (
    RANKS,
    SIZES,
    NoiseAtEqualPrivacy,
    PrivacyOfFirstStages,
    both_sides,
    sides,
)
from dpsub.reproduce.artefact import Records
from dpsub.reproduce.figures import (
    Panel,
    curves,
    draw_panels,
    line,
    name_ends,
    remark,
    sampler_style,
    where,
)
from dpsub.reproduce.figures.panels import Layer, Styles
from dpsub.reproduce.labels import sampler_label
from dpsub.reproduce.records import NO_FIRST_STAGE
from dpsub.reproduce.tables import Part, Row, ordered

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FLOOR = 1e-12  # round-off of the Fourier transform; what is below says nothing
PRINTED: dict[str, dict[str, Any]] = {
    "as_done": {"label": "_", "linestyle": "-", "color": "#BBBBBB"},
    "printed": {"label": "_", "linestyle": ":", "color": "black"},
}
"""Method -> style of its upper bound, from which a bar goes down to the lower one."""
EXACT_PAIR = {"paper_pair": {"label": "_", "color": "black", "linewidth": 1.0}}
PAIR_KEY = "black and grey: the paper's pair,\nnot a guarantee (dotted: as printed,\ngrey: as done)"
# In this order everywhere: what is refuted (lower), what is proved (upper).
ENDS = ("attack", "proved")
BOTH_SIDES = {"paper_pair": ("pair_lower", "pair_upper"), "attack_and_proof": ENDS}
"""Method -> columns of its ends in the proved records."""
PUBLISHED: dict[str, Any] = {"color": "black", "linestyle": (0, (1, 1.2)), "linewidth": 2.0}
SAME_PAIR = {"published, MUST": MUST, "published, WOR and WR": ("wor", "wr")}
"""Text at the end of a published curve -> samplers for which it is nearly the same."""
BANDS = "bands: from an attack (lower edge) to a proof (upper edge)"
KEY = f"{BANDS}\ndotted: published analysis, not a guarantee"


def band(
    frame: pd.DataFrame,
    x: str,
    ends: tuple[str, str],
    by: str | Sequence[str],
    styles: Styles,
    nested: float = 0.0,
) -> list[Layer]:
    """Return the layers of the proved bound, a line with markers, of the refuted one, a thin line,
    and of the band between them."""
    low, high = ends
    thin = curves(
        frame, x, low, by=by, styles=styles, marker="", linestyle="-", linewidth=0.6, label="_"
    )
    return [thin, curves(frame, x, high, by=by, styles=styles, band=ends, nested=nested)]


def at_size(x: float, text: str) -> Layer:
    """Return the layer of a vertical line at `x`, named at its top."""

    def draw(axes: Axes) -> None:
        axes.axvline(x, color="#888888", linewidth=0.8, zorder=0)
        axes.annotate(
            text,
            (x, 1),
            xycoords=("data", "axes fraction"),
            xytext=(4, -4),
            textcoords="offset points",
            fontsize=7,
            va="top",
        )

    return draw


def gap(x: float, low: float, high: float, text: str) -> Layer:
    """Return the layer of an arrow upwards at `x`, with a remark to its left."""

    def draw(axes: Axes) -> None:
        axes.annotate("", (x, high), (x, low), arrowprops={"arrowstyle": "->", "linewidth": 0.9})
        axes.annotate(
            text,
            (x, low**0.4 * high**0.6),  # nearer to the attack: published curves run below
            xytext=(-6, 0),
            textcoords="offset points",
            fontsize=7,
            ha="right",
            va="center",
        )

    return draw


def with_first_stage(sampler: str, b: int) -> str:
    """Return the name of a sampler, with the size of its first stage if it has one."""
    return sampler_label(sampler) + (f", b = {b}" if b != NO_FIRST_STAGE else "")


class ComposedDelta(MustFigure):
    title = "Figure S2. Bounds on δ after k compositions"
    name = "figureS2"
    statements = ("figure_s2_",)
    caption = (
        "δ at ε = 1 after k compositions of the subsampled Gaussian mechanism with noise "
        "multiplier 4. Black and grey: bounds from the paper's Fourier accountant (Algorithm 1), "
        "as printed and as done, with bars down to the lower bound, or to the foot of the axis "
        "where that bound is below the round-off of 1e-12; solid, the exact value. All three are "
        "for the paper's pair of densities, which is not a guarantee. Coloured band: from a lower "
        "bound (an attack: explicit data sets attain it) to an upper bound, proved for clipped "
        "sums when one record is substituted."
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
            style = sampler_style(name) | {"label": "_"}
            own = where(frame, sampler=name)
            last = where(own, **{x: own[x].max()}).set_index("method")[list(ends)]
            names = {
                text: (float(last[end][method]), colour)
                for text, method, end, colour in (
                    ("Algorithm 1", "printed", ends[1], "black"),
                    ("exact", "paper_pair", ends[1], "black"),
                    ("proof", "attack_and_proof", ends[1], style["color"]),
                    ("attack", "attack_and_proof", ends[0], style["color"]),
                )
                if method in last.index
            }
            layers = [
                curves(
                    where(bars, sampler=name),
                    x,
                    ends[1],
                    by="method",
                    styles=PRINTED,
                    bars=ends,
                    nested=2.5,
                ),
                curves(own, x, ends[1], by="method", styles=EXACT_PAIR),
                *band(where(own, method="attack_and_proof"), x, ends, "sampler", {name: style}),
                name_ends(names, frame[x].max(), (foot, 1.0), inches=2.4, log=True),
                remark(PAIR_KEY, "lower right"),
            ]
            panels.append(Panel(sampler_label(name), layers))
        figure = draw_panels(
            panels,
            width=1.2 + 3.0 * len(panels),
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
    """One panel of bands from attack to proof, one for each sampler, and the published analysis in
    black.

    One record is substituted for every sampler, so that the bands compare.
    """

    order = ("sampler", "adjacency", "n_compositions")
    x: ClassVar[str]
    ends: ClassVar[tuple[str, str]]  # columns of what is refuted and proved
    pair: ClassVar[str]
    remark: ClassVar[str]
    """Next to the arrow from the published curve of MUST.OW up to the attack, with their ratio."""
    place: ClassVar[str]
    """Place of the key to bands and dots: a corner without curves."""
    delta: ClassVar[str]
    titles: ClassVar[tuple[str, str]]  # labels of x and y, with delta
    plotted: ClassVar[tuple[str, ...]]  # columns of the plotted frame

    def draw(self, records: Records) -> tuple[Figure, pd.DataFrame]:
        frame = ordered(self.needed(records, self.experiments[0]), self.order, RANKS)
        # Poisson sampling is recorded for adding or removing a record, too: it would not compare.
        shown = where(frame, adjacency="substitute")
        last = where(shown, **{self.x: shown[self.x].max()}).set_index("sampler")
        styles = {name: sampler_style(name) | {"label": "_"} for name in last.index}
        names = {
            with_first_stage(name, last.loc[name, "b"]): (
                last.loc[name, self.ends[1]],
                styles[name]["color"],
            )
            for name in last.index
        }
        layers = band(shown, self.x, self.ends, "sampler", styles, nested=0.25)
        for text, samplers in SAME_PAIR.items():
            curve = shown[shown["sampler"].isin(samplers)].groupby(self.x)[self.pair]
            if curve.ngroups:
                highest = curve.max()
                layers.append(line(list(highest.index), list(highest), **PUBLISHED))
                names[text] = (highest.iloc[-1], "black")
        if "must_ow" in last.index:
            low, high = (float(last[name]["must_ow"]) for name in (self.pair, self.ends[0]))
            layers.append(gap(shown[self.x].max(), low, high, self.remark.format(ratio=high / low)))
        heights = shown[[self.pair, *self.ends]].to_numpy(float)
        limits = (float(np.nanmin(heights)), float(np.nanmax(heights)))
        # delta is one number for all records of these figures, a power of ten by setting.
        exponent = round(math.log10(frame[self.delta].iloc[0]))
        x, y = (title.format(f"$10^{{{exponent}}}$") for title in self.titles)
        figure = draw_panels(
            [
                Panel(
                    "",
                    [
                        *layers,
                        remark(KEY, self.place),
                        name_ends(names, shown[self.x].max(), limits, 3.0, log=True),
                    ],
                )
            ],
            width=6.6,
            height=3.5,
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
        f"ε at δ = 1e-5 after k steps, {SIZES}, with one record substituted and the same noise on "
        "the sum for every sampler. Each band runs from a lower bound (an "
        "attack: explicit data sets attain it) to an upper bound (proved for clipped sums). "
        "Dotted: the published analysis, that is, the paper's pair of densities composed in the "
        "right unit. It is not a guarantee: it hardly differs between samplers and lies below "
        "what attacks attain. For WOR and WR it is nearly the exact value for Poisson sampling. "
        "The loss of the two-stage samplers depends on b (next figure)."
    )
    keys = BandFigure.order
    parts = (Part("proved_steps", sides("epsilon"), prepare=both_sides),)
    x, ends, pair, delta = "n_compositions", ENDS, "pair_upper", "given"
    place = "upper left"
    remark = "an attack on MUST.OW attains\n{ratio:.1f} times the published ε"
    titles = ("number of steps k", "ε at δ = {}")
    plotted = (
        "sampler",
        "b",
        "adjacency",
        "noise_multiplier",
        "n_compositions",
        "pair_lower",
        "pair_upper",
        *ENDS,
    )


class PrivacyByFirstStage(MustFigure):
    """Bands from attack to proof of the two-stage samplers, and the one of WOR across the panel."""

    title = "Privacy of two-stage samplers at equal noise, drawn over the first stage"
    name = "privacy_by_first_stage"
    caption = (
        "ε at δ = 1e-5 after 1000 steps of samples of m = 200 of n = 10,000 records with noise "
        "multiplier 4, over the size b of the first stage, with one record substituted. Each band "
        "runs from a lower bound (an attack: explicit data sets attain it) to an upper bound "
        "(proved for clipped sums). The vertical line is at the size of Figure S2. The cost of "
        "the first stage vanishes as b grows: MUST.OW at b = n is WR."
    )
    keys = PrivacyOfFirstStages.keys
    order = PrivacyOfFirstStages.order
    parts = PrivacyOfFirstStages.parts
    marked: ClassVar[int] = SizesOfFigureS2().b

    def draw(self, records: Records) -> tuple[Figure, pd.DataFrame]:
        frame = ordered(self.needed(records, "proved_first_stages"), self.order, RANKS)
        staged = frame[frame["b"] != NO_FIRST_STAGE]
        one_stage = frame[frame["b"] == NO_FIRST_STAGE]
        sizes = sorted(staged["b"].unique())
        # one-stage sampling has no b: its band crosses the panel
        across = pd.concat([one_stage.assign(b=b) for b in (sizes[0], sizes[-1])])
        layers = [
            *band(across, "b", ENDS, "sampler", sampler_style),
            *band(staged, "b", ENDS, "sampler", sampler_style, nested=0.25),
        ]
        if self.marked in sizes:
            layers.append(at_size(self.marked, f"b = {self.marked}, as in Figure S2"))
        exponent = round(math.log10(frame["given"].iloc[0]))
        figure = draw_panels(
            [Panel("", [*layers, remark(BANDS, "center right")])],
            width=6.6,
            height=3.5,
            xscale="log",
            yscale="log",
            labels=self.labels(records),
            xticks=sizes,
            xlabel="size b of the first stage",
            ylabel=f"ε at δ = $10^{{{exponent}}}$",
        )
        plotted = ["sampler", "b", "noise_multiplier", "n_compositions", *ENDS]
        return figure, frame[plotted].reset_index(drop=True)


class NoiseByTarget(BandFigure):
    title = "Noise of each sampler against the privacy target"
    name = "noise_by_target"
    caption = (
        f"{NoiseAtEqualPrivacy.setting}. One record is substituted. Each band runs from the noise "
        "at which an attack still exceeds the target to the noise for which the target is proved. "
        "Dotted: the noise that meets the target by the published analysis, that is, for the "
        "paper's pair of densities. It is not a guarantee: with this noise attacks exceed the "
        "target."
    )
    keys = NoiseAtEqualPrivacy.keys
    order = NoiseAtEqualPrivacy.order
    parts = NoiseAtEqualPrivacy.parts
    x, ends, pair, delta = "target_epsilon", ("refuted", "proved"), "pair", "delta"
    place = "upper right"
    remark = (
        "an attack on MUST.OW exceeds the target\neven with {ratio:.1f} times the published noise"
    )
    titles = ("target ε at δ = {}", "noise multiplier s")
    plotted = (
        "sampler",
        "b",
        "adjacency",
        "n_compositions",
        "target_epsilon",
        "proved",
        "refuted",
        "pair",
    )
