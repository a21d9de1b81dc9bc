"""Numbers of the tournament's pages, for the placeholders `numbers`."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import pandas as pd

from dpsub.papers.tournament import PAPER
from dpsub.papers.tournament.settings import NONPRIVATE, RELATIONS, proof_missing
from dpsub.papers.tournament.tables import BATCHES, REGIMES
from dpsub.reproduce.claims import MissingRecordsError
from dpsub.reproduce.labels import WORDS, display, in_words, sampler_label
from dpsub.reproduce.paired import REFERENCE
from dpsub.reproduce.published import load
from dpsub.reproduce.report.cells import LookUp
from dpsub.sampling.schemes import SCHEMES

BLOCK = ["dataset", "adjacency", "epsilon", "m", "epochs"]
ALIKE = 0.05
"""Relative difference of noise that hardly changes a model."""
FEWER = -1.0
"""Change of gradients in percent of Poisson's below which a scheme counts as evaluating fewer."""
BY_FORMULA = "; holds by the paper's formula"
"""End of a note about the variant as stated, in which the published statement always holds."""
VERDICTS = {"proved": "confirmed", "refuted": "refuted", "open": "open"}
"""Verdict of a statement -> its word."""


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


def labels(samplers: pd.Series | pd.Index) -> list[str]:
    """Return the names under which samplers are shown."""
    return [sampler_label(str(name)) for name in samplers]


def noise(cells: LookUp) -> dict[str, Any]:
    """Return the relations that the run compares, and for each scheme its noise over Poisson's
    under each of them: median, least and greatest, None without a proof."""
    ends = ["ratio_median", "ratio_least", "ratio_greatest"]
    ratios = quantities(cells, "noise", *ends, by=["adjacency", "sampler"])
    # Schemes without any setting under a relation have no ratio.
    known = ratios.dropna(subset="ratio_median").set_index(["sampler", "adjacency"])[ends]
    return by_relation(known)


def unavoidable(cells: LookUp) -> dict[str, Any]:
    """Return the relations that the run compares, and for each scheme its noise over Poisson's
    under each of them: the ratio that is necessary by an attack, and the one that is proved to be
    enough; also the schemes that an attack shows to need more under some relation, or none."""
    by = ["adjacency", "regime", "sampler"]
    parts = quantities(cells, "parts", "difference", "of_the_scheme", by=by)
    # Means over both sizes of noise, which the table does not tell apart.
    means = parts.groupby(["sampler", "adjacency"], sort=False)[["of_the_scheme", "difference"]]
    # From means of logarithms in percent to ratios.
    ratios = (means.mean().dropna() / 100).map(math.exp)
    least = ratios["of_the_scheme"].groupby("sampler", sort=False).max()
    return {
        **by_relation(ratios),
        "shown": labels(least.index[least > 1]),
        "not_shown": labels(least.index[least <= 1]),
    }


def by_relation(numbers: pd.DataFrame) -> dict[str, Any]:
    """Return the rows of a table, one per scheme: its numbers under each relation, or None.

    `numbers` has an index of schemes and relations.
    """
    if numbers.empty:
        raise MissingRecordsError("this run compares no noise")
    cells = {place: values for place, *values in numbers.itertuples(name=None)}
    samplers, relations = (set(names) for names in zip(*cells, strict=True))
    columns = [name for name in RELATIONS if name in relations]
    rows = [
        (sampler_label(sampler), [cells.get((sampler, name)) for name in columns])
        for sampler in SCHEMES
        if sampler in samplers
    ]
    return {"relations": [WORDS[name] for name in columns], "rows": rows}


def losses(cells: LookUp) -> dict[str, Any]:
    """Return the number of significant differences in loss, in all and by scheme, and the largest
    one."""
    columns = ("difference_to_poisson", "told_apart", "noise_used", "rank")
    compared = quantities(cells, "losses", *columns, by=[*BLOCK, "sampler"])
    compared = compared.dropna(subset="difference_to_poisson")
    poisson = quantities(cells, "losses", "test_loss", "noise_used", by=BLOCK, sampler=REFERENCE)
    poisson = poisson[[*BLOCK, "test_loss", "noise_used"]]
    compared = compared.merge(poisson, on=BLOCK, suffixes=("", "_poisson"))
    compared["change"] = 100 * compared["difference_to_poisson"] / compared["test_loss"]
    significant = compared["told_apart"] == 1
    compared["worse"] = significant & (compared["change"] > 0)
    compared["better"] = significant & (compared["change"] < 0)
    compared["first"] = compared["rank"] == 1
    by_sampler = compared.groupby("sampler", sort=False)
    counts = by_sampler[["worse", "better", "first"]].sum().assign(total=by_sampler.size())
    # Where noise is the same within 5 %, a difference in loss comes from the batches.
    alike = (compared["noise_used"] / compared["noise_used_poisson"] - 1).abs() <= ALIKE
    largest = compared.sort_values("change", key=abs).iloc[-1]
    return {
        "comparisons": len(compared),
        "worse": int(compared["worse"].sum()),
        "better": int(compared["better"].sum()),
        "by_sampler": [
            (sampler_label(str(name)), *row)
            for name, *row in counts[["total", "better", "worse", "first"]].itertuples()
        ],
        "largest": {
            "change": largest["change"],
            "sampler": sampler_label(largest["sampler"]),
            "task": display("dataset", largest["dataset"], plain=True),
            "epsilon": largest["epsilon"],
        },
        "alike_percent": 100 * ALIKE,
        "alike": int(alike.sum()),
        "alike_shown": int((significant & alike).sum()),
    }


