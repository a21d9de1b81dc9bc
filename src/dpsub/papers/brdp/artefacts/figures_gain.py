"""Figure 4: acceptance. Figure 5: composition. Figure 6: sampling."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from dpsub.papers.brdp.artefacts.styles import GAUSSIAN, LAPLACE, OURS, STYLES, line, remark, scientific
from dpsub.reproduce.artefact import Artefact, Records, values_frame
from dpsub.reproduce.figures import axis, finish, new, panel_letter

if TYPE_CHECKING:
    from matplotlib.figure import Figure

QUERIES = {"sum": ("sum", "#0072B2", "o"), "avg": ("average", "#009E73", "s"), "cnt": ("count", "#D55E00", "^")}
KERNELS = {"gau": ("Gaussian kernel", GAUSSIAN), "lap": ("Laplace kernel", LAPLACE)}
COMPOSED = {
    ("stated", "br"): ("recycled, Theorem 3", "-", "#CC79A7"), ("rigorous", "dp"): ("plain noise, exact", ":", "black"),
    ("rigorous", "br"): ("recycled, exact", (0, (4, 1.5)), "#0072B2"),
    ("rigorous", "best"): ("best for one release, exact", (0, (1, 1)), "#009E73"),
}  # fmt: skip


class Figure4(Artefact):
    """Acceptance against epsilon, the ceiling, and the exact delta of the paper's parameters."""

    paper = "brdp"
    name = "figure4"
    kind = "figure"
    caption = (
        "Top: probability that the noise lies within the bound 1, for sensitivity 1 (a) and 5 (b): plain noise, the "
        "paper's recyclers, the best recyclers by exact accounting, and the most that any symmetric unimodal noise can "
        "have (linear programme, certified from above). Bottom: the exact delta of the paper's parameters over the "
        f"stated one. {OURS}delta and the range of epsilon."
    )
    experiments = ("brdp_acceptance",)
    keys = ("sensitivity", "epsilon", "method")

    def values(self, records: Records) -> pd.DataFrame:
        rows = []
        for record in self.needed(records, "brdp_acceptance").to_dict("records"):
            row = {"sensitivity": record["sensitivity"], "epsilon": record["epsilon"], "method": record["method"]}
            rows += [{**row, "column": name, "variant": record["variant"], "value": record[name]}
                     for name in ("acceptance", "exact_delta")]  # fmt: skip
        return values_frame(rows)

    def draw(self, records: Records) -> tuple[Figure, pd.DataFrame]:
        frame = self.needed(records, "brdp_acceptance")
        spans = sorted(frame["sensitivity"].unique())
        figure, grid = new(2, len(spans), width=6.8, height=4.8, sharex=True, sharey="row",
                           height_ratios=(2, 1))  # fmt: skip
        for column, span in enumerate(spans):
            part = frame[frame["sensitivity"] == span]
            for method in STYLES:
                line(grid[0, column], part, method, "epsilon", "acceptance")
            lower = part.assign(ratio=(part["exact_delta"] / part["delta"]).clip(1e-20))
            for method in ("gau_br", "lap_br"):
                line(grid[1, column], lower, method, "epsilon", "ratio")
            grid[1, column].axhline(1, color="black", linewidth=0.6)
            grid[1, column].set_yscale("log")
            panel_letter(grid[0, column], f"({'ab'[column % 2]}) sensitivity {span:g}")
            axis(grid[1, column], x="ε", y="", xlim=(0, frame["epsilon"].max()), ylim=(1e-20, 1e6))
        grid[0, 0].set_ylabel("acceptance")
        grid[1, 0].set_ylabel("exact δ / stated δ")
        grid[0, 0].legend(loc="lower right", fontsize=6.2)
        return finish(figure, self.labels(records)), frame.reset_index(drop=True)


