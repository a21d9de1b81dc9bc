"""Noise of one query and privacy of many: Tables 4, 6 and 8, Figure S2."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd

from dpsub.papers.must.claims.shared import COMPOSED, NOISE, ONE_STAGE, OW, PROVED, TABLE8
from dpsub.papers.must.settings import MUST
from dpsub.reproduce import claims as ask
from dpsub.reproduce.claims import (
    RIGOROUS,
    Claim,
    Finding,
    Frames,
    MissingRecordsError,
    Numbers,
    pick,
)
from dpsub.reproduce.labels import sampler_label

# Poisson and WOR are not ordered: both have eta = m / n, hence the same base epsilon.
SIGMA_ORDER = "must_ww < must_ow < wr < wor poisson"
OF_STATED = {"stated": (NOISE, "stated")}


def ow_smallest(frames: Frames) -> Finding:
    """Among Poisson, WOR, WR and MUST.OW."""
    table4 = {"table": "table4"}
    others = Numbers(NOISE, "sigma", ("statistic",), table4).table(frames, ONE_STAGE).min(axis=1)
    must = Numbers(NOISE, "sigma", ("statistic", "b"), table4).table(frames, MUST)["must_ow"]
    # Every b of MUST.OW against the least noise of the other three, statistic by statistic.
    ratio = must / others.reindex(must.index.get_level_values("statistic")).to_numpy()
    return Finding(
        bool((ratio < 1).all()), f"at most {ratio.max():.3f} times the smallest other sigma"
    )


def sigma_gap(frames: Frames) -> Finding:
    """Largest less smallest sigma, by eps'."""
    # The text says that the gap widens as epsilon' falls.
    levels = pick(frames[NOISE], table="table6").groupby("epsilon_amplified")["sigma"]
    spread = levels.agg(lambda sigma: sigma.max() - sigma.min())
    if len(spread) < 2:
        raise MissingRecordsError("this run has one eps' only")
    note = ", ".join(f"a spread of {gap:.3g} at eps' = {level:g}" for level, gap in spread.items())
    return Finding(bool(spread.iloc[0] > spread.iloc[-1]), note)


def curve(frames: Frames, name: str, sampler: str) -> pd.DataFrame:
    """Records of one curve of Figure S2, by number of compositions."""
    return pick(frames[name], table="figure_s2", sampler=sampler).sort_values("n_compositions")


def unbounded(name: str, columns: tuple[str, ...], note: str, frames: Frames) -> Finding:
    """Whether an account of MUST.WW is not finite everywhere."""
    bounds = curve(frames, name, "must_ww")
    low, high = bounds[columns[0]], bounds[columns[-1]]
    comment = note.format(low=low.min(), least_high=high.min(), high=high.max())
    # The claim is that the computation fails: a finite number everywhere refutes it (erratum E16).
    return Finding(not np.isfinite(bounds[list(columns)].to_numpy()).all(), comment)


def of_both(frames: Frames, first: str, second: str) -> pd.DataFrame:
    """Return the columns of two experiments or variants about MUST.OW, one row for each number of
    compositions."""
    # Only numbers of compositions that both have: a smoke run may compose fewer.
    both = curve(frames, first, "must_ow").merge(
        curve(frames, second, "must_ow"), on="n_compositions", suffixes=("", "_other")
    )
    if both.empty:
        raise MissingRecordsError("this run has no number of compositions in both variants")
    return both


def bounds_contain(frames: Frames) -> Finding:
    """MUST.OW: the bounds of Algorithm 1 against the brackets from exact cell masses."""
    both = of_both(frames, COMPOSED, "exact")
    # Strict bounds of the pair's delta must hold the bracket from exact cell masses.
    inside = (both["delta_lower"] <= both["delta_lower_other"]) & (
        both["delta_upper_other"] <= both["delta_upper"]
    )
    return Finding(bool(inside.all()), f"at {inside.sum()} of {len(inside)} numbers of steps")


def bounds_cover_the_mechanism(frames: Frames) -> Finding:
    """MUST.OW: the bounds of Algorithm 1 against the attack on explicit data sets and the proof."""
    both = of_both(frames, "printed", PROVED)
    # Proved only if the whole of [attack, proof] lies inside, refuted if some of it lies outside on
    # either side: in between the question is open.
    within = (both["delta_lower"] <= both["attack"]) & (both["proved"] <= both["delta_upper"])
    outside = (both["attack"] > both["delta_upper"]) | (both["proved"] < both["delta_lower"])
    least = (both["attack"] / both["delta_upper"]).min()
    return ask.truth(
        within, outside, f"the attack is at least {least:.3g} times the upper bound of Algorithm 1"
    )


