"""The claims of the paper's text: identities computed in two ways, bounds next to exact losses,
curves of Figure 1."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from dpsub.reproduce import claims
from dpsub.reproduce.claims import (
    Ask,
    Claim,
    Criterion,
    Finding,
    Frames,
    MissingRecordsError,
    Numbers,
    below,
    every,
    pick,
    with_truth,
)
from dpsub.reproduce.labels import sampler_label

PROFILES, COUPLINGS, ENUMERATION, CURVES = (
    "balle_profiles",
    "balle_couplings",
    "balle_enumeration",
    "balle_curves",
)
OPTIMUM = "balle_optimum"
ROUNDED = 1e-12  # two formulas of one number
EXCEEDED = 1e-10  # from here on a loss is above its bound
# claim, theorem whose bound it states
LOSSES = (("B016", 8), ("B018", 9), ("B020", 10), ("B022", 11), ("B024", 14))
# relative: a slope from the first step of a grid in exp(epsilon), where the curve is straight
SLOPE = 1e-6
CHECKS = {
    "black_box": "black-box bound",
    "compatible_coupling": "a compatible coupling",
    "compatible_elsewhere": "a compatible coupling for the other theorems",
    "convex": "convexity",
    "copies": "probability of the copies",
    "coupling_marginals": "marginals of the coupling",
    "coupling_mass": "mass of the divided product",
    "events": "the worst event",
    "gaussian_classical": "the classical bound",
    "gaussian_profile": "the profile",
    "joint_convexity": "the equality",
    "joint_convexity_bound": "the bound by convexity",
    "laplace_profile": "the profile",
    "largest_moment": "the largest moment",
    "largest_moment_bound": "the moment less the integral",
    "losses": "the profile from the losses",
    "map": "the amplified epsilon",
    "membership": "the loss of membership",
    "moment": "the moment",
    "moment_outside": "the distance of the moment from its bracket",
    "monotone": "the larger order",
    "multinomial": "the probability of a sample",
    "range": "the distance from [0, 1]",
    "response_guarantee": "delta of randomised response",
    "response_profile": "the divergence",
    "transport": "the cost of the optimal coupling",
    "white_box": "the white-box profile",
    "wor_full": "the bound at m = n",
}
"""Check of the records -> the meaning of its first number."""


def agree(
    experiment: str, check: str, tolerance: float = ROUNDED, *, relative: bool = False
) -> Criterion:
    """Ask whether the two numbers of every case of a check agree; with `relative` over max(1,
    |reference|)."""
    numbers = Numbers(experiment, "computed", where={"check": check})

    def ask(frames: Frames) -> Finding:
        frame = numbers.records(frames)
        error = (frame["computed"] - frame["reference"]).abs()
        error /= frame["reference"].abs().clip(lower=1.0) if relative else 1.0
        # Not `error > tolerance`: a NaN must count as a case that differs.
        bad, worst = int((~(error <= tolerance)).sum()), frame.iloc[int(np.argmax(error))]
        # The first number is computed one way, the reference another way: identities are tested by
        # two routes.
        note = f"{CHECKS[check]} differs in {bad} of {len(frame)} cases"
        if bad:
            # Cases are written as fields of the records: "n=4 m=3".
            place = worst["case"].replace("example=", "random example ").replace("=", " = ")
            note += f", most at {place}: {worst['computed']:.6g} for {worst['reference']:.6g}"
        return Finding(not bad, note)

    return Criterion(ask, (numbers,))


def at_most(experiment: str, check: str, tolerance: float = ROUNDED) -> Criterion:
    """Ask whether the first number of every case is at most the second one."""
    comment = (
        f"{CHECKS[check]} is too large in {{failing}} of {{n}} cases, by {{largest:.3g}} at most"
    )
    numbers = Numbers(experiment, "computed", where={"check": check})
    return claims.agree(numbers, "reference", comment, tolerance=tolerance, at_most=True)


def largest_delta(frames: Frames) -> Finding:
    """Theorem 3: delta of the Laplace mechanism from theta on."""
    deltas = pick(frames[PROFILES], check="laplace_zero")["computed"]
    return Finding(float(deltas.max()), f"largest of {len(deltas)} values")


def rate_near(frames: Frames) -> Finding:
    """Section 4: 1 - (1 - 1/n)^m is near gamma = m/n, within gamma^2 / 2."""
    frame = pick(frames[PROFILES], check="wr_rate").set_index("reference")["computed"]
    # The paper says "about"; gamma^2 / 2 is the first term that the expansion of 1 - (1 - 1/n)^m
    # leaves out (erratum BL10).
    share = (frame - frame.index).abs() / frame.index
    comment = (
        f"relative error from {share.min():.3g} at gamma = {share.idxmin():g} to "
        f"{share.max():.3g} at gamma = {share.idxmax():g}"
    )
    return Finding(bool((share <= share.index / 2).all()), comment)


def of_order(frames: Frames) -> Finding:
    """Section 1: eps' / (eta eps) - 1 is eps/2 (1 - eta) to first order; the second-order term is
    below eps^2."""
    frame = pick(frames[PROFILES], check="small_rate")
    epsilon = frame["case"].str.extract(r"epsilon=(\S+)")[0].astype(float).to_numpy()
    # The bound on the error is ours: the paper's O() names no range (erratum BL12).
    excess = frame["computed"].to_numpy() / frame["reference"].to_numpy() - 1
    comment = (
        f"eps'/(eta eps) - 1 is at most {excess.max():.3g}, at eps = {epsilon[np.argmax(excess)]:g}"
    )
    return Finding(bool((np.abs(excess) <= epsilon / 2 + epsilon**2).all()), comment)


# Bounds next to the exact losses of enumerated mechanisms, and of the worst ones


def loss(frame: pd.DataFrame) -> pd.Series:
    """Return the excess of the larger of both directions' losses over the bound."""
    return frame[["exact", "reverse"]].max(axis=1) - frame["bound"]


