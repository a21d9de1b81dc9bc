"""Figures 1 to 8 of the paper, and two that it lacks: the numbers of releases at which recycling
pays, and an audit."""

from __future__ import annotations

import itertools
import math
from abc import abstractmethod
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from dpsub.papers.brdp.releases import METHODS, SHORT
from dpsub.reproduce.artefact import Artefact, Records
from dpsub.reproduce.digits import as_printed
from dpsub.reproduce.figures import Panel, curves, draw_panels, line, name_at, remark, where
from dpsub.reproduce.figures.diagrams import Box, arc, arrow, canvas, caption, draw_box

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    Drawn = tuple[Figure, pd.DataFrame]

Looks = Mapping[Any, Mapping[str, Any]]

OURS = "Set by us, as the paper does not state it: "
GAUSSIAN, LAPLACE = "#0072B2", "#D55E00"
LEAST_RATIO = 1e-20
"""Ratios of deltas below this are cut off."""
DASHED, DOTTED, BROKEN = (0, (4, 1.5)), (0, (1, 1)), (0, (3, 1, 1, 1))


def style(label: str, color: str, linestyle: object, marker: str = "") -> dict[str, Any]:
    """Return keyword arguments of ``Axes.plot``."""
    return {"label": label, "color": color, "linestyle": linestyle, "marker": marker}


# one hue a kernel, darker from plain noise over the paper's recycler to the best one
STYLES = {
    "ceiling": style("ceiling (any noise)", "#BBBBBB", "-"),
    "gau_dp": style("plain Gaussian", "#8DBFE2", "-", "o"),
    "lap_dp": style("plain Laplace", "#F5B58A", "-", "o"),
    "gau_br": style("recycled Gaussian, paper", GAUSSIAN, "-", "s"),
    "lap_br": style("recycled Laplace, paper", LAPLACE, "-", "s"),
    "gau_smp": style("sampled Gaussian, paper", "#56B4E9", BROKEN, "^"),
    "lap_smp": style("sampled Laplace, paper", "#E69F00", BROKEN, "^"),
    "gau_best": style("recycled Gaussian, exact", "#00304D", DASHED, "D"),
    "lap_best": style("recycled Laplace, exact", "#5C2800", DASHED, "D"),
}
# Figure 2 lays the densities over shaded bars: grey for plain noise, and no markers.
NOISES = {
    "gau_dp": style("Gaussian", "#777777", DASHED),
    "gau_br": {**STYLES["gau_br"], "marker": ""},
}
RATES = {
    "baseline": style("Theorem 2", "#BBBBBB", "-"),
    "algorithm1": style("Algorithm 1", GAUSSIAN, "-"),
    "exact": style("exact", "black", DASHED),
}
KERNELS = {"gau": ("Gaussian kernel", GAUSSIAN), "lap": ("Laplace kernel", LAPLACE)}
# Plain noise by exact accounting is what the others are divided by: its curve is the line at 1.
COMPOSED = {
    ("rigorous", "dp"): style("plain noise, exact", "#999999", "-"),
    ("stated", "br"): style("recycled, Theorem 3", "#CC79A7", "-"),
    ("rigorous", "best"): style("best for one release, exact", "#009E73", DOTTED),
    ("rigorous", "br"): style("recycled, exact", "black", DASHED),
}
QUERIES = {"sum": "sum", "avg": "average", "cnt": "count"}
# The two of five rules that the caption compares; the others stand in the records alone.
SAMPLED = {
    "swapped": style("paper", GAUSSIAN, "-", "o"),
    "corrected": style("corrected", LAPLACE, DASHED, "D"),
}


def scientific(value: float) -> str:
    """Return a number with two digits: "0.019", "1.9 × 10⁻⁶", "10⁻⁵"."""
    return as_printed(f"{value:.2g}")


class PaperFigure(Artefact):
    """A figure of one experiment's records; the paper prints no numbers in its figures."""

    kind = "figure"

    def draw(self, records: Records) -> Drawn:
        frame = self.needed(records, self.experiments[0]).reset_index(drop=True)
        return self.drawn(frame, partial(draw_panels, labels=self.labels(records)))

    @abstractmethod
    def drawn(self, frame: pd.DataFrame, draw: Callable[..., Figure]) -> Drawn:
        """Return the figure, as `draw` makes it of panels, and the plotted part of the records."""


