"""How methods are drawn: one colour a kernel, one dash pattern a way to choose."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pandas as pd

if TYPE_CHECKING:
    from matplotlib.axes import Axes

GAUSSIAN, LAPLACE = "#0072B2", "#D55E00"
STYLES: dict[str, dict[str, Any]] = {
    "gau_dp": {"label": "Gaussian", "color": GAUSSIAN, "linestyle": ":", "marker": "o"},
    "gau_br": {"label": "recycled Gaussian, paper", "color": GAUSSIAN, "linestyle": "-", "marker": "s"},
    "gau_best": {"label": "recycled Gaussian, exact", "color": GAUSSIAN, "linestyle": (0, (5, 1.5)), "marker": "D"},
    "gau_smp": {"label": "sampled Gaussian, paper", "color": "#56B4E9", "linestyle": (0, (3, 1, 1, 1)), "marker": "^"},
    "lap_dp": {"label": "Laplace", "color": LAPLACE, "linestyle": ":", "marker": "o"},
    "lap_br": {"label": "recycled Laplace, paper", "color": LAPLACE, "linestyle": "-", "marker": "s"},
    "lap_best": {"label": "recycled Laplace, exact", "color": LAPLACE, "linestyle": (0, (5, 1.5)), "marker": "D"},
    "lap_smp": {"label": "sampled Laplace, paper", "color": "#E69F00", "linestyle": (0, (3, 1, 1, 1)), "marker": "^"},
    "ceiling": {"label": "ceiling (any noise)", "color": "black", "linestyle": (0, (1, 1)), "marker": ""},
}
SHORT = {"gau_dp": "Gau-DP", "lap_dp": "Lap-DP", "gau_br": "Gau-BRDP", "lap_br": "Lap-BRDP", "gau_smp": "SMP-Gau-BRDP",
         "lap_smp": "SMP-Lap-BRDP", "lap_low": "Lap-BRDP, low split"}  # fmt: skip
"""The paper's names."""
OURS = "Set by us, as the paper does not state it: "


def line(axes: Axes, frame: pd.DataFrame, method: str, x: str, y: str, **changes: Any) -> None:
    """Draw the curve of one method; a method that is absent draws nothing."""
    part = frame[frame["method"] == method].sort_values(x)
    if len(part):
        axes.plot(part[x], part[y], **{**STYLES[method], "marker": "", **changes})


def scientific(value: float) -> str:
    """Return a number with two digits as "1.9·10⁻⁶", or plain between 0.001 and 1000."""
    if value == 0 or not math.isfinite(value) or 1e-3 <= abs(value) < 1e3:
        return f"{value:.2g}"
    mantissa, exponent = f"{value:.1e}".split("e")
    digits = str(int(exponent)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"{mantissa}·10{digits}"


def remark(axes: Axes, text: str, *, x: float = 0.98, y: float = 0.96, align: str = "right") -> None:
    """Write a remark within the panel."""
    axes.text(x, y, text, transform=axes.transAxes, ha=align, va="top", fontsize=6.5, color="#404040",
              bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 1})  # fmt: skip
