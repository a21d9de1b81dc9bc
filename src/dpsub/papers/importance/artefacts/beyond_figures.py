"""Figures beyond the paper: losses by group, when sampling helps, and the surface of loss, size and error."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from dpsub.papers.importance.artefacts.labels import SAMPLERS, OnData, ordered, title_of
from dpsub.reproduce.artefact import Artefact, Records, values_frame
from dpsub.reproduce.figures import finish, new, panel_letter

if TYPE_CHECKING:
    from matplotlib.figure import Figure

GROUP_DASHES = ("-", (0, (2, 1)))
SHADES = ("#0072B2", "#009E73", "#E69F00", "#D55E00", "#CC79A7")


class Losses(OnData):
    """Distribution of the loss over records."""

    name = "losses"
    kind = "figure"
    caption = (
        "Share of the records with at most a loss (nats) at one target, by sampler, for two named groups of records: "
        "classes of the data set, or large and small clusters of a stand-in. The privacy-optimal sampler gives every "
        "record the target, up to those that are always taken; the others protect records near the mean far better "
        "than the promise says. Calibrated as in the text."
    )
    experiments = ("importance_losses",)

    def values(self, records: Records) -> pd.DataFrame:
        return values_frame([])

    def draw(self, records: Records) -> tuple[Figure, pd.DataFrame]:
        frame = self.needed(records, "importance_losses", variants=("stated",))
        frame = frame[frame["topic"] == "histogram"]
        names = ordered(frame)
        columns = min(4, len(names))
        rows = -(-len(names) // columns)
        figure, grid = new(rows, columns, width=max(3.6, 1.9 * columns), height=0.9 + 1.7 * rows, sharey=True)
        for axes in grid.flat[len(names) :]:
            axes.set_axis_off()
        for axes, name in zip(grid.flat, names, strict=False):
            part = frame[frame["dataset"] == name]
            for dashes, group in zip(GROUP_DASHES, sorted(part["group"].unique()), strict=False):
                for sampler, curve in part[part["group"] == group].groupby("sampler", sort=False):
                    style = SAMPLERS[str(sampler)]
                    axes.step(curve["place"], curve["value"].cumsum(), where="mid", color=style["color"],
                              linestyle=dashes, linewidth=1.0,
                              label=f"{style['label']}, {_kind(str(group))}")  # fmt: skip
            panel_letter(axes, title_of(name, part["data_label"]))
            axes.set_xlabel("loss (nats)")
        for axes in grid[:, 0]:
            axes.set_ylabel("share of the group")
        found = {text: handle for axes in grid.flat
                 for handle, text in zip(*axes.get_legend_handles_labels(), strict=True)}  # fmt: skip
        figure.legend(list(found.values()), list(found), loc="outside lower center", ncols=2, fontsize=6)
        return finish(figure), frame.reset_index(drop=True)


def _kind(group: str) -> str:
    """One legend for all panels: the first group by name is drawn solid, the second dashed."""
    return "positive class or small clusters" if group in ("positive class", "small clusters") else (
        "negative class or large clusters" if group != "all" else "all")  # fmt: skip


class Profiles(Artefact):
    """Loss after sampling over the probability, and sampling once against in every round."""

    paper = "importance"
    name = "profiles"
    kind = "figure"
    caption = (
        "First panels: loss after sampling over the loss without, for losses c w^p at weight w, against the inclusion "
        "probability. A ring marks curves to which Proposition 16 applies (some probability lowers the loss), a cross "
        "those of Proposition 17 (none does). Last panel: loss of one sample for all of 10 rounds over that of a new "
        "sample in each round, at equal noise, against the loss without sampling."
    )
    experiments = ("importance_profiles",)

    def values(self, records: Records) -> pd.DataFrame:
        return values_frame([])

    def draw(self, records: Records) -> tuple[Figure, pd.DataFrame]:
        frame = self.needed(records, "importance_profiles")
        power, rounds = frame[frame["topic"] == "power"], frame[frame["topic"] == "rounds"]
        exponents = sorted(power["exponent"].unique())
        figure, grid = new(1, len(exponents) + 1, width=1.75 * (len(exponents) + 1), height=2.5)
        for axes, exponent in zip(grid[0], exponents, strict=False):
            curves = power[power["exponent"] == exponent].groupby("scale")
            for colour, (scale, curve) in zip(SHADES, curves, strict=False):
                ratio = curve["psi"] / curve["unsampled"]
                axes.plot(curve["q"], ratio, color=colour, label=f"c = {scale:g}")
                mark = "o" if curve["helps"].iloc[0] else "x" if curve["never_helps"].iloc[0] else ""
                middle = len(curve) // 2
                axes.plot(curve["q"].iloc[middle], ratio.iloc[middle], marker=mark, color=colour, fillstyle="none",
                          markersize=6)  # fmt: skip
            axes.axhline(1, color="#888888", linewidth=0.7)
            axes.set_xscale("log")
            axes.set_yscale("log")
            axes.set_xlabel("inclusion probability")
            panel_letter(axes, f"p = {exponent:g}")
        grid[0, 0].set_ylabel("loss after / without sampling")
        grid[0, 0].legend(fontsize=6)
        last = grid[0, -1]
        for colour, (q, curve) in zip(SHADES, rounds.groupby("q"), strict=False):
            last.plot(curve["unsampled"], curve["psi"] / curve["other"], color=colour, marker=".", label=f"q = {q:g}")
        last.axhline(1, color="#888888", linewidth=0.7)
        last.set_xscale("log")
        last.set_yscale("log")
        last.set_xlabel("loss without sampling (nats)")
        last.legend(fontsize=6)
        panel_letter(last, "one sample / one a round")
        return finish(figure), frame.reset_index(drop=True)


class Pareto(Artefact):
    """Least error by target and size."""

    paper = "importance"
    name = "pareto"
    kind = "figure"
    caption = (
        "Sums with Laplace noise of one scale, against the expected size. Left: largest loss of the inclusion "
        "probabilities that have the least error among those that keep a target (water-filling, one line a target, "
        "from the privacy-optimal sampler on), and of uniform sampling (dotted). Right: their mean squared error over "
        "that of uniform sampling of the same size."
    )
    experiments = ("importance_sums",)

    def values(self, records: Records) -> pd.DataFrame:
        return values_frame([])

    def draw(self, records: Records) -> tuple[Figure, pd.DataFrame]:
        frame = self.needed(records, "importance_sums")
        frame = frame[frame["topic"] == "pareto"]
        figure, grid = new(1, 2, width=6.6, height=2.9)
        left, right = grid[0]
        uniform = frame[frame["sampler"] == "unif"].sort_values("m").drop_duplicates("m")
        left.plot(uniform["m"], uniform["max_loss"], color="black", linestyle=":", label="uniform")
        right.axhline(1, color="black", linestyle=":")
        for colour, (target, part) in zip(SHADES, frame.groupby("target"), strict=False):
            curve = part[part["sampler"] == "water"].sort_values("m").drop_duplicates("m")
            ratio = curve["mse_exact"].to_numpy() / uniform.set_index("m")["mse_exact"].reindex(curve["m"]).to_numpy()
            for axes, values in ((left, curve["max_loss"].to_numpy()), (right, ratio)):
                axes.plot(curve["m"], values, color=colour, marker=".", label=f"target {target:.3g} nats")
                axes.plot(curve["m"].iloc[:1], values[:1], color=colour, marker=SAMPLERS["opt"]["marker"], markersize=6,
                          linestyle="none")  # fmt: skip
        for axes, text in ((left, "largest loss (nats)"), (right, "error over that of uniform")):
            axes.set_xscale("log")
            axes.set_xlabel("expected sample size")
            axes.set_ylabel(text)
        left.set_yscale("log")
        left.legend(fontsize=6)
        return finish(figure), frame.reset_index(drop=True)