class RecyclingFramework(PaperFigure):
    """Answer, kernel, recycler, release, and the way back."""

    title = "Figure 1. The recycling framework"
    name = "figure1"
    caption = (
        "Budget recycling. The kernel draws noise N for the answer y. The recycler tests the "
        "noise, not the release, against a public bound θ. Noise within the bound is released. "
        "Noise outside is released with probability 1 - q and drawn again otherwise."
    )

    def draw(self, records: Records) -> Drawn:
        figure, (axes,) = canvas(6.4, 1.8)
        shape = {"width": 0.17, "height": 0.26}
        texts = ("answer $y$", "kernel\n$N \\sim k$", "$|N| \\leq \\theta$ ?", "release\n$y + N$")
        boxes = [
            Box(x, 0.62, text, number, **shape)
            for number, (x, text) in enumerate(zip((0.1, 0.34, 0.58, 0.89), texts, strict=True))
        ]
        for box, text in zip(
            boxes, ("private data", "DP mechanism", "recycler", "output"), strict=True
        ):
            draw_box(axes, box)
            caption(axes, box.x, 0.85, text)
        for start, end in itertools.pairwise(boxes):
            arrow(axes, start, end)
        caption(axes, 0.735, 0.77, "yes, or no\nwith $1-q$")
        low = 0.62 - shape["height"] / 2
        arc(axes, (boxes[2].x, low), (boxes[1].x, low), bend=-0.45)
        caption(axes, 0.46, 0.14, "no: drawn again with probability $q$")
        return figure, pd.DataFrame(
            {
                "from": ["answer", "kernel", "recycler", "recycler"],
                "to": ["kernel", "recycler", "release", "kernel"],
                "probability": ["1", "1", "1 inside, 1 - q outside", "0 inside, q outside"],
            }
        )


def _bars(axes: Axes, drawn: pd.DataFrame) -> None:
    for method, look in NOISES.items():
        part = where(drawn, method=method).sort_values("x")
        axes.bar(
            part["x"],
            part["value"],
            width=float(np.diff(part["x"]).min()),
            color=look["color"],
            alpha=0.35,
            linewidth=0,
        )


class NoiseDensity(PaperFigure):
    """Density and histogram."""

    title = "Figure 2. Density of recycled noise"
    name = "figure2"
    caption = (
        "(a) Density of recycled Gaussian noise and of the Gaussian mechanism with the same stated "
        "budget. (b) Histogram of draws from the loop as printed (shaded) and the density in each "
        "bin (lines). The panel gives the probability of lying within the bound θ and the "
        "standard deviation of each, and the exact δ of the recycled noise at the stated ε. "
        f"{OURS}sensitivity 1."
    )
    experiments = ("brdp_noise",)

    def drawn(self, frame: pd.DataFrame, draw: Callable[..., Figure]) -> Drawn:
        density, drawn = where(frame, topic="density"), where(frame, topic="histogram")
        summary = where(frame, topic="summary").set_index(["method", "quantity"])
        # The summary has one budget; 3.2 deviations of the wider kernel hold nearly all of its
        # noise.
        budget, reach = summary.iloc[0], 3.2 * frame["scale"].max()
        lines = [
            f"ε = {budget['epsilon']:g}, δ = {scientific(budget['delta'])}, θ = {budget['bound']:g}"
        ]
        for method, name in (("gau_dp", "Gaussian"), ("gau_br", "recycled")):
            share, sd = (summary["value"][method, quantity] for quantity in ("acceptance", "sd"))
            lines.append(f"{name}: {share:.3f} within θ, SD {sd:.2f}")
        lines.append(f"recycled: exact δ = {scientific(summary['exact_delta']['gau_br', 'sd'])}")
        # The law is averaged over the bins of the histogram (see the experiment): hence steps.
        law = curves(
            drawn,
            "x",
            "law",
            by="method",
            styles=NOISES,
            drawstyle="steps-mid",
            linewidth=0.9,
            label="_",
        )
        return draw(
            [
                Panel(
                    "density",
                    [curves(density, "x", "law", by="method", styles=NOISES), _whole_ticks],
                    {"ylabel": "density"},
                    "upper left",
                ),
                Panel(
                    "draws (shaded) and density",
                    [partial(_bars, drawn=drawn), law, remark("\n".join(lines)), _whole_ticks],
                    {"ylabel": "share of the draws / width"},
                ),
            ],
            columns=2,
            width=6.8,
            height=2.8,
            xlabel="noise",
            xlim=(-reach, reach),
            # Headroom for the legend and for the remark with the exact delta.
            ylim=(0, 1.45 * density["law"].max()),
        ), frame


