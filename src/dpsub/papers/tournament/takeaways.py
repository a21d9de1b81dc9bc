"""Which scheme when: sentences whose words follow from the tables of the tournament."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial

import pandas as pd

from dpsub.papers.tournament.settings import NONPRIVATE, RELATIONS
from dpsub.papers.tournament.tables import BATCHES, REGIMES
from dpsub.reproduce.claims import MissingRecordsError
from dpsub.reproduce.labels import WORDS, display, escape_markdown, sampler_label
from dpsub.reproduce.paired import REFERENCE
from dpsub.reproduce.report.findings import Headline
from dpsub.reproduce.report.takeaways import Tables, Takeaways, listed

BLOCK = ["dataset", "adjacency", "epsilon", "m", "epochs"]
ALIKE = 0.05
"""Relative difference of noise that makes little of a model."""
CLAIMS = {
    "k_of_t_saves": "k of t",
    "k_of_t_most": "k of t, how much",
    "balls_in_bins": "Balls in bins",
    "shuffle_understated": "Shuffled batches",
    "shuffle_near_fixed": "Shuffled batches and a fixed order",
}


def numbers(
    tables: Tables, table: str, *columns: str, by: Sequence[str], **fields: str
) -> pd.DataFrame:
    """Return quantities side by side, indexed by the key fields `by`; of the first one its interval
    and note, too."""
    found = []
    for column in columns:
        rows = tables.rows(table, column, **dict.fromkeys(by, "*"), **fields)
        ours = ["rigorous", "rigorous_lower", "rigorous_upper", "note"]
        rows = rows.reindex(columns=[*by, *ours]).dropna(subset="rigorous").set_index(list(by))
        found.append(
            rows.set_axis([column, "lower", "upper", "note"], axis=1)
            if column == columns[0]
            else rows["rigorous"].rename(column)
        )
    frame = pd.concat(found, axis=1)
    if frame.empty:
        raise MissingRecordsError("this run lacks the numbers of a statement")
    return frame.reset_index(names=list(by))


def told(heading: str, part: Callable[[Tables], str]) -> Callable[[Tables], str]:
    """Return a paragraph under its heading, nothing where the run lacks its numbers."""

    def paragraph(tables: Tables) -> str:
        with suppress(MissingRecordsError):
            return f"**{heading}.** {escape_markdown(part(tables))}"
        return ""

    return paragraph


def names(samplers: Iterable[str]) -> str:
    return listed([sampler_label(name) for name in samplers])


def counted(some: pd.Series, of: pd.Series) -> str:
    """Return "name 3 of 5, ..." of counts by sampler that are not 0, largest share first."""
    share = (some / of).sort_values(ascending=False, kind="stable")
    shown = [
        f"{sampler_label(str(name))} {some[name]:.0f} of {of[name]:.0f}"
        for name in share.index[share > 0]
    ]
    return ", ".join(shown) or "no scheme"


def percent(value: float) -> str:
    return f"{value:+.0f} %" if abs(value) >= 10 else f"{value:+.2g} %"


def noise(tables: Tables, adjacency: str) -> str:
    """Compare the noise of all schemes with Poisson's under one relation."""
    columns = (
        "ratio_median",
        "ratio_least",
        "ratio_greatest",
        "settings",
        "needs_more",
        "needs_less",
    )
    frame = numbers(tables, "noise", *columns, by=["sampler"], adjacency=adjacency).dropna(
        subset="ratio_median"
    )
    frame = frame.set_index("sampler").sort_values("ratio_median", kind="stable")
    spans = ", ".join(
        f"{sampler_label(str(name))} {median:.3g} ({low:.3g} to {high:.3g})"
        for name, median, low, high in frame[list(columns[:3])].itertuples()
    )
    return (
        "Noise over Poisson's, median (least to greatest) of each scheme's settings in the grid: "
        f"{spans}. An attack exceeds the target with Poisson's noise: "
        f"{counted(frame['needs_more'], frame['settings'])}. Noise that an attack refutes for "
        f"Poisson is proved to be enough: {counted(frame['needs_less'], frame['settings'])}."
    )


