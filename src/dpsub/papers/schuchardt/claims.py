"""Statements of Schuchardt et al., each with its criterion."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dpsub.reproduce import claims
from dpsub.reproduce.claims import (
    RIGOROUS,
    STATED,
    Claim,
    Finding,
    Frames,
    Setting,
    about_privacy,
    pick,
)

STEP, COMPOSED, ITERATIONS = "schuchardt_step", "schuchardt_composed", "schuchardt_iterations"
FIXED, RENYI, STEP_EPSILON = "schuchardt_fixed", "schuchardt_renyi", "schuchardt_step_epsilon"
BOTH = ("stated", "as_done")
RELEASED = {FIXED: (FIXED, "as_done")}  # the pair of the released code
Ask = Callable[[Frames], Finding]
RESOLVED = 1.1  # largest ratio of our two bounds between which a number counts as the exact one
MUCH = 10.0  # from this ratio of two deltas on, one of them is called much larger


def tight(law: str) -> Ask:
    """Ask whether the paper's delta of one step is the exact one: at least the proved bound, and at
    most the value of an attack, as far as both bounds tell."""

    def ask(frames: Frames) -> Finding:
        frame = pick(frames[STEP], law=law)
        paper, lower, upper = (frame[c] for c in ("same_kind", "delta_lower", "delta_upper"))
        # Theorem 35 proves the exact delta to lie between the ends
        exact = (lower <= paper) & (paper <= upper) & (upper <= RESOLVED * lower)
        exact |= upper == 0
        note = (
            f"between our bounds at {((lower <= paper) & (paper <= upper)).sum()} of {len(frame)} "
            f"groups and epsilons, these being less than 10 % apart, or 0, at {exact.sum()}"
        )
        return claims.truth(exact, (paper < lower) | (paper > upper), note)

    return ask


def guarantee(sampler: str) -> Ask:
    """Ask whether a pair of the paper bounds delta of one step when a record is replaced."""

    def ask(frames: Frames) -> Finding:
        frame = pick(frames[FIXED], sampler=sampler)
        pair, lower, upper = (frame[c] for c in ("pair", "delta_lower", "delta_upper"))
        least, most = (pair / upper).agg(["min", "max"])
        note = (
            f"at least our upper bound at {(pair >= upper).sum()} of {len(frame)} epsilons, "
            f"{least:.3g} to {most:.3g} times it"
        )
        return claims.truth(pair >= upper, pair < lower, note)

    return ask


def loose(frames: Frames) -> Finding:
    """Ask whether our upper bound is below the pair of draws with replacement."""
    frame = pick(frames[FIXED], sampler="wr")
    ratio = frame["pair"] / frame["delta_upper"]
    note = f"{ratio.min():.3g} to {ratio.max():.3g} times our upper bound"
    return claims.truth(ratio > 1, frame["pair"] <= frame["delta_lower"], note)


def order_of_magnitude(frames: Frames) -> Finding:
    frame = frames[FIXED][frames[FIXED]["epsilon"] >= 2]
    frame = pick(frame, sampler="wr").set_index("epsilon")
    ratio = frame["agnostic"] / frame["pair"]
    note = f"{ratio.min():.3g} times smaller at ε = {ratio.idxmin()}, more at others"
    return Finding(bool((ratio > 10).all()), note)


def allowed(budget: str, *, fewer: int = 0, more: int = 0) -> Ask:
    """Ask whether the group privacy property allows fewer steps than a number, or the paper's pair
    more."""

    def ask(frames: Frames) -> Finding:
        analysis = "posthoc" if fewer else "specific"
        frame = pick(frames[ITERATIONS], budget=budget, analysis=analysis)
        kept, broken = int(frame["kept"].iloc[0]), int(frame["broken"].iloc[0])
        note = f"δ is kept for {kept} steps, and not for {broken}"
        if fewer:
            return claims.truth([broken <= fewer], [kept >= fewer], note)
        return claims.truth([kept > more], [broken <= more], note)

    return ask


def keeps(frames: Frames) -> Finding:
    """Ask whether delta is at most 1e-7 after the training, by the paper's pair."""
    frame = pick(frames[ITERATIONS], budget="training", analysis="specific")
    lower, upper = float(frame["delta_lower"].iloc[0]), float(frame["delta_upper"].iloc[0])
    note = f"δ is at most {upper:.3g}, and an attack attains {lower:.3g}"
    return claims.truth([upper <= 1e-7], [lower > 1e-7], note)


def diverges(frames: Frames) -> Finding:
    """Ask whether after 1000 steps delta of the group privacy property is much larger."""
    frame = pick(frames[COMPOSED], steps=1000)
    least = frame["posthoc_lower"] / frame["specific_upper"]
    most = frame["posthoc_upper"] / frame["specific_lower"]
    note = (
        f"{least.min():.3g} to {most.max():.3g} times δ of the group in {len(frame)} settings; "
        f"much larger is taken as {MUCH:g} times"
    )
    return claims.truth(least >= MUCH, most < MUCH, note)


