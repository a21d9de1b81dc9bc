"""Figure 6: training loss of experiment 2."""

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
        lines = means(frame, "mse", ["variant", "sampler", "epsilon_amplified"])
        variants = [name for name in VARIANTS if name in set(frame["variant"])]
        epsilons = sorted(frame["epsilon_amplified"].dropna().unique(), reverse=True)
        here = {
            epsilon: lines[lines["epsilon_amplified"].isna() | (lines["epsilon_amplified"] == epsilon)]
            for epsilon in epsilons
        }
        panels = [
            Panel(f"ε′ = {epsilon:g}, {VARIANT_LABELS[variant]}", [trace(where(here[epsilon], variant=variant), "mse")])
            for variant in variants
            for epsilon in epsilons
        ]
        figure = draw_panels(panels, columns=len(epsilons), grid={"sharex": True, "sharey": True}, xlabel="iteration",
                             ylabel="mean squared error", xlim=(0, lines["iteration"].max()), ylim=(0, TOP),
                             labels=self.labels(records))  # fmt: skip
        return figure, lines
