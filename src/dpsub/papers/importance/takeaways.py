"""What a user should take from Fay, Mair and Sjölund 2024."""

from __future__ import annotations

import pandas as pd

from dpsub.reproduce.report.findings import Headline
from dpsub.reproduce.report.takeaways import Tables, Takeaways, counted_claims, listed

CODE = {
    "as_done": "the released code",
    "stated": "the algorithm as stated",
    "consistent": "the repaired algorithm",
}


def canaries(tables: Tables) -> str:
    """Say which promises draws refute."""
    cells, parts = tables.rows("audit", "flagged", attack="*"), []
    if cells.empty:
        return ""
    for _, cell in cells.iterrows():
        shown = tables.rows("audit", "shown", attack=cell["attack"]).iloc[0]
        promised = tables.number("audit", "promised", "as_done", attack=cell["attack"])
        bad = [
            f"{text} ({shown[variant]:.2g} nats)"
            for variant, text in CODE.items()
            if cell.get(variant) == 1
        ]
        if bad:
            attack = cell["attack"].replace("_", " ")
            parts.append(f"{attack}: at a promise of {promised:.2g} nats, {listed(bad)}")
    if not parts:
        return "**Canaries.** No promise is refuted by this run."
    return (
        f"**Canaries.** Runs of the code prove a larger loss than was promised. {'; '.join(parts)}."
    )


def savings(tables: Tables) -> str:
    """Say how much noise the coreset sampler saves on Table 1's numbers."""
    ratio = _uniform_over_core(tables)
    return (
        ""
        if ratio.empty
        else (
            "**Noise.** At equal target and expected size, uniform sampling needs "
            f"{ratio.min():.3g} to {ratio.max():.3g} times the noise of coreset sampling, over "
            f"{len(ratio)} cells that follow from Table 1 alone."
        )
    )


def modes(tables: Tables) -> str:
    """Compare the repaired algorithm with the text on full data at the larger target of Figures 4
    and 7."""
    cells = tables.rows("costs", "cost", dataset="*", sampler="full", epsilon="100")
    if cells.empty or not {"stated", "consistent"} <= {*cells}:
        return ""
    ratios = (cells["consistent"] / cells["stated"]).set_axis(cells["dataset"]).dropna()
    return (
        (
            "**Budget split.** The repaired algorithm scales the split between sums and counts "
            "with the data, and keeps centres in the ball. Its median cost on full data at "
            "epsilon = 100, relative to that of the text: "
            f"{', '.join(f'{name} {ratio:.2f}' for name, ratio in ratios.items())}."
        )
        if len(ratios)
        else ""
    )


def delta(tables: Tables) -> str:
    """Say what a delta buys for sums, by dimension."""
    cells = tables.rows("gain", "gain", topic="sums", sampler="full", d="*", epsilon="*")
    parts = [
        f"{cell['rigorous']:.3g} (d = {cell['d']}, pure epsilon = {cell['epsilon']})"
        for _, cell in cells.iterrows()
    ]
    if not parts:
        return ""
    return (
        "**Delta.** At the configured delta, the proved epsilon of noisy sums of 10 rounds is "
        f"smaller than the pure one by factors of {listed(parts)}."
    )


def worst(tables: Tables) -> Headline | None:
    """The promise that draws refute most."""
    names = tables.rows("audit", "flagged", attack="*")
    pairs = {
        str(name): tuple(
            tables.number("audit", column, "as_done", attack=name)
            for column in ("promised", "shown")
        )
        for name in names.get("attack", ())
    }
    if not any(shown > promised for promised, shown in pairs.values()):
        return None
    promised, shown = max(pairs.values(), key=lambda pair: pair[1] / pair[0])
    return Headline(
        f"The released code promises a loss of {promised:.2g} nats where draws show {shown:.2g}.",
        "audit",
        ("IM15", "IM7"),
        {name.replace("_", " "): (low, high) for name, (low, high) in pairs.items()},
        ("loss, promised", "loss, shown by draws"),
    )


def best(tables: Tables) -> Headline | None:
    """That sampling by importance saves noise."""
    ratio = _uniform_over_core(tables)
    return (
        None
        if ratio.empty
        else Headline(
            "Importance sampling saves noise: uniform samples of the same size need "
            f"{ratio.min():.3g} to {ratio.max():.3g} times the noise of coreset samples.",
            "noise_scales",
        )
    )


def _uniform_over_core(tables: Tables) -> pd.Series:
    """The noise of uniform sampling over that of coreset sampling at equal target and expected
    size."""
    key = ["dataset", "m", "epsilon"]
    unif, core = (
        tables.rows("noise_scales", "beta_sum", sampler=name, **dict.fromkeys(key, "*"))
        for name in ("unif", "core")
    )
    if unif.empty or core.empty:
        return pd.Series(dtype=float)
    both = unif.merge(core, on=key, suffixes=("_unif", "_core"))
    return (both["stated_unif"] / both["stated_core"]).dropna()


TAKEAWAYS = Takeaways(
    parts=(counted_claims, canaries, savings, modes, delta), worst=worst, best=best
)
