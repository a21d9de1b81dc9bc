"""The statements of the paper, each as a predicate on pairs of numbers or on the enumeration's records."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd

from dpsub.papers.balle.artefacts.figure_properties import CURVES, PROPERTIES
from dpsub.reproduce.predicates import Finding, Frames, Statement, pick

PROFILES, COUPLINGS, ENUMERATION = "balle_profiles", "balle_couplings", "balle_enumeration"
VARIANTS = ("stated", "consistent")
Ask = Callable[[Frames], Finding]


def _deviation(frame: pd.DataFrame, relative: bool) -> np.ndarray:
    size = np.maximum(1.0, np.abs(frame["reference"].to_numpy())) if relative else 1.0
    return np.asarray((frame["computed"].to_numpy() - frame["reference"].to_numpy()) / size)


def equal(experiment: str, tolerances: dict[str, float], *, relative: bool = False) -> Ask:
    """Return the question whether every case of the named checks agrees within its tolerance."""

    def ask(frames: Frames) -> Finding:
        holds, notes = True, []
        for check, tolerance in tolerances.items():
            frame = pick(frames[experiment], check=check)
            apart = np.abs(_deviation(frame, relative))
            bad = int((~(apart <= tolerance)).sum())
            worst = frame.iloc[int(np.argmax(apart))]
            holds &= bad == 0
            note = f"{check.replace('_', ' ')}: {bad} of {len(frame)} cases differ"
            notes.append(f"{note}, at {worst['case']} {worst['computed']:.6g} against {worst['reference']:.6g}"
                         if bad else note)
        return Finding(holds, ", ".join(notes))

    return ask


def at_most(experiment: str, tolerances: dict[str, float]) -> Ask:
    """Return the question whether the first number of every case is at most the second one, up to a tolerance."""

    def ask(frames: Frames) -> Finding:
        holds, notes = True, []
        for check, tolerance in tolerances.items():
            frame = pick(frames[experiment], check=check)
            over = _deviation(frame, relative=False)
            bad = int((~(over <= tolerance)).sum())
            holds &= bad == 0
            notes.append(f"{check.replace('_', ' ')}: {bad} of {len(frame)} cases above, nearest {over.max():.3g}")
        return Finding(holds, ", ".join(notes))

    return ask


def both(*questions: Ask) -> Ask:
    """Return the question whether all of several hold."""

    def ask(frames: Frames) -> Finding:
        answers = [question(frames) for question in questions]
        return Finding(all(answer.holds for answer in answers), ", ".join(answer.note for answer in answers))

    return ask


def _theorem(frames: Frames, number: int) -> pd.DataFrame:
    return pick(frames[ENUMERATION], theorem=f"Theorem {number}")


def eta_of(number: int) -> Ask:
    """Return the question whether the printed eta is the total variation distance, for every pair of neighbours."""

    def ask(frames: Frames) -> Finding:
        frame = pick(_theorem(frames, number), grows=0)
        apart = np.abs(frame[["eta", "distance"]].to_numpy() - frame[["formula"]].to_numpy()).max()
        return Finding(bool(apart <= 1e-12), f"within {apart:.1e} of the distance at {len(frame)} points")

    return ask


def bound_of(number: int) -> Ask:
    """Return the question whether no exact loss exceeds the bound, in both directions and for every kernel."""

    def ask(frames: Frames) -> Finding:
        frame = _theorem(frames, number)
        exact, bound = frame[["exact", "reverse"]].max(axis=1).to_numpy(), frame["bound"].to_numpy()
        over = exact - bound
        worst = frame.iloc[int(np.argmax(over))]
        note = f"{int((over > 1e-10).sum())} of {len(frame)} exact losses above the bound"
        if over.max() > 1e-10:
            note += (f", at n = {worst['n']}, {worst['size']:g}, eps' = {worst['epsilon_amplified']:.3g} "
                     f"{exact[np.argmax(over)]:.6g} against {worst['bound']:.6g}")
        return Finding(bool(over.max() <= 1e-10), note)

    return ask


def attained(number: int) -> Ask:
    """Return the question whether membership has exactly the bound's loss at every point."""

    def ask(frames: Frames) -> Finding:
        frame = pick(_theorem(frames, number), kernel="membership", grows=0)
        apart = np.abs(frame[["exact", "reverse"]].max(axis=1) - frame["bound"]).max()
        return Finding(bool(apart <= 1e-12), f"within {apart:.1e} at {len(frame)} points")

    return ask


def larger_first(frames: Frames) -> Finding:
    """Theorem 8, proof: the loss of the smaller data set against the larger one is at most beta gamma delta(eps)."""
    frame = _theorem(frames, 8)
    over = float((frame["reverse"] - frame["reverse_bound"]).max())
    removal = pick(frame, kernel="membership")
    reached = float(np.abs(removal["exact"] - removal["bound"]).max())
    return Finding(over <= 1e-10 and reached <= 1e-10,
                  f"other direction at most {max(over, 0.0):.1e} above beta gamma delta, this one attains gamma delta")


