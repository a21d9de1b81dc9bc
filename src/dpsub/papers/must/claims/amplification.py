"""Amplified privacy: Table 3, Figures 4 and 5, Section S8."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd

from dpsub.papers.must.claims.shared import (
    ALL,
    CROSSINGS,
    GRID,
    MULTISETS,
    SURFACE,
    at_the_smallest,
)
from dpsub.papers.must.settings import MUST
from dpsub.papers.must.tables import TABLE3_EPSILONS
from dpsub.reproduce import claims as ask
from dpsub.reproduce.claims import Claim, Finding, Frames, MissingRecordsError, Numbers, pick
from dpsub.reproduce.labels import sampler_label

PANEL = ("mechanism", "ratio")
NAMES = {"laplace": "Laplace", "gaussian": "Gaussian"}
SMALL_EPSILON = 1.0  # Table 3 calls the pairs before its third column small


def weak_counts(frames: Frames) -> pd.DataFrame:
    """Number of grid points in the type-I weak quadrant, a row for each panel of Figure 4, a column
    for each sampler."""
    # The length of a curve in a quadrant is measured in grid points: the step in base epsilon is
    # the same everywhere.
    grid = pick(frames[GRID], sampler=ALL)
    return grid.assign(weak=grid["category"] == "weak_type_1").pivot_table(
        "weak", PANEL, "sampler", "sum"
    )


def wor_always_strong(frames: Frames) -> Finding:
    """By the strict inequalities of Definition 5."""
    grid = pick(frames[GRID], sampler=("wor", "poisson"))
    # With delta = delta' = 0 (Laplace, epsilon >= theta) no strict inequality can hold: Definition
    # 5 has no name for this case, we call it boundary.
    others, boundary = grid["category"] != "strong", (grid["category"] == "boundary").sum()
    note = f"{others.sum()} of {len(grid)} points are not strong, {boundary} of them boundary"
    return Finding(not others.any(), note)


def only_wor_strong(frames: Frames) -> Finding:
    counts = weak_counts(frames)
    never, always = counts[["wor", "poisson"]] == 0, counts[list(MULTISETS)] > 0
    return Finding(
        bool(never.all(axis=None) and always.all(axis=None)),
        f"points in the quadrant: {ask.per_sampler(counts.sum())}",
    )


def weak_order(frames: Frames) -> Finding:
    """Order of the lengths: base eps at which the curve is in the weak quadrant."""
    counts = weak_counts(frames)
    # The remark orders MUST.WW, MUST.OW, WR = MUST.WO, WOR from long to short; lengths are counts
    # of grid points, which may tie.
    order = itertools.pairwise(counts[name] for name in ("must_ww", "must_ow", "wr", "wor"))
    holds = all(bool((longer >= shorter).all()) for longer, shorter in order)
    return Finding(
        holds and bool((counts["wr"] == counts["must_wo"]).all()),
        f"points in the quadrant: {ask.per_sampler(counts.sum())}",
    )


def converges_faster(frames: Frames) -> Finding:
    """|delta' - delta| at the largest eps, smaller Delta/sigma against larger."""
    last = pick(frames[GRID], epsilon=lambda epsilon: epsilon == epsilon.max())
    gap = (
        (last["delta_amplified"] - last["delta"])
        .abs()
        .groupby([last["mechanism"], last["sampler"], last["ratio"]])
    )
    wide = gap.first().unstack("ratio")
    if wide.shape[1] < 2:
        raise MissingRecordsError("this run has one ratio only")
    # Columns are sorted by ratio: the smallest and the largest that a run has.
    low, high = wide.iloc[:, 0], wide.iloc[:, -1]
    return Finding(
        bool((low <= high).all()), f"at most {low.max():.2g}, compared with {high.max():.2g}"
    )


def delta_order(frames: Frames) -> Finding:
    """At the six base eps of Table 3: exceptions only at small eps with ratio 1."""
    at = {"epsilon": lambda epsilon: epsilon.isin(TABLE3_EPSILONS)}
    wide = Numbers(GRID, "delta_amplified", (*PANEL, "epsilon"), at).table(
        frames, ("wor", "wr", *MUST)
    )
    # WR and WOR should have the smaller delta': a row in which a MUST sampler is at or below either
    # of them is an exception.
    smaller = (wide[list(MUST)].min(axis=1) <= wide[["wor", "wr"]].max(axis=1)).to_numpy()
    exceptions = wide[smaller].reset_index()
    # The remark itself excepts small epsilon; it does so at ratio 1 only.
    allowed = (exceptions["ratio"] == 1) & (exceptions["epsilon"] < SMALL_EPSILON)
    where = " and ".join(
        exceptions["mechanism"].map(NAMES)
        + exceptions["ratio"].map(", ratio {:g}".format)
        + exceptions["epsilon"].map(", eps = {:g}".format)
    )
    return Finding(bool(allowed.all()), f"exceptions: {where or 'none'}")


def shifts_once(frames: Frames) -> Finding:
    """Strong up to some eps, type-I weak from there on."""
    faults = []
    grid = pick(frames[GRID], sampler=MULTISETS).sort_values("epsilon")
    for (mechanism, ratio, sampler), curve in grid.groupby([*PANEL, "sampler"]):
        # One shift: the indicator of the weak quadrant never falls as epsilon grows.
        weak = (curve["category"] == "weak_type_1").to_numpy()
        if not (
            set(curve["category"]) == {"strong", "weak_type_1"}
            and bool(np.all(np.diff(weak.astype(int)) >= 0))
        ):
            label = sampler_label(str(sampler))
            faults.append(f"{NAMES[str(mechanism)]}, ratio {ratio:g}, {label}")
    return Finding(not faults, f"exceptions: {', '.join(faults) or 'none'}")


