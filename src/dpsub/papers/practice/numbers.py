"""Numbers of the pages on accounting in practice that take several cells of a run: what
placeholders `numbers` and `derived` ask for."""

from __future__ import annotations

from typing import Any

import pandas as pd

from dpsub.papers.practice.settings import ACCOUNTANTS, UPPER
from dpsub.reproduce.claims import MissingRecordsError
from dpsub.reproduce.labels import WORDS
from dpsub.reproduce.report.cells import LookUp

SETTING = ("mechanism", "sampler", "adjacency", "noise_multiplier", "steps", "delta")
SIZES = ("rate", "n", "m")
BATCHES = ["adjacency", "m", "epochs", "noise_multiplier"]


def answers(cells: LookUp, accountant: str = "*") -> pd.DataFrame:
    """Return the judged answers of one accountant or of all, with the numbers `claimed`, `attained`
    and `proved`."""
    any_setting = dict.fromkeys(SETTING, "*")
    holds, lower, upper = [], [], []
    # Poisson samples are recorded by rate, samples of fixed size by n and m.
    for sizes in ({"rate": "*"}, {"n": "*", "m": "*"}):
        question = {**any_setting, **sizes}
        holds.append(cells.rows("accountants", "holds", accountant=accountant, **question))
        lower.append(cells.rows("accountants", "epsilon_lower", **question))
        upper.append(cells.rows("accountants", "epsilon_upper", **question))
    judged = pd.concat(holds)
    if judged.empty or "rigorous" not in judged:
        raise MissingRecordsError("this run judges no accountant")
    keys = [name for name in (*SETTING, *SIZES) if name in judged]
    judged = with_end(judged, pd.concat(lower), keys, "attained")
    judged = with_end(judged, pd.concat(upper), keys, "proved")
    judged = judged.assign(claimed=pd.to_numeric(judged["printed"], errors="coerce"))
    # Rows without a printed answer: the accountant has no method there.
    judged = judged[judged["claimed"].notna()]
    if judged.empty:
        raise MissingRecordsError(f"this run has no answer of {accountant}")
    return judged


def with_end(rows: pd.DataFrame, ends: pd.DataFrame, keys: list[str], name: str) -> pd.DataFrame:
    """Return rows with one end of epsilon next to each, in a column of this name."""
    return rows.merge(ends[[*keys, "rigorous"]].rename(columns={"rigorous": name}), on=keys)


def verdicts_on(cells: LookUp, accountant: str) -> dict[str, Any]:
    """Return how many answers of an accountant are proved, refuted and open, and how far they are
    from an attack, in percent."""
    judged = answers(cells, accountant)
    counts = judged["verdict"].value_counts()
    # Against the attack: below 0 an upper bound is refuted by this many percent.
    difference = 100 * (judged["claimed"] / judged["attained"] - 1)
    return {
        "meant_as": ACCOUNTANTS[accountant],
        "counts": {verdict: counts.get(verdict, 0) for verdict in ("proved", "refuted", "open")},
        "least": difference.min(),
        "most": difference.max(),
    }


def upper_bounds(cells: LookUp) -> dict[str, Any]:
    """Return the accountants whose upper bounds no attack exceeds, and the answer that one exceeds
    most, if any."""
    judged = answers(cells)
    # An estimate is not called an upper bound by its author: it is not named among those that fail
    # as one.
    bounds = judged[judged["accountant"].map(ACCOUNTANTS) == UPPER]
    refuted = bounds[bounds["verdict"] == "refuted"]
    names = set(refuted["accountant"])
    exceeded = None
    if not refuted.empty:
        # The attack over the answer: by how much at least the answer is too small.
        factor = refuted["attained"] / refuted["claimed"]
        exceeded = refuted.loc[factor.sort_values().index[-1]]
    return {
        "good": [name for name in bounds["accountant"].unique() if name not in names],
        "exceeded": exceeded,
    }


