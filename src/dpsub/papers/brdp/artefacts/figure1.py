"""Figure 1: a kernel draws noise, the recycler releases it or sends it back."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import pandas as pd

from dpsub.reproduce.artefact import Artefact, Records, values_frame
from dpsub.reproduce.figures.diagrams import Box, arc, arrow, canvas, caption, draw_box

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class Figure1(Artefact):
    """Answer, kernel, recycler, release, and the way back."""

    paper = "brdp"
    name = "figure1"
    kind = "figure"
    caption = (
        "Budget recycling: the kernel adds noise N to the answer y; the recycler tests N, not the release, against "
        "public bounds and lets it pass if it lies inside, else with probability 1 - q. What is sent back is drawn "
        "again."
    )

    def values(self, records: Records) -> pd.DataFrame:
        return values_frame([])

    def draw(self, records: Records) -> tuple[Figure, pd.DataFrame]:
        figure, (axes,) = canvas(6.4, 2.0)
        shape = {"width": 0.17, "height": 0.26}
        texts = ("answer $y$", "kernel\n$N \\sim k$", "$|N| \\leq \\theta$ ?", "release\n$y + N$")
        boxes = [Box(x, 0.62, text, level, **shape)
                 for level, (x, text) in enumerate(zip((0.1, 0.36, 0.62, 0.88), texts, strict=True))]  # fmt: skip
        for box in boxes:
            draw_box(axes, box)
        for start, end in itertools.pairwise(boxes):
            arrow(axes, start, end)
        caption(axes, 0.75, 0.73, "yes, or\n$1-q$")
        _back(axes, boxes[2], boxes[1])
        caption(axes, 0.49, 0.16, "no: with probability $q$ the draw is recycled")
        for box, text in zip(boxes, ("private data", "DP mechanism", "recycler", "output"), strict=True):
            caption(axes, box.x, 0.85, text)
        numbers = pd.DataFrame({
            "from": ["answer", "kernel", "recycler", "recycler"], "to": ["kernel", "recycler", "release", "kernel"],
            "probability": ["1", "1", "1 inside, 1 - q outside", "0 inside, q outside"],
        })  # fmt: skip
        return figure, numbers


def _back(axes: Axes, start: Box, end: Box) -> None:
    """An arrow below the boxes, from the recycler to the kernel."""
    low = start.y - start.height / 2
    arc(axes, (start.x, low), (end.x, low), bend=-0.45)
