"""Numbers of the tournament's pages: what placeholders `numbers` ask for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from dpsub.papers.tournament.settings import NONPRIVATE, RELATIONS
from dpsub.papers.tournament.tables import BATCHES, REGIMES
from dpsub.reproduce.claims import MissingRecordsError
from dpsub.reproduce.labels import WORDS, display, sampler_label
from dpsub.reproduce.paired import REFERENCE
from dpsub.reproduce.report.cells import LookUp

BLOCK = ["dataset", "adjacency", "epsilon", "m", "epochs"]
ALIKE = 0.05
"""Relative difference of noise that makes little of a model."""
FEWER = -1.0
"""Percent of gradients compared with Poisson sampling from which on a scheme is said to need
fewer."""
BY_FORMULA = "; holds by the paper's formula"
"""How a note goes on about the variant as stated, in which what is published holds always."""

Spans = list[tuple[str, float, float, float]]
"""Label, median, least, greatest."""


def quantities(
    cells: LookUp, table: str, *columns: str, by: Sequence[str], **fields: str
) -> pd.DataFrame:
    """Return quantities side by side, with the key fields `by`; of the first one its interval and
    note, too."""
    parts: list[pd.DataFrame | pd.Series] = []
    for column in columns:
        rows = cells.rows(table, column, **dict.fromkeys(by, "*"), **fields)
        ours = ["rigorous", "rigorous_lower", "rigorous_upper", "note"]
        # "Rigorous" is the tournament's only variant: other columns belong to published statements.
        rows = rows.reindex(columns=[*by, *ours]).dropna(subset="rigorous").set_index(list(by))
        if column == columns[0]:
            parts.append(rows.set_axis([column, "lower", "upper", "note"], axis=1))
        else:
            parts.append(rows["rigorous"].rename(column))
    frame = pd.concat(parts, axis=1)
    if frame.empty:
        raise MissingRecordsError("this run lacks the numbers of a statement")
    return frame.reset_index(names=list(by))


def counts_by_sampler(some: pd.Series, of: pd.Series) -> list[tuple[str, float, float]]:
    """Return label, count and total of each sampler whose count is not 0, largest share first."""
    share = (some / of).sort_values(ascending=False, kind="stable")
    return [(sampler_label(str(name)), some[name], of[name]) for name in share.index[share > 0]]


def labels(samplers: pd.Series | pd.Index) -> list[str]:
    """Return the names under which samplers are shown."""
    return [sampler_label(str(name)) for name in samplers]


def noise(cells: LookUp, adjacency: str) -> dict[str, Any]:
    """Return the noise of each scheme over Poisson's under one relation, and in how many settings
    it is shown to need more, or less."""
    ends = ("ratio_median", "ratio_least", "ratio_greatest")
    counts = ("settings", "needs_more", "needs_less")
    ratios = quantities(cells, "noise", *ends, *counts, by=["sampler"], adjacency=adjacency)
    # Schemes without any setting under this relation have counts of 0 and no ratio.
    ratios = ratios.dropna(subset="ratio_median").set_index("sampler")
    ratios = ratios.sort_values("ratio_median", kind="stable")
    spans: Spans = [
        (sampler_label(str(name)), median, least, greatest)
        for name, median, least, greatest in ratios[list(ends)].itertuples()
    ]
    return {
        "spans": spans,
        "more": counts_by_sampler(ratios["needs_more"], ratios["settings"]),
        "less": counts_by_sampler(ratios["needs_less"], ratios["settings"]),
    }


def scheme_or_proof(cells: LookUp) -> list[dict[str, Any]]:
    """Return for each relation the schemes of whose mean difference from Poisson an attack shows a
    part, and those whose difference may be our proof's alone."""
    by = ["adjacency", "regime", "sampler"]
    parts = quantities(cells, "parts", "difference", "of_the_scheme", by=by)
    relations = []
    for adjacency, part in parts.groupby("adjacency", sort=False):
        # Means over both sizes of noise, as the sentence does not tell them apart.
        means = part.groupby("sampler", sort=False)[["difference", "of_the_scheme"]].mean()
        difference, of_the_scheme = means["difference"], means["of_the_scheme"]
        shown = means.index[of_the_scheme > 0]
        relations.append(
            {
                "relation": WORDS[str(adjacency)],
                "shown": [
                    (sampler_label(name), of_the_scheme[name], difference[name]) for name in shown
                ],
                "unsure": labels(means.index[(of_the_scheme <= 0) & (difference > 0)]),
            }
        )
    return relations


def losses(cells: LookUp) -> dict[str, Any]:
    """Return how many differences in loss are shown, by scheme, and the largest one."""
    columns = ("difference_to_poisson", "told_apart", "noise_used")
    compared = quantities(cells, "losses", *columns, by=[*BLOCK, "sampler"])
    compared = compared.dropna(subset="difference_to_poisson")
    poisson = quantities(cells, "losses", "test_loss", "noise_used", by=BLOCK, sampler=REFERENCE)
    poisson = poisson[[*BLOCK, "test_loss", "noise_used"]]
    compared = compared.merge(poisson, on=BLOCK, suffixes=("", "_poisson"))
    compared["change"] = 100 * compared["difference_to_poisson"] / compared["test_loss"]
    shown = compared["told_apart"] == 1
    compared["worse"] = shown & (compared["change"] > 0)
    compared["better"] = shown & (compared["change"] < 0)
    by_sampler = compared.groupby("sampler", sort=False)
    counts, totals = by_sampler[["worse", "better"]].sum(), by_sampler.size()
    # Where noise is the same within 5 %, a difference in loss comes from the batches.
    alike = (compared["noise_used"] / compared["noise_used_poisson"] - 1).abs() <= ALIKE
    largest = compared.sort_values("change", key=abs).iloc[-1]
    return {
        "comparisons": len(compared),
        "worse": int(compared["worse"].sum()),
        "better": int(compared["better"].sum()),
        "not_shown": int((~shown).sum()),
        "worse_by_sampler": counts_by_sampler(counts["worse"], totals),
        "better_by_sampler": counts_by_sampler(counts["better"], totals),
        "largest": {
            "change": largest["change"],
            "sampler": sampler_label(largest["sampler"]),
            "task": display("dataset", largest["dataset"], plain=True),
            "epsilon": largest["epsilon"],
        },
        "alike_percent": 100 * ALIKE,
        "alike": int(alike.sum()),
        "alike_shown": int((shown & alike).sum()),
    }