def _whole_ticks(axes: Axes) -> None:
    axes.locator_params(axis="x", nbins=8, integer=True, steps=[1, 2, 5, 10])


def _over_ratio(
    parts: Mapping[str, pd.DataFrame],
    x: str,
    y: str,
    styles: Looks,
    recycled: Looks,
    lowest: float,
    notes: Callable[[pd.DataFrame], tuple[str, str]],
    place: str,
) -> list[Panel]:
    """Return a panel of each part, and below it the exact delta over the stated one, cut off at
    `lowest`, each with the remark of `notes` on curves that cannot be seen (below: at `place`)."""
    label = {"ylabel": "recycling rate q" if y == "rate" else y, "ylim": (0, 1)}
    limits = {
        "ylabel": "exact / stated δ",
        "yscale": "log",
        "ylim": (lowest, 1e6),
        "yticks": np.geomspace(lowest, 1, 5),
    }
    draw = partial(curves, x=x, by="method", marker="", nested=0.5)
    # An exact delta can be 1e-16 of the stated one and less (BR3), or 0 in floating point: it is
    # cut well below the axis, so that the curve leaves the panel instead of ending within it.
    ratios = [
        part.assign(ratio=(part["exact_delta"] / part["delta"]).clip(lowest**2))
        for part in parts.values()
    ]
    # Panels fill the grid row by row: all curves first, then the ratio below each.
    return [
        *(
            Panel(
                name,
                [draw(part, y=y, styles=styles), *_remarks(notes(part)[0], "lower right")],
                label,
            )
            for name, part in parts.items()
        ),
        *(
            Panel(
                "exact / stated δ",
                [
                    _above,
                    draw(part, y="ratio", styles=recycled),
                    *_remarks(notes(part)[1], place),
                ],
                limits,
            )
            for part in ratios
        ),
    ]


def _remarks(text: str, place: str) -> list[Callable[[Axes], object]]:
    """Return the layer of a remark, none without a text."""
    return [remark(text, place)] if text else []


def _above(axes: Axes) -> None:
    axes.axhspan(1, 1e6, color="#B00020", alpha=0.12, linewidth=0, label="more than the stated δ")


class RecyclingRates(PaperFigure):
    """Recycling rate by the epsilon of the kernel, and the delta that it really gives."""

    title = "Figure 3. Recycling rate of the baseline and the optimal approach"
    name = "figure3"
    statements = ("C.fig3.",)
    caption = (
        "Top: recycling rate q against the ε spent by the Gaussian kernel: by Theorem 2, by "
        "Algorithm 1, and the largest rate that the exact privacy profile allows. Bottom: exact δ "
        "of the release over the stated δ; the guarantee fails where a curve enters the shaded "
        f"region. Ratios below 10⁻²⁰ are cut off. {OURS}the three values of δ."
    )
    experiments = ("brdp_rates",)

    def drawn(self, frame: pd.DataFrame, draw: Callable[..., Figure]) -> Drawn:
        # The largest delta comes first, as in the paper's Figure 3; `groupby` sorts upwards.
        parts = {
            f"δ = {scientific(-key)}": part
            for key, part in frame.groupby(-frame["delta"].astype(float))
        }

        def notes(part: pd.DataFrame) -> tuple[str, str]:
            """Say where a ratio leaves the panel at once, and that curves coincide."""
            given = part[part["method"] != "exact"]
            ratio = given["exact_delta"] / given["delta"]
            worst = given.iloc[int(ratio.to_numpy().argmax())]
            if ratio.max() > 1 + 1e-6:
                name = RATES[worst["method"]]["label"]
                return "", f"{name}: {scientific(ratio.max())} at $ε_y$ = {worst['epsilon_y']:g}"
            # Less than a power of ten cannot be seen on this axis.
            powers = given.assign(power=np.log10(ratio.clip(LEAST_RATIO)))
            apart = powers.groupby("epsilon_y")["power"].agg(np.ptp)
            return "", "curves coincide" if apart.max() < 1 else ""

        panels = _over_ratio(
            parts, "epsilon_y", "rate", RATES, RATES, LEAST_RATIO, notes, "lower right"
        )
        return draw(
            panels,
            columns=len(parts),
            height=2.0,
            grid={"sharex": True, "sharey": "row"},
            xlabel="ε of the kernel, $ε_y$",
            xlim=(0, frame["epsilon"].iloc[0]),
        ), frame


