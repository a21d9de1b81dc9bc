"""Figures 1 to 8 of the paper, and what it lacks: when recycling pays, by number of releases, and an audit."""

from __future__ import annotations

import itertools
import math
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd

from dpsub.papers.brdp.releases import METHODS, SHORT
from dpsub.reproduce.artefact import Artefact, Records, values_frame
from dpsub.reproduce.figures import Panel, curves, draw_panels, finish, level, new, panel_letter, remark, where
from dpsub.reproduce.figures.diagrams import Box, arc, arrow, canvas, caption, draw_box

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    Drawn = tuple[Figure, pd.DataFrame]

OURS = "Set by us, as the paper does not state it: "
GAUSSIAN, LAPLACE = "#0072B2", "#D55E00"
DASHED, DOTTED, BROKEN = (0, (5, 1.5)), (0, (1, 1)), (0, (3, 1, 1, 1))


def style(label: str, color: str, linestyle: object, marker: str = "") -> dict[str, Any]:
    """Return keyword arguments of ``Axes.plot``."""
    return {"label": label, "color": color, "linestyle": linestyle, "marker": marker}


# one colour a kernel, one dash pattern a way to choose
STYLES = {
    "gau_dp": style("Gaussian", GAUSSIAN, ":", "o"),
    "gau_br": style("recycled Gaussian, paper", GAUSSIAN, "-", "s"),
    "gau_best": style("recycled Gaussian, exact", GAUSSIAN, DASHED, "D"),
    "gau_smp": style("sampled Gaussian, paper", "#56B4E9", BROKEN, "^"),
    "lap_dp": style("Laplace", LAPLACE, ":", "o"),
    "lap_br": style("recycled Laplace, paper", LAPLACE, "-", "s"),
    "lap_best": style("recycled Laplace, exact", LAPLACE, DASHED, "D"),
    "lap_smp": style("sampled Laplace, paper", "#E69F00", BROKEN, "^"),
    "ceiling": style("ceiling (any noise)", "black", DOTTED),
}
NOISES = {"gau_dp": style("Gaussian", "#777777", (0, (4, 1.5))), "gau_br": {**STYLES["gau_br"], "marker": ""}}
RATES = {"baseline": style("Theorem 2", "#999999", ":"), "algorithm1": style("Algorithm 1", GAUSSIAN, "-"),
         "exact": style("exact", "black", (0, (4, 1.5)))}  # fmt: skip
KERNELS = {"gau": ("Gaussian kernel", GAUSSIAN), "lap": ("Laplace kernel", LAPLACE)}
COMPOSED = {
    ("stated", "br"): style("recycled, Theorem 3", "#CC79A7", "-"),
    ("rigorous", "dp"): style("plain noise, exact", "black", ":"),
    ("rigorous", "br"): style("recycled, exact", GAUSSIAN, (0, (4, 1.5))),
    ("rigorous", "best"): style("best for one release, exact", "#009E73", DOTTED),
}
QUERIES = {"sum": ("sum", GAUSSIAN, "o"), "avg": ("average", "#009E73", "s"), "cnt": ("count", LAPLACE, "^")}
SAMPLED = {
    (rule, query): {**style(f"{name}, {text}", colour, dashes, marker), "markerfacecolor": face or colour}
    for rule, text, dashes, face in (("swapped", "paper", "-", ""), ("corrected", "corrected", ":", "white"))
    for query, (name, colour, marker) in QUERIES.items()
}


