"""Answers of other accountants, and Poisson's for shuffled batches, next to what is proved and
attained."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import pandas as pd

from dpsub.papers.practice.settings import ACCOUNTANTS, KEYS
from dpsub.reproduce.labels import number_kind
from dpsub.reproduce.layout import Layout
from dpsub.reproduce.tables import Column, Part, Table, shared


def ends(group: pd.DataFrame) -> str:
    """Say what the accountant calls its answer, and between which ends epsilon lies."""
    record = group.iloc[0]
    return (
        f"{ACCOUNTANTS[record['accountant']]}; attained {record['epsilon_lower']:.7g}, proved "
        f"{record['epsilon_upper']:.7g}"
    )


class Accountants(Table):
    """What each accountant answers, whether that is proved, refuted or open, and the two ends."""

    title = "What other accountants answer, judged by attack and proof"
    name = "accountants"
    caption = (
        "ε that other accountants answer for 60 kinds of releases, recorded with their versions, "
        "and whether it is right: an upper bound or an estimate is proved (yes) where our upper "
        "end is at most the answer, and refuted (no) where an attack on explicit data sets "
        "attains more; a lower bound the other way round; where nothing stands the answer lies "
        "between the ends. Answers are rounded in the accountant's favour in the seventh digit. "
        "The noise multiplier is the scale of the noise over the norm bound C of one record, as "
        "the documentation of dp-accounting's events has it; 'noise over 2 C' was asked with half "
        "of it. ε, lower: attained; ε, upper: proved."
    )
    keys = KEYS
    layout = Layout(
        panels=("mechanism", "sampler", "adjacency"),
        stub=("rate", "n", "m", "noise_multiplier", "steps", "delta"),
        heads=("accountant", "column"),
        first=("epsilon_lower", "epsilon_upper"),
    )
    absent: ClassVar[Mapping[str, object]] = {"rate": 0, "n": 0, "m": 0}
    parts = (
        Part(
            "practice_answers",
            # One pair of ends for all accountants that were asked about a setting.
            {name: shared(name) for name in ("epsilon_lower", "epsilon_upper")},
            keys={"accountant": None},
        ),
        # What the accountant says of itself: that its answer holds.
        Part("practice_answers", {"holds": Column(lambda group: 1.0)}, variant="stated"),
        Part("practice_answers", {"holds": Column("holds", note=ends, empty=True)}),
    )


class Shuffling(Table):
    """Poisson's epsilon at the noise of shuffled batches, and both ends of theirs."""

    title = "Shuffled batches and Poisson's ε at the same noise"
    name = "shuffling"
    caption = (
        "ε at δ = 1e-5 for 60,000 records in batches of m. ε of Poisson sampling: of samples of "
        "expected size m, as many as batches, under the same adjacency, which is what is often "
        "reported for shuffled batches and no guarantee for them; ε, lower: what an attack "
        "attains on shuffled batches, an order drawn afresh for every epoch; ε, upper: what is "
        "proved for them, without any amplification."
    )
    keys = ("adjacency", "m", "epochs", "noise_multiplier")
    layout = Layout(
        panels=("adjacency", "m", "epochs"), stub=("noise_multiplier",), heads=("column",)
    )
    parts = (
        Part(
            "practice_shuffling",
            {
                name: name
                for name in (
                    "epsilon_poisson",
                    "epsilon_lower",
                    "epsilon_upper",
                )
            },
        ),
    )

    def number_kind(self, column: str, variant: str) -> str:
        """Return what a number is; Poisson's, which is proved, is not about shuffled batches."""
        # Proved for another sampler: in this table it must not look like a guarantee.
        return "paper" if column == "epsilon_poisson" else number_kind(column, variant)
