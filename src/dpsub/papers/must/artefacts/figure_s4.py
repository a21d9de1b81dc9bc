"""Figure S4: training loss of experiment 3."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from dpsub.papers.must.artefacts.traces import means, trace
from dpsub.reproduce.artefact import Artefact, Records, values_frame
from dpsub.reproduce.figures import Panel, draw_panels, where
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
        lines = means(frame, "loss", ["variant", "sampler"])
        variants = [name for name in VARIANTS if name in set(frame["variant"])]
        panels = [Panel(VARIANT_LABELS[name], [trace(where(lines, variant=name), "loss")]) for name in variants]
        figure = draw_panels(panels, grid={"sharey": True}, labels=self.labels(records), xlabel="iteration",
                             ylabel="training loss", xlim=(0, lines["iteration"].max()), ylim=(0, TOP))  # fmt: skip
        return figure, lines