class AcceptanceRates(PaperFigure):
    """Acceptance against epsilon, the ceiling, and the exact delta of the paper's parameters."""

    title = "Figure 4. Acceptance rate of Gaussian noise, plain and recycled"
    name = "figure4"
    statements = ("C.fig4",)
    caption = (
        "Top: acceptance, the probability that the noise lies within the bound 1, for sensitivity "
        "1 and 5: plain noise, the paper's recyclers, the best recyclers by exact accounting, and "
        "the ceiling for symmetric unimodal noise (upper bound certified by a linear program). "
        "Bottom: exact δ of the paper's recyclers over the stated δ; the guarantee fails in the "
        f"shaded region. Coinciding curves are nested. {OURS}δ and the range of ε."
    )
    experiments = ("brdp_acceptance",)

    def drawn(self, frame: pd.DataFrame, draw: Callable[..., Figure]) -> Drawn:
        parts = {f"sensitivity {span:g}": part for span, part in frame.groupby("sensitivity")}
        # Only the paper's recyclers promise a delta that they may miss (BR2); the exact ones keep
        # it.
        recycled = {method: STYLES[method] for method in ("gau_br", "lap_br")}

        def notes(part: pd.DataFrame) -> tuple[str, str]:
            """Name kernels that recycling does not change, and the curves that are left out."""
            wide = part.pivot_table(index="epsilon", columns="method", values="acceptance")
            unchanged = [
                f"{name}: plain and recycled coincide"
                for kernel, (name, _) in KERNELS.items()
                if (wide[f"{kernel}_br"] - wide[f"{kernel}_dp"]).abs().max() < 0.01
            ]
            best = part[part["method"].isin(["gau_best", "lap_best"])]
            most = (best["exact_delta"] / best["delta"]).max()
            return "\n".join(unchanged), f"recycled, exact: {most:.3g} (not drawn)"

        panels = _over_ratio(
            parts, "epsilon", "acceptance", STYLES, recycled, LEAST_RATIO, notes, "upper left"
        )
        grid = {"sharex": True, "sharey": "row", "height_ratios": (2, 1)}
        return draw(
            panels,
            columns=len(parts),
            width=6.8,
            height=2.4,
            grid=grid,
            xlabel="ε",
            xlim=(0, frame["epsilon"].max()),
        ), frame


class LossOverReleases(PaperFigure):
    """Composed epsilon against the number of releases."""

    title = "Figure 5. Composed loss of plain and recycled noise"
    name = "figure5"
    statements = ("C.fig5.",)
    caption = (
        "ε at δ after T releases, relative to plain noise with the same kernel (exact). Curves: "
        "recycled noise by Theorem 3 and exactly, with ε = 1 for each release alone, and the "
        "recycler that spends all that exact accounting allows on one release. Below 1 recycling "
        "leaks less than plain noise. Each band runs from the lower to the upper bound of exact "
        "accounting; most are narrower than the line. For Laplace noise recycling gains nothing "
        f"in one release, so no best recycler is drawn. {OURS}δ and the range of T."
    )
    experiments = ("brdp_composition",)

    def drawn(self, frame: pd.DataFrame, draw: Callable[..., Figure]) -> Drawn:
        # One divisor, the upper bound for plain noise, serves Theorem 3 and both exact bounds
        # alike, so that quotients can be compared with each other.
        plain = where(frame, variant="rigorous", method="dp")[["kernel", "n_compositions", "upper"]]
        shown = frame.merge(plain.rename(columns={"upper": "plain"}))
        shown = shown.assign(
            low=shown["lower"] / shown["plain"], high=shown["upper"] / shown["plain"]
        )
        panels, key = [], ("variant", "method")
        # Bands are too thin for a legend of their own: an empty line stands in for all of them.
        ends = line(
            [], [], color="#999999", alpha=0.3, linewidth=6, label="from lower to upper bound"
        )
        for kernel, (name, _) in KERNELS.items():
            part = where(shown, kernel=kernel)
            # Budget and exact delta belong to one release: any number of releases has them.
            release = where(part, method="br").iloc[0]
            text = (
                f"one release, ε = {release['epsilon']:g}:\n"
                f"stated δ = {scientific(release['delta'])}\n"
                f"exact δ = {scientific(release['exact_delta'])}"
            )
            drawn = curves(
                part,
                "n_compositions",
                "high",
                by=key,
                styles=COMPOSED,
                band=("low", "high"),
                nested=0.8,
            )
            if "best" not in set(part["method"]):
                recycled = where(part, method="br")
                text += (
                    "\nno better recycler for one release;\nall curves within "
                    f"{recycled['low'].min():.3f} to {recycled['high'].max():.3f}"
                )
            panels.append(Panel(name, [drawn, ends, remark(text, "upper left")]))
        return draw(
            panels,
            columns=2,
            height=2.8,
            xscale="log",
            xlabel="releases T",
            ylabel="ε after T releases / that of plain noise",
            # One range for both kernels, so that they can be compared.
            grid={"sharey": True},
        ), frame


