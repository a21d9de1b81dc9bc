"""Numbers and statements of the text of Bun et al., each with a value that a computation on records gives."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd

from dpsub.papers.bun.artefacts.statements import GRID, SIZES, STATEMENTS, TESTS, change
from dpsub.reproduce.artefact import Artefact, Records, values_frame
from dpsub.reproduce.layout import Layout
from dpsub.reproduce.predicates import Finding, Frames, LackingError, Statement, of_variant, pick

NEYMAN = "bun_neyman"


class Claims(Artefact):
    """What the paper states: bounds, numbers, settings, definitions."""

    paper = "bun"
    name = "claims"
    kind = "claims"
    caption = (
        "Numbers and statements of Bun et al., each computed from the records: 1 where a statement holds in every case "
        "that was tried, 0 where it fails in some; the note gives the numbers that decide."
    )
    experiments = ("bun_bounds", "bun_random_size", "bun_size_tests", "bun_neyman")
    keys = ("claim",)
    layout = Layout(stub=("claim",), heads=("column",))

    def number_kind(self, column: str, variant: str) -> str:
        found = super().number_kind(column, variant)
        return "exact" if found and variant == "rigorous" else found

    def values(self, records: Records) -> pd.DataFrame:
        rows = list(_numbers(records))
        for statement in (*STATEMENTS, *ALLOCATION):
            rows += statement.answers(records)
        return values_frame(rows)


def _numbers(records: Frames) -> Iterator[dict[str, Any]]:
    """Printed numbers: (claim, column) -> experiment, field, and the rows that have it."""
    numbers: dict[tuple[str, str], tuple[str, str, dict[str, object]]] = {
        ("U004", "epsilon_amplified"): (GRID, "bound", {"statement": "Section 2.4 rate 1/100"}),
        ("U005", "epsilon_amplified"): (GRID, "bound", {"statement": "Section 2.4 scale"}),
        ("U006", "epsilon"): (GRID, "bound", {"statement": "Section 2.4 base"}),
        ("U010", "n"): (SIZES, "n", {}),
        ("U011", "epsilon"): (SIZES, "epsilon", {}),
        ("U014", "epsilon_amplified"): (SIZES, "upper", {"sigma": 1.0}),
        ("U022", "variance_times_epsilon_squared"): (GRID, "bound", {"statement": "P4.2 variance"}),
        ("U027", "constant"): (GRID, "bound", {"statement": "T4.3 constant"}),
        ("U045", "m"): (NEYMAN, "m", {}),
        ("U046", "top_code"): (NEYMAN, "high", {"stratum": 12}),
    }
    for (row, column), (experiment, field, fields) in numbers.items():
        for variant in ("stated", "consistent", "rigorous"):
            yield from _number(records, row, column, variant, _reader(experiment, field, fields))
    for variant in ("stated", "consistent", "rigorous"):
        yield from _number(records, "U044", "strata", variant, _classes)
    for variant in ("stated", "consistent"):
        yield from _number(records, "U012", "mean_over_n", variant, _mean_share)
        yield from _number(records, "U049", "change", variant, _last_change)


def _number(
    records: Frames, row: str, column: str, variant: str, read: Callable[[Frames, str], float]
) -> Iterator[dict[str, Any]]:
    try:
        yield {"claim": row, "column": column, "variant": variant, "value": read(records, variant)}
    except LackingError as reason:
        if variant == "stated":
            yield {"claim": row, "column": column, "variant": variant, "note": str(reason)}


def _reader(experiment: str, field: str, fields: dict[str, object]) -> Callable[[Frames, str], float]:
    def read(frames: Frames, variant: str) -> float:
        return float(pick(of_variant(frames, experiment, variant), **fields)[field].iloc[0])

    return read


def _classes(frames: Frames, variant: str) -> float:
    return float(of_variant(frames, NEYMAN, variant)["stratum"].nunique())


def _mean_share(frames: Frames, variant: str) -> float:
    frame = pick(of_variant(frames, SIZES, variant), sigma=1.0)
    return float(frame["mean"].iloc[0] / frame["n"].iloc[0])


def _last_change(frames: Frames, variant: str) -> float:
    """The printed vectors' own difference (stated), and that of establishments spread over their classes."""
    topic = "printed" if variant == "stated" else "log_uniform"
    return float(change(pick(of_variant(frames, NEYMAN, variant), topic=topic))[-1])


