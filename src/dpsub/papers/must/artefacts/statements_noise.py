"""Statements of the paper on calibrated noise and composed privacy, each as a predicate on records."""

from __future__ import annotations

import numpy as np
import pandas as pd

from dpsub.papers.must.artefacts.labels import MULTISETS, MUST
from dpsub.reproduce.predicates import (  # fmt: skip
    Finding,
    Frames,
    LackingError,
    Statement,
    by_sampler,
    increasing,
    per_sampler,
    pick,
)


def _noise(frames: Frames, table: str) -> pd.DataFrame:
    return pick(frames["noise_calibration"], table=table)


def _widest(frames: Frames) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Sigma of Table 4: one-stage samplers by statistic, MUST by statistic and b."""
    noise = _noise(frames, "table4")
    one_stage = by_sampler(noise, "sigma", ["statistic"], ("poisson", "wor", "wr"))
    return one_stage, by_sampler(noise, "sigma", ["statistic", "b"], MUST)


def ow_smallest(frames: Frames) -> Finding:
    """Section 4.2.1: among Poisson, WOR, WR and MUST.OW."""
    one_stage, must = _widest(frames)
    ratio = must["must_ow"] / one_stage.min(axis=1).reindex(must.index.get_level_values("statistic")).to_numpy()
    return Finding(bool((ratio < 1).all()), f"at most {ratio.max():.3f} of the smallest other sigma")


def ww_sometimes_below_ow(frames: Frames) -> Finding:
    """Section 4.2.1."""
    _, must = _widest(frames)
    below = must["must_ww"] < must["must_ow"]
    return Finding(bool(below.any()), f"in {below.sum()} of {len(below)} cases")


def sigma_increases(frames: Frames) -> Finding:
    """Section 4.2.1."""
    _, must = _widest(frames)
    steps = must.groupby(level="statistic").diff().dropna().to_numpy()
    if not steps.size:
        raise LackingError("this run has one value of b only")
    return Finding(bool((steps > 0).all()), f"by {steps.min():.2g} or more from one b to the next")


def sigma_order(table: str) -> Statement:
    """Return the statement that MUST.WW needs the smallest sigma, then MUST.OW, WR, WOR and Poisson."""

    def ask(frames: Frames) -> Finding:
        samplers = ("must_ww", "must_ow", "wr", "wor", "poisson")
        wide = by_sampler(_noise(frames, table), "sigma", ["epsilon_amplified"], samplers)
        ordered = increasing([wide[name] for name in samplers[:4]]) and increasing([wide["wr"], wide["poisson"]])
        return Finding(ordered, per_sampler(wide.iloc[0], ".4g"))

    return Statement(f"{table}_sigma_order", ("noise_calibration",), ask)


def sigma_gap(frames: Frames) -> Finding:
    """Section 4.2.2: largest less smallest sigma, by eps'."""
    noise = _noise(frames, "table6")
    spread = noise.groupby("epsilon_amplified")["sigma"].agg(lambda sigma: sigma.max() - sigma.min())
    if len(spread) < 2:
        raise LackingError("this run has one eps' only")
    note = ", ".join(f"{gap:.3g} at eps' = {level:g}" for level, gap in zip(spread.index, spread, strict=True))
    return Finding(bool(spread.iloc[0] > spread.iloc[-1]), note)


def delta_larger(frames: Frames) -> Finding:
    """Section 4.2.2: delta' of the samplers that give multisets against that of Poisson and WOR."""
    samplers = ("poisson", "wor", *MULTISETS)
    wide = by_sampler(_noise(frames, "table6"), "delta_amplified", ["epsilon_amplified"], samplers)
    holds = (wide[list(MULTISETS)].min(axis=1) > wide[["poisson", "wor"]].max(axis=1)).all()
    return Finding(bool(holds), f"{per_sampler(wide.iloc[-1], '.2e')} at eps' = {wide.index[-1]:g}")


def bounds_below(frames: Frames) -> Finding:
    """Section 4.2.3: upper bounds of delta_c of Table 8 against delta = 1/n."""
    upper = pick(frames["composition"], table="table8").set_index("sampler")["delta_upper"]
    limit = float(pick(frames["stated"], table="table8")["delta"].iloc[0])
    return Finding(bool((upper < limit).all()), f"largest {upper.max():.3g} ({upper.idxmax()}), 1/n = {limit:.3g}")


def _curves(frames: Frames, sampler: str) -> pd.DataFrame:
    return pick(frames["composition"], table="figure_s2", sampler=sampler).sort_values("n_compositions")


def delta_increases(frames: Frames) -> Finding:
    """Section S7, MUST.OW."""
    delta = _curves(frames, "must_ow")["delta"].to_numpy()
    if delta.size < 2:
        raise LackingError("this run has one number of compositions only")
    return Finding(bool((np.diff(delta) > 0).all()), f"from {delta[0]:.3g} to {delta[-1]:.3g}")


def ww_fails(frames: Frames) -> Finding:
    """Caption of Figure S2."""
    curve = _curves(frames, "must_ww")
    finite = np.isfinite(curve[["delta_lower", "delta", "delta_upper"]].to_numpy()).all()
    return Finding(not finite, f"upper bounds {curve['delta_upper'].min():.3g} to {curve['delta_upper'].max():.3g}")


