"""Figure S4: training loss of experiment 3."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from dpsub.papers.must.artefacts.traces import curves, paint
from dpsub.reproduce.artefact import Artefact, Records, values_frame
from dpsub.reproduce.figures import axis, finish, new, panel_letter
from dpsub.reproduce.labels import VARIANT_LABELS
from dpsub.reproduce.verdicts import VARIANTS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TOP = 3.5  # of the printed axis


class FigureS4(Artefact):
    """Cross-entropy of the training part after every iteration, one panel a variant."""

    name = "figureS4"
    kind = "figure"
    caption = (
        "Cross-entropy on the training part after each iteration of experiment 3, one run a sampler, in every variant "
        "(nats); bands, where there are replicates, are 95 % Student intervals."
    )
    experiments = ("adult_logistic_trace",)
    keys = ("sampler", "quantity")

    def values(self, records: Records) -> pd.DataFrame:
        """Return the loss after the last iteration, and the largest gap between two curves after the first half."""
        frame = self.needed(records, "adult_logistic_trace")
        rows = []
        for variant, cell in frame.groupby("variant", sort=False):
            last = cell[cell["iteration"] == cell["iteration"].max()]
            rows += [
                {"sampler": str(sampler), "column": "final_loss", "variant": variant, "value": loss}
                for sampler, loss in last.groupby("sampler", sort=False)["loss"].mean().items()
            ]
            late = cell[cell["iteration"] > cell["iteration"].max() / 2]
            wide = late.groupby(["iteration", "sampler"])["loss"].mean().unstack()
            gap = (wide.max(axis=1) - wide.min(axis=1)).max()
            rows.append({"quantity": "curves_overlap", "column": "largest_late_gap", "variant": variant,
                         "value": gap})
        return values_frame(rows)

    def draw(self, records: Records) -> tuple[Figure, pd.DataFrame]:
        frame = self.needed(records, "adult_logistic_trace")
        frame = frame[frame["sampler"] != "must_wo"]  # as printed: its law is that of WR
        lines = curves(frame, "loss", ["variant", "sampler"])
        variants = [name for name in VARIANTS if name in set(frame["variant"])]
        figure, grid = new(1, len(variants), width=0.6 + 2.4 * len(variants), height=2.7, sharey=True)
        for letter, axes, variant in zip("abcd", grid[0], variants, strict=False):
            paint(axes, lines[lines["variant"] == variant], "loss")
            axis(axes, x="iteration", y="training loss", xlim=(0, lines["iteration"].max()), ylim=(0, TOP))
            axes.label_outer()
            panel_letter(axes, f"({letter}) {VARIANT_LABELS[variant]}")
        grid[0, 0].legend(loc="upper right", ncols=2)
        return finish(figure, self.labels(records)), lines
