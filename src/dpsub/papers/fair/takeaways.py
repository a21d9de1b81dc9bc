"""What a practitioner should use: sentences whose words follow from the tables of the fair
comparison.

Nothing here knows the outcome. Each function looks numbers up, decides by comparing them, and
returns the sentence with the cells that it rests on; one whose cells a run lacks is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress

import pandas as pd

from dpsub.papers.fair.paired import label_of
from dpsub.reproduce.claims import MissingRecordsError
from dpsub.reproduce.labels import escape_markdown
from dpsub.reproduce.paired import REFERENCE
from dpsub.reproduce.report.findings import Headline
from dpsub.reproduce.report.takeaways import Tables, Takeaways, listed
from dpsub.sampling import REGISTRY

SAME_LAW = ("wor", "must_oo")
BLOCK = ["dataset", "epsilon"]
PLACE = [*BLOCK, "sampler"]
VALUE, ENDS = ("value",), ("lower", "upper")

Said = tuple[str, list[pd.DataFrame]]
"""A sentence or two, and the cells that they rest on, as the report lists them."""


def cells(
    tables: Tables, table: str, column: str, variant: str = "rigorous", **fields: str
) -> pd.DataFrame:
    """Return the numbers of one quantity, each with the ends of its interval: a row a data set,
    target and sampler."""
    rows = tables.rows(table, column, dataset="*", epsilon="*", **(fields or {"sampler": "*"}))
    numbers = {"value": variant, "lower": f"{variant}_lower", "upper": f"{variant}_upper"}
    found = rows.reindex(columns=[*PLACE, *numbers.values()]).set_axis([*PLACE, *numbers], axis=1)
    return there(found.dropna(subset="value").assign(table=table, column=column, variant=variant))


def there(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the frame; raise MissingRecordsError where it is empty."""
    if frame.empty:
        raise MissingRecordsError("this run lacks the numbers of a statement")
    return frame


def shown(frame: pd.DataFrame, numbers: Iterable[str] = VALUE) -> pd.DataFrame:
    """Return cells as the report lists them, a line for each of these numbers."""
    lines = frame.melt(
        [*PLACE, "table", "column", "variant"], list(numbers), "end", "number", ignore_index=False
    )
    ends = lines["end"].map({"value": "", "lower": " lower", "upper": " upper"})
    return pd.DataFrame(
        {
            "table": "fair/" + lines["table"],
            "data set": lines["dataset"],
            "ε": lines["epsilon"],
            "sampler": lines["sampler"],
            "quantity": lines["column"].str.replace("_", " "),
            "variant": lines["variant"] + ends,
            "number": lines["number"].map("{:.6g}".format),
        }
    ).sort_index(kind="stable")


def over_poisson(found: pd.DataFrame, of: pd.DataFrame) -> pd.DataFrame:
    """Return the cells of all samplers but Poisson, with their `ratio` to Poisson's cell of `of` in
    the same block."""
    base = (
        of[(of["sampler"] == REFERENCE) & (of["value"] > 0)]
        .set_index(BLOCK)["value"]
        .rename("base")
    )
    others = found[found["sampler"] != REFERENCE].join(base, on=BLOCK, how="inner")
    return there(others.assign(ratio=others["value"] / others["base"]))


def differences(tables: Tables) -> pd.DataFrame:
    """Return the paired differences from Poisson that have an interval."""
    return there(cells(tables, "winners", "difference_to_poisson").dropna(subset=list(ENDS)))


def names(samplers: Iterable[str]) -> str:
    return listed(map(label_of, samplers))


def recommendation(tables: Tables) -> Said:
    """Name the samplers that are among the best most often."""
    best = cells(tables, "winners", "among_the_best")
    by_sampler, total = best.groupby("sampler", sort=False)["value"], best.groupby(BLOCK).ngroups
    counts = by_sampler.sum()[by_sampler.size() == total].astype(int)
    most = counts.max() if len(counts) else 0
    leaders = counts.index[counts == most]
    if most == 0:
        text = (
            f"No sampler is among the best in any of the {total} comparisons that hold all "
            "samplers."
        )
    elif most == total:
        which = (
            (f"Use any of {names(leaders)}, a tie") if len(leaders) > 1 else f"Use {names(leaders)}"
        )
        text = (
            f"{which}: in all {total} comparisons at equal proved privacy no other sampler is "
            "shown to be better."
        )
    else:
        text = (
            f"No sampler is among the best everywhere. {names(leaders)} "
            f"{'is' if len(leaders) == 1 else 'are'} in "
            f"{most} of {total} comparisons at equal proved privacy."
        )
    text += (
        " Among the best in: "
        + ", ".join(f"{label_of(str(name))} {count}" for name, count in counts.items())
        + "."
    )
    return text, [shown(best[best["value"] == 1])]


