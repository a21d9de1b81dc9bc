"""Figures of the example paper."""

import pandas as pd
from matplotlib.figure import Figure

from dpsub.reproduce.artefact import Artefact, Records, values_frame
from dpsub.reproduce.figures import Panel, draw_panels
from dpsub.reproduce.figures.panels import line


class OneWalk(Artefact):
    title = "Figure 1. One random walk"
    name, kind, experiments = "figure1", "figure", ("example_trace",)
    caption = "One random walk, step by step, as everyone has seen it before."

    def values(self, records: Records) -> pd.DataFrame:
        return values_frame([])  # the paper prints no number in it

    def draw(self, records: Records) -> tuple[Figure, pd.DataFrame]:
        frame = self.needed(records, "example_trace")
        walk = line(frame["step"].tolist(), frame["place"].tolist())
        panel = Panel("", [walk], {})
        return draw_panels([panel], columns=1, xlabel="step", ylabel="place"), frame
