"""Tables of Bun et al.: formulas and their standing, tests of sizes, allocations, advice."""

from __future__ import annotations

import numpy as np
import pandas as pd

from dpsub.papers.bun.experiments.designs import NUMBERS
from dpsub.reproduce.layout import Layout
from dpsub.reproduce.tables import Column, Part, Table

TOLERANCE = 2e-6
"""Two computations of one loss agree within this; one of them is certified to 1e-6 nats."""


class ExactLosses(Table):
    """Every formula in its variants; `rigorous` is the exact value."""

    title = "Formulas as printed, as corrected, and the exact worst-case loss"
    name = "tableA"
    caption = (
        "Formulas of Bun et al. on a grid, in nats: as stated, as corrected (consistent), and the "
        "exact worst-case loss over all ε-DP mechanisms (rigorous), computed in closed form or "
        "certified by a linear program."
    )
    keys = ("statement", "case", "epsilon")
    layout = Layout(panels=("statement",), stub=("case", "epsilon"), heads=("column",))
    parts = (
        Part(
            "bun_bounds",
            {"{side}": "bound"},
            # Statements about the programme itself are checks of the auditor, not of the paper.
            where={"statement": lambda name: ~name.str.endswith("programme")},
        ),
    )

    def number_kind(self, column: str, variant: str) -> str:
        # The worst loss over all mechanisms is one number, computed or certified; it has no sides.
        return "exact" if variant == "rigorous" else super().number_kind(column, variant)


def judged(frame: pd.DataFrame) -> pd.DataFrame:
    """Return records of the grid with `gap` |bound - exact|, `tight`, `right`, and `ratio`, where
    it has a meaning."""
    bound, exact, side = frame["bound"], frame["exact"], frame["side"]
    gap = (bound - exact).abs().where(bound != exact, 0.0)  # both infinite: no gap
    tight = gap <= TOLERANCE
    # A bound is right on its own side only; an equality, where it is tight.
    right = tight | ((side == "upper") & (bound >= exact)) | ((side == "lower") & (bound <= exact))
    # Ratios of infinite or vanishing losses say nothing about tightness.
    known = np.isfinite(exact) & (exact > TOLERANCE) & np.isfinite(bound)
    return frame.assign(
        gap=gap, tight=tight, right=right, ratio=(bound / exact.where(known)).where(known)
    )


def decisive(frame: pd.DataFrame) -> str:
    """Return the case that refutes a statement by most, or the closest call, from its judged
    records."""
    wrong = frame[~frame["right"]]
    # The most telling case: the largest violation, or where none is, the smallest margin.
    row = wrong.iloc[wrong["gap"].argmax()] if len(wrong) else frame.iloc[frame["gap"].argmin()]
    return (
        f"{row['case']}, epsilon {row['epsilon']:g}: formula {row['bound']:.6g}, exact "
        f"{row['exact']:.6g}"
    )


def of_cases(**quantities: tuple[str, str]) -> tuple[Part]:
    """Return the part of a table of statements: quantity -> column of the judged records, pandas'
    name of a summary."""

    def column(source: str, summary: str) -> Column:
        return Column(lambda cases: cases[source].agg(summary), empty=True)

    columns = {name: column(*given) for name, given in quantities.items()}
    return (
        Part(
            "bun_bounds",
            columns,
            where={"side": ("upper", "lower", "equal")},
            # A statement is judged as printed and as corrected; the exact loss is what it is judged
            # by.
            variants=("stated", "consistent"),
            prepare=judged,
            note=decisive,
        ),
    )


class BoundTightness(Table):
    """Ratio of each bound to the exact loss."""

    title = "Each bound divided by the exact worst-case loss"
    name = "tableB"
    caption = (
        "Ratio of each bound to the exact worst-case loss, smallest and largest over all cases in "
        "which that loss is finite and positive. An upper bound with a ratio below 1 is not a "
        "bound; nor is a lower bound with a ratio above 1."
    )
    keys = ("statement",)
    layout = Layout(stub=("statement",), heads=("column",))
    parts = of_cases(
        cases=("right", "size"), smallest_ratio=("ratio", "min"), largest_ratio=("ratio", "max")
    )


class StatementRates(BoundTightness):
    """Share of cases in which each statement is right, and tight."""

    title = "How often each statement is right, and tight"
    name = "tableE"
    caption = (
        "Fraction of cases in which each statement is right, and in which it is tight (within 2 × "
        "10⁻⁶ nats of the exact loss). Both 1: the statement is exact. Right 1, tight below 1: it "
        "holds but is loose in some cases. Right below 1: it is wrong in some cases."
    )
    parts = of_cases(right=("right", "mean"), tight=("tight", "mean"))


