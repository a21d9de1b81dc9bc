"""What a user should take from Fay, Mair and Sjölund 2024."""

from __future__ import annotations

import math

from dpsub.reproduce.report.takeaways import Tables, Takeaways, counted_claims, listed


def canaries(tables: Tables) -> str:
    """Say which promises draws refute."""
    cells = tables.rows("audit", "flagged", attack="*")
    if cells.empty:
        return ""
    parts = []
    for _, cell in cells.iterrows():
        shown = tables.rows("audit", "shown", attack=cell["attack"]).iloc[0]
        promised = tables.number("audit", "promised", "as_done", attack=cell["attack"])
        bad = [f"{text} ({shown[name]:.2g} nats)" for name, text in
               (("as_done", "the released code"), ("stated", "the algorithm as stated"),
                ("consistent", "the repaired algorithm")) if cell.get(name) == 1]  # fmt: skip
        if bad:
            attack = str(cell["attack"]).replace("_", " ")
            parts.append(f"{attack}: a promise of {promised:.2g} nats is refuted for {listed(bad)}")
    if not parts:
        return "**Canaries.** The draws of this run refute no promise."
    return f"**Canaries.** Losses proved by draws above the promised ones: {'; '.join(parts)}."


def savings(tables: Tables) -> str:
    """Say how much noise the core-set sampler saves on Table 1's numbers."""
    where = {"dataset": "*", "m": "*", "epsilon": "*"}
    found = {name: tables.rows("noise_scales", "beta_sum", sampler=name, **where) for name in ("unif", "core")}
    if any(cells.empty for cells in found.values()):
        return ""
    key = ["dataset", "m", "epsilon"]
    both = found["unif"].merge(found["core"], on=key, suffixes=("_unif", "_core"))
    ratio = (both["stated_unif"] / both["stated_core"]).dropna()
    if ratio.empty:
        return ""
    return (
        f"**Noise.** At equal target and expected size uniform sampling needs {ratio.min():.3g} to {ratio.max():.3g} "
        f"times the noise of core-set sampling, over {len(ratio)} cells of the paper's data table, which need no data."
    )


def modes(tables: Tables) -> str:
    """Compare the modes where uniform sampling is run at the smaller target of Figures 4 and 7."""
    cells = tables.rows("costs", "cost", dataset="*", sampler="*", epsilon="*")
    if cells.empty or not {"stated", "consistent"} <= set(cells.columns):
        return ""
    parts = []
    for _, cell in cells.iterrows():
        ratio = cell["consistent"] / cell["stated"]
        if cell["sampler"] == "full" and cell["epsilon"] == "100" and math.isfinite(ratio):
            parts.append(f"{cell['dataset']} {ratio:.2f}")
    if not parts:
        return ""
    return (
        "**Budget split.** Median cost on full data at epsilon = 100 of the repaired algorithm (a split between sums "
        f"and counts that scales with the data, centres kept in the ball) over that of the text: {', '.join(parts)}. "
        "Names are the paper's; data may be stand-ins, as the figures say."
    )


def delta(tables: Tables) -> str:
    """Say what a delta buys for sums, by dimension."""
    cells = tables.rows("gain", "gain", topic="sums", sampler="full", d="*", epsilon="*")
    if cells.empty:
        return ""
    parts = [f"{cell['rigorous']:.3g} times smaller for d = {cell['d']} at a pure epsilon of {cell['epsilon']}"
             for _, cell in cells.iterrows()]  # fmt: skip
    return f"**Delta.** Proved epsilons of noisy sums of 10 rounds, at the configured delta, are {listed(parts)}."


TAKEAWAYS = Takeaways(parts=(counted_claims, canaries, savings, modes, delta))
