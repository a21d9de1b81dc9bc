"""What must hold of the curves of Figure 1, whatever their parameters are."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
import pandas as pd

from dpsub.reproduce.predicates import Finding, Frames, LackingError, pick

CURVES = "balle_curves"
EQUAL = 1e-12
SLOPE = 1e-6  # relative: a slope from the first step of a grid in exp(epsilon), where the curve is straight


def curve(frames: Frames, panel: str, name: str, *, level: float | None = None, m: int | None = None) -> pd.DataFrame:
    """Return one curve on the grid, by x."""
    chosen = {"level": level, "m": m}
    wanted = {key: value for key, value in chosen.items() if value is not None}
    return pick(frames[CURVES], panel=panel, curve=name, point="grid", **wanted).sort_values("x")


def same_start(frames: Frames) -> Finding:
    """Panel a: three mechanisms calibrated to one delta at 0, ordered from there on, two of which reach 0."""
    rows = pick(frames[CURVES], panel="a")
    faults = []
    for start in sorted(rows["level"].unique()):
        names = ("randomised_response", "laplace", "gaussian")
        found = {name: curve(frames, "a", name, level=start) for name in names}
        x = found["laplace"]["x"].to_numpy()
        response, laplace, gaussian = (part["delta"].to_numpy() for part in found.values())
        p, theta = (1 + start) / 2, -2 * math.log1p(-start)
        slope = (response[1] - response[0]) / math.expm1(x[1])
        tests = {
            "start": max(abs(part[0] - start) for part in (response, laplace, gaussian)) <= EQUAL,
            "order": bool((response <= laplace + EQUAL).all() and (laplace <= gaussian + EQUAL).all()),
            "end of randomised response": _ends_at(x, response, math.log(p / (1 - p))),
            "end of Laplace": _ends_at(x, laplace, theta),
            "Gaussian never ends": bool((gaussian > 0).all()),
            "slope": abs(slope + (1 - start) / 2) <= SLOPE,
        }
        faults += [f"{name} at delta {start:g}" for name, holds in tests.items() if not holds]
    return Finding(not faults, f"exceptions: {', '.join(faults) or 'none'}")


def _ends_at(x: np.ndarray, delta: np.ndarray, end: float) -> bool:
    return bool((delta[x < end - EQUAL] > 0).all() and (delta[x > end + EQUAL] <= EQUAL).all())


def gaussian_crossing(frames: Frames) -> Finding:
    """Panel b: WR is better at small epsilon', worse at large ones, and the curves cross once."""
    with_, without = (curve(frames, "b", name) for name in ("wr", "wor"))
    above = np.sign(with_["log_delta"].to_numpy() - without["log_delta"].to_numpy())
    x = with_["x"].to_numpy()
    once = np.count_nonzero(np.diff(above)) == 1
    holds = bool(above[0] < 0 < above[-1] and once)
    where = x[np.flatnonzero(np.diff(above))]
    return Finding(holds, f"crossings after eps' = {', '.join(f'{place:g}' for place in where) or 'none'}")


def laplace_ends(frames: Frames) -> Finding:
    """Panel c: the curve without replacement ends at base epsilon theta, the other one at m theta only."""
    rows = frames[CURVES]
    notes, holds = [], True
    for name in ("wor", "wr"):
        before, after = (pick(rows, panel="c", curve=name, point=point).iloc[0] for point in ("before_end", "at_end"))
        # next to the end delta' may be far below the smallest float: its logarithm is what is looked at
        holds &= bool(np.isfinite(before["log_delta"]) and after["delta"] <= EQUAL)
        notes.append(f"{name} ends at eps' = {after['x']:.4g}")
        if name == "wor":
            grid = curve(frames, "c", name)
            holds &= _ends_at(grid["x"].to_numpy(), grid["delta"].to_numpy(), float(after["x"]))
        else:
            holds &= bool((curve(frames, "c", name)["delta"] > 0).all())
    return Finding(holds, ", ".join(notes))


def group_effect(frames: Frames) -> Finding:
    """Panel d: the group effect grows with m/n, and with epsilon' up to the end of the other curve."""
    sizes = _sizes(frames, "d")
    gaps, holds = [], True
    for m in sizes:
        with_, without = (curve(frames, "d", name, m=m)["delta"].to_numpy() for name in ("wr", "wr_no_group"))
        gap = with_ - without
        alive = without > 0
        holds &= bool((gap >= -EQUAL).all() and (np.diff(gap[alive]) > 0).all())
        gaps.append(gap)
    holds &= all(bool((larger > smaller - EQUAL).all()) for smaller, larger in itertools.pairwise(gaps))
    notes = ", ".join(f"m = {m}: {gap[0]:.3g} at eps' = 0" for m, gap in zip(sizes, gaps, strict=True))
    return Finding(holds, f"gap at {notes}")


def black_above_white(frames: Frames) -> Finding:
    """Panel e: black-box groups are never better."""
    least = math.inf
    for m in _sizes(frames, "e"):
        white, black = (curve(frames, "e", name, m=m) for name in ("wr", "wr_black_box"))
        least = min(least, float((black["delta"].to_numpy() - white["delta"].to_numpy()).min()))
    return Finding(least >= 0, f"least difference {least:.2g}")


def _sizes(frames: Frames, panel: str) -> list[int]:
    sizes = sorted(int(m) for m in pick(frames[CURVES], panel=panel)["m"].unique())
    if len(sizes) < 2:
        raise LackingError("this run has one size of groups only")
    return sizes


PROPERTIES: dict[str, tuple[str, Callable[[Frames], Finding]]] = {
    "B035": ("a", same_start),
    "B036": ("b", gaussian_crossing),
    "B037": ("c", laplace_ends),
    "B038": ("d", group_effect),
    "B039": ("e", black_above_white),
}