def optimal(number: int) -> Ask:
    """Ask of a theorem whether all (epsilon, delta)-DP mechanisms keep its bound: by the dual of
    the linear programme.

    Its value is an upper bound for all of them. The loss of an enumerated mechanism, or of the best
    one, refutes the bound.
    """
    theorem = f"Theorem {number}"

    def ask(frames: Frames) -> Finding:
        best, tried = (
            pick(frames[OPTIMUM], theorem=theorem),
            pick(frames[ENUMERATION], theorem=theorem),
        )
        # The dual value is an upper bound for every mechanism with the declared guarantee, and the
        # primal one is attained; between the two tolerances nothing is decided.
        proved, above = (
            best["dual"] <= best["bound"] + ROUNDED,
            best["optimum"] > best["bound"] + EXCEEDED,
        )
        exceeded = loss(tried) > EXCEEDED
        note = (
            f"no mechanism exceeds {proved.sum()} of {len(best)} bounds, some exceeds "
            f"{above.sum()}; {exceeded.sum()} of {len(tried)} exact losses are above the bound"
        )
        return claims.truth(proved, [*above, *exceeded], note)

    return ask


def off_formula(frame: pd.DataFrame) -> pd.Series:
    """Return the differences of the printed eta from ours and from the total variation distance of
    the samples."""
    return frame[["eta", "distance"]].sub(frame["formula"], axis=0).abs().max(axis=1)


def off_bound(frame: pd.DataFrame) -> pd.Series:
    """Return the difference between the larger loss and the bound."""
    return loss(frame).abs()


def at_all(
    number: int, value: Callable[[pd.DataFrame], pd.Series], limit: float, note: str, **where: Any
) -> Criterion:
    """Ask whether a number is at most a limit for all neighbours, kernels and sizes of a
    theorem."""
    numbers = Numbers(ENUMERATION, value, where={"theorem": f"Theorem {number}", **where})
    return below(numbers, limit, note, strict=False)


