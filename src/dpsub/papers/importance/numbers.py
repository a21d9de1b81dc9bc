"""Numbers of Fay, Mair and Sjölund's pages that take several cells of a run, for the placeholders
`numbers`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dpsub.papers.importance.labels import ATTACKS
from dpsub.reproduce.claims import MissingRecordsError
from dpsub.reproduce.report.cells import LookUp
from dpsub.reproduce.verdicts import NOT_REAL

CODES = {
    "as_done": "the released code",
    "stated": "the algorithm as stated",
    "consistent": "the repaired algorithm",
}


def attacks(cells: LookUp) -> Mapping[str, str]:
    """Return the property that each attack exploits, by the attack's name in the run."""
    return ATTACKS


def canaries(cells: LookUp) -> list[dict[str, Any]]:
    """Return the attacks that refute a promise, each with the codes whose promise it refutes."""
    flagged = cells.rows("audit", "flagged", attack="*")
    if flagged.empty:
        raise MissingRecordsError("this run plays no canaries")
    refuted = []
    for _, flags in flagged.iterrows():
        # A variant without a flag kept its promise in the draws, which refutes nothing.
        codes = [words for variant, words in CODES.items() if flags.get(variant) == 1]
        if codes:
            refuted.append({"attack": ATTACKS[flags["attack"]], "codes": codes})
    return refuted


def promised_and_shown(cells: LookUp) -> dict[str, tuple[float, float]]:
    """Return the loss that the released code promises, and the loss shown by each attack."""
    attacks = cells.rows("audit", "flagged", attack="*").get("attack", ())
    pairs = {}
    for attack in attacks:
        promised, shown = (
            cells.number("audit", column, "as_done", attack=attack)
            for column in ("promised", "shown")
        )
        pairs[ATTACKS[attack]] = (promised, shown)
    if not any(shown > promised for promised, shown in pairs.values()):
        raise MissingRecordsError("this run refutes no promise")
    return pairs


def most_refuted(cells: LookUp) -> dict[str, float]:
    """Return the promise that an attack refutes by the largest factor."""
    pairs = promised_and_shown(cells).values()
    promised, shown = max(pairs, key=lambda pair: pair[1] / pair[0])
    return {"promised": promised, "shown": shown}


def noise_of_uniform_sampling(cells: LookUp) -> dict[str, float]:
    """Return the noise of uniform sampling over that of coreset sampling at the same target and
    expected size: the smallest and the largest ratio of all cells."""
    key = ["dataset", "m", "epsilon"]
    uniform, coreset = (
        cells.rows("noise_scales", "beta_sum", sampler=name, **dict.fromkeys(key, "*"))
        for name in ("unif", "core")
    )
    if uniform.empty or coreset.empty:
        raise MissingRecordsError("this run lacks the noise of uniform or coreset sampling")
    both = uniform.merge(coreset, on=key, suffixes=("_uniform", "_coreset"))
    # Scales "as stated" follow from Table 1 alone: no stand-in enters the quotient.
    ratios = (both["stated_uniform"] / both["stated_coreset"]).dropna()
    if ratios.empty:
        raise MissingRecordsError("this run compares no noise")
    return {"least": ratios.min(), "most": ratios.max(), "cells": len(ratios)}


def budget_split(cells: LookUp) -> list[tuple[str, float]]:
    """Return the median cost of the repaired algorithm over that of the text, by real data set, on
    full data at the larger target of Figures 4 and 7."""
    # Full data have the two targets of Figures 4 and 7 only.
    costs = cells.rows("costs", "cost", dataset="*", sampler="full", epsilon="100")
    if costs.empty or not {"stated", "consistent"} <= {*costs}:
        raise MissingRecordsError("this run lacks the costs on full data")
    # No conclusion is drawn from data that stand in for the paper's.
    costs = costs[~costs["note"].str.contains(NOT_REAL, regex=False)]
    costs = costs.assign(ratio=costs["consistent"] / costs["stated"]).dropna(subset="ratio")
    if costs.empty:
        raise MissingRecordsError("this run compares no costs")
    return [(cell["dataset"], cell["ratio"]) for _, cell in costs.iterrows()]


def gains_of_delta(cells: LookUp) -> list[dict[str, Any]]:
    """Return the factor by which a delta reduces the proved epsilon of sums, by dimension and pure
    epsilon."""
    # "Rigorous" is the only variant: gains are proved upper bounds.
    gains = cells.rows("gain", "gain", topic="sums", sampler="full", d="*", epsilon="*")
    if gains.empty:
        raise MissingRecordsError("this run does not say what a delta gains")
    return [
        {"factor": gain["rigorous"], "d": gain["d"], "epsilon": gain["epsilon"]}
        for _, gain in gains.iterrows()
    ]
