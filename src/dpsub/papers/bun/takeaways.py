"""What a user should take from Bun, Drechsler, Gaboardi, McMillan and Sarathy 2022."""

from __future__ import annotations

import math

from dpsub.reproduce.report.findings import Headline
from dpsub.reproduce.report.takeaways import Tables, Takeaways, counted_claims, listed

HELD = 1 - 1e-9


def random_sizes(tables: Tables) -> str:
    """Say whether the bounds for random sizes are bounds."""
    printed, least, most = (
        tables.number("tableB", name, variant, statement="T3.1 upper")
        for name, variant in (
            ("smallest_ratio", "stated"),
            ("smallest_ratio", "consistent"),
            ("largest_ratio", "consistent"),
        )
    )
    if not all(map(math.isfinite, (printed, least, most))):
        return ""
    first = (
        ("the printed upper bound of Theorem 3.1 covers the exact worst-case loss")
        if printed >= 1
        else (
            f"the printed upper bound of Theorem 3.1 falls to {printed:.2g} of the exact "
            "worst-case loss for mechanisms that are private under addition and removal only, so "
            "it is not a bound for them"
        )
    )
    second = (
        f"covers that loss and is at most {most:.2g} times as large"
        if least >= HELD
        else f"still falls to {least:.2g} of that loss"
    )
    return f"**Random sample sizes.** In the cases tried, {first}; with exp(2 epsilon) it {second}."


def loose(tables: Tables) -> str:
    """Say how far the bounds for rounded sizes and clusters lie above the exact loss."""
    ends = ("smallest_ratio", "largest_ratio")
    ratios = {
        name: [tables.number("tableB", end, "stated", statement=name) for end in ends]
        for name in ("T4.3", "T7.2", "T5.2")
    }
    parts = [
        f"{most:.2g} ({name})"
        for name, (least, most) in ratios.items()
        if least >= HELD and math.isfinite(most)
    ]
    return (
        (
            "**Exact losses.** A bound that holds can be far above the exact worst-case loss: in "
            f"the cases tried, by factors of up to {listed(parts)}. `dpsub advise` shows the "
            "exact losses, which are cheap to compute, next to the bounds."
        )
        if parts
        else ""
    )


def designs(tables: Tables) -> str:
    """Say which designs cost privacy on the simulated frame, and which save more than half of
    it."""
    cells = tables.rows("advice", "lower", topic="advice", epsilon="*", design="*")
    if cells.empty:
        return ""
    epsilon = max(cells["epsilon"], key=float)
    lower, upper = (
        tables.rows("advice", side, topic="advice", epsilon=epsilon, design="*").set_index(
            "design"
        )["rigorous"]
        for side in ("lower", "upper")
    )
    worse = [f"{name} ({loss:.3g})" for name, loss in lower.items() if loss > float(epsilon)]
    better = [str(name) for name, loss in upper.items() if loss <= float(epsilon) / 2]
    known = {
        "can lose more than epsilon with": worse,
        "is proved to lose at most half of it with": better,
    }
    said = " It ".join(
        f"{words}: {'; '.join(names)}." for words, names in known.items() if names
    ) or (
        "loses at most epsilon as far as is known, and more than half of it as far as is proved, "
        "in each design."
    )
    return (
        f"**Designs.** A mechanism with epsilon = {epsilon} on samples of the simulated frame "
        f"{said} Each statement holds under the relation that its row names."
    )


def allocations(tables: Tables) -> str:
    """Compare allocation rules at one promise."""
    cells = tables.rows("advice", "total_at_target", topic="menu", epsilon="*", design="*")
    parts = []
    for epsilon in sorted(set(cells.get("epsilon", ())), key=float):
        totals = cells[cells["epsilon"] == epsilon].set_index("design")["rigorous"].dropna()
        if totals.empty:
            continue
        best = totals.idxmin()
        part = f"at epsilon = {epsilon} *{best}* has the smallest variance ({totals[best]:.3g})"
        # "at best": its sensitivity is known from below only, so that nothing is promised
        private = totals[
            [not str(name).endswith((", public", ", at best")) for name in totals.index]
        ]
        if len(private) and best not in private:
            part += (
                f"; that of the best rule without a public allocation, *{private.idxmin()}*, is "
                f"{private.min() / totals[best]:.2g} times as large"
            )
        parts.append(part)
    return (
        (
            "**Allocations at equal privacy.** Variance of the estimated mean with the noise that "
            f"each rule needs, worst of three populations: {'; '.join(parts)}. The relation under "
            "which privacy holds differs between rules."
        )
        if parts
        else ""
    )


def worst(tables: Tables) -> Headline | None:
    """The upper bound that is none."""
    ratios = {
        f"{end} ratio": tuple(
            tables.number("tableB", f"{end}_ratio", variant, statement="T3.1 upper")
            for variant in ("stated", "consistent")
        )
        for end in ("smallest", "largest")
    }
    least = ratios["smallest ratio"][0]
    if not least < HELD:
        return None
    return Headline(
        f"The upper bound of Theorem 3.1 falls to {least:.2g} of the exact worst loss: it is no "
        "bound for mechanisms that are private under addition and removal.",
        "tableB",
        ("BN1",),
        {name: (printed, mended) for name, (printed, mended) in ratios.items()},
        ("bound / loss, printed", "corrected"),
    )


def best(tables: Tables) -> Headline | None:
    """The statements that hold."""
    good, judged = tables.agreement("claims")
    least, most = (
        tables.number("tableB", f"{end}_ratio", "stated", statement="T5.2")
        for end in ("smallest", "largest")
    )
    return (
        None
        if not good or not least >= HELD
        else Headline(
            f"The bound for cluster samples (Theorem 5.2) holds and is at most {most:.3g} times "
            f"the exact loss. {good} of {judged} statements and numbers are confirmed.",
            "tableB",
            ("BN6",),
        )
    )


TAKEAWAYS = Takeaways(
    parts=(counted_claims, random_sizes, loose, designs, allocations), worst=worst, best=best
)