def converges(frames: Frames) -> Finding:
    """Ask whether epsilon by the group privacy property comes nearer as the noise rises, and is
    nearer at the smallest rate than at the largest."""
    frame = frames[STEP_EPSILON].assign(ratio=lambda rows: rows["posthoc"] / rows["specific"])
    table = frame.pivot_table("ratio", index="noise", columns="rate").to_numpy()
    note = f"from {table[0, -1]:.4g} times ε of the group to {table[-1, 0]:.6g} times"
    nearer = (np.diff(table, axis=0) < 0).all() and (table[:, 0] < table[:, -1]).all()
    return Finding(bool(nearer), note)


def compare(
    claim: str,
    place: str,
    experiment: str,
    other: str,
    law: str = "",
    *,
    equal: bool = False,
    one: bool = False,
) -> Claim:
    """Return the statement that the paper's bound is at most another one, or equal to it."""

    def ask(frames: Frames) -> Finding:
        frame = pick(frames[experiment], group=lambda size: (size == 1) if one else (size > 1))
        frame = pick(frame, law=law) if law else frame
        # where both are 0 there is nothing to compare
        frame = frame[frame[other] > 0]
        ratio = frame["specific"] / frame[other]
        holds = ratio.between(1 - claims.EQUAL, 1 + claims.EQUAL) if equal else ratio <= 1
        note = f"{ratio.min():.3g} to {ratio.max():.4g} times the other in {len(ratio)} cases"
        return Finding(bool(holds.all()), note)

    return Claim(claim, place, ask, (experiment,), variants=STATED)


class SchuchardtClaims(claims.Claims):
    name = "claims"
    caption = (
        "Statements of the text, the theorems and the captions. A bound on δ is judged by our two "
        "bounds: proved where it lies between them (or, where it need not be the smallest, where "
        "it is at least the upper one), refuted where an attack attains more. What the group "
        "privacy property allows is computed from both bounds on δ of one record. As done: the "
        "released code applies the property to the group's own pair."
    )
    claims = (
        *about_privacy("tight_3.8", "Theorem 3.8", tight("gaussian"), STEP),
        *about_privacy("tight_M.2", "Theorem M.2", tight("laplace"), STEP),
        compare("agnostic_one", "Section 3.2", STEP, "agnostic", "gaussian", equal=True, one=True),
        compare("agnostic_gaussian", "Figure 8", STEP, "agnostic", "gaussian"),
        compare("agnostic_laplace", "Figures 4 and 9", STEP, "agnostic", "laplace"),
        compare("agnostic_response", "Figure 10", STEP, "agnostic", "response", equal=True),
        compare("posthoc_weaker", "Figures 5, 14, 15 and 16", STEP, "posthoc"),
        Claim("posthoc_converges", "Figure 14", converges, (STEP_EPSILON,), variants=STATED),
        Claim(
            "figure6_posthoc",
            "Section 4.2",
            allowed("figure6", fewer=100),
            (ITERATIONS,),
            variants=BOTH,
        ),
        *about_privacy(
            "figure6_specific", "Section 4.2", allowed("figure6", more=1000), ITERATIONS
        ),
        Claim("figure18_diverges", "Figures 18 and 19", diverges, (COMPOSED,), variants=BOTH),
        Claim(
            "training_posthoc",
            "Appendix B.2.5",
            allowed("training", fewer=200),
            (ITERATIONS,),
            variants=BOTH,
        ),
        *about_privacy("training_keeps", "Appendix B.2.5", keeps, ITERATIONS),
        *about_privacy("guarantee_L.1", "Theorem L.1", guarantee("wor"), FIXED),
        *about_privacy("guarantee_L.5", "Theorem L.5", guarantee("wr"), FIXED),
        Claim("loose_L.5", "Appendix B.1.5", loose, variants=(*STATED, *RIGOROUS), shared=RELEASED),
        Claim("figure13_order", "Figure 13", order_of_magnitude, variants=STATED, shared=RELEASED),
        compare("figure11", "Figure 11", RENYI, "agnostic"),
        compare("figure17", "Figure 17", RENYI, "posthoc"),
        Setting("figure6_noise", "sigma", f"{ITERATIONS}.figure6.noise_multiplier"),
        Setting("figure6_rate", "rate", f"{ITERATIONS}.figure6.rate"),
        Setting("figure6_group", "group", f"{ITERATIONS}.figure6.group"),
        Setting("figure6_epsilon", "epsilon", f"{ITERATIONS}.figure6.epsilon"),
        Setting("figure6_delta", "delta", f"{ITERATIONS}.figure6.delta"),
        Setting("training_noise", "sigma", f"{ITERATIONS}.training.noise_multiplier"),
        Setting("training_group", "group", f"{ITERATIONS}.training.group"),
        Setting("training_epsilon", "epsilon", f"{ITERATIONS}.training.epsilon"),
        Setting("training_delta", "delta", f"{ITERATIONS}.training.delta"),
        Setting("figure13_records", "n", f"{FIXED}.n"),
        Setting("figure13_batch", "q", f"{FIXED}.batch"),
        Setting("figure13_noise", "sigma", f"{FIXED}.noise_multiplier"),
        Setting("figure4_scale", "lambda", f"{STEP}.scale"),
        Setting("figure4_rate", "rate", f"{STEP}.rates.0"),
    )