def order_flips(frames: Frames) -> Finding:
    """Order of the delta' curves on the two sides of the crossovers (delta below, delta above)."""
    holds, notes = True, []
    samplers = ["wor", *MULTISETS]
    for mechanism, crossing in pick(frames[CROSSINGS], kind="crossover").groupby("mechanism"):
        # "The" crossover is six pairwise ones (erratum E11): the order is asked for outside all of
        # them.
        low, high = crossing["delta"].min(), crossing["delta"].max()
        where = {"ratio": 1, "mechanism": mechanism}
        wide = Numbers(GRID, "delta_amplified", ("epsilon", "delta"), where).table(frames, samplers)
        delta, rises = wide.index.get_level_values("delta"), np.diff(wide.to_numpy(), axis=1)
        holds &= bool((rises[delta < low] > 0).all() and (rises[delta > high] < 0).all())
        notes.append(f"{NAMES[str(mechanism)]}: delta from {low:.3f} to {high:.3f}")
    return Finding(holds, ", ".join(notes))


def over_the_surface(column: str, along: str, note: str, *, falling: bool = False) -> ask.Criterion:
    """Ask whether a quantity of Figure 5 rises (or falls) with m or b, everywhere."""
    # By steps of one sampler and mechanism: "increases" is a statement about every step of the
    # plotted range.
    numbers = Numbers(SURFACE, column, ("sampler", "mechanism", "m", "b"), {"sampler": MUST})
    return ask.increasing(numbers, along, note, falling=falling)


AMPLIFICATION = (
    Claim(
        "prop7_ordering",
        "Proposition 7",
        ask.ordered(
            Numbers(GRID, "eta", PANEL), "must_ow < must_wo = wr < wor = poisson", "{first:.4f}"
        ),
    ),
    Claim(
        "remark2_epsilon",
        "Remark 2",
        ask.below(
            Numbers(GRID, lambda f: f["epsilon_amplified"] / f["epsilon"]),
            1,
            "eps'/eps is at most {largest:.3f}",
        ),
    ),
    Claim("fig4_wor_strong", "Figure 4, first remark", wor_always_strong, (GRID,)),
    Claim("fig4_only_wor_strong", "Figure 4, first remark", only_wor_strong, (GRID,)),
    Claim("fig4_weak_order", "Figure 4, first remark", weak_order, (GRID,)),
    Claim(
        "fig4_start_strong",
        "Figure 4, second remark",
        ask.everywhere(
            Numbers(GRID, lambda f: f["category"] == "strong", where={"epsilon": at_the_smallest}),
            "in {holding} of {n} curves",
        ),
    ),
    Claim("fig4_convergence", "Figure 4, second remark", converges_faster, (GRID,)),
    Claim(
        "table3_epsilon_order",
        "Table 3, first remark",
        ask.ordered(
            Numbers(GRID, "epsilon_amplified", (*PANEL, "epsilon")),
            "must_ww < must_ow < wr < wor",
            "in {holding} of {n} points",
        ),
    ),
    Claim("table3_delta_order", "Table 3, second remark", delta_order, (GRID,)),
    Claim("table3_shift", "Table 3, third remark", shifts_once, (GRID,)),
    Claim("s8_order_flips", "Section S8", order_flips, (GRID, CROSSINGS)),
    *(
        Claim(
            f"s8_crossover_{mechanism}_{name}",
            "Section S8",
            ask.near(
                Numbers(CROSSINGS, source, where={"kind": "crossover", "mechanism": mechanism}),
                printed,
                "{n} pairwise crossovers from {least:.3f} to {largest:.3f}",
                # Half a unit of the second printed decimal.
                tolerance=0.005,
                bounds=True,
            ),
            column=name,
        )
        # The text's delta at "the" crossover; delta' is about 0.10 for both.
        for mechanism, delta in (("laplace", 0.25), ("gaussian", 0.23))
        for name, source, printed in (
            ("delta", "delta", delta),
            ("delta_prime", "delta_amplified", 0.10),
        )
    ),
    *(
        Claim(
            f"fig5_ww_{name}",
            "Figure 5",
            ask.ordered(
                Numbers(SURFACE, column, ("mechanism", "m", "b")),
                "must_ww < must_ow",
                "smaller at {percent:.0f} % of the points",
            ),
        )
        for name, column in (("eta", "eta"), ("delta", "delta_difference"))
    ),
    *(
        Claim(
            f"fig5_{name}_{along}",
            "Figure 5",
            over_the_surface(
                column,
                along,
                "it changes by {least:.2g} to {largest:.2g} a step",
                # Section 4.1 has eta decrease with m, and the rest increase; eta increases as well,
                # and the difference falls with b (erratum E12).
                falling=(name, along) == ("eta", "m"),
            ),
        )
        for name, column, along in (
            ("eta", "eta", "b"),
            ("eta", "eta", "m"),
            ("delta", "delta_difference", "m"),
            ("delta", "delta_difference", "b"),
        )
    ),
    Claim(
        "discussion_m",
        "Section 5",
        ask.every(
            over_the_surface("eta", "m", "eta rises by {least:.2g} or more a step of m"),
            over_the_surface("delta_difference", "m", ""),
        ),
    ),
)
