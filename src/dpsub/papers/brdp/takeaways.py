"""What a user should take from Jiang, Du, Sharma and Yan 2024."""

from __future__ import annotations

import math

from dpsub.reproduce.report.takeaways import Tables, Takeaways, counted_claims


def guarantees(tables: Tables) -> str:
    """Say how far the exact delta lies from the promised one."""
    cells = tables.rows("statements", "value", statement="P3", case="*")
    if cells.empty or "rigorous" not in cells.columns:
        return ""
    ratio = cells["rigorous"] / cells["stated"]
    broken = cells[ratio > 1 + 1e-9]
    text = (
        f"**Guarantees.** The paper's privacy theorem is no upper bound: of {len(cells)} budgets that its algorithms "
        f"were given, {len(broken)} are exceeded"
    )
    if len(broken):
        worst = cells["case"].iloc[int(ratio.to_numpy().argmax())]
        text += f", by up to {ratio.max():.3g} times delta ({worst})"
    kept = ratio[ratio <= 1 + 1e-9]
    if len(kept):
        text += f"; where it is kept the exact delta is down to {kept.min():.2g} of it, which exact accounting spends"
    return f"{text}. Every artefact with the paper's parameters shows the exact delta; `dpsub brdp` gives it for yours."


def composition(tables: Tables) -> str:
    """Compare recycled and plain Gaussian noise after 1000 releases."""
    where = {"delta": "1e-05"}
    stated = [tables.number("table1", "epsilon", "stated", method=name, accountant="closed form", **where)
              for name in ("Gau-BRDP", "Gau-DP")]  # fmt: skip
    exact = [tables.number("table1", "epsilon", "rigorous", method=name, accountant="exact", **where)
             for name in ("Gau-BRDP", "Gau-DP")]  # fmt: skip
    if not all(map(math.isfinite, (*stated, *exact))):
        return ""
    return (
        f"**Many releases.** After all releases of Table I recycled Gaussian noise has epsilon {stated[0]:.4g} by the "
        f"paper's theorem and {exact[0]:.4g} exactly, plain Gaussian noise {exact[1]:.4g}: composition is no reason to "
        "recycle, and an optimum for one release must not be used for many (figure 5)."
    )


def sampling(tables: Tables) -> str:
    """Say what becomes of sampling with the sensitivity that the statistic has."""
    numbers = [tables.number("claims", "holds", source, claim="C.fig6.cnt") for source in ("stated", "consistent")]
    if numbers != [1.0, 0.0]:
        return ""
    return (
        "**Sampling.** Algorithm 4 finds rates below 1 because it calibrates to the sensitivity of all records; with "
        "the sensitivity that the rescaled statistic has, all records are best in every case tried (figure 6)."
    )


TAKEAWAYS = Takeaways(parts=(counted_claims, guarantees, composition, sampling))