def size_of_the_difference(tables: Tables) -> Said:
    """Say how large the differences from Poisson are, and how many intervals leave zero out."""
    losses = cells(tables, "winners", "loss")
    found = over_poisson(differences(tables), losses)
    worse, better = (found["lower"] > 0).sum(), (found["upper"] < 0).sum()
    far = found[found["ratio"].abs() == found["ratio"].abs().max()].head(1)
    most = far.iloc[0]
    text = (
        f"Of {len(found)} paired 95 % intervals against Poisson, {worse} lie wholly above zero "
        f"(Poisson better), {better} wholly below, {len(found) - worse - better} include zero: no "
        f"difference is shown there. The largest difference is {100 * most['ratio']:+.2g} % of "
        f"Poisson's loss ({label_of(most['sampler'])}, {most['dataset']}, epsilon = "
        f"{most['epsilon']})."
    )
    base = losses[losses["sampler"] == REFERENCE].merge(far[BLOCK])
    return text, [shown(far, (*VALUE, *ENDS)), shown(base)]


def noise_at_equal_privacy(tables: Tables) -> Said:
    """Compare the noise that samplers need with Poisson's."""
    noise = cells(tables, "measures", "noise_multiplier")
    found = over_poisson(noise, noise)
    spans = found.groupby("sampler", sort=False)["ratio"].agg(["min", "max"])
    ranges = [f"{label_of(name)} {low:.2f} to {high:.2f}" for name, low, high in spans.itertuples()]
    text = (
        "For the same target, proved under substitution, Poisson needs the least noise in "
        f"{(found['ratio'] >= 1).sum()} of {len(found)} comparisons with another sampler. Noise "
        f"over Poisson's: {', '.join(ranges)}."
    )
    used = [shown(noise)]
    with suppress(MissingRecordsError):
        refuted, base = (
            by_size(tables, column, sampler, used)
            for column, sampler in (("necessary", "*"), ("noise_multiplier", REFERENCE))
        )
        others = refuted[refuted.index.get_level_values("sampler") != REFERENCE]
        known = others.to_frame().join(base.droplevel("sampler"), how="inner")
        held = (known["necessary"] >= known["noise_multiplier"]).sum()
        text += (
            f" No better proof can change that in {held} of {len(known)} settings with another "
            "sampler: there an attack exceeds the target at the noise that is enough for Poisson."
        )
    return text, used


def by_size(tables: Tables, column: str, sampler: str, used: list[pd.DataFrame]) -> pd.Series:
    """Return one quantity of the table of noise by data set, target, steps, m and sampler; adds the
    cells to `used`."""
    found = []
    for b in ("", "*"):
        at = {"steps": "*", "sampler": sampler, "m": "*", "b": b}
        with suppress(MissingRecordsError):
            numbers = cells(tables, "noise", column, **at)
            used.append(shown(numbers))
            sizes = tables.rows("noise", column, dataset="*", epsilon="*", **at)[["steps", "m"]]
            found.append(numbers.join(sizes).set_index([*BLOCK, "steps", "m", "sampler"])["value"])
    if not found:
        raise MissingRecordsError(f"this run lacks the column {column} of the table of noise")
    return pd.concat(found).rename(column)


