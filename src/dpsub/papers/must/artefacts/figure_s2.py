"""Figure S2: bounds of delta after k compositions, next to what is refuted and proved."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from dpsub.papers.must.artefacts.bands import band
from dpsub.papers.must.artefacts.labels import in_order
from dpsub.reproduce.artefact import Artefact, Records, values_frame
from dpsub.reproduce.figures import Panel, curves, draw_panels, sampler_style, where
from dpsub.reproduce.figures.panels import Layer
from dpsub.reproduce.labels import sampler_label

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FLOOR = 1e-12  # round-off of the Fourier transform; what is below says nothing
PRINTED: dict[str, dict[str, Any]] = {
    "as_done": {"label": "as done: with the aliasing term", "linestyle": "--", "color": "#777777"},
    "printed": {"label": "as printed: Algorithm 1", "linestyle": ":", "color": "black"},
}
"""Method -> how its upper end is drawn, with a bar down to the lower one."""
PAIR = {"paper_pair": {"label": "the paper's pair, exact: no guarantee", "color": "black", "linewidth": 1.0}}
BOTH_SIDES = {"paper_pair": ("pair_lower", "pair_upper"), "attack_and_proof": ("attack", "proved")}
"""Method -> columns of its ends in the proved records."""


class FigureS2(Artefact):
    """Lower and upper bound of delta at epsilon = 1 against the number of compositions, one panel a sampler."""

    name = "figureS2"
    kind = "figure"
    caption = (
        "delta at epsilon = 1 after k compositions of the subsampled Gaussian mechanism (noise multiplier 4). Bars: "
        "bounds of the paper's pair by the Fourier accountant, as printed and as done; a lower bound under 1e-12, the "
        "round-off floor, is drawn to the foot of the axis. Black line: the paper's pair itself, bracketed to within "
        "the line; it is no guarantee. Band: from what explicit data sets attain (thin line, attack) to what is proved "
        "for clipped sums when one record is substituted (line with markers)."
    )
    experiments = ("composition", "proved_composition")
    keys = ("sampler", "method", "n_compositions")

    def values(self, records: Records) -> pd.DataFrame:
        """Return both bounds, keyed by sampler, method and number of compositions."""
        rows = []
        for record in self._numbers(records).to_dict("records"):
            row = {"sampler": record["sampler"], "method": record["method"], "n_compositions": record["n_compositions"]}
            rows += [
                {**row, "column": column, "variant": record["variant"], "value": record[column]}
                for column in ("delta_lower", "delta_upper")
            ]
        return values_frame(rows)

    def draw(self, records: Records) -> tuple[Figure, pd.DataFrame]:
        frame = self._numbers(records)
        frame = frame[frame["method"].isin([*PRINTED, *BOTH_SIDES])].reset_index(drop=True)
        lowest = frame.loc[frame["delta_lower"] > FLOOR, "delta_lower"].min()
        foot = float(min(frame["delta_upper"].min(), lowest if lowest > 0 else 1.0)) / 3
        samplers = in_order(frame, by=("sampler",))["sampler"].unique()
        panels = [Panel(sampler_label(name), _layers(where(frame, sampler=name), foot)) for name in samplers]
        figure = draw_panels(panels, width=1.2 + 2.6 * len(samplers), height=2.9, grid={"sharey": True}, yscale="log",
                             ylim=(foot, 1), xlabel="number of compositions k", ylabel="δ(1)",
                             labels=self.labels(records))  # fmt: skip
        return figure, frame

    def _numbers(self, records: Records) -> pd.DataFrame:
        """Return all bounds as rows of variant, sampler, method, n_compositions, delta_lower, delta_upper."""
        kept = ["variant", "sampler", "method", "n_compositions", "delta_lower", "delta_upper"]
        composed = self.needed(records, "composition")
        frames = [composed[composed["table"] == "figure_s2"][kept]]
        proved = self.needed(records, "proved_composition")
        proved = proved[proved["table"] == "figure_s2"]
        for method, (lower, upper) in BOTH_SIDES.items():
            ends = {"delta_lower": proved[lower], "delta_upper": proved[upper]}
            frames.append(proved.assign(method=method, **ends)[kept])
        return in_order(pd.concat(frames, ignore_index=True), by=("variant", "sampler")).reset_index(drop=True)


def _layers(frame: pd.DataFrame, foot: float) -> list[Layer]:
    """Return the printed methods as bars, the pair as a line, attack and proof as a band."""
    x, upper = "n_compositions", "delta_upper"
    bars = frame.assign(delta_lower=frame["delta_lower"].where(frame["delta_lower"] > FLOOR, foot / 1e3))
    both = where(frame, method="attack_and_proof")
    styles = {name: sampler_style(name) | {"label": f"{sampler_label(name)}: attack to proof"}
              for name in both["sampler"].unique()}  # fmt: skip
    return [
        curves(bars, x, upper, by="method", styles=PRINTED, bars=("delta_lower", upper), apart=5),
        curves(frame, x, upper, by="method", styles=PAIR),
        *band(both, x, "delta_lower", upper, "sampler", styles),
    ]
