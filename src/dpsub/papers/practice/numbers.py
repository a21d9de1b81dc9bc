"""Numbers of the pages on accounting in practice that take several cells of a run: what
placeholders `numbers` and `derived` ask for."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import pandas as pd

from dpsub.papers.practice.settings import ACCOUNTANTS, UPPER
from dpsub.reproduce.claims import MissingRecordsError
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


def accountants(cells: LookUp) -> list[dict[str, Any]]:
    """Return for each accountant how many of its answers are proved, refuted and open, and the
    least and the largest ratio of an answer to the epsilon that an attack attains."""
    judged = answers(cells)
    # Below 1 an upper bound is refuted.
    judged = judged.assign(ratio=judged["claimed"] / judged["attained"])
    found = []
    for name, meant_as in ACCOUNTANTS.items():
        own = judged[judged["accountant"] == name]
        if own.empty:
            continue
        counts = own["verdict"].value_counts()
        found.append(
            {
                "name": name,
                "meant_as": meant_as,
                "answers": len(own),
                **{verdict: counts.get(verdict, 0) for verdict in ("proved", "refuted", "open")},
                "least": own["ratio"].min(),
                "most": own["ratio"].max(),
            }
        )
    return found


def refuted_answers(cells: LookUp, accountant: str) -> list[dict[Hashable, Any]]:
    """Return the refuted answers of an accountant, the furthest from the attack first."""
    judged = answers(cells, accountant)
    refuted = judged[judged["verdict"] == "refuted"]
    if refuted.empty:
        raise MissingRecordsError(f"this run refutes no answer of {accountant}")
    refuted = refuted.assign(
        release=[release_in_words(row) for row in refuted.to_dict("records")],
        ratio=refuted["attained"] / refuted["claimed"],
    )
    return refuted.sort_values("ratio", ascending=False).to_dict("records")


def release_in_words(setting: Mapping[Hashable, Any]) -> str:
    """Return the releases of a setting in words, such as "128 samples of 16 of 1,000 records"."""
    steps = int(setting["steps"])
    if setting["sampler"] == "wor":
        drawn = f"of {int(setting['m']):,} of {int(setting['n']):,} records without replacement"
        words = f"{_counted(steps, 'sample')} {drawn}"
    elif setting["rate"] == "1":
        words = f"{_counted(steps, 'sum')} of all records"
    else:
        words = f"{_counted(steps, 'Poisson sample')} at rate {setting['rate']}"
    return words + (", Laplace noise" if setting["mechanism"] == "laplace" else "")


def _counted(number: int, noun: str) -> str:
    return f"one {noun}" if number == 1 else f"{number:,} {noun}s"


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
    """Return in how many settings an attack on shuffled batches exceeds Poisson's epsilon, by how
    much at most, and for each adjacency, batch size and number of epochs the noise at which it
    does so by most."""
    settings = brackets(cells)
    furthest = settings.groupby(["adjacency", "m", "epochs"], sort=False)["factor"].idxmax()
    return {
        "exceeding": int((settings["factor"] > 1).sum()),
        "settings": len(settings),
        "most": settings["factor"].max(),
        "rows": settings.loc[furthest].to_dict("records"),
    }


def gap(cells: LookUp) -> list[dict[str, Any]]:
    """Return, for the smallest and the largest noise under each adjacency, how far the proof lies
    above the attack, and the attack above Poisson's epsilon: the least and the largest ratio."""
    settings = brackets(cells)
    settings = settings.assign(apart=settings["proved"] / settings["attained"])
    found = []
    for noise in (settings["noise"].min(), settings["noise"].max()):
        at_noise = settings[settings["noise"] == noise]
        for adjacency, own in at_noise.groupby("adjacency", sort=False):
            found.append(
                {
                    "adjacency": adjacency,
                    "noise_multiplier": noise,
                    "apart": (own["apart"].min(), own["apart"].max()),
                    "over_poisson": (own["factor"].min(), own["factor"].max()),
                }
            )
    return found


def poisson_and_attained(cells: LookUp) -> dict[str, tuple[float, float]]:
    """Return Poisson's epsilon and that of an attack, for the noise at which they are furthest
    apart, by batch size and epochs."""
    settings = brackets(cells)
    # One entry a size: the noise at which the practice understates most.
    furthest = settings.loc[settings.groupby(["m", "epochs"])["factor"].idxmax()]
    furthest = furthest.sort_values("factor", ascending=False)
    return {
        f"m = {setting['m']}, {_counted(int(setting['epochs']), 'epoch')}": (
            float(setting["poisson"]),
            float(setting["attained"]),
        )
        for _, setting in furthest.iterrows()
    }


def most_over_poisson(cells: LookUp) -> float:
    """Return the largest ratio of what an attack on shuffled batches attains to Poisson's
    epsilon."""
    return float(brackets(cells)["factor"].max())


def most_over_an_answer(cells: LookUp) -> float:
    """Return the largest ratio of what an attack attains to a refuted answer."""
    judged = answers(cells, "dp-accounting RDP")
    return float((judged["attained"] / judged["claimed"]).max())
