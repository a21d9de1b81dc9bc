"""Statements of the paper on amplification, each as a predicate on records."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd

from dpsub.papers.must.artefacts.labels import MULTISETS, MUST, samplers
from dpsub.reproduce.predicates import (  # fmt: skip
    Finding,
    Frames,
    LackingError,
    Statement,
    by_sampler,
    equal,
    increasing,
    per_sampler,
    pick,
)

PANEL = ["mechanism", "ratio"]
TABLE3_EPSILONS = (0.05, 0.5, 1.0, 2.0, 3.0, 4.5)
SMALL_EPSILON = 1.0  # Table 3 calls the pairs before its third column small


def _grid(frames: Frames) -> pd.DataFrame:
    return frames["amplification_grid"]


def eta_ordering(frames: Frames) -> Finding:
    """Proposition 7 and the sentence after it."""
    eta = by_sampler(_grid(frames), "eta", PANEL, ("must_ow", "must_wo", "wr", "wor", "poisson")).iloc[0]
    ordered = eta["must_ow"] < eta["wr"] < eta["wor"]
    same = equal(eta[["must_wo"]], eta[["wr"]]) and equal(eta[["wor"]], eta[["poisson"]])
    return Finding(bool(ordered) and same, ", ".join(f"{name} {value:.4f}" for name, value in eta.items()))


def epsilon_decreases(frames: Frames) -> Finding:
    """Remark 2."""
    ratio = _grid(frames)["epsilon_amplified"] / _grid(frames)["epsilon"]
    return Finding(bool((ratio < 1).all()), f"largest eps'/eps {ratio.max():.3f}")


def weak_counts(frames: Frames) -> pd.DataFrame:
    """Number of grid points in the type-I weak quadrant, a row a panel of Figure 4, a column a sampler."""
    grid = pick(_grid(frames), sampler=samplers())
    weak = (grid["category"] == "weak_type_1").astype(int)
    return weak.groupby([grid["mechanism"], grid["ratio"], grid["sampler"]]).sum().unstack("sampler")


def wor_always_strong(frames: Frames) -> Finding:
    """Figure 4, first remark, by the strict inequalities of Definition 5."""
    grid = pick(_grid(frames), sampler=("wor", "poisson"))
    others = grid["category"] != "strong"
    boundary = (grid["category"] == "boundary").sum()
    note = f"{others.sum()} of {len(grid)} points are not strong, {boundary} of them boundary"
    return Finding(not others.any(), note)


def only_wor_strong(frames: Frames) -> Finding:
    """Figure 4, first remark, weak quadrant."""
    counts = weak_counts(frames)
    never = bool((counts[["wor", "poisson"]] == 0).all(axis=None))
    return Finding(never and bool((counts[list(MULTISETS)] > 0).all(axis=None)), per_sampler(counts.sum()))


def weak_order(frames: Frames) -> Finding:
    """Figure 4, first remark, order of the lengths (base eps at which the curve is in the weak quadrant)."""
    counts = weak_counts(frames)
    order = [counts[name] for name in ("must_ww", "must_ow", "wr", "wor")]
    holds = all(bool((longer >= shorter).all()) for longer, shorter in itertools.pairwise(order))
    return Finding(holds and bool((counts["wr"] == counts["must_wo"]).all()), per_sampler(counts.sum()))


def starts_strong(frames: Frames) -> Finding:
    """Figure 4, second remark."""
    grid = _grid(frames)
    first = grid[grid["epsilon"] == grid["epsilon"].min()]
    count = int((first["category"] == "strong").sum())
    return Finding(count == len(first), f"{count} of {len(first)} curves")


def converges_faster(frames: Frames) -> Finding:
    """Figure 4, second remark: |delta' - delta| at the largest eps, smaller Delta/sigma against larger."""
    grid = _grid(frames)
    last = grid[grid["epsilon"] == grid["epsilon"].max()]
    gap = (last["delta_amplified"] - last["delta"]).abs().groupby([last["mechanism"], last["sampler"], last["ratio"]])
    wide = gap.first().unstack("ratio")
    if wide.shape[1] < 2:
        raise LackingError("this run has one ratio only")
    low, high = wide.iloc[:, 0], wide.iloc[:, -1]
    return Finding(bool((low <= high).all()), f"largest {low.max():.2g} against {high.max():.2g}")