def scheme_or_proof(tables: Tables) -> str:
    """Say for which schemes the difference is theirs, and for which better proofs may take it
    away."""
    frame = numbers(
        tables, "parts", "difference", "of_the_scheme", by=["adjacency", "regime", "sampler"]
    )
    said = []
    for adjacency, part in frame.groupby("adjacency", sort=False):
        own = part.groupby("sampler", sort=False)[["difference", "of_the_scheme"]].mean()
        whole, scheme = own["difference"], own["of_the_scheme"]
        shown = [
            f"{sampler_label(name)} {scheme[name]:.1f} of {whole[name]:.1f}"
            for name in own.index[scheme > 0]
        ]
        unsure = own.index[(scheme <= 0) & (whole > 0)]
        said.append(
            f"{WORDS[str(adjacency)]}: {', '.join(shown) or 'of no scheme'}"
            + (f"; perhaps our proof's alone: {names(unsure)}" if len(unsure) else "")
        )
    return (
        "What an attack shows of the mean difference from Poisson, in percent of noise (100 times "
        f"its logarithm): {'. '.join(said)}."
    )


def losses(tables: Tables) -> str:
    """Count the differences in loss that are shown."""
    columns = ("difference_to_poisson", "told_apart", "noise_used")
    found = numbers(tables, "losses", *columns, by=[*BLOCK, "sampler"]).dropna(subset=columns[0])
    base = numbers(tables, "losses", "test_loss", "noise_used", by=BLOCK, sampler=REFERENCE)
    found = found.merge(
        base[[*BLOCK, "test_loss", "noise_used"]], on=BLOCK, suffixes=("", "_poisson")
    )
    change, shown = (
        100 * found["difference_to_poisson"] / found["test_loss"],
        found["told_apart"] == 1,
    )
    worse, better = shown & (change > 0), shown & (change < 0)
    by = (
        pd.DataFrame({"worse": worse, "better": better, "all": True})
        .groupby(found["sampler"], sort=False)
        .sum()
    )
    alike = (found["noise_used"] / found["noise_used_poisson"] - 1).abs() <= ALIKE
    most = found.assign(change=change).sort_values("change", key=abs).to_dict("records")[-1]
    return (
        f"Of {len(found)} comparisons with Poisson at one proved target, the scheme is shown to "
        f"be worse in {worse.sum()} and better in {better.sum()}; in {(~shown).sum()} no "
        f"difference can be shown. Worse: {counted(by['worse'], by['all'])}. Better: "
        f"{counted(by['better'], by['all'])}. The largest difference is {percent(most['change'])} "
        f"of Poisson's loss ({sampler_label(most['sampler'])}, "
        f"{display('dataset', most['dataset'], plain=True)}, epsilon = {most['epsilon']}). Where "
        f"the noise is within {100 * ALIKE:.0f} % of Poisson's a difference is shown in "
        f"{(shown & alike).sum()} of {alike.sum()}."
    )


def best(tables: Tables) -> str:
    """Say which schemes no other is shown to be better than."""
    ranks = numbers(tables, "losses", "rank", by=[*BLOCK, "sampler"])
    first = (ranks["rank"] == 1).groupby(ranks["sampler"], sort=False)
    return (
        "Contests in which no other scheme is shown to be better: "
        f"{counted(first.sum(), first.size())}."
    )


def price(tables: Tables) -> str:
    """Compare Poisson's loss with that without privacy."""
    private, free = (
        numbers(tables, "losses", "test_loss", by=BLOCK, sampler=name).set_index(BLOCK)["test_loss"]
        for name in (REFERENCE, NONPRIVATE)
    )
    more = (100 * (private / free - 1)).dropna().reset_index()
    spans = more.groupby(more["epsilon"].astype(float))["test_loss"].agg(["min", "median", "max"])
    said = [
        f"{percent(middle)} at epsilon = {target:g} ({percent(low)} to {percent(high)})"
        for target, low, middle, high in spans.itertuples()
    ]
    return (
        "Poisson's test loss over that without privacy, tuned by the same rule, median (least to "
        f"greatest) of the tasks and sizes: {'; '.join(said)}."
    )


