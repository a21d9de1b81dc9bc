"""The map as a picture: a row for each scheme, a panel for each relation, at one training."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import pandas as pd

from dpsub.papers.scheme_map.schemes import RELATIONS
from dpsub.papers.scheme_map.tables import EXPERIMENTS, over_poisson
from dpsub.reproduce.artefact import Artefact, Records
from dpsub.reproduce.digits import written
from dpsub.reproduce.figures import Panel, draw_panels, line, name_rows, where
from dpsub.reproduce.labels import WORDS, sampler_label

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SHOWN = ("cifar", 3.0)
"""Training and target of the picture, if the run has them."""
PROVED, OPEN, REFUTED = "#332288", "#DDCC77", "#AA4466"
QUIET = "#595959"
MARK: dict[str, Any] = {"linestyle": "none", "marker": "o", "markersize": 3.6, "zorder": 3}
NEIGHBOURS = {
    "add_remove": "a record is added or removed",
    "zero_out": "a record is replaced by 0",
    "substitute": "a record is replaced",
}
WIDTH, ROW, REST = 7.6, 0.2, 0.95
"""Inches: width of the figure, height of a row, and of what stands above and below the rows."""
_LEFT_OUT = "no theorem"
_RANKING = ("zero_out", "substitute", "add_remove")


def ranked(cells: pd.DataFrame) -> list[str]:
    """Return the schemes, the least proved noise first: under zero_out, or the next relation that
    covers them; those that no relation covers come last."""
    wide = cells.pivot(index="sampler", columns="adjacency", values="ratio")
    first = wide.reindex(columns=_RANKING).bfill(axis=1).iloc[:, 0]
    return [str(name) for name in first.sort_values(kind="stable").index]


class MapFigure(Artefact):
    """Both bounds on the noise over Poisson's, as bars."""

    title = "The map: noise that each scheme needs, over Poisson's"
    name = "map"
    kind = "figure"
    caption = (
        "Noise multiplier over that of Poisson samples, for the same training and privacy target: "
        "50,000 records, batches of 512, 30 epochs, ε = 3 at δ = 10⁻⁵ in a run at full size. Left "
        "of the left mark of a bar an attack exceeds the target; right of its right mark the "
        "target is proved. The bar between them is open. Where no theorem covers "
        "a scheme under a relation, the panel says so. Relations promise different things: each "
        "panel is relative to Poisson samples under its own relation."
    )
    experiments = EXPERIMENTS

    def draw(self, records: Records) -> tuple[Figure, pd.DataFrame]:
        cells = over_poisson(self.needed(records, name) for name in self.experiments)
        cells = _of_one_training(cells)
        names = ranked(cells)
        limits = min(0.9, 0.95 * cells["lower"].min()), 1.9 * cells["upper"].max()
        panels = [
            Panel(
                f"{WORDS[str(relation)]}\n{NEIGHBOURS[str(relation)]}",
                [
                    partial(_bars, part=where(cells, adjacency=str(relation)), names=names),
                    *(_legend() if relation is RELATIONS[0] else ()),
                ],
            )
            for relation in RELATIONS
        ]
        figure = draw_panels(
            panels,
            width=WIDTH,
            height=ROW * len(names) + REST,
            letters=False,
            labels=self.labels(records),
            grid={"sharey": True},
            xscale="log",
            xlim=limits,
            xticks=_ticks(limits[1]),
            xlabel="noise over Poisson's",
        )
        return figure, cells


def _of_one_training(cells: pd.DataFrame) -> pd.DataFrame:
    """Return the cells of the training and the target that are shown, or of the first ones."""
    wanted = where(cells, training=SHOWN[0], target_epsilon=SHOWN[1])
    if wanted.empty:
        first = cells.iloc[0]
        wanted = where(cells, training=first["training"], target_epsilon=first["target_epsilon"])
    return wanted


def _ticks(most: float) -> list[float]:
    return [tick for tick in (1, 1.5, 2, 3, 5, 10, 20, 50, 100) if tick < most]


def _legend() -> list[Any]:
    mark = {"linestyle": "none", "marker": "o"}
    return [
        line([], [], color=PROVED, label="needed: both bounds within 5 %", markersize=5, **mark),
        line([], [], color=REFUTED, label="too little: refuted by an attack", markersize=4, **mark),
        line([], [], color=OPEN, linewidth=5, label="open"),
        line([], [], color=PROVED, label="enough: proved", markersize=4, **mark),
    ]


def _bars(axes: Axes, part: pd.DataFrame, names: Sequence[str]) -> None:
    """Draw a row for each scheme, and say where no theorem covers one."""
    axes.axvline(1, color="black", linewidth=0.8, zorder=1)
    own = part.set_index("sampler").reindex(list(names))
    for row, cell in enumerate(own.to_dict("records")):
        if row % 2 == 0:
            axes.axhspan(row - 0.5, row + 0.5, color="#f3f3f3", linewidth=0, zorder=0)
        if not cell["ratio"] > 0:
            _write(axes, 1, row, _LEFT_OUT, style="italic")
            continue
        lower, upper = cell["lower"], cell["upper"]
        axes.barh(row, upper - lower, left=lower, height=0.42, color=OPEN, zorder=2)
        if cell["is_open"]:
            axes.plot(lower, row, color=REFUTED, **MARK)
            axes.plot(upper, row, color=PROVED, **MARK)
            low, high = written(lower, "1.00", side="lower"), written(upper, "1.00", side="upper")
            _write(axes, upper, row, f"{low}–{high}")
        else:
            axes.plot(cell["ratio"], row, color=PROVED, **{**MARK, "markersize": 5})
            _write(axes, upper, row, f"{cell['ratio']:.2f}")
    name_rows(axes, map(sampler_label, names), size=7.5)
    axes.tick_params(axis="y", length=0)


def _write(axes: Axes, x: float, row: int, text: str, **style: Any) -> None:
    """Write a small text right of a place in a row."""
    axes.annotate(
        text,
        (x, row),
        xytext=(5, 0),
        textcoords="offset points",
        va="center",
        fontsize=6.5,
        color=QUIET,
        annotation_clip=False,
        **style,
    )
