"""Figure 6: training loss of experiment 2."""

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

TOP = 9.0  # of the printed axis
LATE = 0.5  # share of the iterations after which a curve counts as settled


class Figure6(Artefact):
    """Mean squared error of the full data after every iteration, one row of panels a variant."""

    name = "figure6"
    kind = "figure"
    caption = (
        "Mean squared error on the full data after each iteration of experiment 2, one run, at two levels of epsilon' "
        "and in every variant; curves may leave the printed range of the axis. Bands, where there are "
        "replicates, are 95 % Student intervals."
    )
    experiments = ("linear_regression_trace",)
    keys = ("sampler", "epsilon_amplified")

    def values(self, records: Records) -> pd.DataFrame:
        """Return the mean error of each curve over the second half of its iterations."""
        frame = self.needed(records, "linear_regression_trace")
        late = frame[frame["iteration"] > LATE * frame["iteration"].max()]
        groups = late.groupby(["variant", "epsilon_amplified", "sampler"], sort=False, dropna=False)["mse"].mean()
        rows = []
        for (variant, epsilon, sampler), error in groups.items():
            fields = {} if pd.isna(epsilon) else {"epsilon_amplified": epsilon}
            rows.append({**fields, "sampler": sampler, "column": "settled_mse", "variant": variant,
                         "value": error})
        return values_frame(rows)

    def draw(self, records: Records) -> tuple[Figure, pd.DataFrame]:
        frame = self.needed(records, "linear_regression_trace")
        frame = frame[frame["sampler"] != "must_wo"]  # as printed: its law is that of WR
        lines = curves(frame, "mse", ["variant", "sampler", "epsilon_amplified"])
        variants = [name for name in VARIANTS if name in set(frame["variant"])]
        epsilons = sorted(frame["epsilon_amplified"].dropna().unique(), reverse=True)
        figure, grid = new(len(variants), len(epsilons), width=6.8, height=0.5 + 2.2 * len(variants), sharex=True)
        letters = iter("abcdefghij")
        for row, variant in enumerate(variants):
            for column, epsilon in enumerate(epsilons):
                axes = grid[row, column]
                at = lines["epsilon_amplified"].isna() | (lines["epsilon_amplified"] == epsilon)
                paint(axes, lines[(lines["variant"] == variant) & at], "mse")
                axis(axes, x="iteration", y="mean squared error", xlim=(0, lines["iteration"].max()), ylim=(0, TOP))
                panel_letter(axes, f"({next(letters)}) ε′ = {epsilon:g}, {VARIANT_LABELS[variant]}")
        grid[0, 0].legend(loc="upper right", ncols=2)
        for axes in grid.flat:
            axes.label_outer()
        return finish(figure, self.labels(records)), lines
