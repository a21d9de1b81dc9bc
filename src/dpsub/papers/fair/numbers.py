"""Numbers for the pages of the fair comparison, for the placeholders `numbers`.

Nothing here knows the outcome: numbers are looked up and compared, and the cells that a paragraph
rests on are shown below it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pandas as pd

from dpsub.papers.fair.paired import label_of
from dpsub.reproduce.claims import MissingRecordsError
from dpsub.reproduce.paired import REFERENCE
from dpsub.reproduce.report.cells import LookUp
from dpsub.sampling import REGISTRY

# MUST.OO, two stages without replacement, draws a simple random sample again.
SAME_LAW = ("wor", "must_oo")
BLOCK = ["dataset", "epsilon"]
PLACE = [*BLOCK, "sampler"]
SETTING = [*BLOCK, "steps", "m", "sampler"]
RELATIONS = ("noise_multiplier", "noise_add_remove", "noise_zero_out")
"""Quantities of the noise that is proved under substitution, add/remove and zero-out."""
VALUE, ENDS = ("value",), ("lower", "upper")


def quantity(
    cells: LookUp, table: str, column: str, variant: str = "rigorous", **fields: str
) -> pd.DataFrame:
    """Return the numbers of one quantity, each with the ends of its interval: a row for each data
    set, target and sampler."""
    rows = cells.rows(table, column, dataset="*", epsilon="*", **(fields or {"sampler": "*"}))
    columns = {variant: "value", f"{variant}_lower": "lower", f"{variant}_upper": "upper"}
    # A run without intervals lacks the columns of the ends: they are blank here.
    numbers = rows.reindex(columns=[*PLACE, *columns]).rename(columns=columns)
    numbers = numbers.dropna(subset="value").assign(table=table, column=column, variant=variant)
    return known(numbers)


def known(numbers: pd.DataFrame) -> pd.DataFrame:
    """Return the frame; raises MissingRecordsError where it is empty."""
    if numbers.empty:
        raise MissingRecordsError("this run lacks the numbers of a statement")
    return numbers


def shown(numbers: pd.DataFrame, ends: Iterable[str] = VALUE) -> pd.DataFrame:
    """Return numbers as the report lists them, one line for each number and each of these ends."""
    lines = numbers.melt(
        [*PLACE, "table", "column", "variant"], list(ends), "end", "number", ignore_index=False
    )
    words = lines["end"].map({"value": "", "lower": " lower", "upper": " upper"})
    listed = pd.DataFrame(
        {
            "table": "fair/" + lines["table"],
            "data set": lines["dataset"],
            "ε": lines["epsilon"],
            "sampler": lines["sampler"],
            "quantity": lines["column"].str.replace("_", " "),
            "variant": lines["variant"] + words,
            "number": lines["number"].map("{:.6g}".format),
        }
    )
    return listed.sort_index(kind="stable")


def over_poisson(numbers: pd.DataFrame, of: pd.DataFrame) -> pd.DataFrame:
    """Return the numbers of all samplers but Poisson, with their `ratio` to Poisson's number in
    `of` in the same block."""
    # No ratio to a loss of 0, nor to a Poisson row that a run lacks.
    base = of[(of["sampler"] == REFERENCE) & (of["value"] > 0)].set_index(BLOCK)["value"]
    others = numbers[numbers["sampler"] != REFERENCE]
    others = others.join(base.rename("base"), on=BLOCK, how="inner")
    return known(others.assign(ratio=others["value"] / others["base"]))


def differences(cells: LookUp) -> pd.DataFrame:
    """Return the paired differences from Poisson that have an interval."""
    numbers = quantity(cells, "winners", "difference_to_poisson")
    return known(numbers.dropna(subset=list(ENDS)))


def labels(samplers: Iterable[str]) -> list[str]:
    """Return the names under which samplers are shown."""
    return [label_of(sampler) for sampler in samplers]


def best_samplers(cells: LookUp) -> dict[str, Any]:
    """Return the number of comparisons in which each sampler is among the best, and the samplers
    with the largest number."""
    best = quantity(cells, "winners", "among_the_best")
    by_sampler = best.groupby("sampler", sort=False)["value"]
    comparisons = best.groupby(BLOCK).ngroups
    # A sampler that some comparisons lack, as a chain does, cannot be counted against all.
    is_in_all = by_sampler.size() == comparisons
    counts = by_sampler.sum()[is_in_all].astype(int)
    most = counts.max() if len(counts) else 0
    cells.show(shown(best[best["value"] == 1]))
    return {
        "comparisons": comparisons,
        "most": most,
        "leaders": labels(counts.index[counts == most]),
        "counts": [(label_of(str(name)), count) for name, count in counts.items()],
    }


def differences_from_poisson(cells: LookUp) -> dict[str, Any]:
    """Return for each sampler the side of zero on which its intervals lie, and the largest
    difference relative to Poisson's loss."""
    losses = quantity(cells, "winners", "loss")
    intervals = over_poisson(differences(cells), losses)
    # An interval that holds zero shows no difference, whichever way its middle lies.
    intervals = intervals.assign(worse=intervals["lower"] > 0, better=intervals["upper"] < 0)
    rows = []
    for sampler, own in intervals.groupby("sampler", sort=False):
        worse, better = int(own["worse"].sum()), int(own["better"].sum())
        rows.append(
            {
                "sampler": label_of(str(sampler)),
                "intervals": len(own),
                "worse": worse,
                "better": better,
                "not_shown": len(own) - worse - better,
            }
        )
    sizes = intervals["ratio"].abs()
    largest = intervals[sizes == sizes.max()].head(1)
    base = losses[losses["sampler"] == REFERENCE].merge(largest[BLOCK])
    cells.show(shown(largest, (*VALUE, *ENDS)), shown(base))
    return {
        "rows": rows,
        "largest": largest.iloc[0],
        "sampler": label_of(largest.iloc[0]["sampler"]),
    }