def bounds_contain(frames: Frames) -> Finding:
    """Section S7, MUST.OW: the bounds of Algorithm 1 against the brackets from exact cell masses."""
    printed, exact = (_curves({"composition": frames[name]}, "must_ow") for name in ("composition", "exact"))
    both = printed.merge(exact, on="n_compositions", suffixes=("", "_exact"))
    inside = (both["delta_lower"] <= both["delta_lower_exact"]) & (both["delta_upper_exact"] <= both["delta_upper"])
    if both.empty:
        raise LackingError("this run has no number of compositions in both variants")
    return Finding(bool(inside.all()), f"at {inside.sum()} of {len(inside)} numbers of compositions")


def proved_below(frames: Frames) -> Finding:
    """Section 4.2.3, experiment 3 as it was run: the proved bounds, where there are any, and the attacks."""
    table = pick(frames["proved_composition"], table="table8")
    as_run = table[(table["sampler"] != "poisson") | (table["denominator"] == "realised")].set_index("sampler")
    limit = float(pick(frames["stated"], table="table8")["delta"].iloc[0])
    over = as_run.index[as_run["attack"] > limit]
    attacks, proofs = (per_sampler(as_run[end], ".3g") for end in ("attack", "proved"))
    note = f"attacks (lower) {attacks}; proved (upper) {proofs}"
    none = ", ".join(as_run.index[as_run["proved"].isna()])
    note += f"; nothing is proved for {none}" if none else ""
    return Finding(bool((as_run["proved"] < limit).all()), f"refuted for {', '.join(over) or 'none'}; {note}")


def _band(frames: Frames, sampler: str) -> pd.DataFrame:
    return pick(frames["proved_composition"], table="figure_s2", sampler=sampler).sort_values("n_compositions")


def proved_increases(frames: Frames) -> Finding:
    """Section S7, MUST.OW: both ends of the mechanism's own delta."""
    band = _band(frames, "must_ow")
    if len(band) < 2:
        raise LackingError("this run has one number of compositions only")
    grows = all(bool((np.diff(band[end]) > 0).all()) for end in ("attack", "proved"))
    first, last = band.iloc[0], band.iloc[-1]
    note = "attack to proof from [{:.3g}, {:.3g}] to [{:.3g}, {:.3g}]"
    return Finding(grows, note.format(first["attack"], first["proved"], last["attack"], last["proved"]))


def bounds_cover_the_mechanism(frames: Frames) -> Finding:
    """Section S7, MUST.OW: the upper bounds of Algorithm 1 against what explicit data sets attain."""
    both = _curves({"composition": frames["printed"]}, "must_ow").merge(_band(frames, "must_ow"), on="n_compositions")
    if both.empty:
        raise LackingError("this run has no number of compositions in both variants")
    covered = both["attack"] <= both["delta_upper"]
    least = float((both["attack"] / both["delta_upper"]).min())
    return Finding(bool(covered.all()), f"the attack is at least {least:.3g} times the upper bound of Algorithm 1")


def ww_is_not_bounded(frames: Frames) -> Finding:
    """Caption of Figure S2: whether MUST.WW escapes accounting."""
    band = _band(frames, "must_ww")
    finite = np.isfinite(band[["attack", "proved"]].to_numpy()).all()
    return Finding(not finite, f"attack {band['attack'].min():.3g} to proof {band['proved'].max():.3g}")


NOISE = ("noise_calibration",)
PROVED = ("proved_composition",)
RIGOROUS = ("rigorous",)
NOISE_AND_COMPOSITION = (
    Statement("table4_ow_smallest", NOISE, ow_smallest),
    Statement("table4_ww_below_ow", NOISE, ww_sometimes_below_ow),
    Statement("table4_sigma_b", NOISE, sigma_increases),
    sigma_order("table6"),
    Statement("table6_sigma_gap", NOISE, sigma_gap),
    Statement("table6_delta_larger", NOISE, delta_larger),
    sigma_order("table8"),
    Statement("table8_bounds", ("composition",), bounds_below, shared={"stated": ("noise_calibration", "stated")}),
    Statement(
        "table8_bounds", PROVED, proved_below, shared={"stated": ("noise_calibration", "stated")}, variants=RIGOROUS
    ),
    Statement("figure_s2_increases", ("composition",), delta_increases),
    Statement("figure_s2_increases", PROVED, proved_increases, variants=RIGOROUS),
    Statement(
        "figure_s2_strict", ("composition",), bounds_contain, shared={"exact": ("composition", "consistent")},
        variants=("stated", "as_done"),
    ),
    Statement(
        "figure_s2_strict", PROVED, bounds_cover_the_mechanism, shared={"printed": ("composition", "stated")},
        variants=RIGOROUS,
    ),
    Statement("figure_s2_ww_fails", ("composition",), ww_fails),
    Statement("figure_s2_ww_fails", PROVED, ww_is_not_bounded, variants=RIGOROUS),
)