def larger_first(frames: Frames) -> Finding:
    """Theorem 8, proof: the loss of the smaller data set against the larger one is at most beta
    gamma delta(eps)."""
    frame = pick(frames[ENUMERATION], theorem="Theorem 8")
    # The proof of Theorem 8 gives the addition direction the smaller bound beta gamma
    # delta(epsilon).
    over = max(float((frame["reverse"] - frame["reverse_bound"]).max()), 0.0)
    removal = pick(frame, kernel="membership")
    reached = (removal["exact"] - removal["bound"]).abs().max()
    comment = (
        f"in the other direction the loss is at most {over:.1e} above beta gamma delta, in this "
        "one it attains gamma delta"
    )
    return Finding(over <= EXCEEDED and reached <= EXCEEDED, comment)


# Properties of the curves of Figure 1 for all parameters


def curve(
    frames: Frames, panel: str, name: str, column: str = "delta", **fields: object
) -> pd.Series:
    """Return one curve on the grid, by x."""
    curve = pick(frames[CURVES], panel=panel, curve=name, point="grid", **fields)
    return curve.set_index("x")[column].sort_index()


def ends_at(delta: pd.Series, end: float) -> bool:
    """Return whether a curve is positive before, and 0 behind its end."""
    # Grid points next to the end are left out: the end lies between two of them.
    before, behind = delta[delta.index < end - ROUNDED], delta[delta.index > end + ROUNDED]
    return bool((before > 0).all() and (behind <= ROUNDED).all())


def same_start(frames: Frames) -> Finding:
    """Panel a: three mechanisms calibrated to one delta at 0, ordered from there on; two of them
    reach 0."""
    faults = []
    for start in sorted(pick(frames[CURVES], panel="a")["level"].unique()):
        panels = [
            curve(frames, "a", name, level=start)
            for name in ("randomised_response", "laplace", "gaussian")
        ]
        response, laplace, gaussian = panels
        # Randomised response is linear in e^epsilon, with the slope that all three share at 0: -(1
        # - delta(0)) / 2.
        slope = (response.iloc[1] - response.iloc[0]) / math.expm1(response.index[1])
        tests = {
            "start": max(abs(part.iloc[0] - start) for part in panels) <= ROUNDED,
            "order": bool(
                (response <= laplace + ROUNDED).all() and (laplace <= gaussian + ROUNDED).all()
            ),
            # p = (1 + delta(0)) / 2, so the end log(p / (1 - p)) follows from the start.
            "end of randomised response": ends_at(response, math.log((1 + start) / (1 - start))),
            # theta = -2 log(1 - delta(0)), where the Laplace profile reaches 0.
            "end of Laplace": ends_at(laplace, -2 * math.log1p(-start)),
            "Gaussian never ends": bool((gaussian > 0).all()),
            "slope": abs(slope + (1 - start) / 2) <= SLOPE,
        }
        faults += [f"{name} at delta {start:g}" for name, holds in tests.items() if not holds]
    return Finding(not faults, f"exceptions: {', '.join(faults) or 'none'}")


def gaussian_crossing(frames: Frames) -> Finding:
    """Panel b: WR is better at small epsilon', worse at large ones, and the curves cross once."""
    # Logarithms, so that a crossing at small delta is seen as well.
    difference = curve(frames, "b", "wr", "log_delta") - curve(frames, "b", "wor", "log_delta")
    crossings = difference.index[:-1][np.diff(np.sign(difference)) != 0]
    listed = ", ".join(f"{crossing:g}" for crossing in crossings) or "nowhere"
    crosses_once = bool(difference.iloc[0] < 0 < difference.iloc[-1] and len(crossings) == 1)
    return Finding(crosses_once, f"the curves cross after eps' = {listed}")


