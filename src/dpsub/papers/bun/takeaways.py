"""What a user should take from Bun, Drechsler, Gaboardi, McMillan and Sarathy 2022."""

from __future__ import annotations

import math

from dpsub.reproduce.report.takeaways import Tables, Takeaways, counted_claims, listed


def random_sizes(tables: Tables) -> str:
    """Say whether the bounds for random sizes are bounds."""
    where = {"statement": "T3.1 upper"}
    printed = tables.number("tableB", "smallest_ratio", "stated", **where)
    least, most = (tables.number("tableB", name, "consistent", **where) for name in ("smallest_ratio", "largest_ratio"))
    if not all(map(math.isfinite, (printed, least, most))):
        return ""
    first = (
        f"the printed upper bound of Theorem 3.1 falls to {printed:.2g} of the exact worst loss for mechanisms that "
        "are private under addition and removal only, so that it is no bound for them"
        if printed < 1
        else "the printed upper bound of Theorem 3.1 covers the exact worst loss"
    )
    second = (
        f"with exp(2 epsilon) it covers it, by at most a factor of {most:.2g}"
        if least >= 1 - 1e-9
        else f"with exp(2 epsilon) it still falls to {least:.2g} of it"
    )
    return f"**Random sample sizes.** In the cases tried {first}; {second}."


def loose(tables: Tables) -> str:
    """Say how far the bounds for rounded sizes and clusters lie above the exact loss."""
    found = {
        name: tables.number("tableB", "largest_ratio", "stated", statement=name) for name in ("T4.3", "T7.2", "T5.2")
    }
    least = {name: tables.number("tableB", "smallest_ratio", "stated", statement=name) for name in found}
    covering = [name for name, ratio in found.items() if math.isfinite(ratio) and least[name] >= 1 - 1e-9]
    if not covering:
        return ""
    parts = listed([f"{name} {found[name]:.2g} times" for name in covering])
    return (
        f"**Exact losses.** Upper bounds that hold can be far above the exact worst loss: at most {parts} it in the "
        f"cases tried. The exact losses cost little to compute and are what `dpsub advise` shows next to them."
    )


def designs(tables: Tables) -> str:
    """Say which designs cost privacy on the simulated frame, and which save more than half of it."""
    cells = tables.rows("advice", "lower", topic="advice", epsilon="*", design="*")
    if cells.empty:
        return ""
    epsilon = max(cells["epsilon"], key=float)
    chosen = cells[cells["epsilon"] == epsilon]
    where = {"topic": "advice", "epsilon": epsilon}
    upper = {name: tables.number("advice", "upper", "rigorous", design=name, **where) for name in chosen["design"]}
    worse = [f"{cell['design']} ({cell['rigorous']:.3g})" for _, cell in chosen.iterrows()
             if cell["rigorous"] > float(epsilon)]  # fmt: skip
    better = [name for name, value in upper.items() if value <= float(epsilon) / 2]
    text = f"**Designs.** A mechanism with epsilon = {epsilon} on samples of the simulated frame"
    if worse:
        text += f" can lose more than epsilon with: {'; '.join(worse)}."
    if better:
        text += f"{' It' if worse else ''} is proved to lose at most half of it with: {'; '.join(better)}."
    if not worse and not better:
        text += (
            " loses at most epsilon as far as is known, and more than half of it as far as is proved, in each design."
        )
    return f"{text} Each holds under the relation that its row names."


def allocations(tables: Tables) -> str:
    """Compare allocation rules at one promise."""
    cells = tables.rows("advice", "total_at_target", topic="menu", epsilon="*", design="*")
    if cells.empty:
        return ""
    parts = []
    for epsilon in sorted(set(cells["epsilon"]), key=float):
        totals = cells[cells["epsilon"] == epsilon].set_index("design")["rigorous"].dropna()
        if totals.empty:
            continue
        best = str(totals.idxmin())
        # "at best": its sensitivity is known from below only, so that nothing is promised
        private = [name for name in totals.index if not name.endswith((", public", ", at best"))]
        part = f"at epsilon = {epsilon} *{best}* has the smallest error ({totals[best]:.3g})"
        if private and best not in private:
            near = min(private, key=lambda name: totals[name])
            more = totals[near] / totals[best]
            part += f", the best rule that needs no public allocation, *{near}*, {more:.2g} times it"
        parts.append(part)
    if not parts:
        return ""
    return (
        "**Allocations at one promise.** Variance of the estimated mean with the noise that each rule needs, worst of "
        f"three populations: {'; '.join(parts)}. The relation protected differs between rules."
    )


TAKEAWAYS = Takeaways(parts=(counted_claims, random_sizes, loose, designs, allocations))