def epsilon_order(frames: Frames) -> Finding:
    """Table 3, first remark (all grid points)."""
    wide = by_sampler(_grid(frames), "epsilon_amplified", [*PANEL, "epsilon"], ("must_ww", "must_ow", "wr", "wor"))
    return Finding(increasing([wide[name] for name in wide]), f"{len(wide)} points")


def delta_order(frames: Frames) -> Finding:
    """Table 3, second remark, at its six base eps: exceptions only at small eps with ratio 1."""
    grid = _grid(frames)
    wanted = np.isclose(grid["epsilon"].to_numpy()[:, None], TABLE3_EPSILONS, rtol=0, atol=1e-9).any(axis=1)
    if not wanted.any():
        raise LackingError("this run has none of the base eps of Table 3")
    wide = by_sampler(grid[wanted], "delta_amplified", [*PANEL, "epsilon"], ("wor", "wr", *MUST))
    smaller = (wide[list(MUST)].min(axis=1) <= wide[["wor", "wr"]].max(axis=1)).to_numpy()
    exceptions = wide[smaller].reset_index()
    allowed = (exceptions["ratio"] == 1) & (exceptions["epsilon"] < SMALL_EPSILON)
    where = ", ".join(f"{r.mechanism} ratio {r.ratio:g} eps {r.epsilon:g}" for r in exceptions.itertuples())
    return Finding(bool(allowed.all()), f"exceptions: {where or 'none'}")


def shifts_once(frames: Frames) -> Finding:
    """Table 3, third remark: strong up to some eps, type-I weak from there on."""
    grid = pick(_grid(frames), sampler=MULTISETS).sort_values("epsilon")
    faults = []
    for (mechanism, ratio, sampler), curve in grid.groupby([*PANEL, "sampler"]):
        weak = (curve["category"] == "weak_type_1").to_numpy()
        if not (set(curve["category"]) == {"strong", "weak_type_1"} and bool(np.all(np.diff(weak.astype(int)) >= 0))):
            faults.append(f"{mechanism} ratio {ratio:g} {sampler}")
    return Finding(not faults, f"exceptions: {', '.join(faults) or 'none'}")


def order_flips(frames: Frames) -> Finding:
    """Section S8: order of the delta' curves on the two sides of the crossovers (delta below, delta above)."""
    crossings = pick(frames["amplification_crossings"], kind="crossover")
    grid = pick(_grid(frames), ratio=1)
    holds, notes = True, []
    for mechanism, crossing in crossings.groupby("mechanism"):
        low, high = crossing["delta"].min(), crossing["delta"].max()
        index = ["epsilon", "delta"]
        wide = by_sampler(pick(grid, mechanism=mechanism), "delta_amplified", index, ("wor", *MULTISETS))
        delta = wide.index.get_level_values("delta")
        curves = [wide[name] for name in wide]
        holds &= increasing([curve[delta < low] for curve in curves])
        holds &= increasing([curve[delta > high] for curve in curves[::-1]])
        notes.append(f"{mechanism} crossovers at delta {low:.3f} to {high:.3f}")
    return Finding(bool(holds), ", ".join(notes))