def scientific(value: float) -> str:
    """Return a number with two digits as "1.9·10⁻⁶", or plain between 0.001 and 1000."""
    if value == 0 or not math.isfinite(value) or 1e-3 <= abs(value) < 1e3:
        return f"{value:.2g}"
    mantissa, exponent = f"{value:.1e}".split("e")
    digits = str(int(exponent)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"{mantissa}·10{digits}"


class PlainFigure(Artefact):
    """A figure of a paper that prints no numbers in its figures."""

    kind = "figure"

    def values(self, records: Records) -> pd.DataFrame:
        return values_frame([])

    def frame(self, records: Records) -> pd.DataFrame:
        """Return the records of the figure's experiment."""
        return self.needed(records, self.experiments[0]).reset_index(drop=True)


class Figure1(PlainFigure):
    """Answer, kernel, recycler, release, and the way back."""

    name = "figure1"
    caption = (
        "Budget recycling: the kernel adds noise N to the answer y; the recycler tests N, not the release, against "
        "public bounds and lets it pass if it lies inside, else with probability 1 - q. What is sent back is drawn "
        "again."
    )

    def draw(self, records: Records) -> Drawn:
        figure, (axes,) = canvas(6.4, 2.0)
        shape = {"width": 0.17, "height": 0.26}
        texts = ("answer $y$", "kernel\n$N \\sim k$", "$|N| \\leq \\theta$ ?", "release\n$y + N$")
        boxes = [Box(x, 0.62, text, place, **shape)
                 for place, (x, text) in enumerate(zip((0.1, 0.36, 0.62, 0.88), texts, strict=True))]  # fmt: skip
        for box, text in zip(boxes, ("private data", "DP mechanism", "recycler", "output"), strict=True):
            draw_box(axes, box)
            caption(axes, box.x, 0.85, text)
        for start, end in itertools.pairwise(boxes):
            arrow(axes, start, end)
        caption(axes, 0.75, 0.73, "yes, or\n$1-q$")
        low = 0.62 - shape["height"] / 2
        arc(axes, (boxes[2].x, low), (boxes[1].x, low), bend=-0.45)
        caption(axes, 0.49, 0.16, "no: with probability $q$ the draw is recycled")
        return figure, pd.DataFrame({
            "from": ["answer", "kernel", "recycler", "recycler"], "to": ["kernel", "recycler", "release", "kernel"],
            "probability": ["1", "1", "1 inside, 1 - q outside", "0 inside, q outside"],
        })  # fmt: skip


def _bars(axes: Axes, drawn: pd.DataFrame) -> None:
    for method, look in NOISES.items():
        part = where(drawn, method=method).sort_values("x")
        axes.bar(part["x"], part["value"], width=float(np.diff(part["x"]).min()), color=look["color"], alpha=0.35,
                 linewidth=0)  # fmt: skip


class Figure2(PlainFigure):
    """Density and histogram."""

    name = "figure2"
    caption = (
        "(a) Density of recycled Gaussian noise and of the Gaussian mechanism with the same stated budget. (b) 100,000 "
        "draws of the literal loop, by bins, and the law (lines). The exact delta of the recycled noise at the stated "
        f"epsilon stands in the panel. {OURS}sensitivity 1."
    )
    experiments = ("brdp_noise",)

    def draw(self, records: Records) -> Drawn:
        frame = self.frame(records)
        density, drawn = where(frame, topic="density"), where(frame, topic="histogram")
        summary = where(frame, topic="summary").set_index(["method", "quantity"])
        budget, reach = summary.iloc[0], 3.2 * frame["scale"].max()
        lines = [f"ε {budget['epsilon']:g}, δ {scientific(budget['delta'])}, θ {budget['bound']:g}"]
        for method, name in (("gau_dp", "Gaussian"), ("gau_br", "recycled")):
            share, sd = (summary["value"][method, quantity] for quantity in ("acceptance", "sd"))
            lines.append(f"{name}: within θ {share:.3f}, sd {sd:.2f}")
        lines.append(f"recycled: exact δ {scientific(summary['exact_delta']['gau_br', 'sd'])}")
        law = curves(drawn, "x", "law", by="method", styles=NOISES, drawstyle="steps-mid", linewidth=0.9, label="_")
        panels = [
            Panel(" ", [curves(density, "x", "law", by="method", styles=NOISES)], {"ylabel": "density"}, "upper left"),
            Panel(" ", [partial(_bars, drawn=drawn), law, remark("\n".join(lines))], {"ylabel": "frequency / width"}),
        ]
        figure = draw_panels(panels, columns=2, width=6.8, height=2.8, labels=self.labels(records), xlabel="noise",
                             xlim=(-reach, reach), ylim=(0, 1.45 * density["law"].max()))  # fmt: skip
        return figure, frame


class Figure3(PlainFigure):
    """Rate by the kernel's share, and what delta it really gives."""

    name = "figure3"
    caption = (
        "Top: recycling rate q against the epsilon that the Gaussian kernel spends, by Theorem 2, by Algorithm 1, and "
        "the largest that the exact profile allows. Bottom: exact delta over the stated delta (cut off at 1e-40; a "
        f"guarantee lies at or below 1). {OURS}the three deltas."
    )
    experiments = ("brdp_rates",)

    def draw(self, records: Records) -> Drawn:
        frame = self.frame(records)
        shown = frame.assign(ratio=(frame["exact_delta"] / frame["delta"]).clip(1e-40))
        deltas = sorted(frame["delta"].unique(), reverse=True)
        top, bottom = (
            [curves(where(shown, delta=delta), "epsilon_y", column, by="method", styles=RATES) for delta in deltas]
            for column in ("rate", "ratio")
        )
        limits = {"yscale": "log", "ylim": (1e-40, 1e6), "ylabel": "exact δ / stated δ"}
        panels = [
            *(Panel(f"δ = {scientific(delta)}", [curve], {"ylabel": "recycling rate q"}, "" if place else "lower left")
              for place, (delta, curve) in enumerate(zip(deltas, top, strict=True))),
            *(Panel("", [level(1, color=LAPLACE), curve], limits) for curve in bottom),
        ]  # fmt: skip
        figure = draw_panels(panels, columns=len(deltas), height=2.1, letters=False, labels=self.labels(records),
                             grid={"sharex": True, "sharey": "row"}, xlabel="ε of the kernel, $ε_y$",
                             xlim=(0, frame["epsilon"].iloc[0]))  # fmt: skip
        return figure, frame


class Figure4(PlainFigure):
    """Acceptance against epsilon, the ceiling, and the exact delta of the paper's parameters."""

    name = "figure4"
    caption = (
        "Top: probability that the noise lies within the bound 1, for sensitivity 1 (a) and 5 (b): plain noise, the "
        "paper's recyclers, the best recyclers by exact accounting, and the most that any symmetric unimodal noise can "
        "have (linear programme, certified from above). Bottom: the exact delta of the paper's parameters over the "
        f"stated one. {OURS}delta and the range of epsilon."
    )
    experiments = ("brdp_acceptance",)

    def draw(self, records: Records) -> Drawn:
        frame = self.frame(records)
        shown = frame.assign(ratio=(frame["exact_delta"] / frame["delta"]).clip(1e-20))
        parts = {span: where(shown, sensitivity=span) for span in sorted(frame["sensitivity"].unique())}
        recycled = {method: STYLES[method] for method in ("gau_br", "lap_br")}
        limits = {"yscale": "log", "ylim": (1e-20, 1e6), "ylabel": "exact δ / stated δ"}
        draw = partial(curves, x="epsilon", by="method", marker="")
        panels = [
            *(Panel(f"sensitivity {span:g}", [draw(part, y="acceptance", styles=STYLES)], {"ylabel": "acceptance"},
                    "" if place else "lower right") for place, (span, part) in enumerate(parts.items())),
            *(Panel("", [draw(part, y="ratio", styles=recycled), level(1)], limits) for part in parts.values()),
        ]  # fmt: skip
        figure = draw_panels(panels, columns=len(parts), width=6.8, height=2.4, labels=self.labels(records),
                             grid={"sharex": True, "sharey": "row", "height_ratios": (2, 1)}, xlabel="ε",
                             xlim=(0, frame["epsilon"].max()))  # fmt: skip
        return figure, frame


class Figure5(PlainFigure):
    """Composed epsilon against the number of releases."""

    name = "figure5"
    caption = (
        "Epsilon at delta after T releases, each for epsilon = 1 alone, over that of plain noise with the same kernel "
        "(exact), by Theorem 3 and exactly (both ends are drawn; they are closer than the line is wide, but for "
        "Laplace noise at few releases). Below 1 recycling leaks less. Dotted: a recycler that spends on one release "
        f"all that exact accounting allows. {OURS}delta and the range of T."
    )
    experiments = ("brdp_composition",)

    def draw(self, records: Records) -> Drawn:
        frame = self.frame(records)
        plain = where(frame, variant="rigorous", method="dp").set_index(["kernel", "n_compositions"])["upper"]
        base = plain.reindex(pd.MultiIndex.from_frame(frame[["kernel", "n_compositions"]])).to_numpy()
        shown = frame.assign(low=frame["lower"] / base, high=frame["upper"] / base)
        panels = []
        for kernel, (name, _) in KERNELS.items():
            part = where(shown, kernel=kernel)
            one = where(part, method="br").iloc[0]
            said = (f"one release at ε = {one['epsilon']:g}:\nstated δ {scientific(one['delta'])}\n"
                    f"exact δ {scientific(one['exact_delta'])}")  # fmt: skip
            panels.append(Panel(name, [
                curves(part, "n_compositions", "high", by=("variant", "method"), styles=COMPOSED, band=("low", "high")),
                remark(said, "upper left"),
            ]))  # fmt: skip
        figure = draw_panels(panels, columns=2, height=2.8, labels=self.labels(records), xscale="log",
                             xlabel="releases T", ylabel="ε after T releases / that of plain noise")  # fmt: skip
        return figure, frame


class Figure6(PlainFigure):
    """Sampling rate, acceptance and exact delta against the number of records."""

    name = "figure6"
    caption = (
        "Sampling rate of Algorithm 4 (a), acceptance of error and noise together (b), and the exact delta over the "
        "stated one (c). Filled: as in the paper, calibrated to the sensitivity at p = 1 and maximising Equation 13 (q "
        "and 1 - q exchanged, as it must be). Open: calibrated to the sensitivity D / p that the statistic has, "
        "maximising the true acceptance: sampling then never pays. A sigma_x of 10 is more than values in a range "
        f"of 1 can have; it is the paper's. {OURS}D = 1 (sum, count) and 22 / |X| (average), bounds 3 and 0.3, |X|."
    )
    experiments = ("brdp_sampling",)

    def draw(self, records: Records) -> Drawn:
        frame = self.frame(records)
        frame = frame.assign(ratio=frame["exact_delta"] / frame["delta"])
        draw = partial(curves, frame, "n", by=("rule", "query"), styles=SAMPLED, markevery=1)
        figure = draw_panels([
            Panel(" ", [draw("sampling_rate")], {"ylabel": "sampling rate p"}),
            Panel(" ", [draw("acceptance")], {"ylabel": "acceptance"}),
            Panel(" ", [draw("ratio"), level(1)], {"ylabel": "exact δ / stated δ", "yscale": "log"}),
        ], width=7.2, height=2.4, labels=self.labels(records), xscale="log", xlabel="records |X|")  # fmt: skip
        return figure, frame


def _boxes(axes: Axes, part: pd.DataFrame) -> None:
    part = part.set_index("method").loc[list(METHODS)]
    ends = {"whislo": "low_whisker", "q1": "low_box", "med": "median", "q3": "high_box", "whishi": "high_whisker"}
    stats = [{name: row[column] for name, column in ends.items()} for row in part.to_dict("records")]
    made = axes.bxp(stats, showfliers=False, patch_artist=True, widths=0.55)
    for box, median, method in zip(made["boxes"], made["medians"], METHODS, strict=True):
        box.set(facecolor=STYLES[method]["color"], alpha=0.6, linewidth=0.6)
        median.set(color="black", linewidth=0.8)
    theta = float(part["bound"].iloc[0])
    for bound in (-theta, theta):
        axes.axhline(bound, color="#B00020", linewidth=0.7, linestyle=(0, (4, 2)))
    labels = [f"{SHORT[method].replace('SMP-', 'SMP-' + chr(10))}\nA {part['drawn'][method]:.3f}\n"
              f"δ {scientific(float(part['exact_delta'][method]))}" for method in METHODS]  # fmt: skip
    axes.set_xticks(range(1, len(METHODS) + 1), labels, fontsize=5.6)
    top = max(1.15 * theta, 1.1 * float(part["high_whisker"].max()))
    # linear within the bound, so that the box of the best and of the worst method can both be seen
    axes.set_yscale("symlog", linthresh=theta)
    decades = [10.0**k for k in range(math.ceil(math.log10(3 * theta)), math.ceil(math.log10(2 * top)))]
    axes.set_yticks([*(-place for place in reversed(decades)), -theta, 0, theta, *decades])
    axes.yaxis.set_major_formatter("{x:g}")
    axes.minorticks_off()
    axes.set_ylim(-2 * top, 2 * top)
    axes.grid(axis="x", visible=False)


def _exceeded(axes: Axes, part: pd.DataFrame) -> None:
    """Name the methods whose exact delta is above the stated one."""
    worst = part.groupby("method")["exact_delta"].max()
    named = [method for method in METHODS if worst[method] > 1.01 * part["delta"].iloc[0]]
    for place, method in enumerate(named):
        axes.text(0.03, 0.92 - 0.07 * place, f"{SHORT[method]}: δ ≤ {scientific(worst[method])}", fontsize=5.6,
                  color=STYLES[method]["color"], transform=axes.transAxes)  # fmt: skip


class Answers(PlainFigure):
    """Boxes of drawn answers, curves of acceptance."""

    curve: ClassVar[dict[str, Any]] = {
        "xlabel": "ε", "xscale": "log", "ylabel": "acceptance", "ylim": (0, 1.45), "yticks": [0, 0.25, 0.5, 0.75, 1]
    }  # fmt: skip

    def draw(self, records: Records) -> Drawn:
        frame = self.frame(records)
        styles = {method: {**STYLES[method], "label": SHORT[method]} for method in METHODS}
        panels = []
        for letter, part in frame.groupby("panel"):
            first = part.iloc[0]
            text = f"({letter}) {QUERIES[first['query']][0]}, D = {first['sensitivity']:g}, θ = {first['bound']:g}"
            if first["view"] == "box":
                panels.append(Panel(f"{text}, ε = {first['epsilon']:g}", [partial(_boxes, part=part)],
                                    {"ylabel": "answer less truth"}))  # fmt: skip
            else:
                drawn = curves(part, "epsilon", "acceptance", by="method", styles=styles, markevery=1, markersize=2.5)
                panels.append(Panel(text, [drawn, partial(_exceeded, part=part)], self.curve))
        figure = draw_panels(panels, columns=2, width=7.2, height=2.45, letters=False, labels=self.labels(records),
                             grid={"width_ratios": (1.5, 1)})  # fmt: skip
        return figure, frame.drop(columns=["replicate", "data"], errors="ignore")


class Figure7(Answers):
    """Adult."""

    name = "figure7"
    experiments = ("brdp_adult",)
    caption = (
        "Six methods on subsets of 1,000 Adult records (capital gain in 1000 dollars, clipped to [0, 22] or [0, 12]; "
        "count: gain above 0). Left: 1,000 answers a subset, less the true one; boxes hold 50 %, whiskers 95 %, on an "
        "axis that is linear within the bound (dashed) and logarithmic beyond; A is the share within the bound, delta "
        "what the release really has at the stated epsilon. Right: acceptance against epsilon, and the largest exact "
        "delta on the curve where it exceeds the stated one. Where sampled methods collapse, Equation 13 has sent the "
        f"sampling rate to its lower end. {OURS}the attribute and the range of epsilon."
    )


class Figure8(Answers):
    """Gowalla."""

    name = "figure8"
    experiments = ("brdp_gowalla",)
    caption = (
        "As Figure 7, on check-ins of Gowalla (days from a user's first to last check-in, clipped to [0, 22] or [0, "
        "12]; count: more than 150 days). Where the full file cannot be obtained, users of one city stand for it (seven"
        f" subsets of 1,000), labelled so. {OURS}the attribute and the range of epsilon."
    )


PLAIN, RECYCLED = ["gau_dp", "lap_dp"], ["gau_best", "lap_best"]
NAMES = {"gau_dp": "G", "lap_dp": "L", "gau_best": "rG", "lap_best": "rL"}
GAIN = 1e-3
"""Smallest relative gain of acceptance that is marked."""


class RecyclingMap(PlainFigure):
    """Gain of the best recycler over the best plain noise."""

    name = "recycling_map"
    caption = (
        "Acceptance of the best recycled noise over that of the best plain noise (Gaussian or Laplace) when all T "
        "releases together keep (epsilon, delta = 1e-5), by proved accounting, over epsilon and bound / sensitivity. "
        "Letters: the best of Gaussian (G), Laplace (L), recycled Gaussian (rG), recycled Laplace (rL); a gain below "
        "0.1 % goes to the plain noise. For one release the last panel has the ceiling of any symmetric unimodal noise "
        "over the best of these."
    )
    experiments = ("brdp_map",)

    def draw(self, records: Records) -> Drawn:
        frame = where(self.frame(records), topic="map")
        wide = frame.pivot_table(index=["n_compositions", "epsilon", "bound"], columns="method", values="acceptance")
        gain = wide[RECYCLED].max(axis=1) / wide[PLAIN].max(axis=1)
        best = wide[RECYCLED].idxmax(axis=1).where(gain > 1 + GAIN, wide[PLAIN].idxmax(axis=1)).map(NAMES)
        times = sorted(frame["n_compositions"].unique())
        panels = [(f"T = {count}: recycled / plain", gain.xs(count), best.xs(count)) for count in times]
        if 1 in times:
            room = (wide["ceiling"] / wide[PLAIN + RECYCLED].max(axis=1)).xs(1)
            panels.append(("T = 1: ceiling / best", room, room.map(lambda value: "")))
        figure, grid = new(1, len(panels), width=7.2, height=2.9)
        top = max(float(values.max()) for _, values, _ in panels)
        for axes, (title, values, letters) in zip(grid[0], panels, strict=True):
            table, marks = values.unstack("bound"), letters.unstack("bound").to_numpy()
            image = axes.imshow(table, origin="lower", aspect="auto", cmap="viridis", vmin=1, vmax=top)
            for (i, j), value in np.ndenumerate(table.to_numpy()):
                colour = "white" if value < 1 + 0.6 * (top - 1) else "black"
                axes.text(
                    j, i, f"{value:.2f}\n{marks[i, j]}".strip(), ha="center", va="center", fontsize=6, color=colour
                )
            axes.set_xticks(range(table.shape[1]), [f"{bound:g}" for bound in table.columns])
            axes.set_yticks(range(table.shape[0]), [f"{epsilon:g}" for epsilon in table.index])
            axes.grid(visible=False)
            axes.set(xlabel="bound / sensitivity", ylabel="ε of all releases")
            panel_letter(axes, title)
        figure.colorbar(image, ax=grid[0, -1], label="quotient")
        return finish(figure, self.labels(records)), frame.reset_index(drop=True)


class Frontier(PlainFigure):
    """Acceptance against the number of releases at one budget."""

    name = "frontier"
    caption = (
        "Largest acceptance of each release when all T together keep (epsilon = 1, delta = 1e-5), bound = sensitivity: "
        "kernel and recycling rate chosen for the composed budget by proved accounting. Right: recycled over plain "
        "noise with the same kernel."
    )
    experiments = ("brdp_map",)

    def draw(self, records: Records) -> Drawn:
        frame = where(self.frame(records), topic="frontier").reset_index(drop=True)
        wide = frame.pivot_table(index="n_compositions", columns="method", values="acceptance")
        gains = pd.concat([(wide[f"{kernel}_best"] / wide[f"{kernel}_dp"]).rename("gain").reset_index()
                           .assign(kernel=kernel) for kernel in KERNELS])  # fmt: skip
        styles = {kernel: style(name, colour, "-", "D") for kernel, (name, colour) in KERNELS.items()}
        methods = {method: STYLES[method] for method in PLAIN + RECYCLED}
        accepted = curves(frame, "n_compositions", "acceptance", by="method", styles=methods, markevery=1)
        gained = curves(gains, "n_compositions", "gain", by="kernel", styles=styles, markevery=1)
        figure = draw_panels([
            Panel(" ", [accepted], {"ylabel": "acceptance", "yscale": "log"}, "best"),
            Panel(" ", [gained], {"ylabel": "recycled / plain"}, "best"),
        ], columns=2, width=6.8, height=2.9, labels=self.labels(records), xscale="log",
            xlabel="releases T")  # fmt: skip
        return figure, frame


class RecycledAudit(PlainFigure):
    """Confidence intervals of delta from draws of the loop."""

    name = "audit"
    caption = (
        "Delta of Algorithm 1's parameters from draws of the literal loop on two neighbours (Clopper-Pearson "
        "intervals; each end is missed with a chance of at most 0.1 %), next to the exact delta (line) and the delta "
        "that was asked for (dashed). A lower end above the dashed line refutes the guarantee by experiment."
    )
    experiments = ("brdp_audit",)

    def draw(self, records: Records) -> Drawn:
        frame = self.frame(records)
        places, refuted = np.arange(len(frame)), frame["lower"] > frame["claimed"]
        middle, low = frame["estimate"].clip(1e-12), frame["lower"].clip(1e-12)
        kernels = frame["kernel"].map({"gau": "Gaussian", "lap": "Laplace"})
        cases = [f"{kernel}\nε {record['epsilon']:g}\n$ε_y$ {record['epsilon_y']:g}\nθ {record['bound']:g}"
                 for kernel, record in zip(kernels, frame.to_dict("records"), strict=True)]  # fmt: skip

        def intervals(axes: Axes) -> None:
            for chosen, colour in ((refuted, LAPLACE), (~refuted, GAUSSIAN)):
                ends = [(middle - low)[chosen], (frame["upper"] - middle)[chosen]]
                axes.errorbar(places[chosen], middle[chosen], yerr=ends, color=colour, marker="o", linestyle="none")
            axes.hlines(frame["exact"], places - 0.2, places + 0.2, color="black", linewidth=0.9)
            axes.hlines(frame["claimed"], places - 0.35, places + 0.35, color="black", linewidth=0.9,
                        linestyle=(0, (3, 2)))  # fmt: skip
            axes.set_xticks(places, cases, fontsize=6)
            axes.grid(axis="x", visible=False)

        said = (f"{refuted.sum()} of {len(frame)} guarantees refuted\n{scientific(float(frame['draws'].iloc[0]))} "
                "draws on each side")  # fmt: skip
        panel = Panel("", [intervals, remark(said)], {"xlim": (-0.6, len(frame) - 0.4), "yscale": "log"})
        figure = draw_panels([panel], width=5.6, height=2.8, labels=self.labels(records), ylabel="δ at ε")
        return figure, frame.drop(columns=["data"], errors="ignore")
