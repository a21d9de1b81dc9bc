"""What a practitioner should use: sentences whose words follow from the tables of the fair comparison.

Nothing here knows the outcome. Each function looks numbers up, decides by comparing them, and returns the sentence
with the cells that it rests on; one whose cells a run lacks is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

import pandas as pd

from dpsub.papers.fair.paired import REFERENCE, label_of
from dpsub.reproduce.labels import escape_markdown
from dpsub.reproduce.report.takeaways import Tables, Takeaways, listed

SAME_LAW = ("wor", "must_oo")


@dataclass(frozen=True)
class Evidence:
    """One cell of a table: the number in column `source` at this data set, target and sampler."""

    table: str
    dataset: str
    epsilon: str
    sampler: str
    column: str
    source: str
    value: float

    @property
    def block(self) -> tuple[str, str]:
        return self.dataset, self.epsilon


Place = tuple[str, str, str]


@dataclass(frozen=True)
class Statement:
    """A heading, a sentence or two, and the cells that they rest on."""

    heading: str
    text: str
    evidence: tuple[Evidence, ...]


def statements(tables: Tables) -> list[Statement]:
    """Return what the tables say, most useful first."""
    parts: tuple[Callable[[Tables], Statement | None], ...] = (
        recommendation, size_of_the_difference, noise_at_equal_privacy, cost, papers_pair, reversals, adjacency,
        coverage, control,
    )  # fmt: skip
    return [found for part in parts if (found := part(tables)) is not None]


def _cells(tables: Tables, table: str, column: str, source: str = "rigorous", **fields: str) -> list[Evidence]:
    rows = tables.rows(table, column, dataset="*", epsilon="*", **(fields or {"sampler": "*"}))
    if source not in rows.columns:
        return []
    return [
        Evidence(table, row["dataset"], row["epsilon"], row["sampler"], column, source, float(row[source]))
        for row in rows.dropna(subset=[source]).to_dict("records")
    ]


def _places(cells: Iterable[Evidence]) -> dict[Place, Evidence]:
    return {(*cell.block, cell.sampler): cell for cell in cells}


def _blocks(cells: Iterable[Evidence]) -> list[dict[str, Evidence]]:
    found: dict[tuple[str, str], dict[str, Evidence]] = {}
    for cell in cells:
        found.setdefault(cell.block, {})[cell.sampler] = cell
    return list(found.values())


def _ratios(cells: Iterable[Evidence]) -> Iterator[tuple[Evidence, Evidence, float]]:
    """Yield each cell of another sampler with Poisson's and the ratio to it."""
    for block in _blocks(cells):
        base = block.get(REFERENCE)
        if base is not None and base.value > 0:
            yield from ((cell, base, cell.value / base.value) for name, cell in block.items() if name != REFERENCE)


def _differences(tables: Tables) -> tuple[dict[Place, Evidence], ...]:
    """Return the differences from Poisson, and the ends of their intervals."""
    ends = ("rigorous", "rigorous_lower", "rigorous_upper")
    return tuple(_places(_cells(tables, "winners", "difference_to_poisson", end)) for end in ends)


def _names(samplers: Iterable[str]) -> str:
    return listed(label_of(name) for name in samplers)


def recommendation(tables: Tables) -> Statement | None:
    """Name the samplers that are among the best most often."""
    best = _cells(tables, "winners", "among_the_best")
    blocks = _blocks(best)
    if not blocks:
        return None
    counts = {name: sum(int(block[name].value == 1) for block in blocks)
              for name in dict.fromkeys(cell.sampler for cell in best)
              if all(name in block for block in blocks)}  # fmt: skip
    most, total = max(counts.values(), default=0), len(blocks)
    leaders = [name for name, count in counts.items() if count == most]
    if most == 0:
        text = f"No sampler is among the best in any of the {total} comparisons that hold all samplers."
    elif most == total:
        which = f"Use any of {_names(leaders)}, a tie" if len(leaders) > 1 else f"Use {_names(leaders)}"
        text = f"{which}: in all {total} comparisons at equal proved privacy no other sampler is shown to be better."
    else:
        text = (
            f"No sampler is among the best everywhere. {_names(leaders)} {'is' if len(leaders) == 1 else 'are'} in "
            f"{most} of {total} comparisons at equal proved privacy."
        )
    text += " Among the best in: " + ", ".join(f"{label_of(name)} {count}" for name, count in counts.items()) + "."
    return Statement("Which sampler", text, tuple(cell for cell in best if cell.value == 1))


