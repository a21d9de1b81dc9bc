"""Statements of Feldman and Shenfeld, each with its criterion."""

from __future__ import annotations

import pandas as pd

from dpsub.papers.feldman.settings import ASKED, LOWER, PLD_ACCOUNTING, RANDOM_ALLOCATION
from dpsub.reproduce import claims
from dpsub.reproduce.claims import (
    STATED,
    Claim,
    Finding,
    Frames,
    Setting,
    about_privacy,
    pick,
    truth,
)

ANSWERS, BOUNDS = "feldman_answers", "feldman_bounds"
BY_POISSON = ("analytic", "recursive", "decomposition")
"""Methods that bound random allocation by Poisson samples."""
NEAR = 2.0
"""Ratio of two epsilons up to which they are called near each other."""
SEVERAL, HALF = 2, 0.5
"""Number of settings from which on they are several, and share above which they are many."""


def of_first_paper(frames: Frames) -> pd.DataFrame:
    """Return the upper bounds of the first paper's package, a column for each method, by question,
    infinite where a method says nothing; and our bounds."""
    frame = pick(frames[ANSWERS], package=RANDOM_ALLOCATION)
    frame = frame[frame["method"] != LOWER]
    wide = frame.pivot(index=[*ASKED], columns="method", values="claimed")
    wide = wide.reindex(columns=[*BY_POISSON, "direct"]).fillna(float("inf"))
    ends = frame.groupby([*ASKED])[
        ["allocation_lower", "allocation_upper", "poisson_lower", "poisson_upper"]
    ].first()
    return wide.assign(best=wide.min(axis=1)).join(ends)


def by_poisson(frames: Frames) -> Finding:
    """Ask whether the answers that bound random allocation by Poisson samples are guarantees."""
    frame = pick(frames[ANSWERS], package=RANDOM_ALLOCATION)
    frame = frame[frame["method"].isin(BY_POISSON)]
    ratio = frame["claimed"] / frame["allocation_upper"]
    note = f"{len(frame)} answers, {ratio.min():.4g} to {ratio.max():.4g} times our upper bound"
    return truth(frame["holds"] == 1, frame["holds"] == 0, note)


def improve(frames: Frames) -> Finding:
    """Ask whether decomposition and the Rényi divergences each give the smallest epsilon, below
    those at a larger rate, in several settings."""
    frame = of_first_paper(frames)
    least = frame[["analytic", "recursive"]].min(axis=1)
    better = {
        name: int(((frame[name] == frame["best"]) & (frame[name] < least)).sum())
        for name in ("decomposition", "direct")
    }
    note = ", ".join(f"{name} is the smallest in {n}" for name, n in better.items())
    holds = min(better.values()) >= SEVERAL
    return Finding(holds, f"{note} of {len(frame)} settings")


def nearly_tight(frames: Frames) -> Finding:
    """Ask whether the smallest answer is near the true epsilon in all settings."""
    frame = of_first_paper(frames)
    least, most = (
        frame["best"] / frame["allocation_upper"],
        frame["best"] / frame["allocation_lower"],
    )
    note = (
        f"the smallest answer is {least.min():.3f} to {least.max():.3f} times our upper bound in "
        f"{len(frame)} settings; near is taken as up to {NEAR:g} times"
    )
    return truth(most <= NEAR, least > NEAR, note)


def not_tight(frames: Frames) -> Finding:
    """Ask whether the smallest answer is above our proved bound in most settings."""
    frame = of_first_paper(frames)
    above = frame["best"] > frame["allocation_upper"]
    note = (
        f"a smaller ε than the smallest answer is proved in {above.sum()} of {len(frame)} settings"
    )
    possible = frame["best"] > frame["allocation_lower"]
    return truth([above.mean() > HALF], [possible.mean() <= HALF], note)


