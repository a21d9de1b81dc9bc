"""What a practitioner should use: statements whose words follow from the tables of the fair comparison.

Nothing here knows the outcome. Each function looks numbers up, decides by comparing them, and hands back the sentence
with the cells that it rests on; one whose cells a run lacks is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import pandas as pd

from dpsub.papers.fair.paired import REFERENCE, label_of
from dpsub.reproduce.report.takeaways import Tables, listed

BLOCK = {"dataset": "*", "epsilon": "*", "sampler": "*"}
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
    rows = tables.rows(table, column, **(fields or BLOCK))
    if source not in rows.columns:
        return []
    return [
        Evidence(table, row["dataset"], row["epsilon"], row["sampler"], column, source, float(row[source]))
        for row in rows.to_dict("records")
        if not pd.isna(row[source])
    ]


def _by_block(cells: Iterable[Evidence]) -> dict[tuple[str, str], dict[str, Evidence]]:
    found: dict[tuple[str, str], dict[str, Evidence]] = {}
    for cell in cells:
        found.setdefault((cell.dataset, cell.epsilon), {})[cell.sampler] = cell
    return found


def _names(samplers: Iterable[str]) -> str:
    return listed(label_of(name) for name in samplers)


def recommendation(tables: Tables) -> Statement | None:
    """Name the samplers that are among the best most often."""
    best = _cells(tables, "winners", "among_the_best")
    blocks = _by_block(best)
    if not blocks:
        return None
    everywhere = [name for name in dict.fromkeys(cell.sampler for cell in best)
                  if all(name in block for block in blocks.values())]  # fmt: skip
    counts = {name: sum(int(block[name].value == 1) for block in blocks.values()) for name in everywhere}
    most = max(counts.values(), default=0)
    leaders = [name for name in everywhere if counts[name] == most]
    total = len(blocks)
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
    differences = _cells(tables, "winners", "difference_to_poisson")
    lower = _cells(tables, "winners", "difference_to_poisson", "rigorous_lower")
    upper = _cells(tables, "winners", "difference_to_poisson", "rigorous_upper")
    base = {(c.dataset, c.epsilon): c for c in _cells(tables, "winners", "loss") if c.sampler == REFERENCE}
    if not differences or len(lower) != len(differences) or not base:
        return None
    shares = [100 * cell.value / base[cell.dataset, cell.epsilon].value for cell in differences]
    worse = sum(one.value > 0 for one in lower)
    better = sum(one.value < 0 for one in upper)
    far = max(range(len(shares)), key=lambda i: abs(shares[i]))
    cell = differences[far]
    text = (
        f"Of {len(differences)} paired 95 % intervals against Poisson, {worse} lie wholly above zero (Poisson better), "
        f"{better} wholly below, {len(differences) - worse - better} include zero: no difference is shown there. The "
        f"largest difference is {shares[far]:+.2g} % of Poisson's loss ({label_of(cell.sampler)}, {cell.dataset}, "
        f"epsilon = {cell.epsilon})."
    )
    used = (differences[far], lower[far], upper[far], base[cell.dataset, cell.epsilon])
    return Statement("How much it matters", text, used)


def noise_at_equal_privacy(tables: Tables) -> Statement | None:
    """Compare the noise that samplers need with Poisson's."""
    cells = _cells(tables, "measures", "noise_multiplier")
    ratios = list(_ratios(cells))
    if not ratios:
        return None
    spans = {}
    for sampler in dict.fromkeys(cell.sampler for cell, _, _ in ratios):
        own = [ratio for cell, _, ratio in ratios if cell.sampler == sampler]
        spans[sampler] = (min(own), max(own))
    least = sum(ratio >= 1 for _, _, ratio in ratios)
    text = (
        f"For the same target, proved under substitution, Poisson needs the least noise in {least} of {len(ratios)} "
        "comparisons with another sampler. Noise over Poisson's: "
        + ", ".join(f"{label_of(name)} {low:.2f} to {high:.2f}" for name, (low, high) in spans.items())
        + "."
    )
    return Statement("Noise", text, tuple(dict.fromkeys(part for cell, base, _ in ratios for part in (base, cell))))


def _ratios(cells: Iterable[Evidence]) -> Iterator[tuple[Evidence, Evidence, float]]:
    for block in _by_block(cells).values():
        base = block.get(REFERENCE)
        if base is not None and base.value > 0:
            yield from ((cell, base, cell.value / base.value) for name, cell in block.items() if name != REFERENCE)