class AcceptanceOfSamples(PaperFigure):
    """Sampling rate, acceptance and exact delta against the number of records."""

    title = "Figure 6. Subsampling under different mechanisms"
    name = "figure6"
    statements = ("C.fig6",)
    caption = (
        "Algorithm 4 for a sum, an average and a count: sampling rate, acceptance (the probability "
        "that sampling error and noise together lie within the bound), and exact δ over the "
        "stated δ (the guarantee fails in the shaded region). Circles: as in the paper, calibrated "
        "to the sensitivity at p = 1 and maximising Equation 13 with q and 1 - q exchanged, as it "
        "must be. Diamonds: calibrated to the true sensitivity D / p and maximising the true "
        "acceptance; sampling then never pays. The paper's standard deviation of the values, 10, "
        f"is impossible for values in a range of 1. {OURS}D = 1 (sum, count) and 22 / |X| "
        "(average), bounds 3 and 0.3, |X|."
    )
    experiments = ("brdp_sampling",)

    def drawn(self, frame: pd.DataFrame, draw: Callable[..., Figure]) -> Drawn:
        frame = frame.assign(ratio=frame["exact_delta"] / frame["delta"])
        # The question is whether a ratio enters the region above 1: one far below it must not
        # stretch the axis.
        ratios = frame.loc[frame["rule"].isin([*SAMPLED]), "ratio"].clip(0.1)
        texts = {
            "sampling_rate": "sampling rate",
            "acceptance": "acceptance",
            "ratio": "exact / stated δ",
        }
        share: dict[str, Any] = {"ylim": (0, 1)}
        limits = {
            "sampling_rate": share,
            "acceptance": share,
            "ratio": {"yscale": "log", "ylim": (0.5 * ratios.min(), 3 * ratios.max())},
        }
        panels = [
            Panel(
                f"{query}: {text}",
                [
                    # Only delta has a region where the guarantee fails.
                    *([_above] if column == "ratio" else []),
                    curves(
                        where(frame, query=key),
                        "n",
                        column,
                        by="rule",
                        styles=SAMPLED,
                        markevery=1,
                        nested=1.6,
                    ),
                ],
                {"ylabel": text, **limits[column]},
            )
            for column, text in texts.items()
            for key, query in QUERIES.items()
        ]
        return draw(
            panels,
            width=7.2,
            height=1.75,
            xscale="log",
            xlabel="records |X|",
            grid={"sharex": True, "sharey": "row"},
        ), frame


def _boxes(axes: Axes, part: pd.DataFrame) -> None:
    part = part.set_index("method").loc[list(METHODS)]
    ends = {
        # Quantiles come from the records: matplotlib's own whiskers reach 1.5 interquartile ranges,
        # those of the paper hold 95 % of the answers (Section 8.1).
        "whislo": "low_whisker",
        "q1": "low_box",
        "med": "median",
        "q3": "high_box",
        "whishi": "high_whisker",
    }
    stats = [
        {name: row[column] for name, column in ends.items()} for row in part.to_dict("records")
    ]
    made = axes.bxp(stats, showfliers=False, patch_artist=True, widths=0.55)
    for box, median, method in zip(made["boxes"], made["medians"], METHODS, strict=True):
        box.set(facecolor=STYLES[method]["color"], alpha=0.6, linewidth=0.6)
        median.set(color="black", linewidth=0.8)
    theta = float(part["bound"].iloc[0])
    for bound in (-theta, theta):
        axes.axhline(bound, color="#B00020", linewidth=0.7, linestyle=(0, (4, 2)))
    # Names of sampled methods take two lines: the others get an empty one, so that the numbers
    # align.
    labels = [
        f"{SHORT[method].replace('SMP-', 'SMP-' + chr(10))}"
        + chr(10) * (not method.endswith("smp"))
        + f"\n{part['drawn'][method]:.3f}\n{scientific(float(part['exact_delta'][method]))}"
        for method in METHODS
    ]
    axes.set_xticks(range(1, len(METHODS) + 1), labels, fontsize=6.5)
    axes.annotate(
        "\n\nwithin θ\nexact δ",
        (0, 0),
        xytext=(-4, -5.5),
        xycoords="axes fraction",
        fontsize=6.5,
        textcoords="offset points",
        ha="right",
        va="top",
        annotation_clip=False,
    )
    # The bound stays in view where even the worst method keeps within it.
    top = max(1.15 * theta, 1.1 * float(part["high_whisker"].max()))
    # linear within the bound, so that the box of the best and of the worst method can both be seen
    axes.set_yscale("symlog", linthresh=theta)
    # Powers of ten below 3 theta would collide with the label of theta.
    decades = [
        10.0**k for k in range(math.ceil(math.log10(3 * theta)), math.ceil(math.log10(2 * top)))
    ]
    axes.set_yticks([*(-decade for decade in reversed(decades)), -theta, 0, theta, *decades])
    axes.yaxis.set_major_formatter("{x:g}")
    axes.minorticks_off()
    axes.set_ylim(-2 * top, 2 * top)
    axes.grid(axis="x", visible=False)


