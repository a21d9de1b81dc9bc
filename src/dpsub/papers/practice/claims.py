"""Statements about shuffled batches from texts that have no folder of their own, each with its
criterion."""

from __future__ import annotations

import pandas as pd

from dpsub.papers.practice.settings import FIVE_EPOCHS, LONG_EPOCH
from dpsub.reproduce import claims
from dpsub.reproduce.claims import STATED, Claim, Finding, Frames, Setting, about_privacy, pick

STATEMENTS = "practice_statements"


def above_brackets(frames: Frames) -> Finding:
    """Ask whether epsilon of five epochs is larger than the lower bounds of the manuscript."""
    frame = pick(frames[STATEMENTS], epochs=FIVE_EPOCHS[0].epochs)
    note = "an attack attains " + listed(frame["noise_multiplier"], frame["lower"])
    return claims.truth(frame["lower"] > frame["least"], frame["upper"] <= frame["least"], note)


def within_brackets(frames: Frames) -> Finding:
    """Ask whether no attack of ours exceeds the upper bounds of the manuscript."""
    # A comparison of their proof with our attack: that our proof is larger says nothing about it.
    frame = pick(frames[STATEMENTS], epochs=FIVE_EPOCHS[0].epochs)
    attained = listed(frame["noise_multiplier"], frame["lower"])
    proved = listed(frame["noise_multiplier"], frame["upper"])
    return Finding(
        bool((frame["lower"] <= frame["most"]).all()),
        f"an attack attains {attained}; proved here: {proved}",
    )


def listed(noises: pd.Series, epsilons: pd.Series) -> str:
    pairs = zip(noises, epsilons, strict=True)
    return " and ".join(f"{epsilon:.4g} at noise multiplier {noise:g}" for noise, epsilon in pairs)


def variation(frames: Frames) -> Finding:
    """Ask whether delta at epsilon = 0 of one long epoch is at most as large as is stated."""
    frame = pick(frames[STATEMENTS], n=LONG_EPOCH.n)
    note = f"an attack attains {frame['lower'].iloc[0]:.3g}, proved: {frame['upper'].iloc[0]:.3g}"
    return claims.truth(frame["upper"] <= frame["most"], frame["lower"] > frame["most"], note)


class PracticeClaims(claims.Claims):
    name = "claims"
    title = "Statements of others about shuffled batches"
    caption = (
        "Statements about shuffled epochs in the abstract of van Dijk and Ertan (arXiv "
        "2605.06259) and in a public manuscript by Mausberg (repository "
        "adaptive-shuffled-gaussian-accounting, main.tex), judged by an attack and a proof."
    )
    claims = (
        *about_privacy("five_epochs_attained", "Theorem 1", above_brackets, STATEMENTS),
        Claim("five_epochs_proved", "Theorem 1", within_brackets, (STATEMENTS,), variants=STATED),
        *about_privacy("total_variation", "Abstract", variation, STATEMENTS),
        Setting("least_at_1", "epsilon", f"{STATEMENTS}.grid.0.least"),
        Setting("most_at_1", "epsilon", f"{STATEMENTS}.grid.0.most"),
        Setting("least_at_2", "epsilon", f"{STATEMENTS}.grid.1.least"),
        Setting("most_at_2", "epsilon", f"{STATEMENTS}.grid.1.most"),
        Setting("most_variation", "delta", f"{STATEMENTS}.grid.2.most"),
    )