def laplace_ends(frames: Frames) -> Finding:
    """Panel c: the curve without replacement ends at base epsilon theta, the other one at m theta
    only."""
    ends, holds = {}, True
    for name in ("wor", "wr"):
        before, after = (
            pick(frames[CURVES], panel="c", curve=name, point=point).iloc[0]
            for point in ("before_end", "at_end")
        )
        # next to the end delta' may be far below the smallest float: its logarithm is what is
        # looked at
        holds &= bool(np.isfinite(before["log_delta"]) and after["delta"] <= ROUNDED)
        ends[name] = float(after["x"])
    holds &= ends_at(curve(frames, "c", "wor"), ends["wor"]) and bool(
        (curve(frames, "c", "wr") > 0).all()
    )
    return Finding(
        holds,
        ", ".join(f"{sampler_label(name)} ends at eps' = {end:.4g}" for name, end in ends.items()),
    )


def by_size(frames: Frames, panel: str, name: str) -> pd.DataFrame:
    """Return by x how much higher curves with replacement are than curves of another name, one
    column for each size m."""
    sizes = sorted(int(m) for m in pick(frames[CURVES], panel=panel)["m"].unique())
    if len(sizes) < 2:
        raise MissingRecordsError("this run has one size of groups only")
    return pd.DataFrame(
        {m: curve(frames, panel, "wr", m=m) - curve(frames, panel, name, m=m) for m in sizes}
    )


def group_effect(frames: Frames) -> Finding:
    """Panel d: the group effect grows with m/n, and with epsilon' up to the end of the other
    curve."""
    gaps = by_size(frames, "d", "wr_no_group")
    # Where the curve without groups is 0, the gap is the other curve, which falls.
    alive = {m: gaps[m][curve(frames, "d", "wr_no_group", m=m) > 0] for m in gaps}
    holds = bool(
        (gaps >= -ROUNDED).to_numpy().all()
        and all((np.diff(gap) > 0).all() for gap in alive.values())
    )
    # The gap grows with m at every epsilon', up to rounding.
    holds &= all(
        bool((gaps[more] > gaps[less] - ROUNDED).all()) for less, more in itertools.pairwise(gaps)
    )
    notes = ", ".join(f"m = {m}: {gaps[m].iloc[0]:.3g} at eps' = 0" for m in gaps)
    return Finding(holds, f"gap at {notes}")


def black_above_white(frames: Frames) -> Finding:
    """Panel e: black-box groups are never better."""
    # Both sums have the same weights, and black-box groups bound white-box ones (B013).
    least = -by_size(frames, "e", "wr_black_box").to_numpy().max()
    return Finding(bool(least >= 0), f"the difference is at least {least:.2g}")


PANELS: dict[str, tuple[str, Callable[[Frames], Finding]]] = {
    "B035": ("a", same_start),
    "B036": ("b", gaussian_crossing),
    "B037": ("c", laplace_ends),
    "B038": ("d", group_effect),
    "B039": ("e", black_above_white),
}


