"""What a user should take from Balle, Barthe and Gaboardi 2018."""

from __future__ import annotations

import pandas as pd

from dpsub.reproduce.report.findings import Headline
from dpsub.reproduce.report.takeaways import Tables, Takeaways, counted_claims, listed

TABLE1 = {"B016": "8", "B018": "9", "B020": "10", "B022": "11", "B024": "14"}
WHOLE = 1 - 1e-6
"""A ratio from here on is 1 up to the tolerance of the linear program."""


def bounds(tables: Tables) -> str:
    """Say which theorems of Table 1 no enumerated mechanism exceeds."""
    found = {
        number: tables.number("claims", "holds", "stated", claim=row)
        for row, number in TABLE1.items()
    }
    right, wrong = (
        [number for number, holds in found.items() if holds == wanted] for wanted in (1, 0)
    )
    text = ""
    if right:
        text += (
            f"No mechanism on the enumerated data sets exceeds the bound of {_theorems(right)}. "
        )
    if wrong:
        text += f"Some mechanism exceeds that of {_theorems(wrong)} as printed. "
    return text and (
        f"**The bounds.** {text}Each holds for one release under the relation stated for it; that "
        "of Theorem 11 for a fixed size n."
    )


def attained(tables: Tables) -> str:
    """Say which bounds a mechanism attains at a positive epsilon, and how near the others come."""
    anything = dict.fromkeys(("theorem", "sampler", "base_relation", "relation"), "*")
    cells = tables.rows("table1", "attained_at_positive_epsilon", **anything)
    if cells.empty or "rigorous" not in cells.columns:
        return ""
    whole = cells["rigorous"] >= WHOLE
    best = listed(cells.loc[whole, "theorem"])
    text = f"**Attained.** At a positive epsilon some mechanism attains the bound of {best}."
    if not whole.all():
        short = [
            f"{cell['theorem']} ({100 * cell['rigorous']:.1f} % of it)"
            for _, cell in cells[~whole].iterrows()
        ]
        text += f" The best mechanism tried falls short of the bound of {listed(short)}."
    return (
        f"{text} This is tightness for the class of all mechanisms with a given profile, not "
        "for one kind of noise."
    )


def tight(tables: Tables) -> str:
    """Say for which theorems the linear program finds a bound loose on a design."""
    least = _least_ratio(tables)
    whole, loose = least[least >= WHOLE], least[least < WHOLE].sort_values()
    parts = []
    if len(whole):
        parts.append(f"the largest loss equals the bound everywhere for {listed(whole.index)}")
    if len(loose):
        short = [f"{name} (down to {ratio:.2f} of it)" for name, ratio in loose.items()]
        parts.append(f"it stays below the bound at some point for {listed(short)}")
    start = (
        "**Tightness by design.** Over all (epsilon, delta)-DP mechanisms on designs of 4 records "
    )
    return f"{start}{'; '.join(parts)}." if parts else ""


def poisson_substitution(tables: Tables) -> str:
    """Compare the two bounds of Poisson sampling under substitution."""
    least = _least_ratio(tables)
    printed, ours = (
        least.get(name, float("nan")) for name in ("Theorem 14", "Theorem 2 given the size")
    )
    if not ours > printed:
        return ""
    times = "equals" if ours >= WHOLE else f"is at most {1 / ours:.3g} times"
    return (
        "**Poisson sampling, one record substituted.** The bound that compares samples of each "
        f"size (*Theorem 2 given the size*) {times} the largest loss on these designs, whereas "
        f"that of Theorem 14 is up to {1 / printed:.3g} times as large; `dpsub translate` uses "
        "the former."
    )


def _least_ratio(tables: Tables) -> pd.Series:
    """The smallest optimum over bound of each theorem."""
    where = dict.fromkeys(("theorem", "n", "epsilon0", "delta0", "epsilon"), "*")
    parts = [
        tables.rows("optimum", "ratio_to_bound", **where, **{size: "*"}) for size in ("rate", "m")
    ]
    cells = pd.concat([part for part in parts if "rigorous" in part.columns] or [pd.DataFrame()])
    return (
        cells.groupby("theorem")["rigorous"].min().dropna()
        if len(cells)
        else pd.Series(dtype=float)
    )


def _theorems(numbers: list[str]) -> str:
    return f"Theorem{'s' if len(numbers) > 1 else ''} {listed(numbers)}"


def worst(tables: Tables) -> Headline | None:
    """The bound that lies highest above the largest loss."""
    least = _least_ratio(tables)
    printed = least[
        [name in {f"Theorem {number}" for number in TABLE1.values()} for name in least.index]
    ]
    if not (printed < WHOLE).any():
        return None
    name, ratio = printed.idxmin(), printed.min()
    return Headline(
        f"{name} holds, but can be {1 / ratio:.3g} times the largest loss of any mechanism.",
        "optimum",
        ("BL7",),
        {str(one): (1.0, float(value)) for one, value in printed.items()},
        ("bound, as 1", "largest loss"),
    )


def best(tables: Tables) -> Headline | None:
    """The bounds that no mechanism exceeds, and that some mechanism attains."""
    holding = [
        number
        for row, number in TABLE1.items()
        if tables.number("claims", "holds", "stated", claim=row) == 1
    ]
    good, judged = tables.agreement("claims")
    return (
        None
        if not holding
        else Headline(
            f"{_theorems(holding)} of Table 1: no mechanism tried exceeds them. {good} of {judged} "
            "statements hold.",
            "table1",
        )
    )


TAKEAWAYS = Takeaways(
    parts=(counted_claims, bounds, attained, tight, poisson_substitution), worst=worst, best=best
)