class SizeTests(Table):
    """Advantage of the best private test of two sizes, next to its limits and a noisy count."""

    title = "Distinguishing two sample sizes"
    name = "tableC"
    caption = (
        "Telling apart two sample sizes that differ by a given number: the largest advantage of an "
        "ε-DP test of the size, the advantage of a threshold on the size plus Laplace noise, and "
        "the limit on any test. The limit is exp(loss) - 1 as stated, tanh(loss / 2) in the "
        "consistent rows, and the largest advantage in the rigorous rows."
    )
    keys = ("difference", "epsilon")
    layout = Layout(panels=("column",), stub=("difference",), heads=("epsilon",))
    parts = tuple(
        Part(
            "bun_size_tests",
            {name: name for name in columns},
            where={"topic": "jump"},
            variants=variants,
        )
        # The limit of Proposition 4.1 is exp(epsilon') - 1 as printed, tanh(epsilon'/2) is the
        # sharper necessary condition.
        for columns, variants in (
            (("advantage", "laplace_count", "limit"), ("stated",)),
            (("limit",), ("consistent", "rigorous")),
        )
    )


def change(frame: pd.DataFrame) -> pd.Series:
    """Return the change of the allocation by the neighbour, class by class."""
    return frame["after"] - frame["before"]


class NeymanBySizeClass(Table):
    """Allocations class by class before and after one establishment is raised to the top code."""

    title = "Appendix E.1. Neyman allocations by size class"
    name = "tableD"
    caption = (
        "Neyman allocation by size class before and after the smallest establishment grows to the "
        "top code: the printed vectors, their reconstruction from a single growth factor "
        "(replay), and synthetic populations whose classes are filled in four ways (made-up class "
        "counts, no real establishments): uniform, log-uniform, at both class limits (vertex), at "
        "the lower limits (piled). As stated: each class is rounded on its own. Consistent: "
        "integers that sum to m."
    )
    keys = ("topic", "stratum")
    layout = Layout(panels=("topic",), stub=("stratum",), heads=("column",))
    parts = (
        Part(
            "bun_neyman",
            {name: name for name in ("before", "after", "change")},
            prepare=lambda frame: frame.assign(change=change),
        ),
    )


def known_numbers(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the advice with NaN for unknown and infinite numbers, with totals, and with the
    relation in its notes."""
    numbers = frame[list(NUMBERS)]
    # -1 in the records stands for what a design has no number for.
    numbers = numbers.where(np.isfinite(numbers) & (numbers >= 0))
    totals = {
        # Sampling and noise are independent: variances add.
        "total": numbers["sampling"] + numbers["noise"],
        "total_at_target": numbers["sampling"] + numbers["noise_at_target"],
    }
    notes = (frame["relation"] + "; " + frame["note"]).str.removesuffix("; ")
    return frame.assign(**numbers, **totals, note=notes)


class AdvisedDesigns(Table):
    """The designs that are compared: epsilon', the law of the sample's size, variances with and
    without noise."""

    title = "Design advisor on a simulated frame"
    name = "advice"
    caption = (
        "Design advisor on a simulated frame. Advice: end-to-end privacy loss of a mechanism that "
        "is ε-DP on the sample (lower bound, upper bound, exact); mean and standard deviation of "
        "the sample size; variance of the estimated total without noise (sampling) and with noise "
        "(total); and, if ε is the target for the population, the ε on the sample that meets it "
        "(base) and the variance at that target. Menu: allocation rules for a mean at the same "
        "target, worst of three populations. Empty: unknown, or none exists. The note names the "
        "adjacency relation."
    )
    keys = ("topic", "epsilon", "design")
    layout = Layout(panels=("topic", "epsilon"), stub=("design",), heads=("column",))
    together = ("epsilon",)
    parts = tuple(
        Part(
            "bun_designs",
            {name: Column(name, empty=True) for name in columns},
            where={"topic": topic},
            prepare=known_numbers,
            note="{note}",
        )
        for topic, columns in (
            (
                "advice",
                (
                    "lower",
                    "upper",
                    "exact",
                    "size_mean",
                    "size_sd",
                    "sampling",
                    "total",
                    "base",
                    "total_at_target",
                ),
            ),
            ("menu", ("base", "sampling", "noise_at_target", "total_at_target")),
        )
    )
