"""What a user should take from Jiang, Du, Sharma and Yan 2024."""

from __future__ import annotations

import math

from dpsub.reproduce.report.findings import Headline
from dpsub.reproduce.report.takeaways import Tables, Takeaways, counted_claims


def guarantees(tables: Tables) -> str:
    """Say how far the exact delta lies from the promised one."""
    cells = tables.rows("statements", "value", statement="P3", case="*")
    if cells.empty or "rigorous" not in cells.columns:
        return ""
    ratio = cells["rigorous"] / cells["stated"]
    kept = ratio[ratio <= 1 + 1e-9]
    text = (
        "**Guarantees.** The paper's privacy theorem is not an upper bound: it is exceeded for "
        f"{len(cells) - len(kept)} of the {len(cells)} budgets tried"
    )
    if len(kept) < len(cells):
        worst = cells["case"].iloc[int(ratio.to_numpy().argmax())]
        text += (
            f", where the exact delta is up to {ratio.max():.3g} times the promised one ({worst})"
        )
    if len(kept):
        text += (
            f"; where it holds, the exact delta is down to {kept.min():.2g} of the promised one, "
            "slack that exact accounting recovers"
        )
    return (
        f"{text}. Every artefact with the paper's parameters shows the exact delta; `dpsub "
        "brdp` gives it for yours."
    )


def composition(tables: Tables) -> str:
    """Compare recycled and plain Gaussian noise after 1000 releases."""
    stated, exact, plain = (
        tables.number(
            "table1", "epsilon", variant, method=method, accountant=accountant, delta="1e-05"
        )
        for variant, method, accountant in (
            ("stated", "Gau-BRDP", "closed form"),
            ("rigorous", "Gau-BRDP", "exact"),
            ("rigorous", "Gau-DP", "exact"),
        )
    )
    if math.isnan(stated + exact + plain):
        return ""
    return (
        "**Many releases.** After all releases of Table I, recycled Gaussian noise has epsilon = "
        f"{stated:.4g} by the paper's theorem and {exact:.4g} exactly, and plain Gaussian noise "
        f"{plain:.4g}: composition is no reason to recycle, and parameters that are best for one "
        "release should not be used for many (Figure 5)."
    )


def sampling(tables: Tables) -> str:
    """Say what becomes of sampling with the sensitivity that the statistic has."""
    numbers = [
        tables.number("claims", "holds", source, claim="C.fig6.cnt")
        for source in ("stated", "consistent")
    ]
    if numbers != [1.0, 0.0]:
        return ""
    return (
        "**Sampling.** Algorithm 4 finds rates below 1 because it uses the sensitivity on all "
        "records; with that of the rescaled statistic, using all records is best in every case "
        "tried (Figure 6)."
    )


def worst(tables: Tables) -> Headline | None:
    """The budgets that Algorithm 1 exceeds."""
    cells = tables.rows("statements", "value", statement="P3", case="*")
    if cells.empty or "rigorous" not in cells.columns:
        return None
    above = cells[cells["rigorous"] > cells["stated"] * (1 + 1e-9)]
    if above.empty:
        return None
    names = (
        above["case"]
        .str.partition(",")[0]
        .replace({"gau": "Gaussian", "lap": "Laplace"}, regex=True)
    )
    return Headline(
        f"Algorithm 1 exceeds δ in {len(above)} of {len(cells)} budgets, by up to "
        f"{(above['rigorous'] / above['stated']).max():,.0f} times.",
        "statements",
        ("BR2",),
        {
            name: (told, true)
            for name, told, true in zip(names, above["stated"], above["rigorous"], strict=True)
        },
        ("δ, promised", "δ, exact"),
    )


def best(tables: Tables) -> Headline | None:
    """What the paper's own accounting gives again."""
    cells = tables.rows("claims", "holds", claim="*")
    printed = cells[cells["claim"].str.match(r"T1\..*\.eps\.")] if len(cells) else cells
    return (
        None
        if printed.empty
        else Headline(
            f"Table I: {int((printed['stated'] == 1).sum())} of {len(printed)} printed ε after "
            "1000 releases follow from the paper's theorems.",
            "claims",
            ("BR19",),
        )
    )


TAKEAWAYS = Takeaways(
    parts=(counted_claims, guarantees, composition, sampling), worst=worst, best=best
)
