"""What Poisson sampling does to the error of a private total."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from dpsub.reproduce.artefact import Artefact, Records, values_frame
from dpsub.reproduce.figures import axis, finish, new, panel_letter

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7")
PARTS = {"total_error": "-", "noise_error": (0, (4, 1.5)), "sampling_error": (0, (1, 1.2))}
LABELS = {"total_error": "total", "noise_error": "noise", "sampling_error": "sampling"}


class NoiseEfficiency(Artefact):
    """Efficiency gamma lambda / epsilon, and the error of a total from noise, from sampling and from both."""

    paper = "balle"
    name = "noise_efficiency"
    kind = "figure"
    caption = (
        "(a) Efficiency of the noise, gamma lambda / epsilon with lambda = log(1 + (exp(epsilon) - 1)/gamma): the "
        "noise of a total of all records over that of a total of a Poisson sample scaled by 1/gamma, at equal epsilon. "
        "(b) Standard deviation of the estimated total of n values spread over [0, 1], by source; the sampling error "
        "does not depend on epsilon. Sampling never pays for itself in noise."
    )
    experiments = ("balle_noise",)
    keys = ("epsilon",)

    def values(self, records: Records) -> pd.DataFrame:
        """Return, for each epsilon, the efficiency at the smallest rate and whether it rises with the rate up to 1."""
        rows = []
        for epsilon, curve in self.needed(records, "balle_noise").groupby("epsilon"):
            curve = curve.sort_values("rate")
            rises = (curve["efficiency"].diff().dropna() > 0).all() and curve["efficiency"].max() <= 1
            rows += [
                {"epsilon": epsilon, "column": column, "variant": "rigorous", "value": float(value)}
                for column, value in (("efficiency_at_the_smallest_rate", curve["efficiency"].iloc[0]),
                                      ("efficiency_rises_to_1", rises))
            ]  # fmt: skip
        return values_frame(rows)

    def draw(self, records: Records) -> tuple[Figure, pd.DataFrame]:
        frame = self.needed(records, "balle_noise", variants=("rigorous",)).sort_values(["epsilon", "rate"])
        figure, grid = new(1, 2, width=6.6, height=2.7)
        left, right = grid[0]
        for colour, (epsilon, curve) in zip(COLOURS, frame.groupby("epsilon"), strict=False):
            left.plot(curve["rate"], curve["efficiency"], color=colour, label=f"ε = {epsilon:g}")
            right.plot(curve["rate"], curve["total_error"], color=colour)
            right.plot(curve["rate"], curve["noise_error"], color=colour, linestyle=PARTS["noise_error"])
        one = frame[frame["epsilon"] == frame["epsilon"].min()]
        shown = one[one["sampling_error"] > 0]
        right.plot(shown["rate"], shown["sampling_error"], color="black", linestyle=PARTS["sampling_error"])
        for name, dashes in PARTS.items():
            right.plot([], [], color="#606060" if name != "sampling_error" else "black", linestyle=dashes,
                       label=LABELS[name])
        for axes in (left, right):
            axes.set_xscale("log")
        axis(left, x="sampling rate γ", y="efficiency γλ / ε", ylim=(0, 1.03))
        right.set_yscale("log")
        axis(right, x="sampling rate γ", y=f"standard deviation, n = {int(frame['n'].iloc[0])}")
        left.legend(loc="upper left")
        right.legend(loc="upper right")
        panel_letter(left, "(a) noise of all records over noise with sampling")
        panel_letter(right, "(b) error of the estimated total, colours as in (a)")
        kept = ["n", "epsilon", "rate", "base_epsilon", "efficiency", *PARTS]
        return finish(figure, self.labels(records)), frame[kept].reset_index(drop=True)