def crossover_near(mechanism: str, column: str, printed: float, half_unit: float) -> Statement:
    """Return the statement that the crossovers of Section S8 lie around a printed number."""

    def ask(frames: Frames) -> Finding:
        found = pick(frames["amplification_crossings"], kind="crossover", mechanism=mechanism)[column]
        low, high = float(found.min()), float(found.max())
        holds = low <= printed + half_unit and printed - half_unit <= high
        return Finding(holds, f"{len(found)} pairwise crossovers from {low:.3f} to {high:.3f}", low, high)

    name = {"delta": "delta", "delta_amplified": "delta_prime"}[column]
    return Statement(f"s8_crossover_{mechanism}_{name}", ("amplification_crossings",), ask, column=name)


def surface(column: str, along: str, sign: int) -> Statement:
    """Return a statement of Figure 5: a quantity increases (sign 1) or decreases (-1) with m or b, everywhere."""

    def ask(frames: Frames) -> Finding:
        change = _steps(frames, column, along)
        return Finding(bool((sign * change > 0).all()), f"changes of {change.min():.2g} to {change.max():.2g} a step")

    quantity = {"eta": "eta", "delta_difference": "delta"}[column]
    return Statement(f"fig5_{quantity}_{along}", ("design_surface",), ask)


def _steps(frames: Frames, column: str, along: str) -> np.ndarray:
    """Changes of a quantity from one m (or b) to the next, for all samplers and mechanisms."""
    changes = []
    for _, panel in pick(frames["design_surface"], sampler=MUST).groupby(["sampler", "mechanism"]):
        wide = panel.pivot(index=along, columns="b" if along == "m" else "m", values=column)
        changes.append(np.diff(wide.to_numpy(), axis=0).ravel())
    steps = np.concatenate(changes)
    if not steps.size:
        raise LackingError(f"this run has one value of {along} only")
    return steps


def ww_below_ow(column: str) -> Statement:
    """Return the statement of Figure 5 that MUST.WW has the smaller eta, or delta' - delta."""

    def ask(frames: Frames) -> Finding:
        wide = by_sampler(frames["design_surface"], column, ["mechanism", "m", "b"], MUST)
        share = float((wide["must_ww"] < wide["must_ow"]).mean())
        return Finding(share == 1, f"smaller at {100 * share:.0f} % of the points")

    return Statement(f"fig5_ww_{'eta' if column == 'eta' else 'delta'}", ("design_surface",), ask)


def weaker_with_m(frames: Frames) -> Finding:
    """Section 5: larger m, weaker amplification of eps and delta."""
    eta, delta = _steps(frames, "eta", "m"), _steps(frames, "delta_difference", "m")
    return Finding(bool((eta > 0).all() and (delta > 0).all()), f"eta rises by {eta.min():.2g} or more a step of m")


GRID = ("amplification_grid",)
AMPLIFICATION = (
    Statement("prop7_ordering", GRID, eta_ordering),
    Statement("remark2_epsilon", GRID, epsilon_decreases),
    Statement("fig4_wor_strong", GRID, wor_always_strong),
    Statement("fig4_only_wor_strong", GRID, only_wor_strong),
    Statement("fig4_weak_order", GRID, weak_order),
    Statement("fig4_start_strong", GRID, starts_strong),
    Statement("fig4_convergence", GRID, converges_faster),
    Statement("table3_epsilon_order", GRID, epsilon_order),
    Statement("table3_delta_order", GRID, delta_order),
    Statement("table3_shift", GRID, shifts_once),
    Statement("s8_order_flips", ("amplification_grid", "amplification_crossings"), order_flips),
    crossover_near("laplace", "delta", 0.25, 0.005),
    crossover_near("laplace", "delta_amplified", 0.10, 0.005),
    crossover_near("gaussian", "delta", 0.23, 0.005),
    crossover_near("gaussian", "delta_amplified", 0.10, 0.005),
    ww_below_ow("eta"),
    ww_below_ow("delta_difference"),
    surface("eta", "b", 1),
    surface("eta", "m", -1),
    surface("delta_difference", "m", 1),
    surface("delta_difference", "b", 1),
    Statement("discussion_m", ("design_surface",), weaker_with_m),
)
