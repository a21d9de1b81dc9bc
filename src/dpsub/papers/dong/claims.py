"""Statements of Dong and Özgür, each with its criterion."""

from __future__ import annotations

import math

import pandas as pd

from dpsub.papers.dong.experiments import BALANCED, POISSON
from dpsub.reproduce import claims, statistics
from dpsub.reproduce.claims import (
    STATED,
    Claim,
    Finding,
    Frames,
    MissingRecordsError,
    Setting,
    about_privacy,
    pick,
    truth,
)

NOISE, CANDIDATES, SCREEN = "dong_noise", "dong_candidates", "dong_screen"
TWO, EXTREMES = "dong_two_steps", "dong_extremes"
SMALL = ("example", "cluster", "short")
"""Trainings with epsilon = 8, where the noise is small for the number of steps."""
MOST = 9.6
"""Largest saving of noise that the abstract names, in percent."""
NEGLIGIBLE = 1e-12
"""Deltas below are left out of ratios."""
ERRORS = 4.0
"""Standard errors of an estimate that count as its error."""


def beside(frame: pd.DataFrame, lower: str, upper: str, by: str) -> pd.DataFrame:
    """Return the least and the largest ratio of k of t steps to Poisson samples, by a column."""
    wide = frame.pivot(index=by, columns="sampler", values=[lower, upper])
    return pd.DataFrame(
        {
            "least": wide[lower, BALANCED] / wide[upper, POISSON],
            "most": wide[upper, BALANCED] / wide[lower, POISSON],
        }
    )


def noises(frames: Frames) -> pd.DataFrame:
    """Return the ratios of noise in the trainings with small noise."""
    frame = pick(frames[NOISE], training=SMALL)
    return beside(frame, "noise_lower", "noise_upper", "training")


def saves(frames: Frames) -> Finding:
    ratio = noises(frames)
    saved = 100 * (1 - ratio["most"])
    note = ", ".join(f"{name}: at least {value:.2g} % less" for name, value in saved.items())
    return truth(ratio["most"] < 1, ratio["least"] > 1, note)


def most(frames: Frames) -> Finding:
    """Ask whether some training saves as much as the abstract says."""
    ratio = noises(frames)
    saved = 100 * (1 - ratio["most"])
    note = f"at least {saved.max():.3g} % less in the {saved.idxmax()} training"
    none = 100 * (1 - ratio["least"]) < MOST
    return truth([bool((saved >= MOST).any())], [bool(none.all())], note)


def stronger(frames: Frames) -> Finding:
    """Ask whether one of two steps has at most the delta of Poisson samples, at every epsilon."""
    frame = frames[TWO]
    less = frame["one_upper"] < frame["poisson_lower"]
    more = frame["one_lower"] > frame["poisson_upper"]
    ratio = (frame["one_lower"] / frame["poisson_upper"])[more]
    note = f"one of two steps: less δ in {less.sum()} of {len(frame)} cases, more in {more.sum()}"
    if more.any():
        at = frame[more].iloc[int(ratio.argmax())]
        note += (
            f", at noise {at['noise']:g} and ε = {at['epsilon']:g} at least {ratio.max():.3g} times"
        )
    return truth(less, more, note)


def ends_of_noise(frames: Frames) -> Finding:
    """Ask whether epsilon is smaller at the smallest and at the largest noise."""
    ratio = beside(frames[EXTREMES], "epsilon_lower", "epsilon_upper", "noise")
    ratio = ratio.sort_index().iloc[[0, -1]]
    note = ", ".join(
        f"{row.least:.3f} to {row.most:.3f} times Poisson's ε at noise {noise:g}"
        for noise, row in ratio.iterrows()
    )
    return truth(ratio["most"] < 1, ratio["least"] > 1, note)


