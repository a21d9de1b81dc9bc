"""Numbers of Jiang et al.'s pages that take several cells of a run, for the placeholders `numbers`
and `derived`."""

from __future__ import annotations

from typing import Any

import pandas as pd

from dpsub.reproduce.claims import MissingRecordsError
from dpsub.reproduce.report.cells import LookUp

KERNELS = {"gau": "Gaussian", "lap": "Laplace"}
SYMBOLS = {"bound": "θ", "epsilon": "ε", "scale": "σ"}
"""Parameters of a case -> their symbols in the paper."""


def promised_and_exact(cells: LookUp) -> pd.DataFrame:
    """Return the delta of each budget, "promised" and "exact", and their "ratio"."""
    # P3 is Proposition 3, by which Algorithm 1 keeps its budget (BR2).
    budgets = cells.rows("statements", "value", statement="P3", case="*")
    if budgets.empty or "rigorous" not in budgets:
        raise MissingRecordsError("this run has no exact delta")
    return pd.DataFrame(
        {
            "case": budgets["case"],
            "promised": budgets["stated"],
            "exact": budgets["rigorous"],
            "ratio": budgets["rigorous"] / budgets["stated"],
        }
    ).reset_index(drop=True)


def in_words(case: str) -> str:
    """Return a case of the statements for readers: "Gaussian kernel, D = 1, θ = 1, ε = 3"."""
    kernel, _, parameters = case.partition(": ")
    # All budgets promise the same delta, which stands next to them.
    given = [
        parameter.split()
        for parameter in parameters.split(", ")
        if not parameter.startswith("delta")
    ]
    shown = [f"{SYMBOLS.get(name, name)} = {value}" for name, value in given]
    return ", ".join([f"{KERNELS[kernel]} kernel", *shown])


def budgets(cells: LookUp) -> list[dict[str, str]]:
    """Return the budgets tried, as they are named in the run and in words."""
    cases = promised_and_exact(cells)["case"]
    return [{"case": case, "words": in_words(case)} for case in cases]


def guarantees(cells: LookUp) -> dict[str, Any]:
    """Return the number of budgets that the paper's theorem exceeds, the worst of them, and the
    slack where it holds."""
    deltas = promised_and_exact(cells)
    # The exact delta is rounded up: a budget that is spent exactly does not count as exceeded.
    holds = deltas["ratio"] <= 1 + 1e-9
    worst = deltas.iloc[int(deltas["ratio"].to_numpy().argmax())]
    return {
        "budgets": len(deltas),
        "exceeded": int((~holds).sum()),
        "worst": in_words(worst["case"]),
        "times": worst["ratio"],
        "holding": int(holds.sum()),
        "least": deltas.loc[holds, "ratio"].min(),
    }


def exceeded_budgets(cells: LookUp) -> dict[str, Any]:
    """Return the budgets that Algorithm 1 exceeds, with delta as promised and as it is."""
    deltas = promised_and_exact(cells)
    exceeded = deltas[deltas["exact"] > deltas["promised"] * (1 + 1e-9)]
    if exceeded.empty:
        raise MissingRecordsError("no budget of this run is exceeded")
    # A case reads "gau: D 1, bound 1, ...": kernel and sensitivity name it.
    kernels = exceeded["case"].str.partition(",")[0]
    names = kernels.replace(KERNELS, regex=True)
    pairs = zip(exceeded["promised"], exceeded["exact"], strict=True)
    return {
        "count": len(exceeded),
        "of": len(deltas),
        "times": exceeded["ratio"].max(),
        "shown": dict(zip(names, pairs, strict=True)),
    }


def printed_epsilons(cells: LookUp) -> dict[str, int]:
    """Return the number of epsilons of Table I that follow from the paper's theorems, and their
    number in all."""
    statements = cells.rows("claims", "holds", claim="*")
    if statements.empty:
        raise MissingRecordsError("this run judges no statement")
    # Statements about Table I are named T1.METHOD.eps.DELTA, orders between methods T1.order.
    printed = statements[statements["claim"].str.match(r"T1\..*\.eps\.")]
    if printed.empty:
        raise MissingRecordsError("this run judges no epsilon of Table I")
    return {"following": int((printed["stated"] == 1).sum()), "of": len(printed)}


def smaller_by(cells: LookUp) -> float:
    """Return the reduction in percent of the exact epsilon of Table I with recycled Gaussian
    noise."""
    # Sampled methods have no exact epsilon (BR19), these two have one.
    cell = {"accountant": "exact", "delta": "1e-05"}
    recycled, plain = (
        cells.number("table1", "epsilon", "rigorous", method=method, **cell)
        for method in ("Gau-BRDP", "Gau-DP")
    )
    return 100 * (1 - recycled / plain)