def close(frames: Frames) -> Finding:
    """Ask whether the smallest answer is near epsilon of Poisson samples in all settings."""
    frame = of_first_paper(frames)
    least, most = frame["best"] / frame["poisson_upper"], frame["best"] / frame["poisson_lower"]
    note = f"{least.min():.3f} to {most.max():.3f} times Poisson's ε in {len(frame)} settings"
    return truth((most <= NEAR) & (least >= 1 / NEAR), (least > NEAR) | (most < 1 / NEAR), note)


def as_good(frames: Frames) -> Finding:
    """Ask whether random allocation has no larger epsilon than Poisson samples."""
    frame = frames[BOUNDS]
    less = frame["allocation_upper"] <= frame["poisson_lower"]
    more = frame["allocation_lower"] > frame["poisson_upper"]
    note = f"ε is smaller in {less.sum()} of {len(frame)} settings, larger in {more.sum()}"
    return truth(less, more, note)


def several(frames: Frames) -> pd.DataFrame:
    """Return our bounds for more than one participation."""
    return pick(frames[BOUNDS], k=lambda k: k > 1)


def epochs_above(frames: Frames) -> Finding:
    """Ask whether k epochs of 1 of t/k steps have at least the epsilon of k of t steps."""
    frame = several(frames)
    ratio = frame["epochs_lower"] / frame["allocation_upper"]
    note = f"at least {ratio.min():.4f} to {ratio.max():.4f} times what is proved of k of t steps"
    above = frame["epochs_lower"] >= frame["allocation_upper"]
    return truth(above, frame["epochs_upper"] < frame["allocation_lower"], note)


def lower_of_several(frames: Frames) -> Finding:
    """Ask whether the lower bounds for more than one participation are bounds on k of t steps."""
    frame = pick(frames[ANSWERS], package=PLD_ACCOUNTING, method=LOWER, k=lambda k: k > 1)
    ratio = frame["claimed"] / frame["allocation_upper"]
    note = f"{ratio.min():.4f} to {ratio.max():.4f} times what is proved, in {len(frame)} settings"
    return truth(frame["holds"] == 1, frame["holds"] == 0, note)


class FeldmanClaims(claims.Claims):
    name = "claims"
    caption = (
        "Statements of both abstracts and of a README, judged by our two bounds on ε where a "
        "record is replaced by 0, at settings of the experiments of random-allocation 1.0.5. "
        "Answers are those of the packages; theorems, figures and their numbers could not be read."
    )
    claims = (
        *about_privacy("by_poisson", "2502.08202, abstract", by_poisson, ANSWERS),
        Claim("improve", "2502.08202, abstract", improve, (ANSWERS,), variants=STATED),
        *about_privacy("nearly_tight", "2502.08202, abstract", nearly_tight, ANSWERS),
        *about_privacy("not_tight", "2602.17284, abstract", not_tight, ANSWERS),
        *about_privacy("close", "2602.17284, abstract", close, ANSWERS),
        *about_privacy("as_good", "2602.17284, abstract", as_good, BOUNDS),
        *about_privacy("epochs_above", "PLD_accounting, README", epochs_above, BOUNDS),
        *about_privacy("lower_of_several", "PLD_accounting, README", lower_of_several, ANSWERS),
        Setting("fifth_few", "t", f"{BOUNDS}.questions.0.t"),
        Setting("fifth_more", "t", f"{BOUNDS}.questions.1.t"),
        Setting("fifth_most", "t", f"{BOUNDS}.questions.2.t"),
        Setting("fifth_delta", "delta", f"{BOUNDS}.questions.0.delta"),
        Setting("third_noise", "sigma", f"{BOUNDS}.questions.3.noise"),
        Setting("third_delta", "delta", f"{BOUNDS}.questions.3.delta"),
        Setting("fourth_steps", "t", f"{BOUNDS}.questions.4.t"),
        Setting("fourth_noise", "sigma", f"{BOUNDS}.questions.4.noise"),
        Setting("fourth_delta", "delta", f"{BOUNDS}.questions.4.delta"),
    )