def visible(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the cases in which delta is not negligible."""
    return frame[frame["one"] >= NEGLIGIBLE]


def fixed_count(frames: Frames) -> Finding:
    """Ask whether equal chances of both steps have less delta than unequal ones."""
    frame = visible(frames[TWO])
    ratio = frame["skewed"] / frame["one"]
    note = f"unequal chances of two steps: {ratio.min():.4g} to {ratio.max():.4g} times as much δ"
    return Finding(bool((ratio >= 1 - claims.EQUAL).all()), note)


def forward(frames: Frames) -> Finding:
    """Ask whether the divergence of Q from P is never the larger one."""
    exact, drawn = visible(frames[TWO]), frames[CANDIDATES].dropna(subset=["forward"])
    ratio = exact["one_reverse"] / exact["one"]
    gap = drawn["reverse"] - drawn["forward"]
    error = (drawn["forward_error"] ** 2 + drawn["reverse_error"] ** 2) ** 0.5
    note = f"{ratio.min():.3g} to {ratio.max():.4g} times the other one in two steps"
    holds = (ratio <= 1 + claims.EQUAL).all() and (gap <= ERRORS * error).all()
    return Finding(bool(holds), note)


def near_exact(frames: Frames) -> Finding:
    """Ask whether the estimates agree with our two bounds."""
    frame = frames[CANDIDATES].dropna(subset=["forward"])
    if frame.empty:
        raise MissingRecordsError("this run has too few draws for an estimate")
    low = frame["forward"] - ERRORS * frame["forward_error"]
    high = frame["forward"] + ERRORS * frame["forward_error"]
    agree = (high >= frame["delta_lower"]) & (low <= frame["delta_upper"])
    note = f"within {ERRORS:g} standard errors of our bounds in {agree.sum()} of {len(frame)} cases"
    return Finding(bool(agree.all()), note)


def screened(frames: Frames) -> Finding:
    """Ask whether both screens are on the right side of the likelihood."""
    frame = frames[SCREEN]
    worst = float(frame[["below", "above"]].max().max())
    return Finding(worst <= claims.EQUAL, f"they miss the likelihood by at least {-worst:.3g} nats")


def left(frames: Frames) -> statistics.Estimate:
    frame = frames[SCREEN]
    draws = int(frame["draws"].iloc[0])
    share = float(frame["left"].iloc[0]) / draws
    return statistics.Estimate(share, math.sqrt(share * (1 - share) / draws), draws)


class DongClaims(claims.Claims):
    name = "claims"
    caption = (
        "Statements of the abstract and of the repository that can be read; the tables of noise "
        "for more than sixty settings cannot. Statements about privacy are judged by the noise "
        "that is proved and the noise that an attack refutes, where a record is replaced by 0. "
        "The accountant is written from its description; it draws fewer losses than the "
        "repository's example, at smaller ε."
    )
    claims = (
        *about_privacy("saves", "Abstract", saves, NOISE),
        *about_privacy("most", "Abstract", most, NOISE),
        *about_privacy("stronger", "Abstract", stronger, TWO),
        *about_privacy("extremes", "Abstract", ends_of_noise, EXTREMES),
        Claim("fixed_count", "Repository, README", fixed_count, (TWO,), variants=STATED),
        Claim("forward", "Repository, first state", forward, (TWO, CANDIDATES), variants=STATED),
        Claim("near_exact", "Abstract", near_exact, (CANDIDATES,), variants=STATED),
        Claim("screens", "Repository, ACCOUNTING", screened, (SCREEN,), variants=STATED),
        Claim("left", "Repository, benchmark", left, (SCREEN,), column="share", variants=STATED),
        Setting("example_steps", "T", f"{CANDIDATES}.example.steps"),
        Setting("example_chosen", "k", f"{CANDIDATES}.example.chosen"),
        Setting("example_epsilon", "epsilon", f"{CANDIDATES}.example.epsilon"),
        Setting("example_delta", "delta", f"{CANDIDATES}.example.delta"),
        Setting("example_draws", "draws", f"{CANDIDATES}.verified"),
        Setting("example_first", "sigma", f"{CANDIDATES}.noises.0"),
        Setting("example_last", "sigma", f"{CANDIDATES}.noises.2"),
        Setting("cluster_steps", "T", f"{NOISE}.cluster.steps"),
        Setting("cluster_chosen", "k", f"{NOISE}.cluster.chosen"),
        Setting("cluster_epsilon", "epsilon", f"{NOISE}.cluster.epsilon"),
        Setting("cluster_delta", "delta", f"{NOISE}.cluster.delta"),
        Setting("benchmark_steps", "T", f"{SCREEN}.benchmark.steps"),
        Setting("benchmark_chosen", "k", f"{SCREEN}.benchmark.chosen"),
        Setting("benchmark_epsilon", "epsilon", f"{SCREEN}.benchmark.epsilon"),
        Setting("benchmark_noise", "sigma", f"{SCREEN}.noise"),
    )
