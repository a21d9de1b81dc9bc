"""What a user should take from shuffled batches, and from the answers of other accountants."""

from __future__ import annotations

from functools import partial

import pandas as pd

from dpsub.papers.practice.settings import ACCOUNTANTS, UPPER
from dpsub.reproduce.labels import WORDS
from dpsub.reproduce.report.findings import Headline
from dpsub.reproduce.report.takeaways import Tables, Takeaways, listed

SETTING = ("mechanism", "sampler", "adjacency", "noise_multiplier", "steps", "delta")
SIZES = ("rate", "n", "m")


def answers(tables: Tables, accountant: str = "*") -> pd.DataFrame:
    """Return the judged answers of one accountant or of all, with the numbers `claimed`, `attained`
    and `proved`.

    The frame is empty where a run has none.
    """
    place = [*SETTING, *SIZES]
    found = [
        (
            tables.rows(
                "accountants",
                "holds",
                accountant=accountant,
                **dict.fromkeys(SETTING, "*"),
                **sizes,
            ),
            *(
                tables.rows("accountants", f"epsilon_{end}", **dict.fromkeys(SETTING, "*"), **sizes)
                for end in ("lower", "upper")
            ),
        )
        for sizes in ({"rate": "*"}, {"n": "*", "m": "*"})
    ]
    judged, lower, upper = (pd.concat(parts) for parts in zip(*found, strict=True))
    if judged.empty or "rigorous" not in judged:
        return pd.DataFrame()
    place = [name for name in place if name in judged]
    for name, frame in (("attained", lower), ("proved", upper)):
        judged = judged.merge(
            frame[[*place, "rigorous"]].rename(columns={"rigorous": name}), on=place
        )
    judged = judged.assign(claimed=pd.to_numeric(judged["printed"], errors="coerce"))
    return judged[judged["claimed"].notna()]


def counted(tables: Tables, accountant: str) -> str:
    """Say how many answers of an accountant are proved, refuted and open, and how far they are from
    an attack."""
    found = answers(tables, accountant)
    if found.empty:
        return ""
    verdicts = found["verdict"].value_counts()
    said = ", ".join(f"{verdicts.get(word, 0)} {word}" for word in ("proved", "refuted", "open"))
    off = 100 * (found["claimed"] / found["attained"] - 1)
    return (
        f"**{accountant}.** Meant as {ACCOUNTANTS[accountant]}s: {said}; {off.min():+.2f} % to "
        f"{off.max():+.2f} % from what an attack attains."
    )


def brackets(tables: Tables) -> pd.DataFrame:
    """Return the settings of shuffled batches with the epsilons `poisson`, `attained` and `proved`,
    empty if a run has none."""
    place = ["adjacency", "m", "epochs", "noise_multiplier"]
    poisson, lower, upper = (
        tables.rows("shuffling", f"epsilon_{name}", **dict.fromkeys(place, "*"))
        for name in ("poisson", "lower", "upper")
    )
    if poisson.empty or "rigorous" not in poisson:
        return pd.DataFrame()
    found = poisson[[*place, "rigorous"]].rename(columns={"rigorous": "poisson"})
    for name, frame in (("attained", lower), ("proved", upper)):
        found = found.merge(
            frame[[*place, "rigorous"]].rename(columns={"rigorous": name}), on=place
        )
    found = found.dropna().assign(noise=pd.to_numeric(found["noise_multiplier"]))
    return found.assign(factor=found["attained"] / found["poisson"])


def shuffled(tables: Tables) -> list[str]:
    """Say how far an attack on shuffled batches exceeds Poisson's epsilon, and where it meets what
    is proved."""
    found = brackets(tables)
    if found.empty:
        return []
    factor, most = found["factor"], found.sort_values("factor").iloc[-1]
    lines = [
        "**Shuffled batches.** At the same noise and adjacency an attack attains more than "
        f"Poisson's ε in {(factor > 1).sum()} of {len(found)} settings, up to {factor.max():.3g} "
        f"times as much: {most['attained']:.3g} where Poisson sampling has {most['poisson']:.3g} "
        f"(m = {most['m']}, epochs: {most['epochs']}, noise multiplier {most['noise']:g}, "
        f"{WORDS[most['adjacency']]})."
    ]
    share = found["attained"] / found["proved"]
    short = (found["proved"] - found["attained"]) / found["epochs"].astype(int)
    for adjacency in found["adjacency"].unique():
        own = found["adjacency"] == adjacency
        own &= found["noise"] == found.loc[own, "noise"].min()
        lines.append(
            f"**Small noise, {WORDS[adjacency]}.** At a noise multiplier of "
            f"{found.loc[own, 'noise'].min():g} the attack attains {100 * share[own].min():.3g} "
            f"to {100 * share[own].max():.3g} % of what is proved without any amplification; it "
            f"falls short by {short[own].min():.2g} to {short[own].max():.2g} for each epoch."
        )
    largest = found["noise"].max()
    high, apart = found["noise"] == largest, found["proved"] / found["attained"]
    lines.append(
        f"**Large noise, shuffled.** At a noise multiplier of {largest:g} the proof lies "
        f"{apart[high].min():.3g} to {apart[high].max():.3g} times above the attack, which "
        f"attains {factor[high].min():.3g} to {factor[high].max():.3g} times Poisson's ε: how "
        "much shuffling amplifies there is open."
    )
    return lines


def worst(tables: Tables) -> Headline | None:
    """How far an attack on shuffled batches exceeds the epsilon that is reported for them."""
    found = brackets(tables)
    if found.empty:
        return None
    largest = found.loc[found.groupby(["m", "epochs"])["factor"].idxmax()].sort_values(
        "factor", ascending=False
    )
    return Headline(
        "Poisson's ε is not that of shuffled batches: an attack exceeds it in "
        f"{(found['factor'] > 1).sum()} of {len(found)} settings, by a factor of up to "
        f"{found['factor'].max():.3g}.",
        "shuffling",
        shown={
            f"m = {m}, epochs: {epochs}": (float(poisson), float(attained))
            for m, epochs, poisson, attained in largest[
                ["m", "epochs", "poisson", "attained"]
            ].to_numpy()
        },
        words=("ε, Poisson", "ε of an attack"),
    )


def accountants(tables: Tables) -> Headline | None:
    """Whose upper bounds are refuted, and whose are not."""
    found = answers(tables)
    if found.empty:
        return None
    bounds = found[found["accountant"].map(ACCOUNTANTS) == UPPER]
    refuted = bounds[bounds["verdict"] == "refuted"]
    good = [
        name for name in bounds["accountant"].unique() if name not in set(refuted["accountant"])
    ]
    said = f"No attack exceeds an upper bound of {listed(good)}." if good else ""
    if not refuted.empty:
        one = (
            refuted.assign(factor=refuted["attained"] / refuted["claimed"])
            .sort_values("factor")
            .iloc[-1]
        )
        said += (
            f" {one['accountant']} answers ε = {one['claimed']:.3g} where "
            f"{one['attained']:.3g} is attained."
        )
    return Headline(said.strip(), "accountants", ("P1",), heading="Other accountants")


TAKEAWAYS = Takeaways(
    parts=(shuffled, *(partial(counted, accountant=name) for name in ACCOUNTANTS)),
    introduction=(
        "Shuffled batches at the noise of Poisson samples, and answers of other accountants at 60 "
        "kinds of releases, as recorded with their versions. An answer is proved or refuted by "
        "our two ends; what lies between them is open."
    ),
    worst=worst,
    best=accountants,
)