def _exceeded(axes: Axes, part: pd.DataFrame) -> None:
    """Name the methods whose exact delta is above the stated one."""
    worst = part.groupby("method")["exact_delta"].max()
    # Within 1 % the two digits that are shown would agree with the stated delta.
    named = [method for method in METHODS if worst[method] > 1.01 * part["delta"].iloc[0]]
    for line_number, method in enumerate(named):
        axes.text(
            0.03,
            0.93 - 0.085 * line_number,
            f"{SHORT[method]}: exact δ up to {scientific(worst[method])}",
            fontsize=7,
            transform=axes.transAxes,
        )
    axes.spines["left"].set_bounds(0, 1)
    axes.grid(axis="x", visible=False)


class QueryFigure(PaperFigure):
    """Boxes of drawn answers, curves of acceptance."""

    def drawn(self, frame: pd.DataFrame, draw: Callable[..., Figure]) -> Drawn:
        # An acceptance ends at 1; the room above is for the deltas that `_exceeded` writes.
        curve = {
            "xlabel": "ε",
            "xscale": "log",
            "ylabel": "acceptance",
            "ylim": (0, 1.45),
            "yticks": [0, 0.25, 0.5, 0.75, 1],
        }
        styles = {method: {**STYLES[method], "label": SHORT[method]} for method in METHODS}
        panels = []
        # Panels of one row differ in D and theta, though the text describes one query (BR18): each
        # panel is titled with its own.
        for letter, part in frame.groupby("panel"):
            first = part.iloc[0]
            text = (
                f"({letter}) {QUERIES[first['query']]}, D = {first['sensitivity']:g}, θ = "
                f"{first['bound']:g}"
            )
            if first["view"] == "box":
                panels.append(
                    Panel(
                        f"{text}, ε = {first['epsilon']:g}",
                        [partial(_boxes, part=part)],
                        {"ylabel": "error of the answer"},
                    )
                )
            else:
                drawn = curves(
                    part,
                    "epsilon",
                    "acceptance",
                    by="method",
                    styles=styles,
                    markevery=1,
                    markersize=2.5,
                    nested=0.6,
                )
                panels.append(Panel(text, [drawn, partial(_exceeded, part=part)], curve))
        figure = draw(
            panels, columns=2, width=7.2, height=2.5, letters=False, grid={"width_ratios": (1.5, 1)}
        )
        return figure, frame.drop(columns=["replicate", "data"], errors="ignore")


class AdultQueries(QueryFigure):
    """Adult."""

    title = "Figure 7. Queries on Adult: noisy answers and acceptance"
    name = "figure7"
    statements = ("C.fig7.",)
    experiments = ("brdp_adult",)
    caption = (
        "Six methods on subsets of 1,000 Adult records (capital gain in 1000 dollars, clipped to "
        "[0, 22] or [0, 12]; count: gain above 0). Left: errors of 1,000 answers for each subset; "
        "boxes hold 50 %, whiskers 95 %. The axis is linear within the bound θ (dashed) and "
        "logarithmic beyond. Below: the share of answers within the bound, and the exact δ of the "
        "release at the stated ε. Right: acceptance against ε; the largest exact δ along a curve "
        "is shown if it exceeds the stated δ. Where the acceptance of a sampled method "
        f"collapses, Equation 13 sends its sampling rate to the lower limit. {OURS}the "
        "attribute and the range of ε."
    )