def noise_at_equal_privacy(cells: LookUp) -> dict[str, Any]:
    """Return the noise of each sampler over Poisson's, from the least to the most."""
    noise = quantity(cells, "measures", "noise_multiplier")
    ratios = over_poisson(noise, noise)
    spans = ratios.groupby("sampler", sort=False)["ratio"].agg(["min", "max"])
    cells.show(shown(noise))
    return {
        "comparisons": len(ratios),
        "poisson_least": int((ratios["ratio"] >= 1).sum()),
        "spans": [(label_of(name), low, high) for name, low, high in spans.itertuples()],
    }


def noise_that_is_refuted(cells: LookUp) -> dict[str, int]:
    """Return the number of settings with another sampler in which an attack exceeds the target at
    the noise that is enough for Poisson."""
    necessary = by_setting(cells, "necessary", "*")
    poisson = by_setting(cells, "noise_multiplier", REFERENCE).droplevel("sampler")
    others = necessary[necessary.index.get_level_values("sampler") != REFERENCE]
    both = others.to_frame().join(poisson, how="inner")
    # An attack at Poisson's noise refutes every better proof for the other sampler.
    refuted = both["necessary"] >= both["noise_multiplier"]
    return {"refuted": int(refuted.sum()), "settings": len(both)}


def by_setting(cells: LookUp, column: str, sampler: str) -> pd.Series:
    """Return one quantity of the table of noise by data set, target, steps, m and sampler."""
    parts = []
    # Samplers of one stage have no b, and a look-up matches fields that are there.
    for b in ("", "*"):
        at = {"steps": "*", "sampler": sampler, "m": "*", "b": b}
        try:
            numbers = quantity(cells, "noise", column, **at)
        except MissingRecordsError:
            continue
        cells.show(shown(numbers))
        sizes = cells.rows("noise", column, dataset="*", epsilon="*", **at)[["steps", "m"]]
        parts.append(numbers.join(sizes).set_index(SETTING)["value"])
    if not parts:
        raise MissingRecordsError(f"this run lacks the column {column} of the table of noise")
    return pd.concat(parts).rename(column)


def cheapest_sampler(cells: LookUp) -> dict[str, Any]:
    """Return the share of gradients that the cheapest sampler saves, and the number of cases in
    which its loss is larger."""
    gradients = quantity(cells, "measures", "gradients_expected")
    ratios = over_poisson(gradients, gradients)
    cheapest = ratios.iloc[ratios["ratio"].argmin()]
    own = ratios[ratios["sampler"] == cheapest["sampler"]]
    intervals = own[PLACE].merge(differences(cells))
    # The pair that the sentence compares, in one block, is shown below it.
    block = gradients[(gradients[BLOCK] == cheapest[BLOCK]).all(axis=1)]
    pair = block[block["sampler"].isin((cheapest["sampler"], REFERENCE))]
    cells.show(shown(pair), shown(intervals, ENDS))
    return {
        "sampler": label_of(cheapest["sampler"]),
        "data_set": str(cheapest["dataset"]),
        "saved": 100 * (1 - cheapest["ratio"]),
        "comparisons": len(own),
        "worse": int((intervals["lower"] > 0).sum()),
        "better": int((intervals["upper"] < 0).sum()),
    }