class BalleClaims(claims.Claims):
    """Statements of the paper: 1 where one holds, 0 where it fails."""

    name = "claims"
    caption = (
        "Statements of the paper, each computed from the records: 1 where it holds and 0 where it "
        "fails, as stated and with the correction of its erratum. The note gives the numbers that "
        "decide."
    )
    claims = (
        Claim("B001", "Theorem 1", agree(COUPLINGS, "events", 1e-10)),
        Claim(
            "B002",
            "Section 3",
            every(*(at_most(COUPLINGS, check) for check in ("range", "monotone", "convex"))),
        ),
        Claim(
            "B003",
            "Theorem 2",
            every(agree(COUPLINGS, "joint_convexity"), at_most(COUPLINGS, "joint_convexity_bound")),
        ),
        Claim(
            "B004",
            "Section 3",
            every(agree(COUPLINGS, "coupling_mass"), agree(COUPLINGS, "coupling_marginals")),
        ),
        Claim("B005", "Theorem 3", agree(PROFILES, "laplace_profile", 1e-8)),
        Claim("B006", "Theorem 3", largest_delta, (PROFILES,), column="delta"),
        *with_truth(Claim("B007", "Section 3", at_most(PROFILES, "gaussian_classical", 0.0))),
        Claim("B008", "Theorem 4", agree(PROFILES, "gaussian_profile", 1e-8)),
        Claim("B009", "Theorem 5", agree(PROFILES, "losses")),
        Claim(
            "B010",
            "Theorem 6",
            every(
                agree(PROFILES, "moment", 1e-6, relative=True),
                agree(PROFILES, "moment_outside", 0.0, relative=True),
            ),
        ),
        Claim(
            "B011",
            "Theorem 6",
            every(
                agree(PROFILES, "largest_moment", 1e-6, relative=True),
                at_most(PROFILES, "largest_moment_bound", 0.0),
            ),
        ),
        *with_truth(Claim("B012", "Section 3", at_most(PROFILES, "black_box"))),
        Claim("B013", "Section 3", at_most(PROFILES, "white_box")),
        Claim(
            "B014",
            "Theorem 7",
            every(
                agree(COUPLINGS, "transport", 1e-9), agree(COUPLINGS, "compatible_elsewhere", 0.0)
            ),
        ),
        Claim("B023", "Table 1", agree(PROFILES, "map", relative=True)),
        Claim("B025", "Section 4", rate_near, (PROFILES,)),
        Claim("B026", "Section 4", agree(COUPLINGS, "multinomial")),
        *with_truth(Claim("B027", "Section 5", agree(PROFILES, "response_guarantee"))),
        Claim("B028", "Section 5", agree(PROFILES, "response_profile")),
        Claim("B029", "Lemma 12", agree(COUPLINGS, "membership")),
        Claim("B033", "Theorem 10", agree(COUPLINGS, "copies")),
        Claim("B034", "Section 4", agree(COUPLINGS, "compatible_coupling", 0.0)),
        Claim("B040", "Sections 1 and 2", of_order, (PROFILES,)),
        Claim("B041", "Theorem 9", agree(PROFILES, "wor_full")),
        Claim("B042", "Theorem 8", larger_first, (ENUMERATION,)),
        *(
            Claim(
                claim,
                f"Theorem {number}",
                at_all(
                    number,
                    off_formula,
                    ROUNDED,
                    "within {largest:.1e} of the total variation distance at {n} points",
                    grows=0,
                ),
            )
            for claim, number in (("B015", 8), ("B017", 9), ("B019", 10), ("B021", 11))
        ),
        *(
            Claim(
                claim,
                f"Theorem {number}",
                at_all(number, loss, EXCEEDED, "{failing} of {n} exact losses are above the bound"),
            )
            for claim, number in LOSSES
        ),
        *with_truth(
            *(
                Claim(
                    claim,
                    "Theorem 13",
                    at_all(
                        number,
                        off_bound,
                        ROUNDED,
                        "the loss is within {largest:.1e} of the bound at {n} points",
                        kernel="membership",
                        grows=0,
                    ),
                )
                for claim, number in (("B030", 8), ("B031", 9), ("B032", 10))
            )
        ),
        *(
            Claim(
                claim,
                f"Theorem {number}",
                optimal(number),
                (OPTIMUM,),
                shared={ENUMERATION: (ENUMERATION, "stated")},
                variants=claims.RIGOROUS,
            )
            for claim, number in LOSSES
        ),
        *(
            Claim(
                claim,
                f"Figure 1{panel}",
                ask,
                (CURVES,),
                column="properties",
                variants=claims.STATED,
            )
            for claim, (panel, ask) in PANELS.items()
        ),
    )
