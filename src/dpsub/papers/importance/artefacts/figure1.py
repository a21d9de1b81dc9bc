"""Figure 1: one sample of each sampler in two principal components."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from dpsub.papers.importance.artefacts.labels import SAMPLERS, OnData, title_of
from dpsub.reproduce.artefact import Records, values_frame
from dpsub.reproduce.figures import finish, new, panel_letter

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ORDER = ("opt", "core", "unif")
LARGEST = 60.0  # points squared: area of the marker of the largest weight
SHOWN = 1500  # rows a panel


class Figure1(OnData):
    """Rows of a sample: the area of a marker is the weight, its colour the loss without sampling."""

    name = "figure1"
    kind = "figure"
    caption = (
        "One sample of each sampler in the first two principal components of all rows; the area of a marker grows "
        "with the weight of its row, the colour is the loss of the row at weight 1 (nats). Size and target are not "
        "stated in the text; they are those of the configuration."
    )
    experiments = ("importance_losses",)
    keys = ("panel",)

    def values(self, records: Records) -> pd.DataFrame:
        return values_frame([])

    def draw(self, records: Records) -> tuple[Figure, pd.DataFrame]:
        frame = self.needed(records, "importance_losses", variants=("stated",))
        frame = frame[frame["topic"] == "sample"]
        figure, grid = new(1, len(ORDER), width=7.0, height=2.9, sharex=True, sharey=True)
        largest = float(frame["weight"].max())
        low, high = float(frame["loss"].min()), float(frame["loss"].max())
        marks = None
        for axes, sampler in zip(grid[0], ORDER, strict=True):
            part = frame[frame["sampler"] == sampler]
            part = part.iloc[np.unique(np.linspace(0, max(len(part) - 1, 0), min(SHOWN, len(part))).astype(int))]
            # large markers first, so that small ones stay visible
            part = part.sort_values("weight", ascending=False)
            area = 1.5 + LARGEST * part["weight"] / largest
            marks = axes.scatter(part["value"], part["second"], s=area, c=part["loss"], cmap="viridis", vmin=low,
                                 vmax=high, alpha=0.75, linewidths=0.2, edgecolors="white")  # fmt: skip
            panel_letter(axes, SAMPLERS[sampler]["label"])
            axes.set_xlabel("first component")
            axes.ticklabel_format(style="plain")
        grid[0, 0].set_ylabel("second component")
        if marks is not None:
            figure.colorbar(marks, ax=list(grid[0]), label="loss at weight 1 (nats)", shrink=0.85)
        if len(frame):
            dataset = str(frame["dataset"].iloc[0])
            figure.suptitle(title_of(dataset, frame["data_label"]), fontsize=8, weight="bold")
        return finish(figure), frame.reset_index(drop=True)