def size_of_the_difference(tables: Tables) -> Statement | None:
    """Say how large the differences from Poisson are, and how many intervals leave zero out."""
    differences, lower, upper = _differences(tables)
    base = {cell.block: cell for cell in _cells(tables, "winners", "loss") if cell.sampler == REFERENCE}
    if not differences or len(lower) != len(differences) or not base:
        return None
    shares = {place: 100 * cell.value / base[cell.block].value for place, cell in differences.items()}
    worse, better = sum(one.value > 0 for one in lower.values()), sum(one.value < 0 for one in upper.values())
    far = max(shares, key=lambda place: abs(shares[place]))
    cell = differences[far]
    text = (
        f"Of {len(differences)} paired 95 % intervals against Poisson, {worse} lie wholly above zero (Poisson better), "
        f"{better} wholly below, {len(differences) - worse - better} include zero: no difference is shown there. The "
        f"largest difference is {shares[far]:+.2g} % of Poisson's loss ({label_of(cell.sampler)}, {cell.dataset}, "
        f"epsilon = {cell.epsilon})."
    )
    return Statement("How much it matters", text, (cell, lower[far], upper[far], base[cell.block]))


def noise_at_equal_privacy(tables: Tables) -> Statement | None:
    """Compare the noise that samplers need with Poisson's."""
    ratios = list(_ratios(_cells(tables, "measures", "noise_multiplier")))
    if not ratios:
        return None
    own: dict[str, list[float]] = {}
    for cell, _, ratio in ratios:
        own.setdefault(cell.sampler, []).append(ratio)
    spans = (f"{label_of(name)} {min(found):.2f} to {max(found):.2f}" for name, found in own.items())
    text = (
        "For the same target, proved under substitution, Poisson needs the least noise in "
        f"{sum(ratio >= 1 for _, _, ratio in ratios)} of {len(ratios)} comparisons with another sampler. Noise over "
        f"Poisson's: {', '.join(spans)}."
    )
    return Statement("Noise", text, tuple(dict.fromkeys(part for cell, base, _ in ratios for part in (base, cell))))


def cost(tables: Tables) -> Statement | None:
    """Say what the cheapest sampler saves, and what it loses by it."""
    gradients = list(_ratios(_cells(tables, "measures", "gradients_expected")))
    _, lower, upper = _differences(tables)
    if not gradients or not lower:
        return None
    cell, base, ratio = min(gradients, key=lambda found: found[2])
    own = [(*one.block, one.sampler) for one, _, _ in gradients if one.sampler == cell.sampler]
    text = (
        f"{label_of(cell.sampler)} evaluates the fewest distinct gradients: {100 * (1 - ratio):.0f} % fewer than "
        f"Poisson at best ({cell.dataset}). At equal proved privacy the 95 % interval of its difference from Poisson's "
        f"loss lies above zero in {sum(lower[key].value > 0 for key in own if key in lower)} of {len(own)} comparisons "
        f"and below zero in {sum(upper[key].value < 0 for key in own if key in upper)}."
    )
    return Statement("Cost", text, (cell, base, *(ends[key] for key in own for ends in (lower, upper) if key in ends)))


def papers_pair(tables: Tables) -> Statement | None:
    """Say what the noise that the papers' pair asks for is worth."""
    # for Poisson that pair is about adding a record, so that it breaks no promise where a record is replaced
    attained = [cell for cell in _cells(tables, "measures", "epsilon_lower", "consistent") if cell.sampler != REFERENCE]
    shown = _places(_cells(tables, "measures", "epsilon_upper", "consistent"))
    if not attained:
        return None
    broken = sum(cell.value > float(cell.epsilon) for cell in attained)
    worst = max(attained, key=lambda cell: cell.value / float(cell.epsilon))
    proof = shown[*worst.block, worst.sampler]
    text = (
        f"Noise for which the papers' pair meets the target exceeds it by an explicit attack in {broken} of "
        f"{len(attained)} cases (Poisson apart, whose pair is about adding a record): at worst "
        f"{label_of(worst.sampler)} on {worst.dataset} for a target of {worst.epsilon} lets an attack attain epsilon = "
        f"{worst.value:.3g}, and {proof.value:.3g} is what is proved. "
    )
    text += "Do not calibrate noise by that pair." if broken else "No attack known here contradicts that pair."
    return Statement("The papers' pair", text, (worst, proof))