def papers_pair(cells: LookUp) -> dict[str, Any]:
    """Return the number of cases in which an attack exceeds the target that the papers' pair
    promises, and for each sampler the case with the largest excess."""
    attained = attained_by_papers_pair(cells)
    proved = quantity(cells, "measures", "epsilon_upper", "consistent")
    worst = attained.loc[attained.groupby("sampler", sort=False)["excess"].idxmax()]
    proof = proved.merge(worst[PLACE])
    cells.show(shown(worst), shown(proof))
    rows = worst.merge(proof[[*PLACE, "value"]].rename(columns={"value": "proved"}), on=PLACE)
    return {
        "cases": len(attained),
        "broken": int((attained["excess"] > 1).sum()),
        "most": attained["excess"].max(),
        "rows": rows.assign(sampler=labels(rows["sampler"])).to_dict("records"),
    }


def attained_by_papers_pair(cells: LookUp) -> pd.DataFrame:
    """Return the epsilon that an attack attains with the noise of the papers' pair, and its
    `excess`, the ratio to the target.

    Poisson is left out: its pair is about adding a record, so that it breaks no promise where a
    record is replaced.
    """
    attained = quantity(cells, "measures", "epsilon_lower", "consistent")
    attained = known(attained[attained["sampler"] != REFERENCE])
    return attained.assign(excess=attained["value"] / attained["epsilon"].astype(float))


def target_and_attained(cells: LookUp) -> dict[str, tuple[float, float]]:
    """Return the target and the epsilon of an attack where the latter exceeds it most, by
    sampler."""
    attained = attained_by_papers_pair(cells)
    most = attained.loc[attained.groupby("sampler", sort=False)["excess"].idxmax()]
    # The sentence names samplers that have a name; chains of sizes are in the table.
    most = most[most["sampler"].isin(REGISTRY.names())]
    return {
        label_of(row["sampler"]): (float(row["epsilon"]), row["value"])
        for _, row in most.iterrows()
    }


def reversals(cells: LookUp) -> dict[str, dict[str, float]]:
    """Return the number of pairs of samplers that are told apart in each variant, and of pairs that
    are ordered the other way at equal proved privacy."""
    counts = {}
    for variant in ("stated", "consistent"):
        try:
            opposite, separated = (
                quantity(cells, "rankings", f"pairs_{what}", variant, sampler="")
                for what in ("reversed", "separated")
            )
        except MissingRecordsError:
            continue
        cells.show(shown(opposite), shown(separated))
        counts[variant] = {
            "reversed": opposite["value"].sum(),
            "pairs": separated["value"].sum(),
        }
    if not counts:
        raise MissingRecordsError("this run ranks samplers in one way only")
    return counts


def noise_by_relation(cells: LookUp) -> dict[str, Any]:
    """Return the noise under add/remove over that under substitution, and for each sampler the
    noise over Poisson's under each adjacency relation, None where nothing is proved."""

    def noise(column: str, sampler: str) -> pd.Series:
        return by_setting(cells, column, sampler).droplevel("sampler")

    falls_to = {
        sampler: span(noise("noise_add_remove", sampler) / noise("noise_multiplier", sampler))
        # The two that have a bound under every relation.
        for sampler in (REFERENCE, "wor")
    }
    rows: list[dict[str, Any]] = []
    for sampler in ("wor", "wr", "must_ow", "must_ww"):
        row: dict[str, Any] = {"sampler": label_of(sampler)}
        for column in RELATIONS:
            try:
                row[column] = span(noise(column, sampler) / noise(column, REFERENCE))
            except MissingRecordsError:
                row[column] = None
        if any(row[column] for column in RELATIONS):
            rows.append(row)
    return {"falls_to": falls_to, "rows": rows}


def span(ratios: pd.Series) -> tuple[float, float]:
    """Return the smallest and the largest of the numbers that are not missing."""
    return ratios.min(), ratios.max()


def coverage(cells: LookUp) -> dict[str, Any]:
    """Return the percentage of seeds in which the bootstrap's intervals cover the truth, and the
    samplers whose intervals are shown to cover it less often than they say."""
    numbers = quantity(cells, "measures", "coverage")
    numbers = known(numbers.dropna(subset=list(ENDS)))
    cells.show(shown(numbers, (*VALUE, *ENDS)))
    return {
        "least": 100 * numbers["value"].min(),
        "most": 100 * numbers["value"].max(),
        # Shown to miss: the whole Clopper-Pearson interval is below the level of 95 %.
        "missed": labels(numbers.loc[numbers["upper"] < 0.95, "sampler"]),
    }


def same_law(cells: LookUp) -> dict[str, Any]:
    """Return the number of comparisons in which two samplers of one law have different ranks."""
    ranks = quantity(cells, "rankings", "rank")
    ranks = ranks[ranks["sampler"].isin(SAME_LAW)]
    both = known(ranks[ranks.duplicated(BLOCK, keep=False)])
    pairs = both.groupby(BLOCK)["value"]
    cells.show(shown(both))
    return {
        "samplers": labels(SAME_LAW),
        "different": int((pairs.nunique() > 1).sum()),
        "comparisons": pairs.ngroups,
    }
