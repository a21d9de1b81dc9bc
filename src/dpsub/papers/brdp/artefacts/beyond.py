"""What the paper lacks: when recycling pays, acceptance by number of releases, the audit, and statements in cases."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from dpsub.papers.brdp.artefacts.styles import GAUSSIAN, LAPLACE, STYLES, line, remark, scientific
from dpsub.reproduce.artefact import Artefact, Records, values_frame
from dpsub.reproduce.figures import axis, finish, new, panel_letter
from dpsub.reproduce.layout import Layout

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PLAIN, RECYCLED = ("gau_dp", "lap_dp"), ("gau_best", "lap_best")
NAMES = {"gau_dp": "G", "lap_dp": "L", "gau_best": "rG", "lap_best": "rL"}
GAIN = 1e-3
"""Smallest relative gain of acceptance that is marked."""


class RecyclingMap(Artefact):
    """Gain of the best recycler over the best plain noise."""

    paper = "brdp"
    name = "recycling_map"
    kind = "figure"
    caption = (
        "Acceptance of the best recycled noise over that of the best plain noise (Gaussian or Laplace) when all T "
        "releases together keep (epsilon, delta = 1e-5), by proved accounting, over epsilon and bound / sensitivity. "
        "Letters: the best of Gaussian (G), Laplace (L), recycled Gaussian (rG), recycled Laplace (rL); a gain below "
        "0.1 % goes to the plain noise. For one release the last panel has the ceiling of any symmetric unimodal noise "
        "over the best of these."
    )
    experiments = ("brdp_map",)
    keys = ("n_compositions", "epsilon", "bound", "method")

    def values(self, records: Records) -> pd.DataFrame:
        frame = self.needed(records, "brdp_map")
        rows = []
        for record in frame[frame["topic"] == "map"].to_dict("records"):
            row = {name: record[name] for name in ("n_compositions", "epsilon", "bound", "method")}
            rows.append({**row, "column": "acceptance", "variant": "rigorous", "value": record["acceptance"]})
        return values_frame(rows)

    def draw(self, records: Records) -> tuple[Figure, pd.DataFrame]:
        frame = self.needed(records, "brdp_map")
        frame = frame[frame["topic"] == "map"]
        wide = frame.pivot_table(index=["n_compositions", "epsilon", "bound"], columns="method", values="acceptance")
        times = sorted(frame["n_compositions"].unique())
        figure, grid = new(1, len(times) + 1, width=7.2, height=2.9)
        plain, recycled = wide[list(PLAIN)].max(axis=1), wide[list(RECYCLED)].max(axis=1)
        gain = recycled / plain
        best = np.where(gain > 1 + GAIN, wide[list(RECYCLED)].idxmax(axis=1), wide[list(PLAIN)].idxmax(axis=1))
        named = pd.Series(best, wide.index).map(NAMES)
        panels = [(axes, gain.xs(count), named.xs(count), f"T = {count}: recycled / plain")
                  for axes, count in zip(grid[0], times, strict=False)]  # fmt: skip
        if 1 in times:
            room = (wide["ceiling"] / pd.concat([plain, recycled], axis=1).max(axis=1)).xs(1)
            panels.append((grid[0, -1], room, room.map(lambda value: ""), "T = 1: ceiling / best"))
        top = max(float(values.max()) for _, values, _, _ in panels)
        for axes, values, letters, title in panels:
            table = values.unstack("bound")
            image = axes.imshow(table, origin="lower", aspect="auto", cmap="viridis", vmin=1, vmax=top)
            marks = letters.unstack("bound")
            for (i, j), value in np.ndenumerate(table.to_numpy()):
                colour = "white" if value < 1 + 0.6 * (top - 1) else "black"
                text = f"{value:.2f}\n{marks.to_numpy()[i, j]!s}".strip()
                axes.text(j, i, text, ha="center", va="center", fontsize=6, color=colour)
            axes.set_xticks(range(table.shape[1]), [f"{bound:g}" for bound in table.columns])
            axes.set_yticks(range(table.shape[0]), [f"{epsilon:g}" for epsilon in table.index])
            axes.grid(visible=False)
            axis(axes, x="bound / sensitivity", y="ε of all releases")
            panel_letter(axes, title)
        figure.colorbar(image, ax=grid[0, -1], label="quotient")
        return finish(figure, self.labels(records)), frame.reset_index(drop=True)


class Frontier(Artefact):
    """Acceptance against the number of releases at one budget."""

    paper = "brdp"
    name = "frontier"
    kind = "figure"
    caption = (
        "Largest acceptance of each release when all T together keep (epsilon = 1, delta = 1e-5), bound = sensitivity: "
        "kernel and recycling rate chosen for the composed budget by proved accounting. Right: recycled over plain "
        "noise with the same kernel."
    )
    experiments = ("brdp_map",)
    keys = ("n_compositions", "method")

    def values(self, records: Records) -> pd.DataFrame:
        rows = []
        for record in self._frame(records).to_dict("records"):
            row = {"n_compositions": record["n_compositions"], "method": record["method"]}
            rows.append({**row, "column": "acceptance", "variant": "rigorous", "value": record["acceptance"]})
        return values_frame(rows)

    def _frame(self, records: Records) -> pd.DataFrame:
        frame = self.needed(records, "brdp_map")
        return frame[frame["topic"] == "frontier"]

    def draw(self, records: Records) -> tuple[Figure, pd.DataFrame]:
        frame = self._frame(records)
        figure, grid = new(1, 2, width=6.8, height=2.9)
        for method in (*PLAIN, *RECYCLED):
            line(grid[0, 0], frame, method, "n_compositions", "acceptance", marker=STYLES[method]["marker"])
        wide = frame.pivot_table(index="n_compositions", columns="method", values="acceptance")
        for kernel, name, colour in (("gau", "Gaussian kernel", GAUSSIAN), ("lap", "Laplace kernel", LAPLACE)):
            gain = wide[f"{kernel}_best"] / wide[f"{kernel}_dp"]
            grid[0, 1].plot(wide.index, gain, color=colour, marker="D", label=name)
        grid[0, 0].set_yscale("log")
        for axes, letter, y in zip(grid[0], "ab", ("acceptance", "recycled / plain"), strict=True):
            axes.set_xscale("log")
            axis(axes, x="releases T", y=y)
            axes.legend(loc="best")
            panel_letter(axes, f"({letter})")
        return finish(figure, self.labels(records)), frame.reset_index(drop=True)


class RecycledAudit(Artefact):
    """Confidence intervals of delta from draws of the loop."""

    paper = "brdp"
    name = "audit"
    kind = "figure"
    caption = (
        "Delta of Algorithm 1's parameters from draws of the literal loop on two neighbours (Clopper-Pearson "
        "intervals; each end is missed with a chance of at most 0.1 %), next to the exact delta (line) and the delta "
        "that was asked for (dashed). A lower end above the dashed line refutes the guarantee by experiment."
    )
    experiments = ("brdp_audit",)
    keys = ("case",)

    def values(self, records: Records) -> pd.DataFrame:
        rows = []
        for position, record in enumerate(self.needed(records, "brdp_audit").to_dict("records"), start=1):
            base = {"case": f"{position} {_case(record)}"}
            rows.append({**base, "column": "delta", "variant": "stated", "value": record["claimed"]})
            rows.append({**base, "column": "delta", "variant": "rigorous", "value": record["exact"],
                         "lower": record["lower"], "upper": record["upper"]})  # fmt: skip
        return values_frame(rows)

    def draw(self, records: Records) -> tuple[Figure, pd.DataFrame]:
        frame = self.needed(records, "brdp_audit").reset_index(drop=True)
        figure, grid = new(1, 1, width=5.6, height=2.8)
        axes = grid[0, 0]
        for place, record in enumerate(frame.to_dict("records")):
            refuted = record["lower"] > record["claimed"]
            colour = LAPLACE if refuted else GAUSSIAN
            middle = max(record["estimate"], 1e-12)
            axes.errorbar(place, middle, yerr=[[middle - max(record["lower"], 1e-12)], [record["upper"] - middle]],
                          color=colour, marker="o")  # fmt: skip
            axes.hlines(record["exact"], place - 0.2, place + 0.2, color="black", linewidth=0.9)
            axes.hlines(record["claimed"], place - 0.35, place + 0.35, color="black", linewidth=0.9,
                        linestyle=(0, (3, 2)))  # fmt: skip
        axes.set_xticks(range(len(frame)), [_case(record).replace(", ", "\n") for record in frame.to_dict("records")],
                        fontsize=6)  # fmt: skip
        axes.set_yscale("log")
        axes.grid(axis="x", visible=False)
        axes.set_xlim(-0.6, len(frame) - 0.4)
        axis(axes, x="", y="δ at ε")
        refuted = int((frame["lower"] > frame["claimed"]).sum())
        draws = scientific(float(frame["draws"].iloc[0]))
        remark(axes, f"{refuted} of {len(frame)} guarantees refuted\n{draws} draws on each side")
        return finish(figure, self.labels(records)), frame.drop(columns=["data"], errors="ignore")


def _case(record: Mapping[Hashable, object]) -> str:
    name = {"gau": "Gaussian", "lap": "Laplace"}[str(record["kernel"])]
    parts = {"ε": "epsilon", "$ε_y$": "epsilon_y", "θ": "bound"}
    return ", ".join([name, *(f"{sign} {float(str(record[field])):g}" for sign, field in parts.items())])


class Statements(Artefact):
    """Single cases of the paper's statements, claimed and true."""

    paper = "brdp"
    name = "statements"
    kind = "table"
    caption = (
        "Statements in single cases, claimed (stated) and true (rigorous): T1 mean, E exp(-loss), which is 1 for every "
        "privacy loss; T1 weight, chance of the shifted loss; P3 and T2, delta of what Algorithm 2 (or 1, where a "
        "scale is given) and Theorem 2 promise; degenerate, delta as the kernel's epsilon goes to 0; q, delta of one "
        "kernel by rate (stated: without recycling); (10), the printed objective's acceptance; A3, the printed loop; "
        "R5, terms of Theorem 3, and those above 1e-20; P6, P7, sampling error and acceptance on a sample, against "
        "draws."
    )
    experiments = ("brdp_checks",)
    keys = ("statement", "case")
    layout = Layout(stub=("statement", "case"), heads=("column",))

    def values(self, records: Records) -> pd.DataFrame:
        rows = []
        for record in self.needed(records, "brdp_checks").to_dict("records"):
            row = {"statement": record["statement"], "case": record["case"].replace("=", " ")}
            rows += [{**row, "column": "value", "variant": variant, "value": record[name]}
                     for variant, name in (("stated", "claimed"), ("rigorous", "true"))]  # fmt: skip
        return values_frame(rows)
