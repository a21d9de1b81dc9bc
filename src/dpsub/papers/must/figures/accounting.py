"""From what is refuted to what is proved: Figure S2 of the MUST paper, and two figures of this
project."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import pandas as pd

from dpsub.papers.must.figures import MustFigure
from dpsub.papers.must.tables import RANKS, NoiseAtEqualPrivacy, both_sides, sides
from dpsub.reproduce.artefact import Records
from dpsub.reproduce.figures import Panel, curves, draw_panels, line, sampler_style, where
from dpsub.reproduce.figures.panels import Layer, Styles
from dpsub.reproduce.labels import sampler_label
from dpsub.reproduce.tables import Part, Row, ordered

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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
