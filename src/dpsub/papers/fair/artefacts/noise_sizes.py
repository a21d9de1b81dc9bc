"""Noise multiplier against b and against m, all else and the proved privacy fixed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from dpsub.errors import DataError
from dpsub.papers.fair.artefacts.labels import VARIANT_NAMES, style_of
from dpsub.reproduce.artefact import Artefact, Records, values_frame
from dpsub.reproduce.figures import Panel, curves, draw_panels, level, line, where
from dpsub.reproduce.figures.panels import Layer

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PAIR: dict[str, Any] = {"linestyle": ":", "linewidth": 0.8, "marker": "x", "markersize": 4}
BAR: dict[str, Any] = {"linestyle": "none", "marker": "|", "markersize": 9, "markeredgewidth": 0.8}
SETTING = ["dataset", "n", "steps", "target_epsilon", "target_delta"]


def sections(frame: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame, dict[str, Any]]:
    """Return the cells along b at fixed m, those along m at fixed b, and what is fixed for both.

    The setting is that of the first cell that is only calibrated; the fixed m and b are those with the most cells.

    Raises
    ------
    DataError
        If no cell with a first stage is only calibrated.
    """
    if not (frame["b"] * frame["surface"]).any():
        raise DataError(
            "noise against b needs a surface with a two-stage sampler, got none; add one to fair_noise.surface"
        )
    setting = frame.loc[frame["surface"] == 1, SETTING].iloc[0]
    cells = frame[(frame[SETTING] == setting).all(axis=1)].drop_duplicates(["variant", "sampler", "m", "b"])
    staged = cells[cells["b"] > 0]
    m = staged.groupby("m")["b"].nunique().idxmax()
    b = staged.groupby("b")["m"].nunique().idxmax()
    along_b = cells[cells["m"] == m].sort_values(["b"], kind="stable")
    along_m = cells[(cells["b"] == b) | (cells["b"] == 0)].sort_values(["m"], kind="stable")
    return along_b, along_m, {**{str(name): setting[name] for name in SETTING}, "m": m, "b": b}


class NoiseSizes(Artefact):
    """What sizes cost in noise at fixed privacy."""

    paper = "fair"
    name = "figure_noise"
    kind = "figure"
    caption = (
        "Noise multiplier that one target takes, (a) against the size b of the first stage, where levels are samplers "
        "with one stage, (b) against the batch size m. Markers on lines: proved under substitution; the bar below each "
        "reaches down to the noise with which an attack exceeds the target, so the best proof lies on it. "
        "Crosses: noise for which the papers' pair meets the target, no guarantee. Samplers stand slightly apart."
    )
    experiments = ("fair_noise",)

    def values(self, records: Records) -> pd.DataFrame:
        return values_frame([])

    def draw(self, records: Records) -> tuple[Figure, pd.DataFrame]:
        frame = self.needed(records, "fair_noise")
        along_b, along_m, fixed = sections(frame)
        privacy = f"n = {fixed['n']}, {fixed['steps']} steps, ε = {fixed['target_epsilon']:g}"
        # what is drawn alike for every sampler has a key in no sampler's colour
        keys = [line([], [], color="0.35", label=VARIANT_NAMES["consistent"], **PAIR),
                line([], [], color="0.35", label="from attack up to proof", **BAR)]  # fmt: skip
        panels = [
            Panel(f"m = {fixed['m']}; {privacy}", _layers(along_b, "b"), {"xlabel": "b"}),
            Panel(f"b = {fixed['b']}; {privacy}", [*_layers(along_m, "m"), *keys], {"xlabel": "m"}),
        ]
        figure = draw_panels(panels, height=2.7, yscale="log", ylabel="noise multiplier", labels=self.labels(records))
        numbers = pd.concat([along_b.assign(section="b"), along_m.assign(section="m")], ignore_index=True)
        return figure, numbers.drop(columns=["data", "replicate", "surface"])


def _layers(cells: pd.DataFrame, size: str) -> list[Layer]:
    """Return lines with bars along a size; along b, a sampler of one stage is a level. A lone point is no line."""
    by_sampler = cells.groupby("sampler")
    one_stage = (by_sampler["b"].transform("max") == 0) & (size == "b")
    lone = (by_sampler[size].transform("nunique") == 1) & (cells[size].nunique() > 1)
    levels = where(cells[one_stage], variant="rigorous")
    proved, pairs = (where(cells[~one_stage & ~lone], variant=name) for name in ("rigorous", "consistent"))
    refuted = proved["necessary"].where(proved["necessary"] > 0, proved["noise_multiplier"])
    return [
        *(level(noise, **_level_style(name))
          for name, noise in zip(levels["sampler"], levels["noise_multiplier"], strict=True)),
        curves(proved.assign(attack=refuted), size, "noise_multiplier", styles=style_of, apart=3, linestyle="-",
               bars=("attack", "noise_multiplier"), linewidth=1.0),
        curves(pairs, size, "noise_multiplier", styles=style_of, apart=3, zorder=5, **PAIR, label="_"),
    ]  # fmt: skip


def _level_style(sampler: str) -> dict[str, Any]:
    return {name: value for name, value in style_of(sampler).items() if name != "marker"} | {"linewidth": 1.0}
