"""Scales of the noise by data set, size, target and sampler: no clustering, and but for `opt` no data."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from dpsub.papers.importance.artefacts.labels import SAMPLERS, TITLES, OnData, not_real, ordered
from dpsub.reproduce.artefact import Records, values_frame
from dpsub.reproduce.figures import finish, new, panel_letter
from dpsub.reproduce.layout import Layout

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EXPERIMENT = "importance_noise"
COLUMNS = ("beta_sum", "beta_count", "psi", "m_max")


class NoiseScales(OnData):
    """All scales as numbers."""

    name = "noise_scales"
    kind = "table"
    caption = (
        "Noise of weighted DP-Lloyd at a target epsilon and an expected size m: scales of the noise on sums and on "
        "counts, the loss psi that results (as done: of the released weights and grid, which may exceed the target), "
        "and the largest size that meets the target. Full data, uniform and core-set sampling follow from the "
        "radius and mean square of Table 1; the privacy-optimal sampler needs all norms, here those of the data "
        "named. Empty: no such size meets the target."
    )
    experiments = (EXPERIMENT,)
    keys = ("dataset", "sampler", "m", "epsilon")
    layout = Layout(panels=("dataset", "data"), stub=("sampler", "m", "epsilon"), heads=("column",))

    def values(self, records: Records) -> pd.DataFrame:
        rows = []
        for cell in _chosen(self.needed(records, EXPERIMENT)).to_dict("records"):
            fields = {"dataset": TITLES[cell["dataset"]], "sampler": cell["sampler"]}
            fields |= {"m": cell["m_paper"]} if cell["m_paper"] else {}
            note = "" if cell["data_label"] == "table1" else not_real(cell["data_label"])
            key = {**fields, "epsilon": cell["epsilon"]}
            rows += [{**key, "column": name, "variant": cell["variant"], "value": cell[name], "note": note}
                     for name in COLUMNS]  # fmt: skip
        return values_frame(rows)

    def labels(self, records: Records) -> tuple[str, ...]:
        """None: most cells need no data, and notes say of the others whose they are."""
        return ()


class NoiseAtlas(OnData):
    """The scales of the text's calibration as a map, and what core-set sampling saves."""

    name = "noise_atlas"
    kind = "figure"
    caption = (
        "Scale of the noise on sums over the radius (decimal logarithm), calibrated as in the text, by data set and "
        "expected size (down) and target epsilon (across); right: the scale of uniform over that of core-set "
        "sampling. Uniform and core-set from Table 1 alone; privacy-optimal from the norms of the data in this run, "
        "which need not be the paper's. White: no such size meets the target."
    )
    experiments = (EXPERIMENT,)

    def values(self, records: Records) -> pd.DataFrame:
        return values_frame([])

    def draw(self, records: Records) -> tuple[Figure, pd.DataFrame]:
        frame = _chosen(self.needed(records, EXPERIMENT, variants=("stated",)))
        frame = frame[frame["m_paper"] > 0]
        frame = frame.assign(relative=np.log10(frame["beta_sum"] / frame["radius"]))
        wide = frame.pivot_table(index=["dataset", "m_paper"], columns=["sampler", "epsilon"], values="relative",
                                 dropna=False)  # fmt: skip
        targets = sorted(frame["epsilon"].unique())
        # the sizes of Figures 3 and 6 have all targets, the others two
        lines = []
        for name in ordered(frame):
            counts = frame.loc[(frame["dataset"] == name) & (frame["sampler"] == "unif"), "m_paper"].value_counts()
            lines += [(name, float(m)) for m in sorted(counts.index) if counts[m] == counts.max()]
        panels = [*(name for name in ("unif", "core", "opt") if name in set(frame["sampler"])), "ratio"]
        figure, grid = new(1, len(panels), width=8.0, height=1.2 + 0.16 * len(lines), sharey=True)
        ends = float(frame["relative"].min()), float(frame["relative"].max())
        for axes, panel in zip(grid[0], panels, strict=True):
            picture = np.array([[_entry(wide, line, panel, epsilon) for epsilon in targets] for line in lines])
            ratio = panel == "ratio"
            marks = axes.imshow(picture, aspect="auto", cmap="magma" if ratio else "viridis",
                                vmin=1 if ratio else ends[0], vmax=None if ratio else ends[1])  # fmt: skip
            axes.set_xticks(range(len(targets)), [f"{epsilon:g}" for epsilon in targets], rotation=60, fontsize=6)
            axes.grid(False)
            axes.set_xlabel("ε (nats)")
            panel_letter(axes, "uniform / coreset" if ratio else SAMPLERS[panel]["label"])
            if ratio or panel == panels[0]:
                figure.colorbar(marks, ax=axes if ratio else list(grid[0][:-1]), location="bottom", shrink=0.7,
                                label="ratio of scales" if ratio else "log10 of the scale over the radius")  # fmt: skip
        grid[0, 0].set_yticks(range(len(lines)), [f"{TITLES[name]}, {m:g}" for name, m in lines], fontsize=6)
        return finish(figure), frame.reset_index(drop=True)


def _entry(wide: pd.DataFrame, line: tuple[str, float], panel: str, epsilon: float) -> float:
    def at(sampler: str) -> float:
        return float(wide[sampler, epsilon][line]) if (sampler, epsilon) in wide.columns else math.nan

    return 10 ** (at("unif") - at("core")) if panel == "ratio" else at(panel)


def _chosen(frame: pd.DataFrame) -> pd.DataFrame:
    """Cells with noise: from Table 1, or from data where that does not suffice or was not asked."""
    noisy = frame[np.isfinite(frame["epsilon"])]
    on_data = (noisy["sampler"] == "opt") | (noisy["variant"] == "as_done")
    return noisy[(noisy["data_label"] == "table1") != on_data]