def cost(tables: Tables) -> Statement | None:
    """Say what the cheapest sampler saves, and what it loses by it."""
    gradients = list(_ratios(_cells(tables, "measures", "gradients_expected")))
    lower = {(c.dataset, c.epsilon, c.sampler): c for c in
             _cells(tables, "winners", "difference_to_poisson", "rigorous_lower")}  # fmt: skip
    upper = {(c.dataset, c.epsilon, c.sampler): c for c in
             _cells(tables, "winners", "difference_to_poisson", "rigorous_upper")}  # fmt: skip
    if not gradients or not lower:
        return None
    cell, base, ratio = min(gradients, key=lambda found: found[2])
    own = [(one, ratio) for one, _, ratio in gradients if one.sampler == cell.sampler]
    keys = [(one.dataset, one.epsilon, one.sampler) for one, _ in own]
    worse = sum(lower[key].value > 0 for key in keys if key in lower)
    better = sum(upper[key].value < 0 for key in keys if key in upper)
    text = (
        f"{label_of(cell.sampler)} evaluates the fewest distinct gradients: {100 * (1 - ratio):.0f} % fewer than "
        f"Poisson at best ({cell.dataset}). At equal proved privacy the 95 % interval of its difference from Poisson's "
        f"loss lies above zero in {worse} of {len(own)} comparisons and below zero in {better}."
    )
    used = [part for key in keys for part in (lower.get(key), upper.get(key)) if part is not None]
    return Statement("Cost", text, (cell, base, *used))


def papers_pair(tables: Tables) -> Statement | None:
    """Say what the noise that the papers' pair asks for is worth."""
    found = _cells(tables, "measures", "epsilon_lower", "consistent")
    # for Poisson that pair is about adding a record, so that it breaks no promise where a record is replaced
    attained = [cell for cell in found if cell.sampler != REFERENCE]
    shown = {(c.dataset, c.epsilon, c.sampler): c for c in _cells(tables, "measures", "epsilon_upper", "consistent")}
    if not attained:
        return None
    broken = [cell for cell in attained if cell.value > float(cell.epsilon)]
    worst = max(attained, key=lambda cell: cell.value / float(cell.epsilon))
    proof = shown[worst.dataset, worst.epsilon, worst.sampler]
    text = (
        f"Noise for which the papers' pair meets the target exceeds it by an explicit attack in {len(broken)} of "
        f"{len(attained)} cases (Poisson apart, whose pair is about adding a record): at worst "
        f"{label_of(worst.sampler)} on {worst.dataset} for a target of {worst.epsilon} lets an attack attain epsilon = "
        f"{worst.value:.3g}, and {proof.value:.3g} is what is proved. "
    )
    text += "Do not calibrate noise by that pair." if broken else "No attack known here contradicts that pair."
    return Statement("The papers' pair", text, (worst, proof))


def reversals(tables: Tables) -> Statement | None:
    """Count the pairs of samplers whose order is reversed at equal proved privacy."""
    lines, used = [], []
    for source, words in (
        ("stated", "the main paper's own comparison, equal epsilon' a query"),
        ("consistent", "noise by the papers' pair"),
    ):
        turned = _pairs(tables, "pairs_reversed", source)
        apart = _pairs(tables, "pairs_separated", source)
        if turned and apart:
            count, total = sum(cell.value for cell in turned), sum(cell.value for cell in apart)
            lines.append(f"of {total:.0f} pairs told apart by {words}, {count:.0f} are told apart the other way")
            used += [*turned, *apart]
    if not lines:
        return None
    return Statement("Rankings", f"At equal proved privacy, {'; '.join(lines)}.", tuple(used))


def _pairs(tables: Tables, column: str, source: str) -> list[Evidence]:
    rows = tables.rows("rankings", column, dataset="*", epsilon="*")
    if source not in rows.columns:
        return []
    return [
        Evidence("rankings", row["dataset"], row["epsilon"], "", column, source, float(row[source]))
        for row in rows.to_dict("records") if not pd.isna(row[source])
    ]  # fmt: skip


def adjacency(tables: Tables) -> Statement | None:
    """Say what Poisson would need if a record were added or removed instead of replaced."""
    fields = {"dataset": "*", "epsilon": "*", "steps": "*", "sampler": REFERENCE, "m": "*"}
    other = _cells(tables, "noise", "noise_add_remove", **fields)
    own = _cells(tables, "noise", "noise_multiplier", **fields)
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
    ends = [_cells(tables, "measures", "coverage", f"rigorous{end}") for end in ("", "_lower", "_upper")]
    if not ends[0] or len({len(part) for part in ends}) != 1:
        return None
    missed = [one.sampler for one, _, high in zip(*ends, strict=True) if high.value < 0.95]
    values = [cell.value for cell in ends[0]]
    span = f"{100 * min(values):.0f}" + (f" to {100 * max(values):.0f}" if max(values) > min(values) else "")
    text = f"The bootstrap's 95 % intervals, made from the noisy releases alone, cover the truth in {span} % of seeds."
    text += f" Shown to cover less than 95 %: {_names(missed) if missed else 'none of the samplers'}."
    return Statement("Intervals", text, tuple(cell for part in ends for cell in part))


def control(tables: Tables) -> Statement | None:
    """Compare two samplers that are one in law: a check of the comparison itself."""
    blocks = _by_block(_cells(tables, "rankings", "rank"))
    pairs = [tuple(block[name] for name in SAME_LAW) for block in blocks.values() if set(SAME_LAW) <= set(block)]
    if not pairs:
        return None
    differ = sum(one.value != two.value for one, two in pairs)
    text = (
        f"{_names(SAME_LAW)} have the same law and the same noise; their ranks differ in {differ} of {len(pairs)} "
        "comparisons, which shows what chance alone does here."
    )
    return Statement("Check", text, tuple(cell for pair in pairs for cell in pair))
