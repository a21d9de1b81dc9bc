"""Published comparisons of these schemes, checked against the tournament's brackets."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd

from dpsub.papers.tournament.tables import NOISE, PLACE, REGIMES, over_poisson, said
from dpsub.reproduce import claims
from dpsub.reproduce.claims import Claim, Finding, Frames, MissingRecordsError, pick, truth
from dpsub.reproduce.paired import REFERENCE

SMALL = REGIMES[0]
MOST = 0.096
"""Largest saving of noise of k of t allocation over Poisson sampling."""
SIMILAR = 1.02
"""More noise than Poisson's by no more than this factor counts as similar."""
NEAR = 0.9
"""A share of a fixed order's noise that counts as near it."""


def beside_poisson(frames: Frames, sampler: str) -> pd.DataFrame:
    """Return the settings of a scheme with known attacks under zero_out, the relation of all these
    statements."""
    settings = over_poisson(pick(frames[NOISE], adjacency="zero_out", sampler=(REFERENCE, sampler)))
    # Where no attack is known for one of both, an end of the bracket is missing.
    settings = settings.dropna(subset=["lower", "upper"])
    if settings.empty:
        raise MissingRecordsError(f"this run has no setting of {sampler} with an attack")
    return settings


def saves(frames: Frames) -> Finding:
    """Ask whether k of t needs less noise wherever the noise is small."""
    settings = pick(beside_poisson(frames, "k_of_t"), regime=SMALL)
    less, more = settings["upper"] < 1, settings["lower"] > 1
    # Both bounds of the bracket on one side of 1: no better proof or attack can turn it.
    note = (
        f"less noise in {less.sum()} of {len(settings)} settings with small noise, more in "
        f"{more.sum()}; the others are open"
    )
    return truth(less, more, note)


def at_most(frames: Frames) -> Finding:
    """Ask whether the noise falls by as much as 9.6 % in some setting."""
    settings = pick(beside_poisson(frames, "k_of_t"), regime=SMALL)
    # Percent saved: the lower bound of the ratio is the most that can be saved.
    saved = 100 * (1 - settings[["ratio", "lower", "upper"]])
    most = settings.nsmallest(1, "ratio").to_dict("records")[0]
    note = (
        f"the largest proved saving is {saved['ratio'].max():.1f} %, within a bracket of "
        f"{100 - 100 * most['upper']:.1f} to {100 - 100 * most['lower']:.1f} % ({said(most)}); the "
        f"median over {len(settings)} settings with small noise is {saved['ratio'].median():.1f} %"
    )
    return truth(
        # Proved if one setting is proved to save as much; refuted if none can, even at its best
        # end.
        [bool((saved["upper"] >= 100 * MOST).any())],
        [bool((saved["lower"] < 100 * MOST).all())],
        note,
    )


def similar(frames: Frames) -> Finding:
    """Ask whether balls in bins never need notably more noise than Poisson sampling."""
    settings = beside_poisson(frames, "random_allocation")
    within, beyond = settings["upper"] <= SIMILAR, settings["lower"] > SIMILAR
    note = (
        f"at most {100 * (SIMILAR - 1):.0f} % more noise in {within.sum()} of {len(settings)} "
        f"settings, more than that in {beyond.sum()}; the others are open; the proved noise is "
        f"{settings['ratio'].min():.3f} to {settings['ratio'].max():.3f} times Poisson's"
    )
    return truth(within, beyond, note)


def understated(frames: Frames) -> Finding:
    """Ask whether there are settings in which Poisson's noise is not enough for shuffled
    batches."""
    settings = beside_poisson(frames, "shuffle")
    above = settings["lower"] > 1
    note = (
        f"with Poisson's noise an attack exceeds the target in {above.sum()} of {len(settings)} "
        f"settings; the attack succeeds with up to {settings['lower'].max():.2f} times that noise"
    )
    # Refuted only if shuffling is proved to need no more noise everywhere.
    return truth([bool(above.any())], [bool((settings["upper"] <= 1).all())], note)


def near_fixed(frames: Frames) -> Finding:
    """Ask whether shuffled batches need nearly the noise of batches in a fixed order wherever that
    is small."""
    # The share is least where shuffling is at its refuted noise and the fixed order at its proved
    # noise, and largest the other way round.
    shuffled = beside_poisson(frames, "shuffle").set_index(PLACE)
    fixed = over_poisson(
        pick(frames[NOISE], adjacency="zero_out", sampler=(REFERENCE, "deterministic"))
    )
    fixed = fixed.set_index(PLACE)[["noise_multiplier", "necessary"]].add_prefix("fixed_")
    # Small noise is here that of the fixed order, to which the paper compares.
    both = shuffled.join(fixed, how="inner").query("fixed_noise_multiplier < 1")
    if both.empty:
        raise MissingRecordsError(
            "this run has no setting of both shuffled and fixed batches with small noise"
        )
    low, high = (
        both["necessary"] / both["fixed_noise_multiplier"],
        both["noise_multiplier"] / both["fixed_necessary"],
    )
    note = (
        f"an attack shows that at least {100 * low.min():.0f} % of the noise of a fixed order is "
        f"needed, at the median {100 * low.median():.0f} %, in {len(both)} settings in which that "
        "noise is below 1"
    )
    return truth(low >= NEAR, high < NEAR, note)


def put(claim: str, place: str, ask: Callable[[Frames], Finding]) -> tuple[Claim, ...]:
    """Return a published statement: as stated it holds; brackets decide the rigorous variant."""
    of = {NOISE: (NOISE, "rigorous")}

    def stated(frames: Frames) -> Finding:
        # As stated it holds: the paper says so.
        return Finding(1.0, ask(frames).note)

    return (
        Claim(claim, place, stated, shared=of, variants=claims.STATED),
        Claim(claim, place, ask, shared=of, variants=claims.RIGOROUS),
    )


class TournamentClaims(claims.Claims):
    name = "claims"
    title = "Published comparisons of these schemes"
    caption = (
        "Published statements about schemes of the tournament, checked in the zero-out settings "
        "of its grid against the noise that is proved and the noise that an attack refutes. "
        "Proved: these imply the statement in all settings, or one setting where the statement "
        "asks for one. Refuted: they contradict it. Open: neither. Small noise: a proved noise "
        "multiplier below 1, of Poisson sampling or, for the last statement, of a fixed order."
    )
    claims = (
        *put("k_of_t_saves", "arXiv 2605.07072, abstract", saves),
        *put("k_of_t_most", "arXiv 2605.07072, abstract", at_most),
        *put("balls_in_bins", "arXiv 2412.16802, abstract", similar),
        *put("shuffle_understated", "arXiv 2403.17673, abstract", understated),
        *put("shuffle_near_fixed", "arXiv 2403.17673", near_fixed),
    )