def gradients(tables: Tables) -> str:
    """Compare the numbers of gradients with Poisson's."""
    cost = numbers(tables, "losses", "gradients", by=[*BLOCK, "sampler"]).set_index(
        [*BLOCK, "sampler"]
    )["gradients"]
    wide = cost.unstack("sampler").drop(columns=NONPRIVATE, errors="ignore")
    share = (100 * (wide.div(wide[REFERENCE], axis=0) - 1)).mean().drop(REFERENCE).sort_values()
    few = share[share < -1]
    said = [f"{sampler_label(str(name))} {percent(value)}" for name, value in few.items()]
    said.append(
        f"the {'others' if said else 'schemes'} within {share.drop(few.index).abs().max():.1g} %"
    )
    return (
        f"Gradient evaluations compared with Poisson's, means over the contests: {', '.join(said)}."
    )


def which(tables: Tables, adjacency: str) -> str:
    """Name for each kind of batches the scheme with the least noise."""
    column, lines = "noise_over_poisson", []
    ratio = numbers(
        tables, "when", column, by=["regime", "batches", "sampler"], adjacency=adjacency
    )
    for size in [name for name in REGIMES if name in set(ratio["regime"])]:
        said = []
        for kind in BATCHES:
            part = ratio[(ratio["regime"] == size) & (ratio["batches"] == kind)].sort_values(
                column, kind="stable"
            )
            if REFERENCE in BATCHES[kind] and not (part[column] < 1).any():
                said.append(f"{sampler_label(REFERENCE)} for {kind}")
            elif len(part):
                one = part.to_dict("records")[0]
                said.append(
                    f"{sampler_label(one['sampler'])} for {kind}, {one[column]:.3g} times "
                    f"Poisson's at the median ({one['lower']:.3g} to {one['upper']:.3g})"
                )
        lines.append(f"{size[0].upper()}{size[1:]}: the least is needed by {'; '.join(said)}.")
    return " ".join(lines)


def published(tables: Tables, claim: str) -> str:
    """Say what comes out of a published statement."""
    rows = tables.rows("claims", "holds", claim=claim)
    words = {"proved": "confirmed", "refuted": "corrected", "open": "neither confirmed nor refuted"}
    if rows.empty or rows["verdict"].iloc[0] not in words:
        raise MissingRecordsError("this run lacks the settings of a statement")
    one = rows.iloc[0]
    # so does what is published, always
    note = one["note"].partition("; holds by the paper's formula")[0]
    return f"Published: {one['printed']}. Here: {words[one['verdict']]}; {note}."


def left_out(tables: Tables) -> str:
    """Say which schemes lack settings, and why."""
    found = numbers(tables, "noise", "left_out", by=["adjacency", "sampler"])
    found = found.assign(reason=found["note"].str.replace(r"^\w+ under \w+: ", "", regex=True))
    groups = found.groupby(["adjacency", "reason"], sort=False)
    return " ".join(
        f"{WORDS[str(one)].capitalize()}: {names(part['sampler'])} ({part['left_out'].sum():.0f} "
        f"settings): {reason}."
        for (one, reason), part in groups
    )


def least(tables: Tables) -> Headline | None:
    """Which scheme to use, under the first relation that the run has."""
    for adjacency in RELATIONS:
        with suppress(MissingRecordsError):
            text = f"{WORDS[adjacency].capitalize()}: {which(tables, adjacency)}"
            return Headline(text, "when", heading="Which scheme")
    return None


TAKEAWAYS = Takeaways(
    parts=(
        *(told(f"Which scheme, {WORDS[one]}", partial(which, adjacency=one)) for one in RELATIONS),
        *(told(f"Noise, {WORDS[one]}", partial(noise, adjacency=one)) for one in RELATIONS),
        told("Scheme or proof", scheme_or_proof),
        told("Loss", losses),
        told("Ranks", best),
        told("Price of privacy", price),
        told("Gradients", gradients),
        *(told(heading, partial(published, claim=claim)) for claim, heading in CLAIMS.items()),
        told("Left out", left_out),
    ),
    introduction=(
        "Schemes at one target for all steps together, with noise that is proved to meet it, "
        "under one relation at a time. The words follow from the tables of the run, and hold for "
        "its grid, tasks, sizes and seeds."
    ),
    best=least,
)