def reversals(tables: Tables) -> Statement | None:
    """Count the pairs of samplers whose order is reversed at equal proved privacy."""
    lines: list[str] = []
    used: list[Evidence] = []
    for source, words in (
        ("stated", "the main paper's own comparison, equal epsilon' a query"),
        ("consistent", "noise by the papers' pair"),
    ):
        turned, apart = (_cells(tables, "rankings", f"pairs_{what}", source, sampler="")
                         for what in ("reversed", "separated"))  # fmt: skip
        if turned and apart:
            count, total = sum(cell.value for cell in turned), sum(cell.value for cell in apart)
            lines.append(f"of {total:.0f} pairs told apart by {words}, {count:.0f} are told apart the other way")
            used += [*turned, *apart]
    return Statement("Rankings", f"At equal proved privacy, {'; '.join(lines)}.", tuple(used)) if lines else None


def adjacency(tables: Tables) -> Statement | None:
    """Say what Poisson would need if a record were added or removed instead of replaced."""
    other, own = (_cells(tables, "noise", column, steps="*", sampler=REFERENCE, m="*")
                  for column in ("noise_add_remove", "noise_multiplier"))  # fmt: skip
    if not other or len(other) != len(own):
        return None
    ratios = [weak.value / strong.value for weak, strong in zip(other, own, strict=True)]
    text = (
        "Poisson is compared here under substitution, like the others. If it is enough to hide that a record was added "
        f"or removed, its noise falls to {min(ratios):.2f} to {max(ratios):.2f} of that; for samplers of fixed size no "
        "such bound exists, and the two relations must not be mixed in one comparison."
    )
    return Statement("Adjacency", text, (*other, *own))


def coverage(tables: Tables) -> Statement | None:
    """Say whose intervals keep their level."""
    values, lower, upper = (
        _cells(tables, "measures", "coverage", f"rigorous{end}") for end in ("", "_lower", "_upper")
    )
    if not values or not len(values) == len(lower) == len(upper):
        return None
    missed = [one.sampler for one, high in zip(values, upper, strict=True) if high.value < 0.95]
    low, high = (100 * end(cell.value for cell in values) for end in (min, max))
    span = f"{low:.0f}" + (f" to {high:.0f}" if high > low else "")
    text = f"The bootstrap's 95 % intervals, made from the noisy releases alone, cover the truth in {span} % of seeds."
    text += f" Shown to cover less than 95 %: {_names(missed) if missed else 'none of the samplers'}."
    return Statement("Intervals", text, (*values, *lower, *upper))


def control(tables: Tables) -> Statement | None:
    """Compare two samplers that are one in law: a check of the comparison itself."""
    blocks = _blocks(_cells(tables, "rankings", "rank"))
    pairs = [tuple(block[name] for name in SAME_LAW) for block in blocks if set(SAME_LAW) <= set(block)]
    if not pairs:
        return None
    text = (
        f"{_names(SAME_LAW)} have the same law and the same noise; their ranks differ in "
        f"{sum(one.value != two.value for one, two in pairs)} of {len(pairs)} "
        "comparisons, which shows what chance alone does here."
    )
    return Statement("Check", text, tuple(cell for pair in pairs for cell in pair))


def sentences(tables: Tables) -> list[str]:
    return [_sentence(one) for one in statements(tables)]


def evidence(tables: Tables) -> Mapping[str, pd.DataFrame]:
    return {_sentence(one): pd.DataFrame(map(_line, one.evidence)) for one in statements(tables)}


def _sentence(statement: Statement) -> str:
    return f"**{statement.heading}.** {escape_markdown(statement.text)}"


def _line(cell: Evidence) -> dict[str, str]:
    return {
        "table": f"fair/{cell.table}", "data set": cell.dataset, "ε": cell.epsilon, "sampler": cell.sampler,
        "quantity": cell.column.replace("_", " "), "variant": cell.source.replace("_", " "),
        "number": f"{cell.value:.6g}",
    }  # fmt: skip


TAKEAWAYS = Takeaways(
    parts=(sentences,),
    introduction=(
        "Every sampler at the same target for all steps together, with noise that is proved to meet it when a record "
        "is replaced. The words of each statement follow from the numbers below it. They hold for the tasks, sizes, "
        "step sizes and seeds of this run, and say nothing beyond them; step sizes are the same for all samplers."
    ),
    evidence=evidence,
)