def proved_below(frames: Frames) -> Finding:
    """Experiment 3 as it was run: the proved bounds, where there are any, and the attacks."""
    table = pick(frames[PROVED], table="table8")
    # Experiment 3 divides Poisson's sum by the realised size; its fixed divisor is a release of
    # ours.
    as_run = table[
        (table["sampler"] != "poisson") | (table["denominator"] == "realised")
    ].set_index("sampler")
    # The paper's target, delta = 1 / n.
    limit = float(pick(frames["stated"], table="table8")["delta"].iloc[0])
    over, none = (
        ", ".join(map(sampler_label, as_run.index[where]))
        for where in (as_run["attack"] > limit, as_run["proved"].isna())
    )
    attacks, proofs = (ask.per_sampler(as_run[end], ".3g") for end in ("attack", "proved"))
    note = (
        f"refuted for {over or 'none'}; attacks (lower bounds) {attacks}; proved (upper bounds) "
        f"{proofs}"
    )
    note += f"; nothing is proved for {none}" if none else ""
    return ask.truth(as_run["proved"] < limit, as_run["attack"] >= limit, note)


def proved_increases(frames: Frames) -> Finding:
    """MUST.OW: both bounds of the mechanism's own delta, compared with those at the smallest number
    of compositions.

    From one number to the next delta cannot fall, as fewer releases are a part of more.
    """
    band = curve(frames, PROVED, "must_ow")[["attack", "proved"]]
    if len(band) < 2:
        raise MissingRecordsError("this run has one number of compositions only")
    first, later = band.iloc[0], band.iloc[1:]
    note = "from [{:.3g}, {:.3g}] to [{:.3g}, {:.3g}] (attack, proof)".format(
        *first, *band.iloc[-1]
    )
    # Attack above the first proof shows an increase, proof below the first attack refutes it.
    return ask.truth(later["attack"] > first["proved"], later["proved"] <= first["attack"], note)


NOISE_AND_COMPOSITION = (
    Claim("table4_ow_smallest", "Section 4.2.1", ow_smallest, (NOISE,)),
    Claim(
        "table4_ww_below_ow",
        "Section 4.2.1",
        ask.ordered(
            Numbers(NOISE, "sigma", ("statistic", "b"), {"table": "table4"}),
            "must_ww < must_ow",
            "in {holding} of {n} cases",
            anywhere=True,
        ),
    ),
    Claim(
        "table4_sigma_b",
        "Section 4.2.1",
        ask.increasing(
            Numbers(
                NOISE, "sigma", ("statistic", "sampler", "b"), {"table": "table4", "sampler": MUST}
            ),
            "b",
            "by {least:.2g} or more from one b to the next",
        ),
    ),
    *(
        Claim(
            f"{table}_sigma_order",
            place,
            ask.ordered(
                Numbers(NOISE, "sigma", ("epsilon_amplified",), {"table": table}),
                SIGMA_ORDER,
                "{first:.4g}",
            ),
        )
        for table, place in (("table6", "Section 4.2.2"), ("table8", "Section 4.2.3"))
    ),
    Claim("table6_sigma_gap", "Section 4.2.2", sigma_gap, (NOISE,)),
    Claim(
        "table6_delta_larger",
        "Section 4.2.2",
        ask.ordered(
            Numbers(NOISE, "delta_amplified", ("epsilon_amplified",), {"table": "table6"}),
            # Holds as done only: with the consistent ratio the order reverses (erratum E3).
            "poisson wor < wr must_ow must_ww",
            "{last:.2e} at eps' = {at_last:g}",
        ),
    ),
    Claim(
        "table8_bounds",
        "Section 4.2.3",
        ask.below(
            Numbers(COMPOSED, "delta_upper", where=TABLE8),
            Numbers("stated", "delta", where=TABLE8),
            "largest {largest:.3g} ({at_largest}), 1/n = {limit:.3g}",
        ),
        shared=OF_STATED,
    ),
    Claim(
        "table8_bounds",
        "Section 4.2.3",
        proved_below,
        (PROVED,),
        shared=OF_STATED,
        variants=RIGOROUS,
    ),
    Claim(
        "figure_s2_increases",
        "Section S7",
        ask.increasing(
            Numbers(COMPOSED, "delta", ("n_compositions",), OW),
            "n_compositions",
            "from {first:.3g} to {last:.3g}",
        ),
    ),
    Claim("figure_s2_increases", "Section S7", proved_increases, (PROVED,), variants=RIGOROUS),
    Claim(
        "figure_s2_strict",
        "Section S7",
        bounds_contain,
        (COMPOSED,),
        shared={"exact": (COMPOSED, "consistent")},
        variants=("stated", "as_done"),
    ),
    Claim(
        "figure_s2_strict",
        "Section S7",
        bounds_cover_the_mechanism,
        (PROVED,),
        shared={"printed": (COMPOSED, "stated")},
        variants=RIGOROUS,
    ),
    Claim(
        "figure_s2_ww_fails",
        "Figure S2",
        partial(
            unbounded,
            COMPOSED,
            ("delta_lower", "delta", "delta_upper"),
            "the upper bounds are {least_high:.3g} to {high:.3g}",
        ),
        (COMPOSED,),
    ),
    Claim(
        "figure_s2_ww_fails",
        "Figure S2",
        partial(
            unbounded, PROVED, ("attack", "proved"), "from {low:.3g} (attack) to {high:.3g} (proof)"
        ),
        (PROVED,),
        variants=RIGOROUS,
    ),
)