def cost(tables: Tables) -> Said:
    """Say what the cheapest sampler saves, and what it loses by it."""
    gradients = cells(tables, "measures", "gradients_expected")
    found, paired = over_poisson(gradients, gradients), differences(tables)
    best = found.iloc[found["ratio"].argmin()]
    own = found[found["sampler"] == best["sampler"]]
    kept = own[PLACE].merge(paired)
    text = (
        f"{label_of(best['sampler'])} evaluates the fewest distinct gradients: "
        f"{100 * (1 - best['ratio']):.0f} % fewer than Poisson at best ({best['dataset']}). At "
        "equal proved privacy the 95 % interval of its difference from Poisson's loss lies above "
        f"zero in {(kept['lower'] > 0).sum()} of {len(own)} comparisons and below zero in "
        f"{(kept['upper'] < 0).sum()}."
    )
    here = gradients[(gradients[BLOCK] == best[BLOCK]).all(axis=1)]
    pair = here[here["sampler"].isin((best["sampler"], REFERENCE))]
    return text, [shown(pair), shown(kept, ENDS)]


def papers_pair(tables: Tables) -> Said:
    """Say what the noise that the papers' pair asks for is worth."""
    attained, proved = (cells(tables, "measures", f"epsilon_{end}", "consistent") for end in ENDS)
    # for Poisson that pair is about adding a record, so that it breaks no promise where a record is
    # replaced
    attained = there(attained[attained["sampler"] != REFERENCE])
    excess = attained["value"] / attained["epsilon"].astype(float)
    broken, worst = (excess > 1).sum(), attained[excess == excess.max()].head(1)
    most, proof = worst.iloc[0], proved.merge(worst[PLACE])
    text = (
        "Noise for which the papers' pair meets the target exceeds it by an explicit attack in "
        f"{broken} of {len(attained)} cases (Poisson apart, whose pair is about adding a record): "
        f"at worst {label_of(most['sampler'])} on {most['dataset']} for a target of "
        f"{most['epsilon']} lets an attack attain epsilon = {most['value']:.3g}, and "
        f"{proof['value'].iloc[0]:.3g} is what is proved. "
    )
    text += (
        "Do not calibrate noise by that pair."
        if broken
        else ("No attack known here contradicts that pair.")
    )
    return text, [shown(worst), shown(proof)]


def reversals(tables: Tables) -> Said:
    """Count the pairs of samplers whose order is reversed at equal proved privacy."""
    lines, used = [], []
    for variant, words in (
        ("stated", "the main paper's own comparison, equal epsilon' a query"),
        ("consistent", "noise by the papers' pair"),
    ):
        with suppress(MissingRecordsError):
            turned, apart = (
                cells(tables, "rankings", f"pairs_{what}", variant, sampler="")
                for what in ("reversed", "separated")
            )
            count, total = turned["value"].sum(), apart["value"].sum()
            lines.append(
                f"of {total:.0f} pairs told apart by {words}, {count:.0f} are told apart "
                "the other way"
            )
            used += [shown(turned), shown(apart)]
    if not lines:
        raise MissingRecordsError("this run ranks samplers in one way only")
    return f"At equal proved privacy, {'; '.join(lines)}.", used


def adjacency(tables: Tables) -> Said:
    """Say what noise is needed if a record is added or removed instead of replaced."""
    used, share, over = list[pd.DataFrame](), dict[str, str](), dict[str, list[str]]()

    def noise(column: str, sampler: str) -> pd.Series:
        return by_size(tables, column, sampler, used).droplevel("sampler")

    for sampler in (REFERENCE, "wor"):
        share[sampler] = _span(
            noise("noise_add_remove", sampler) / noise("noise_multiplier", sampler)
        )
    for column, samplers in (
        ("noise_add_remove", ("wor", "wr", "must_ow", "must_ww")),
        ("noise_zero_out", ("wor",)),
    ):
        base = noise(column, REFERENCE)
        for sampler in samplers:
            with suppress(MissingRecordsError):
                over.setdefault(column, []).append(
                    f"{label_of(sampler)} {_span(noise(column, sampler) / base)}"
                )
    text = (
        "The samplers are compared here under substitution. If it is enough to hide that a record "
        f"was added or removed, the noise of Poisson falls to {share[REFERENCE]} of that, the "
        f"noise of sampling without replacement only to {share['wor']}, since there a record that "
        "is drawn takes another one's place. So at that relation samplers are further from "
        f"Poisson: noise over Poisson's is {', '.join(over['noise_add_remove'])}. Where a record "
        "is put to 0 and the number of records is public, it is "
        f"{', '.join(over['noise_zero_out'])}. Two relations must not be mixed in one comparison."
    )
    return text, used


