"""Figures 6 and S4 of the MUST paper: losses along the iterations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from dpsub.papers.must.figures import MustFigure
from dpsub.papers.must.tables import RANKS
from dpsub.reproduce import statistics
from dpsub.reproduce.artefact import Records
from dpsub.reproduce.figures import Panel, curves, draw_panels, level, where
from dpsub.reproduce.figures.panels import Layer
from dpsub.reproduce.labels import VARIANT_LABELS
from dpsub.reproduce.tables import Part, ordered
from dpsub.reproduce.verdicts import VARIANTS

if TYPE_CHECKING:
    from matplotlib.figure import Figure


TOP = 9.0
"""The printed axis of Figure 6; with consistent noise some curves leave it (erratum E4)."""


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


def beyond(lines: pd.DataFrame) -> str:
    """Return what the title of a panel of Figure 6 says of curves that leave it, if any do."""
    highest = lines["mse"].max()
    return f", curves up to {highest:.0f}" if highest > TOP else ""


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
        "with noise calibrated to what is released (consistent) some curves leave it. MUST.WO, "
        "which has the distribution of WR, is left out, as in print. One run has no intervals; "
        "several have bands, 95 % Student intervals."
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
                f"ε′ = {epsilon:g}, {VARIANT_LABELS[variant]}{beyond(shown)}",
                [trace(shown, "mse")],
            )
            for variant in VARIANTS
            if variant in set(frame["variant"])
            for epsilon in epsilons
            for shown in [where(here[epsilon], variant=variant)]
        ]
        figure = draw_panels(
            panels,
            columns=len(epsilons),
            grid={"sharex": True, "sharey": True},
            xlabel="iteration",
            ylabel="mean squared error",
            xlim=(0, lines["iteration"].max()),
            ylim=(0, TOP),
            labels=self.labels(records),
        )
        return figure, lines


def largest_gap(frame: pd.DataFrame) -> float:
    """Return the largest distance between two curves at one iteration."""
    wide = frame.groupby(["iteration", "sampler"])["loss"].mean().unstack()
    return float((wide.max(axis=1) - wide.min(axis=1)).max())


def over_nonprivate(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the private records with their loss less that of the run without privacy, in `loss`,
    iteration by iteration."""
    run = ["variant", "replicate", "iteration"]
    is_free = frame["sampler"] == "nonprivate"
    free = frame[is_free].set_index(run)["loss"].rename("free")
    private = frame[~is_free].join(free, on=run, how="inner")
    return private.assign(loss=private["loss"] - private["free"])


class LogisticTraces(MustFigure):
    title = "Figure S4. Experiment 3: training loss of logistic regression on Adult"
    name = "figureS4"
    caption = (
        "Cross-entropy on the training data (nats) after each iteration of experiment 3, one run "
        "for each sampler, in every variant. Above: the losses, on the printed axis, where the "
        "samplers cannot be told apart. Below: their differences from the run without privacy, "
        "each panel on its own axis. MUST.WO, which has the distribution of WR, is left out, as "
        "in print. One run has no intervals; several have bands, 95 % Student intervals."
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
        gaps = means(over_nonprivate(frame), "loss", ["variant", "sampler"])
        rows: tuple[tuple[pd.DataFrame, str, list[Layer], dict[str, Any]], ...] = (
            # the printed axis of Figure S4
            (lines, "", [], {"ylabel": "training loss (nats)", "ylim": (0, 3.5)}),
            (gaps, ", difference", [level(0)], {"ylabel": "minus non-private (nats)"}),
        )
        variants = [name for name in VARIANTS if name in set(frame["variant"])]
        panels = [
            Panel(
                f"{VARIANT_LABELS[name]}{what}",
                [*base, trace(where(part, variant=name), "loss")],
                axes,
            )
            for part, what, base, axes in rows
            for name in variants
        ]
        figure = draw_panels(
            panels,
            columns=len(variants),
            grid={"sharex": True},
            labels=self.labels(records),
            xlabel="iteration",
            xlim=(0, lines["iteration"].max()),
        )
        return figure, lines