class GowallaQueries(QueryFigure):
    """Gowalla."""

    title = "Figure 8. Queries on Gowalla: noisy answers and acceptance"
    name = "figure8"
    experiments = ("brdp_gowalla",)
    # Section 8.2 says the same of both data sets
    statements = ("C.fig7.",)
    caption = (
        "As Figure 7, on check-ins of Gowalla (days from a user's first to last check-in, clipped "
        "to [0, 22] or [0, 12]; count: more than 150 days). Where the full file cannot be "
        "obtained, the users of one city stand in for it (seven subsets of 1,000), and the figure "
        f"says so. {OURS}the attribute and the range of ε."
    )


PLAIN, RECYCLED = ["gau_dp", "lap_dp"], ["gau_best", "lap_best"]
NAMES = {"gau_dp": "G", "lap_dp": "L", "gau_best": "rG", "lap_best": "rL"}
GAIN = 1e-3
"""Smallest relative gain of acceptance that is marked."""


class RecyclingMap(PaperFigure):
    """Gain of the best recycler over the best plain noise."""

    title = "Where recycling pays: gain over the best plain noise"
    name = "recycling_map"
    caption = (
        "Acceptance of the best recycled noise over that of the best plain noise (Gaussian or "
        "Laplace) when all T releases together satisfy (ε, δ = 10⁻⁵), by proved accounting. "
        "Letters name the best noise, plain where recycling gains less than 0.1 %. Last panel: "
        "the ceiling for symmetric unimodal noise over the best of these four, for one release."
    )
    experiments = ("brdp_map",)

    def drawn(self, frame: pd.DataFrame, draw: Callable[..., Figure]) -> Drawn:
        frame = where(frame, topic="map").reset_index(drop=True)
        wide = frame.pivot_table(
            index=["n_compositions", "epsilon", "bound"], columns="method", values="acceptance"
        )
        gain = wide[RECYCLED].max(axis=1) / wide[PLAIN].max(axis=1)
        best = (
            wide[RECYCLED]
            .idxmax(axis=1)
            .where(gain > 1 + GAIN, wide[PLAIN].idxmax(axis=1))
            .map(NAMES)
        )
        times = sorted(frame["n_compositions"].unique())
        maps = {
            f"T = {count}: recycled / plain": (gain.xs(count), best.xs(count)) for count in times
        }
        # The ceiling is a linear program for one release only.
        if 1 in times:
            room = (wide["ceiling"] / wide[PLAIN + RECYCLED].max(axis=1)).xs(1)
            maps["T = 1: ceiling / best"] = (room, room.map(lambda value: ""))
        top = max(float(values.max()) for values, _ in maps.values())

        def heat(axes: Axes, title: str) -> None:
            table, marks = (
                maps[title][0].unstack("bound"),
                maps[title][1].unstack("bound").to_numpy(),
            )
            image = axes.imshow(
                table, origin="lower", aspect="auto", cmap="viridis", vmin=1, vmax=top
            )
            # Low values are dark in this colour map: white digits there, black ones above.
            for (i, j), value in np.ndenumerate(table.to_numpy()):
                text, dark = f"{value:.2f}\n{marks[i, j]}".strip(), value < 1 + 0.6 * (top - 1)
                axes.text(
                    j,
                    i,
                    text,
                    ha="center",
                    va="center",
                    fontsize=7,
                    color="white" if dark else "black",
                )
            for axis, ticks in ((axes.xaxis, table.columns), (axes.yaxis, table.index)):
                axis.set_ticks(range(len(ticks)), [f"{tick:g}" for tick in ticks])
            axes.grid(visible=False)
            # The letters, explained once.
            for method, letters in NAMES.items():
                axes.plot([], [], linestyle="none", label=f"{letters}: {STYLES[method]['label']}")
            # All maps share one range of colours, so that one bar serves them.
            if title == list(maps)[-1]:
                axes.figure.colorbar(image, ax=axes, label="ratio of acceptances")

        panels = [Panel(title, [partial(heat, title=title)]) for title in maps]
        return draw(
            panels,
            columns=len(maps),
            width=7.2,
            height=2.9,
            xlabel="bound / sensitivity",
            ylabel="ε of all releases",
        ), frame


