"""Answers of other accountants, and Poisson's for shuffled batches, next to a proof and an
attack."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import pandas as pd

from dpsub.papers.practice.packages import says
from dpsub.papers.practice.settings import KEYS, PACKAGE_KEYS
from dpsub.reproduce.labels import number_kind
from dpsub.reproduce.layout import Layout
from dpsub.reproduce.tables import Column, Part, Table, shared


def ends(group: pd.DataFrame) -> str:
    """Return the name that the accountant gives its answer, and the two bounds on epsilon."""
    record = group.iloc[0]
    return (
        f"{says()[record['accountant']]}; attained {record['epsilon_lower']:.7g}, proved "
        f"{record['epsilon_upper']:.7g}"
    )


class Accountants(Table):
    """The answer of each accountant, its verdict, and our two bounds."""

    title = "Answers of other accountants, compared with a proof and an attack"
    name = "accountants"
    caption = (
        "ε that other accountants answer for 60 kinds of releases, recorded with the versions of "
        "the packages, and whether the answer holds. An upper bound or an estimate is proved (yes) "
        "if it is at least our upper bound, and refuted (no) if an attack on explicit data sets "
        "attains more; for a lower bound the other way round. An empty cell is open: the answer "
        "lies between our bounds. Answers are rounded in the accountant's favour in the seventh "
        "digit. The noise multiplier is the scale of the noise divided by the norm bound C of one "
        "record, as the documentation of dp-accounting's events defines it; for 'noise over 2 C' "
        "the accountant was given half of it. ε, lower: attained by the attack; ε, upper: proved."
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
        # The accountant's own claim: its answer holds.
        Part("practice_answers", {"holds": Column(lambda group: 1.0)}, variant="stated"),
        Part("practice_answers", {"holds": Column("holds", note=ends, empty=True)}),
    )


class Packages(Table):
    """The answers of all packages at their versions, their verdicts, and our two bounds."""

    title = "Answers of packages by version, compared with a proof and an attack"
    name = "packages"
    caption = (
        "ε that packages answer, recorded with their versions, and whether the answer holds; "
        "verdicts and columns as in the table of other accountants. For random allocation each "
        "record is in one of the steps, which make one epoch. Our bounds are refined less than "
        "there, so that answers close to the truth may stay open."
    )
    keys = PACKAGE_KEYS
    layout = Layout(
        panels=("sampler", "mechanism", "adjacency"),
        stub=("rate", "n", "m", "noise_multiplier", "steps", "delta", "accountant", "version"),
        heads=("column",),
    )
    absent: ClassVar[Mapping[str, object]] = Accountants.absent
    parts = (
        Part(
            "practice_packages",
            {name: shared(name) for name in ("epsilon_lower", "epsilon_upper")},
            keys={"accountant": None, "version": None},
        ),
        Part("practice_packages", {"holds": Column(lambda group: 1.0)}, variant="stated"),
        Part("practice_packages", {"holds": Column("holds", note=ends, empty=True)}),
    )


class Shuffling(Table):
    """Poisson's epsilon at the noise of shuffled batches, and our two bounds for these."""

    title = "Shuffled batches and Poisson's ε at the same noise"
    name = "shuffling"
    caption = (
        "ε at δ = 1e-5 for 60,000 records in batches of m. ε of Poisson sampling: as many samples "
        "as there are batches, of expected size m, under the same adjacency. It is often reported "
        "for shuffled batches and is no guarantee for them. ε, lower: attained by an attack on "
        "shuffled batches, drawn in a fresh order in every epoch. ε, upper: proved for them, "
        "without any amplification."
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
        """Return the kind of a number: Poisson's epsilon is no guarantee for shuffled batches."""
        # Proved for another sampler: in this table it must not look like a guarantee.
        return "paper" if column == "epsilon_poisson" else number_kind(column, variant)
