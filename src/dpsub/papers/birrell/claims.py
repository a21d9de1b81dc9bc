"""Statements of Birrell et al., each with its criterion."""

from __future__ import annotations

from dpsub.papers.birrell.experiments import CASES
from dpsub.reproduce import claims
from dpsub.reproduce.claims import (
    RIGOROUS,
    STATED,
    Claim,
    Finding,
    Frames,
    Numbers,
    Setting,
    about_privacy,
    pick,
)

RENYI, EPSILON, LEADING = "birrell_renyi", "birrell_epsilon", "birrell_leading"


def guarantee(theorem: str) -> tuple[Claim, ...]:
    """Return the statement that epsilon by a theorem is a guarantee for the training."""

    def ask(frames: Frames) -> Finding:
        frame = pick(frames[EPSILON], theorem=theorem)
        paper = frame["epsilon_paper"]
        proved, refuted = paper >= frame["epsilon_upper"], paper < frame["epsilon_lower"]
        above = (paper / frame["epsilon_lower"]).agg(["min", "max"])
        note = (
            f"at least our upper bound at {proved.sum()} of {len(frame)} values of delta, "
            f"{above['min']:.3f} to {above['max']:.3f} times what an attack attains"
        )
        return claims.truth(proved, refuted, note)

    def stated(frames: Frames) -> Finding:
        return Finding(1.0, ask(frames).note)

    name, shared = f"guarantee_{theorem}", {EPSILON: (EPSILON, "stated")}
    return (
        Claim(name, f"Theorem {theorem}", stated, (EPSILON,), variants=STATED),
        Claim(name, f"Theorem {theorem}", ask, variants=RIGOROUS, shared=shared),
    )


def same_leading(frames: Frames) -> Finding:
    """Ask whether the paper's own leading terms of both samplers agree."""
    ratio = frames[LEADING].set_index("noise_multiplier")["leading_over_poisson"]
    note = (
        f"the paper's leading terms are {ratio.max():.4g} times apart at noise {ratio.idxmax():g} "
        f"and {ratio.min():.4g} at noise {ratio.idxmin():g}"
    )
    return Finding(bool((ratio == 1).all()), note)


def same_attained(frames: Frames) -> Finding:
    """Ask whether both samplers have one divergence as the rate falls: an attack against the exact
    one."""
    frame = frames[LEADING]
    # the smallest rate, where the leading term is all that counts
    small = frame[frame["rate"] == frame["rate"].min()]
    ratio = small.set_index("noise_multiplier")["attained_over_poisson"]
    note = (
        f"at rate {small['rate'].iloc[0]:g} an attack on samples without replacement attains "
        f"{ratio.min():.4g} (noise {ratio.idxmin():g}) to {ratio.max():.4g} (noise "
        f"{ratio.idxmax():g}) times the exact divergence of Poisson samples"
    )
    # quadrature knows both to ten digits
    return claims.truth([False], ratio > 1 + 1e-6, note)


def wang_not_tight(frames: Frames) -> Finding:
    """Ask whether our upper bound is below what the bound of Wang et al. gives."""
    frame = pick(frames[EPSILON], theorem="3.4")
    ratio = frame["epsilon_wang"] / frame["epsilon_upper"]
    note = f"{ratio.min():.3g} to {ratio.max():.3g} times our upper bound"
    tight = frame["epsilon_wang"] <= frame["epsilon_lower"]
    return claims.truth(ratio > 1, tight, note)


class BirrellClaims(claims.Claims):
    name = "claims"
    caption = (
        "Statements of the abstract, the theorems and the captions. A theorem is judged by the ε "
        "that the paper's code makes of it for its training run (250 epochs, batches of 120 of "
        "50,000 records, noise multiplier 6): proved where it is at least our upper bound, refuted "
        "where an attack attains more, open in between."
    )
    claims = (
        *(claim for theorem in CASES for claim in guarantee(theorem)),
        Claim(
            "factor_over_wang",
            "Abstract",
            claims.number(
                Numbers(LEADING, "wang_over_leading", where={"noise_multiplier": 6.0}), "max"
            ),
            column="ratio",
            variants=STATED,
        ),
        *about_privacy("wang_not_tight", "Abstract", wang_not_tight, EPSILON),
        Claim("same_leading", "Abstract", same_leading, (LEADING,), variants=STATED),
        Claim(
            "same_leading",
            "Abstract",
            same_attained,
            variants=RIGOROUS,
            shared={LEADING: (LEADING, "stated")},
        ),
        Claim(
            "below_wang",
            "Figure 2",
            claims.agree(
                Numbers(RENYI, "bound", where={"theorem": "3.4"}),
                "wang",
                "below it at {holding} of {n} orders and degrees",
                at_most=True,
            ),
            variants=STATED,
        ),
        Claim(
            "above_lower",
            "Figures 2 and 9",
            claims.agree(
                Numbers(RENYI, "attained", where={"theorem": ("3.4", "3.6")}),
                "bound",
                "between the bounds at {holding} of {n} orders and degrees",
                at_most=True,
                # quadrature of a divergence near 1e-6
                tolerance=1e-15,
            ),
            variants=STATED,
        ),
        Setting("records", "n", "birrell_renyi.n"),
        Setting("batch", "m", "birrell_renyi.batch"),
        Setting("noise", "sigma", "birrell_renyi.noise_multiplier"),
        Setting("epochs", "epochs", "birrell_epsilon.epochs"),
        Setting("figure8_rate", "rate", "birrell_draws.rate"),
        Setting("figure8_alpha", "alpha", "birrell_draws.alpha"),
    )