class Figure5(Artefact):
    """Composed epsilon against the number of releases."""

    paper = "brdp"
    name = "figure5"
    kind = "figure"
    caption = (
        "Epsilon at delta after T releases, each for epsilon = 1 alone, over that of plain noise with the same kernel "
        "(exact), by Theorem 3 and exactly (both ends are drawn; they are closer than the line is wide, but for "
        "Laplace noise at few releases). Below 1 recycling leaks less. Dotted: a recycler that spends on one release "
        f"all that exact accounting allows. {OURS}delta and the range of T."
    )
    experiments = ("brdp_composition",)
    keys = ("kernel", "method", "n_compositions")

    def values(self, records: Records) -> pd.DataFrame:
        rows = []
        for record in self.needed(records, "brdp_composition").to_dict("records"):
            row = {"kernel": record["kernel"], "method": record["method"], "n_compositions": record["n_compositions"]}
            rows.append({**row, "column": "epsilon", "variant": record["variant"], "value": record["upper"],
                         "lower": record["lower"], "upper": record["upper"]})  # fmt: skip
        return values_frame(rows)

    def draw(self, records: Records) -> tuple[Figure, pd.DataFrame]:
        frame = self.needed(records, "brdp_composition")
        figure, grid = new(1, 2, width=7.0, height=3.0)
        for axes, letter, (kernel, (name, _)) in zip(grid[0], "ab", KERNELS.items(), strict=True):
            part = frame[frame["kernel"] == kernel]
            plain = part[(part["variant"] == "rigorous") & (part["method"] == "dp")].set_index("n_compositions")
            for (variant, method), (label, dashes, colour) in COMPOSED.items():
                curve = part[(part["variant"] == variant) & (part["method"] == method)].sort_values("n_compositions")
                if curve.empty or plain.empty:
                    continue
                base = plain["upper"].reindex(curve["n_compositions"]).to_numpy()
                times = curve["n_compositions"]
                axes.plot(times, curve["upper"].to_numpy() / base, color=colour, linestyle=dashes, label=label)
                axes.fill_between(times, curve["lower"].to_numpy() / base, curve["upper"].to_numpy() / base,
                                  color=colour, alpha=0.2, linewidth=0)  # fmt: skip
            axes.set_xscale("log")
            axis(axes, x="releases T", y="ε after T releases / that of plain noise")
            panel_letter(axes, f"({letter}) {name}")
            recycled = part[part["method"] == "br"].iloc[0]
            remark(axes, f"one release at ε = {recycled['epsilon']:g}:\nstated δ {scientific(recycled['delta'])}\n"
                         f"exact δ {scientific(recycled['exact_delta'])}", x=0.03, align="left")  # fmt: skip
        grid[0, 0].legend(loc="lower right", bbox_to_anchor=(1.0, 0.17))
        grid[0, 1].legend(loc="lower right")
        return finish(figure, self.labels(records)), frame.reset_index(drop=True)


class Figure6(Artefact):
    """Sampling rate, acceptance and exact delta against the number of records."""

    paper = "brdp"
    name = "figure6"
    kind = "figure"
    caption = (
        "Sampling rate of Algorithm 4 (a), acceptance of error and noise together (b), and the exact delta over the "
        "stated one (c). Filled: as in the paper, calibrated to the sensitivity at p = 1 and maximising Equation 13 (q "
        "and 1 - q exchanged, as it must be). Open: calibrated to the sensitivity D / p that the statistic has, "
        "maximising the true acceptance: sampling then never pays. A sigma_x of 10 is more than values in a range "
        f"of 1 can have; it is the paper's. {OURS}D = 1 (sum, count) and 22 / |X| (average), bounds 3 and 0.3, |X|."
    )
    experiments = ("brdp_sampling",)
    keys = ("query", "n", "rule")

    def values(self, records: Records) -> pd.DataFrame:
        rows = []
        for record in self.needed(records, "brdp_sampling").to_dict("records"):
            row = {"query": record["query"], "n": record["n"], "rule": record["rule"]}
            rows += [{**row, "column": name, "variant": record["variant"], "value": record[name]}
                     for name in ("sampling_rate", "claimed", "acceptance", "exact_delta")]  # fmt: skip
        return values_frame(rows)

    def draw(self, records: Records) -> tuple[Figure, pd.DataFrame]:
        frame = self.needed(records, "brdp_sampling")
        frame = frame.assign(ratio=frame["exact_delta"] / frame["delta"])
        figure, grid = new(1, 3, width=7.2, height=2.9)
        panels = (("sampling_rate", "sampling rate p"), ("acceptance", "acceptance"), ("ratio", "exact δ / stated δ"))
        for axes, letter, (column, label) in zip(grid[0], "abc", panels, strict=True):
            for rule, filled in (("swapped", True), ("corrected", False)):
                for query, (name, colour, marker) in QUERIES.items():
                    curve = frame[(frame["rule"] == rule) & (frame["query"] == query)].sort_values("n")
                    text = f"{name}, {'paper' if filled else 'corrected'}"
                    axes.plot(curve["n"], curve[column], color=colour, marker=marker, label=text,
                              linestyle="-" if filled else ":",
                              markerfacecolor=colour if filled else "white")  # fmt: skip
            axes.set_xscale("log")
            axis(axes, x="records |X|", y=label)
            panel_letter(axes, f"({letter})")
        grid[0, 2].set_yscale("log")
        grid[0, 2].axhline(1, color="black", linewidth=0.6)
        figure.legend(*grid[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
        return finish(figure, self.labels(records)), frame.reset_index(drop=True)
