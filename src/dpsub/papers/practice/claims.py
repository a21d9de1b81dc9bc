"""Statements about shuffled batches from texts that have no folder of their own, each with its
criterion."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd

from dpsub.papers.practice.settings import FIVE_EPOCHS, LONG_EPOCH
from dpsub.reproduce import claims
from dpsub.reproduce.claims import RIGOROUS, STATED, Claim, Finding, Frames, pick

STATEMENTS = "practice_statements"
BRACKETS = {1.0: (6.423, 7.97), 2.0: (0.338, 0.71)}
"""Noise multiplier -> the two bounds on epsilon that the manuscript states for five epochs."""
VARIATION = 0.01


def above_brackets(frames: Frames) -> Finding:
    """Ask whether epsilon of five epochs is larger than the lower bounds of the manuscript."""
    frame = pick(frames[STATEMENTS], epochs=FIVE_EPOCHS[0].epochs)
    bounds = frame["noise_multiplier"].map({noise: ends[0] for noise, ends in BRACKETS.items()})
    note = "an attack attains " + listed(frame["noise_multiplier"], frame["lower"])
    return claims.truth(frame["lower"] > bounds, frame["upper"] <= bounds, note)


def within_brackets(frames: Frames) -> Finding:
    """Ask whether no attack of ours exceeds the upper bounds of the manuscript."""
    # A comparison of their proof with our attack: that our proof is larger says nothing about it.
    frame = pick(frames[STATEMENTS], epochs=FIVE_EPOCHS[0].epochs)
    bounds = frame["noise_multiplier"].map({noise: ends[1] for noise, ends in BRACKETS.items()})
    attained = listed(frame["noise_multiplier"], frame["lower"])
    proved = listed(frame["noise_multiplier"], frame["upper"])
    return Finding(
        bool((frame["lower"] <= bounds).all()),
        f"an attack attains {attained}; proved here: {proved}",
    )


def listed(noises: pd.Series, epsilons: pd.Series) -> str:
    pairs = zip(noises, epsilons, strict=True)
    return " and ".join(f"{epsilon:.4g} at noise multiplier {noise:g}" for noise, epsilon in pairs)


def variation(frames: Frames) -> Finding:
    """Ask whether delta at epsilon = 0 of one long epoch is at most 0.01."""
    frame = pick(frames[STATEMENTS], n=LONG_EPOCH.n)
    note = f"an attack attains {frame['lower'].iloc[0]:.3g}, proved: {frame['upper'].iloc[0]:.3g}"
    return claims.truth(frame["upper"] <= VARIATION, frame["lower"] > VARIATION, note)


def stated(claim: str, place: str, ask: Callable[[Frames], Finding]) -> tuple[Claim, Claim]:
    """Return a statement about privacy: as it is made, and judged."""

    def as_made(frames: Frames) -> Finding:
        return Finding(1.0, ask(frames).note)

    of = {STATEMENTS: (STATEMENTS, "stated")}
    return (
        Claim(claim, place, as_made, shared=of, variants=STATED),
        Claim(claim, place, ask, shared=of, variants=RIGOROUS),
    )


class PracticeClaims(claims.Claims):
    name = "claims"
    title = "Statements of others about shuffled batches"
    caption = (
        "Statements about shuffled epochs in the abstract of van Dijk and Ertan (arXiv "
        "2605.06259) and in a public manuscript by Mausberg (repository "
        "adaptive-shuffled-gaussian-accounting, main.tex), judged by an attack and a proof."
    )
    claims = (
        *stated("five_epochs_attained", "Theorem 1", above_brackets),
        Claim("five_epochs_proved", "Theorem 1", within_brackets, (STATEMENTS,), variants=STATED),
        *stated("total_variation", "Abstract", variation),
    )