class AcceptanceFrontier(PaperFigure):
    """Acceptance against the number of releases at one budget."""

    title = "Acceptance against the number of releases at one total budget"
    name = "frontier"
    caption = (
        "(a) Acceptance of recycled noise over that of plain noise of the same kernel, for each of "
        "T releases that together satisfy (ε = 1, δ = 10⁻⁵), at a bound equal to the sensitivity. "
        "Kernel and recycling rate are the best for the composed budget by proved accounting. (b) "
        "The acceptances themselves."
    )
    experiments = ("brdp_map",)

    def drawn(self, frame: pd.DataFrame, draw: Callable[..., Figure]) -> Drawn:
        frame = where(frame, topic="frontier").reset_index(drop=True)
        wide = frame.pivot_table(index="n_compositions", columns="method", values="acceptance")
        # Each kernel is compared with itself: this is the gain by recycling, not by changing the
        # noise.
        gains = pd.DataFrame(
            {kernel: wide[f"{kernel}_best"] / wide[f"{kernel}_dp"] for kernel in KERNELS}
        )
        gains = gains.reset_index().melt("n_compositions", var_name="kernel", value_name="gain")
        styles = {
            kernel: style(name, colour, "-", "D") for kernel, (name, colour) in KERNELS.items()
        }
        accepted = [
            curves(
                frame,
                "n_compositions",
                "acceptance",
                by="method",
                markevery=1,
                nested=1.6,
                styles={method: STYLES[method] for method in pair},
            )
            for pair in zip(PLAIN, RECYCLED, strict=True)
        ]
        gained = curves(
            gains, "n_compositions", "gain", by="kernel", styles=styles, markevery=1, label="_"
        )
        # The curves are furthest apart at the first number of releases.
        first = gains.sort_values("n_compositions").groupby("kernel").first()
        named = [
            name_at(
                end["n_compositions"],
                end["gain"],
                KERNELS[str(kernel)][0],
                # A curve that stays at 1 would run through its name.
                above=6 if end["gain"] < 1.01 else 0,
            )
            for kernel, end in first.iterrows()
        ]
        return draw(
            [
                Panel(
                    "gain by recycling",
                    [gained, *named],
                    {"ylabel": "acceptance, recycled / plain"},
                ),
                Panel("acceptance", accepted, {"ylabel": "acceptance", "yscale": "log"}),
            ],
            columns=2,
            width=6.8,
            height=2.7,
            xscale="log",
            xlabel="releases T",
        ), frame


class RecycledAudit(PaperFigure):
    """Confidence intervals of delta from draws of the loop."""

    title = "Audit of Algorithm 1 by draws"
    name = "audit"
    caption = (
        "δ of recycled noise with the parameters of Algorithm 1, estimated from draws of the loop "
        "as printed on two neighbouring data sets, next to the exact δ and the stated δ. "
        "Clopper-Pearson intervals; each limit errs with probability at most 0.1 %. A lower limit "
        "above the stated δ refutes the guarantee by experiment."
    )
    experiments = ("brdp_audit",)

    def drawn(self, frame: pd.DataFrame, draw: Callable[..., Figure]) -> Drawn:
        # P - e^epsilon P' can be estimated as zero or less, which a log axis cannot show.
        refuted, places = frame["lower"] > frame["claimed"], np.arange(len(frame))
        shown = frame.assign(
            place=places,
            refuted=refuted,
            middle=frame["estimate"].clip(1e-12),
            lower=frame["lower"].clip(1e-12),
        )
        cases = [
            f"{KERNELS[case['kernel']][0].split()[0]}\nε = {case['epsilon']:g}\n$ε_y$ = "
            f"{case['epsilon_y']:g}\n"
            f"θ = {case['bound']:g}"
            for case in frame.to_dict("records")
        ]
        looks = {
            True: style("estimate: guarantee refuted", LAPLACE, "none", "o"),
            False: style("estimate: not refuted", GAUSSIAN, "none", "s"),
        }
        intervals = curves(
            shown,
            "place",
            "middle",
            by="refuted",
            styles=looks,
            bars=("lower", "upper"),
            markevery=1,
        )

        def deltas(axes: Axes) -> None:
            axes.hlines(
                frame["exact"],
                places - 0.2,
                places + 0.2,
                color="black",
                linewidth=0.9,
                label="exact δ",
            )
            axes.hlines(
                frame["claimed"],
                places - 0.35,
                places + 0.35,
                color="black",
                linewidth=0.9,
                linestyle=DASHED,
                label="stated δ",
            )
            axes.set_xticks(places, cases, fontsize=7)
            axes.grid(axis="x", visible=False)

        text = (
            f"{refuted.sum()} of {len(frame)} guarantees refuted\n"
            f"{frame['draws'].iloc[0]:,.0f} draws for each data set"
        )
        figure = draw(
            [Panel("", [intervals, deltas, remark(text)])],
            width=5.6,
            height=2.8,
            ylabel="δ at ε",
            xlim=(-0.6, len(frame) - 0.4),
            yscale="log",
        )
        return figure, frame.drop(columns=["data"], errors="ignore")