def rate_near(frames: Frames) -> Finding:
    """Section 4: 1 - (1 - 1/n)^m is near gamma = m/n, within gamma^2 / 2."""
    frame = pick(frames[PROFILES], check="wr_rate")
    eta, rate = frame["computed"].to_numpy(), frame["reference"].to_numpy()
    share = np.abs(eta - rate)
    return Finding(bool((share <= rate**2 / 2).all()),
                  f"relative error {(share / rate).min():.3g} at gamma = {rate[np.argmin(share / rate)]:g} to "
                  f"{(share / rate).max():.3g} at gamma = {rate[np.argmax(share / rate)]:g}")


def of_order(frames: Frames) -> Finding:
    """Section 1: eps' / (eta eps) - 1 is eps/2 (1 - eta) to first order; the second-order term is below eps^2."""
    frame = pick(frames[PROFILES], check="small_rate")
    epsilon = frame["case"].str.extract(r"epsilon=(\S+)")[0].astype(float).to_numpy()
    excess = frame["computed"].to_numpy() / frame["reference"].to_numpy() - 1
    return Finding(bool((np.abs(excess) <= epsilon / 2 + epsilon**2).all()),
                  f"largest eps'/(eta eps) - 1: {excess.max():.3g} at eps = {epsilon[np.argmax(excess)]:g}")


def _statement(row: str, experiment: str, ask: Ask) -> Statement:
    return Statement(row, (experiment,), ask, variants=VARIANTS)


IDENTITIES: dict[str, tuple[str, Ask]] = {
    "B001": (COUPLINGS, equal(COUPLINGS, {"events": 1e-10})),
    "B002": (COUPLINGS, at_most(COUPLINGS, {"range": 1e-12, "monotone": 1e-12, "convex": 1e-12})),
    "B003": (COUPLINGS, both(equal(COUPLINGS, {"joint_convexity": 1e-12}),
                             at_most(COUPLINGS, {"joint_convexity_bound": 1e-12}))),
    "B004": (COUPLINGS, equal(COUPLINGS, {"coupling_mass": 1e-12, "coupling_marginals": 1e-12})),
    "B005": (PROFILES, equal(PROFILES, {"laplace_profile": 1e-8})),
    "B007": (PROFILES, at_most(PROFILES, {"gaussian_classical": 0.0})),
    "B008": (PROFILES, equal(PROFILES, {"gaussian_profile": 1e-8})),
    "B009": (PROFILES, equal(PROFILES, {"losses": 1e-12})),
    "B010": (PROFILES, equal(PROFILES, {"moment": 1e-6, "moment_outside": 0.0}, relative=True)),
    "B011": (PROFILES, both(equal(PROFILES, {"largest_moment": 1e-6}, relative=True),
                            at_most(PROFILES, {"largest_moment_bound": 0.0}))),
    "B012": (PROFILES, at_most(PROFILES, {"black_box": 1e-12})),
    "B013": (PROFILES, at_most(PROFILES, {"white_box": 1e-12})),
    "B014": (COUPLINGS, equal(COUPLINGS, {"transport": 1e-9, "compatible_elsewhere": 0.0})),
    "B023": (PROFILES, equal(PROFILES, {"map": 1e-12}, relative=True)),
    "B025": (PROFILES, rate_near),
    "B026": (COUPLINGS, equal(COUPLINGS, {"multinomial": 1e-12})),
    "B027": (PROFILES, equal(PROFILES, {"response_guarantee": 1e-12})),
    "B028": (PROFILES, equal(PROFILES, {"response_profile": 1e-12})),
    "B029": (COUPLINGS, equal(COUPLINGS, {"membership": 1e-12})),
    "B033": (COUPLINGS, equal(COUPLINGS, {"copies": 1e-12})),
    "B034": (COUPLINGS, equal(COUPLINGS, {"compatible_coupling": 0.0})),
    "B040": (PROFILES, of_order),
    "B041": (PROFILES, equal(PROFILES, {"wor_full": 1e-12})),
}  # fmt: skip
BOUNDS: dict[str, Ask] = {
    "B015": eta_of(8), "B016": bound_of(8), "B017": eta_of(9), "B018": bound_of(9), "B019": eta_of(10),
    "B020": bound_of(10), "B021": eta_of(11), "B022": bound_of(11), "B024": bound_of(14), "B030": attained(8),
    "B031": attained(9), "B032": attained(10), "B042": larger_first,
}  # fmt: skip
STATEMENTS = (
    *(_statement(row, experiment, ask) for row, (experiment, ask) in IDENTITIES.items()),
    *(_statement(row, ENUMERATION, ask) for row, ask in BOUNDS.items()),
    *(Statement(row, (CURVES,), ask, column="properties", variants=("stated",))
      for row, (_, ask) in PROPERTIES.items()),
)
