"""Loss against iteration, for Figures 6 and S4: one curve a sampler, a band where there are replicates."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from dpsub.papers.must.artefacts.labels import in_order
from dpsub.reproduce import statistics
from dpsub.reproduce.figures import sampler_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def curves(frame: pd.DataFrame, value: str, by: list[str]) -> pd.DataFrame:
    """Return mean and 95 % interval over replicates of each curve at each iteration.

    Parameters
    ----------
    frame : DataFrame
        Records with the columns `by`, `iteration` and `value`.
    value : str
        What is drawn.
    by : list of str
        Fields that tell the curves apart.

    Returns
    -------
    DataFrame
        Columns `by`, `iteration`, `value`, `lower`, `upper`, `replicates`; the interval is NaN for one replicate.
    """
    rows = []
    for fields, cell in frame.groupby([*by, "iteration"], sort=False, dropna=False):
        estimate = statistics.mean(cell[value].to_numpy())
        lower, upper = statistics.interval(estimate)
        rows.append((*fields, estimate.value, lower, upper, estimate.replicates))
    return pd.DataFrame(rows, columns=[*by, "iteration", value, "lower", "upper", "replicates"])


def paint(axes: Axes, frame: pd.DataFrame, value: str) -> None:
    """Draw the curves of one panel, the non-private one last, and their bands."""
    order = list(in_order(frame, by=("sampler",))["sampler"].unique())
    for position, sampler in enumerate([*(name for name in order if name != "nonprivate"),
                                       *(name for name in order if name == "nonprivate")]):
        curve = frame[frame["sampler"] == sampler].sort_values("iteration")
        # Markers are staggered, so that curves on each other can be told apart.
        step = max(1, len(curve) // 8)
        offset = (position * step) // max(1, len(order))
        style = sampler_style(sampler)
        axes.plot(curve["iteration"], curve[value], markevery=(offset, step), linewidth=0.9, markersize=3.5, **style)
        if np.isfinite(curve["lower"]).any():
            axes.fill_between(curve["iteration"], curve["lower"], curve["upper"], color=style["color"], alpha=0.2,
                              linewidth=0)