def ranks(cells: LookUp) -> list[tuple[str, float, float]]:
    """Return in how many contests no other scheme is shown to be better, by scheme."""
    numbers = quantities(cells, "losses", "rank", by=[*BLOCK, "sampler"])
    first = (numbers["rank"] == 1).groupby(numbers["sampler"], sort=False)
    return counts_by_sampler(first.sum(), first.size())


def price_of_privacy(cells: LookUp) -> list[tuple[float, float, float, float]]:
    """Return by how many percent Poisson's loss is above that without privacy: target, median,
    least, greatest of the tasks and sizes."""
    private, without = (
        quantities(cells, "losses", "test_loss", by=BLOCK, sampler=sampler).set_index(BLOCK)[
            "test_loss"
        ]
        for sampler in (REFERENCE, NONPRIVATE)
    )
    price = (100 * (private / without - 1)).dropna().reset_index()
    targets = price["epsilon"].astype(float)
    spans = price.groupby(targets)["test_loss"].agg(["median", "min", "max"])
    return list(spans.itertuples(name=None))


def gradients(cells: LookUp) -> dict[str, Any]:
    """Return the gradients of schemes that need fewer than Poisson, in percent, and how far the
    others are from it at most."""
    by = [*BLOCK, "sampler"]
    cost = quantities(cells, "losses", "gradients", by=by).set_index(by)["gradients"]
    # The tight bound is proved for replacement and for these two schemes only.
    wide = cost.unstack("sampler").drop(columns=NONPRIVATE, errors="ignore")
    # The mean over all contests, in percent of Poisson's in the same one.
    change = (100 * (wide.div(wide[REFERENCE], axis=0) - 1)).mean()
    change = change.drop(REFERENCE).sort_values()
    fewer = change[change < FEWER]
    return {
        "fewer": [(sampler_label(str(name)), percent) for name, percent in fewer.items()],
        "others": change.drop(fewer.index).abs().max(),
    }


def least_noise(cells: LookUp, adjacency: str) -> list[dict[str, Any]]:
    """Return for each regime and kind of batches the scheme with the least noise: its median over
    Poisson's and the ends, none where that is Poisson sampling."""
    column = "noise_over_poisson"
    by = ["regime", "batches", "sampler"]
    ratios = quantities(cells, "when", column, by=by, adjacency=adjacency)
    regimes = []
    for regime in REGIMES:
        own = ratios[ratios["regime"] == regime]
        if own.empty:
            continue
        least = []
        for kind, schemes in BATCHES.items():
            part = own[own["batches"] == kind].sort_values(column, kind="stable")
            # Poisson sampling has no row of ratios: it is the best of its kind if no other falls
            # below 1.
            if REFERENCE in schemes and not (part[column] < 1).any():
                least.append({"kind": kind, "sampler": sampler_label(REFERENCE), "ratio": None})
            elif len(part):
                first = part.iloc[0]
                least.append(
                    {
                        "kind": kind,
                        "sampler": sampler_label(first["sampler"]),
                        "ratio": first[column],
                        "lower": first["lower"],
                        "upper": first["upper"],
                    }
                )
        regimes.append({"regime": f"{regime[0].upper()}{regime[1:]}", "least": least})
    return regimes


def first_relation(cells: LookUp) -> dict[str, Any]:
    """Return the scheme with the least noise under the first relation that the run has."""
    # The page speaks of one relation; the first with noise in this run will do.
    for adjacency in RELATIONS:
        try:
            return {
                "relation": WORDS[adjacency].capitalize(),
                "regimes": least_noise(cells, adjacency),
            }
        except MissingRecordsError:
            continue
    raise MissingRecordsError("this run compares no noise")


def published(cells: LookUp, claim: str) -> dict[str, str]:
    """Return a published statement, its verdict and why."""
    rows = cells.rows("claims", "holds", claim=claim)
    if rows.empty or rows["verdict"].iloc[0] not in ("proved", "refuted", "open"):
        raise MissingRecordsError("this run lacks the settings of a statement")
    statement = rows.iloc[0]
    return {
        "printed": statement["printed"],
        "verdict": statement["verdict"],
        # The note goes on about the variant as stated, which the sentence does not quote.
        "why": statement["note"].partition(BY_FORMULA)[0],
    }


def left_out(cells: LookUp) -> list[dict[str, Any]]:
    """Return by relation and reason the schemes that lack settings, and how many."""
    numbers = quantities(cells, "noise", "left_out", by=["adjacency", "sampler"])
    # The relation stands in a field of its own; the reason begins after it.
    reasons = numbers["note"].str.replace(r"^\w+ under \w+: ", "", regex=True)
    groups = numbers.assign(reason=reasons).groupby(["adjacency", "reason"], sort=False)
    return [
        {
            "relation": WORDS[str(adjacency)].capitalize(),
            "samplers": labels(group["sampler"]),
            "settings": group["left_out"].sum(),
            "reason": reason,
        }
        for (adjacency, reason), group in groups
    ]