def _printed(frames: Frames, column: str) -> np.ndarray:
    frame = pick(frames[NEYMAN], topic="printed").sort_values("stratum")
    return frame[column].to_numpy(dtype=float)


def _could_be_rounded(column: str) -> Callable[[Frames], Finding]:
    """Return whether shares of m = 10,000 exist that round to the vector, class by class to the nearest integer."""

    def ask(frames: Frames) -> Finding:
        vector, m = _printed(frames, column), float(frames[NEYMAN]["m"].iloc[0])
        low, high = float((vector - 0.5).sum()), float((vector + 0.5).sum())
        note = f"sum {vector.sum():g}; shares that round to it sum to {low:g} to {high:g}"
        return Finding(low <= m <= high, note)

    return ask


def _sums(frames: Frames) -> Finding:
    m = float(frames[NEYMAN]["m"].iloc[0])
    sums = [float(_printed(frames, column).sum()) for column in ("before", "after")]
    return Finding(max(sums) <= m, f"sums {sums[0]:g} and {sums[1]:g} against m = {m:g}")


def _detectable(frames: Frames) -> Finding:
    """A difference of 19 in one size: the best test of an epsilon-DP release at epsilon = 0.1."""
    jump = abs(int(change(pick(frames[NEYMAN], topic="printed"))[-1]))
    row = pick(frames[TESTS], topic="jump", difference=jump, epsilon=0.1).iloc[0]
    note = f"loss {row['epsilon_amplified']:.3g}, best advantage {row['advantage']:.4g} at epsilon 0.1"
    return Finding(row["advantage"] > 0.5, note)


def _last_stratum(frames: Frames) -> Finding:
    """Described as the top code or above: then the class would begin where it ends."""
    classes = pick(frames[NEYMAN], topic="printed").sort_values("stratum")
    last = classes.iloc[-1]
    return Finding(last["low"] >= last["high"], f"the last class is {last['low']} to {last['high']}")


def _one_factor(frames: Frames) -> Finding:
    before, after = _printed(frames, "before")[:-1], _printed(frames, "after")[:-1]
    low, high = ((after - 0.5) / (before + 0.5)).max(), ((after + 0.5) / (before - 0.5)).min()
    return Finding(low <= high, f"factors from {low:.6f} to {high:.6f} explain classes 1 to 11")


def _neyman_is_best(frames: Frames) -> Finding:
    """No unit moved from one class to another lowers sum (N sigma)^2 / m."""
    losses, cases = 0, 0
    for _, part in frames[NEYMAN][frames[NEYMAN]["topic"] != "printed"].groupby("topic"):
        weights, m = (part.sort_values("stratum")[name].to_numpy(dtype=float) for name in ("weight_before", "before"))
        gain, cost = weights**2 / (m * (m + 1)), weights**2 / (m * (m - 1))
        better = gain[:, None] > cost[None, :] * (1 + 1e-12)
        np.fill_diagonal(better, False)
        losses, cases = losses + int(better.sum()), cases + better.size
    return Finding(losses == 0, f"{losses} of {cases} moves of one unit lower the variance")


def _limits(frames: Frames) -> Finding:
    """The classes tile all sizes from one employee on."""
    classes = pick(frames[NEYMAN], topic="printed").sort_values("stratum")
    whole = bool((classes["low"].to_numpy()[1:] == classes["high"].to_numpy()[:-1] + 1).all())
    first, last = int(classes["low"].iloc[0]), int(classes["high"].iloc[-1])
    return Finding(whole and first == 1, f"{len(classes)} classes from {first} to {last}")


ALLOCATION = (
    *(Statement(row, (NEYMAN,), ask, variants=("stated",)) for row, ask in (
        ("U047", _could_be_rounded("before")), ("U048", _could_be_rounded("after")), ("U050", _sums),
        ("U052", _last_stratum), ("U053", _one_factor), ("U062", _limits),
    )),
    Statement("U054", (NEYMAN,), _neyman_is_best, variants=("stated", "consistent")),
    Statement("U051", (NEYMAN,), _detectable, shared={TESTS: (TESTS, "stated")}, variants=("stated",)),
)  # fmt: skip