def brackets(cells: LookUp) -> pd.DataFrame:
    """Return the settings of shuffled batches with the epsilons `poisson`, `attained` and
    `proved`."""
    any_batches = dict.fromkeys(BATCHES, "*")
    poisson, lower, upper = (
        cells.rows("shuffling", f"epsilon_{name}", **any_batches)
        for name in ("poisson", "lower", "upper")
    )
    if poisson.empty or "rigorous" not in poisson:
        raise MissingRecordsError("this run has no shuffled batches")
    settings = poisson[[*BATCHES, "rigorous"]].rename(columns={"rigorous": "poisson"})
    settings = with_end(settings, lower, BATCHES, "attained")
    settings = with_end(settings, upper, BATCHES, "proved").dropna()
    if settings.empty:
        raise MissingRecordsError("this run has no shuffled batches with both ends")
    return settings.assign(
        noise=pd.to_numeric(settings["noise_multiplier"]),
        # Above 1 Poisson's epsilon is refuted for shuffled batches.
        factor=settings["attained"] / settings["poisson"],
    )


def over_poisson(cells: LookUp) -> dict[str, Any]:
    """Return in how many settings an attack on shuffled batches exceeds Poisson's epsilon, and the
    setting in which it does by most."""
    settings = brackets(cells)
    most = settings.sort_values("factor").iloc[-1]
    return {
        "exceeding": int((settings["factor"] > 1).sum()),
        "settings": len(settings),
        "most": most,
        "adjacency": WORDS[most["adjacency"]],
    }


def small_noise(cells: LookUp, adjacency: str) -> dict[str, float]:
    """Return how much of what is proved an attack attains with the smallest noise, in percent, and
    by how much it falls short for each epoch."""
    settings = brackets(cells)
    own = settings[settings["adjacency"] == adjacency]
    if own.empty:
        raise MissingRecordsError(f"this run has no shuffled batches under {adjacency}")
    smallest = own[own["noise"] == own["noise"].min()]
    share = 100 * smallest["attained"] / smallest["proved"]
    # Per epoch: epochs compose, so that the gap grows with their number.
    short = (smallest["proved"] - smallest["attained"]) / smallest["epochs"].astype(int)
    return {
        "noise": smallest["noise"].min(),
        "least_share": share.min(),
        "most_share": share.max(),
        "least_short": short.min(),
        "most_short": short.max(),
    }


def large_noise(cells: LookUp) -> dict[str, float]:
    """Return how far proof and attack are apart with the largest noise, and the attack from
    Poisson's epsilon."""
    settings = brackets(cells)
    largest = settings[settings["noise"] == settings["noise"].max()]
    apart = largest["proved"] / largest["attained"]
    return {
        "noise": largest["noise"].max(),
        "least_apart": apart.min(),
        "most_apart": apart.max(),
        "least_factor": largest["factor"].min(),
        "most_factor": largest["factor"].max(),
    }


def poisson_and_attained(cells: LookUp) -> dict[str, tuple[float, float]]:
    """Return Poisson's epsilon and that of an attack, for the noise at which they are furthest
    apart, by batch size and epochs."""
    settings = brackets(cells)
    # One entry a size: the noise at which the practice understates most.
    furthest = settings.loc[settings.groupby(["m", "epochs"])["factor"].idxmax()]
    furthest = furthest.sort_values("factor", ascending=False)
    return {
        f"m = {setting['m']}, epochs: {setting['epochs']}": (
            float(setting["poisson"]),
            float(setting["attained"]),
        )
        for _, setting in furthest.iterrows()
    }


def most_over_poisson(cells: LookUp) -> float:
    """Return how many times Poisson's epsilon an attack on shuffled batches attains, at most."""
    return float(brackets(cells)["factor"].max())


def most_over_an_answer(cells: LookUp) -> float:
    """Return how many times the answer of an accountant that is refuted an attack attains, at
    most."""
    judged = answers(cells, "dp-accounting RDP")
    return float((judged["attained"] / judged["claimed"]).max())