def _span(ratios: pd.Series) -> str:
    """The smallest and the largest of those that there are."""
    return f"{ratios.min():.2f} to {ratios.max():.2f}"


def coverage(tables: Tables) -> Said:
    """Say whose intervals keep their level."""
    found = there(cells(tables, "measures", "coverage").dropna(subset=list(ENDS)))
    missed = found.loc[found["upper"] < 0.95, "sampler"]
    low, high = 100 * found["value"].min(), 100 * found["value"].max()
    span = f"{low:.0f}" + (f" to {high:.0f}" if high > low else "")
    text = (
        "The bootstrap's 95 % intervals, made from the noisy releases alone, cover the truth "
        f"in {span} % of seeds."
    )
    text += (
        " Shown to cover less than 95 %: "
        f"{names(missed) if len(missed) else 'none of the samplers'}."
    )
    return text, [shown(found, (*VALUE, *ENDS))]


def control(tables: Tables) -> Said:
    """Compare two samplers that are one in law: a check of the comparison itself."""
    ranks = cells(tables, "rankings", "rank").query("sampler in @SAME_LAW")
    both = there(ranks[ranks.duplicated(BLOCK, keep=False)])
    values = both.groupby(BLOCK)["value"]
    text = (
        f"{names(SAME_LAW)} have the same law and the same noise; their ranks differ in "
        f"{(values.nunique() > 1).sum()} of {values.ngroups} comparisons, which shows what chance "
        "alone does here."
    )
    return text, [shown(both)]


PARTS: dict[str, Callable[[Tables], Said]] = {
    "Which sampler": recommendation,
    "How much it matters": size_of_the_difference,
    "Noise": noise_at_equal_privacy,
    "Cost": cost,
    "The papers' pair": papers_pair,
    "Rankings": reversals,
    "Adjacency": adjacency,
    "Intervals": coverage,
    "Check": control,
}
"""By heading, most useful first."""


def evidence(tables: Tables) -> Mapping[str, pd.DataFrame]:
    """Return what the tables say, paragraph by paragraph, with the cells that each rests on."""
    found: dict[str, pd.DataFrame] = {}
    for heading, part in PARTS.items():
        with suppress(MissingRecordsError):
            text, used = part(tables)
            found[f"**{heading}.** {escape_markdown(text)}"] = pd.concat(used)
    return found


def worst(tables: Tables) -> Headline | None:
    """What noise by the papers' pair is worth."""
    with suppress(MissingRecordsError):
        attained = cells(tables, "measures", "epsilon_lower", "consistent")
        attained = there(attained[attained["sampler"] != REFERENCE])
        targets = attained["epsilon"].astype(float)
        excess = attained["value"] / targets
        most = attained.loc[
            attained.assign(excess=excess).groupby("sampler", sort=False)["excess"].idxmax()
        ]
        return Headline(
            f"Noise calibrated by the papers' pair breaks its promise in {(excess > 1).sum()} of "
            f"{len(attained)} cases: an attack attains up to {excess.max():.3g} times the target "
            "ε.",
            "measures",
            (),
            {
                label_of(name): (float(target), value)
                for name, target, value in most[["sampler", "epsilon", "value"]].itertuples(
                    index=False
                )
                if name in REGISTRY.names()
            },
            ("ε, target", "ε of an attack"),
        )
    return None


def best(tables: Tables) -> Headline | None:
    """What to use."""
    with suppress(MissingRecordsError):
        return Headline(
            recommendation(tables)[0].partition(" Among the best in:")[0],
            "winners",
            heading="What to use",
        )
    return None


TAKEAWAYS = Takeaways(
    parts=(lambda tables: list(evidence(tables)),),
    introduction=(
        "Every sampler at the same target for all steps together, with noise that is proved to "
        "meet it when a record is replaced. The words of each statement follow from the numbers "
        "below it. They hold for the tasks, sizes, step sizes and seeds of this run, and say "
        "nothing beyond them; step sizes are the same for all samplers."
    ),
    evidence=evidence,
    worst=worst,
    best=best,
)