def price_of_privacy(cells: LookUp) -> list[tuple[float, float, float, float]]:
    """Return the excess in percent of Poisson's loss over the loss without privacy: target, and the
    median, least and greatest over tasks and sizes."""
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
    """Return the schemes that evaluate fewer gradients than Poisson, with the changes of gradients
    and of the test loss in percent; and the largest difference in gradients between Poisson and the
    other schemes."""
    columns = ("gradients_over_poisson", "loss_over_poisson")
    ratios = quantities(cells, "gradients", *columns, by=["adjacency", "sampler"])
    # A scheme draws the same batches under all relations; trainings under them are averaged.
    means = ratios.groupby("sampler", sort=False)[list(columns)].mean()
    change = 100 * (means - 1)
    fewer = change["gradients_over_poisson"] < FEWER
    return {
        "fewer": [
            (sampler_label(str(name)), gradients, loss)
            for name, gradients, loss in change[fewer]
            .sort_values("gradients_over_poisson")
            .itertuples()
        ],
        "others": change.loc[~fewer, "gradients_over_poisson"].abs().max(),
    }


def least_noise(cells: LookUp) -> dict[str, Any]:
    """Return the scheme with the least noise for each relation, regime and kind of batches: its
    median over Poisson's and the ends, none where that is Poisson sampling; and all such schemes of
    each kind."""
    column = "noise_over_poisson"
    by = ["adjacency", "regime", "batches", "sampler"]
    ratios = quantities(cells, "when", column, by=by)
    best: dict[str, dict[str, None]] = {kind: {} for kind in BATCHES}
    rows = []
    for adjacency, regime in itertools.product(RELATIONS, REGIMES):
        own = ratios[(ratios["adjacency"] == adjacency) & (ratios["regime"] == regime)]
        if own.empty:
            continue
        least: list[dict[str, Any] | None] = []
        for kind, schemes in BATCHES.items():
            part = own[own["batches"] == kind].sort_values(column, kind="stable")
            one: dict[str, Any] | None = None
            # Poisson sampling has no row of ratios: it is the best of its kind if no other falls
            # below 1.
            if REFERENCE in schemes and not (part[column] < 1).any():
                one = {"sampler": sampler_label(REFERENCE), "ratio": None}
            elif len(part):
                first = part.iloc[0]
                one = {
                    "sampler": sampler_label(first["sampler"]),
                    "ratio": first[column],
                    "lower": first["lower"],
                    "upper": first["upper"],
                }
            if one:
                best[kind][one["sampler"]] = None
            least.append(one)
        rows.append({"relation": WORDS[adjacency], "regime": regime, "least": least})
    return {
        "kinds": list(BATCHES),
        "rows": rows,
        "best": [(kind, list(names)) for kind, names in best.items() if names],
    }


def published(cells: LookUp) -> list[dict[str, str]]:
    """Return the published statements that this run judges: claim, paper, bracket and verdict."""
    sources = load(PAPER.key, "claims").set_index("claim")["note"]
    found = []
    for claim, source in sources.items():
        rows = cells.rows("claims", "holds", claim=str(claim))
        if rows.empty or rows["verdict"].iloc[0] not in VERDICTS:
            continue
        statement = rows.iloc[0]
        # The note goes on about the variant as stated, which the table does not quote, and ends
        # with the paper, which has a column of its own.
        why = statement["note"].partition(BY_FORMULA)[0]
        found.append(
            {
                "claim": statement["printed"],
                "paper": source,
                "bracket": why.removesuffix(f"; {source}"),
                "verdict": VERDICTS[statement["verdict"]],
            }
        )
    if not found:
        raise MissingRecordsError("this run lacks the settings of all published statements")
    return found


def left_out(cells: LookUp) -> list[dict[str, Any]]:
    """Return the schemes that lack settings, by relation and reason, and the number of settings."""
    numbers = quantities(cells, "noise", "left_out", by=["adjacency", "sampler"])
    # What the accountant says now, which may have become clearer since the run.
    said = numbers.apply(
        lambda row: proof_missing(row["adjacency"], row["sampler"]) or row["note"], axis=1
    )
    # The relation stands in a field of its own; the reason begins after it.
    reasons = said.str.replace(r"^\w+ under \w+: ", "", regex=True)
    groups = numbers.assign(reason=reasons).groupby(["adjacency", "reason"], sort=False)
    return [
        {
            "relation": WORDS[str(adjacency)],
            "samplers": labels(group["sampler"]),
            "settings": group["left_out"].sum(),
            "reason": in_words(str(reason)),
        }
        for (adjacency, reason), group in groups
    ]
