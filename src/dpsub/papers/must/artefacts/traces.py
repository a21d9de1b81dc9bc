"""Loss against iteration, for Figures 6 and S4: one curve a sampler, a band where there are replicates."""

from __future__ import annotations

import pandas as pd

from dpsub.papers.must.artefacts.labels import in_order
from dpsub.reproduce import statistics
from dpsub.reproduce.figures import curves
from dpsub.reproduce.figures.panels import Layer


def means(frame: pd.DataFrame, value: str, by: list[str]) -> pd.DataFrame:
    """Return mean and 95 % interval over replicates of each printed curve at each iteration.

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
        MUST.WO, whose law is that of WR, is left out, as in print.
    """
    rows = []
    printed = frame[frame["sampler"] != "must_wo"]
    for fields, cell in printed.groupby([*by, "iteration"], sort=False, dropna=False):
        estimate = statistics.mean(cell[value].to_numpy())
        rows.append((*fields, estimate.value, *statistics.interval(estimate), estimate.replicates))
    return pd.DataFrame(rows, columns=[*by, "iteration", value, "lower", "upper", "replicates"])


def trace(frame: pd.DataFrame, value: str) -> Layer:
    """Return the curves of one panel with their bands, the non-private one last."""
    ordered = in_order(frame, by=("sampler",))
    last = ordered["sampler"] == "nonprivate"
    return curves(pd.concat([ordered[~last], ordered[last]]), "iteration", value, band=("lower", "upper"),
                  linewidth=0.9, markersize=3.5)  # fmt: skip
