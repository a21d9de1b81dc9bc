"""The headlines about a paper: its worst finding and its best confirmation, each one line."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dpsub.reproduce.digits import as_printed


@dataclass(frozen=True)
class Headline:
    """One line, made from the numbers of a run."""

    text: str
    """A sentence in Markdown with its numbers."""
    artefact: str
    """Name of the table that has them: "table8"."""
    errata: tuple[str, ...] = ()
    shown: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """The numbers drawn next to it: label -> (as claimed, as found)."""
    words: tuple[str, str] = ("claimed", "found")
    """Names of the two in the legend."""
    heading: str = ""
    """Words before it; by default "Worst finding" or "Best confirmation"."""


def picture(finding: Headline) -> dict[str, Any]:
    """Return the data with which a template draws the pairs of a finding: a line for each pair,
    places in percent of the axis.

    The axis is logarithmic where all numbers are positive and span more than a factor of 30.
    """
    # slow to load, and only needed here
    from matplotlib.ticker import LogLocator, MaxNLocator

    numbers = [number for pair in finding.shown.values() for number in pair]
    low, high = min(numbers), max(numbers)
    logarithmic = low > 0 and high > 30 * low
    locator = LogLocator(numticks=5) if logarithmic else MaxNLocator(4)
    candidates = [float(tick) for tick in locator.tick_values(low, high)]
    # the locator goes further on both sides: one tick on or beyond each end is enough
    ticks = [
        tick
        for before, tick, after in zip(
            [-math.inf, *candidates[:-1]], candidates, [*candidates[1:], math.inf], strict=True
        )
        if after > low and before < high
    ]
    scale = math.log if logarithmic else float
    first, last = scale(ticks[0]), scale(ticks[-1])

    def place(number: float) -> float:
        return round(100 * (scale(number) - first) / (last - first), 2)

    def label(tick: float) -> str:
        return as_printed(f"1e{round(math.log10(tick))}") if logarithmic else f"{tick:g}"

    return {
        "words": finding.words,
        "ticks": [(place(tick), label(tick)) for tick in ticks],
        "rows": [
            (name, place(claimed), place(found)) for name, (claimed, found) in finding.shown.items()
        ],
    }
