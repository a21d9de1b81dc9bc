"""Settings that experiments of this paper share; each stands here once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated

from pydantic import Field

from dpsub import checks
from dpsub.data import described
from dpsub.errors import ArgumentError
from dpsub.reproduce.settings import AnyOf, Closed, Count, Group, Listed, Positive, Sizes, known

PointSetName = Annotated[
    str, known("data set", lambda: described.EIGHT), Field(description="A data set.")
]
Dimension = Annotated[int, Field(ge=1, le=100_000, description="Number of columns.")]
Factor = Annotated[float, Field(ge=1)]
Clusters = Annotated[int, Field(ge=1, le=10_000, description="Number of clusters.")]
Rounds = Annotated[int, Field(ge=1, le=1_000, description="Rounds of DP-Lloyd.")]
Mixing = Annotated[float, Field(gt=0, le=1, description="Uniform share of the coreset sampler.")]

QUANTILES = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)
"""Quantiles of the losses of a group of records."""


def check_sizes(sizes: Mapping[str, Iterable[int]]) -> None:
    """Raise ArgumentError if a sample of a data set would be larger than the data set."""
    for name, several in sizes.items():
        for m in several:
            checks.integer(
                "m", m, at_least=1, at_most=described.of(name).n, at_most_name=f"n of {name}"
            )


class PointSets(Closed):
    """Data sets to be clustered, each once.

    Twins are synthetic, of at most 2.5 million numbers (4826 rows of 518 columns), at the same
    sampling rates.
    """

    data: AnyOf[PointSetName] = Field(
        ("ijcnn1",), description="Prepared from files where these can be obtained."
    )
    twins: AnyOf[PointSetName] = Field(
        ("kdd_protein", "rna", "song", "covertype", "pose", "miniboone", "fma"),
        description="Stand-ins that are never compared.",
    )
    twin_rows: int = Field(8000, ge=100, le=20_000, description="Most rows of a stand-in.")

    def check(self) -> None:
        both = sorted(set(self.data) & set(self.twins))
        if both:
            raise ArgumentError(
                f"a data set must be real or a twin, never both, got {both[0]} in data and twins"
            )
        if not (self.data or self.twins):
            raise ArgumentError("sets must name at least one data set, got none")


class OnSets(Group):
    """Settings of an experiment on data sets to be clustered."""

    sets: PointSets = Field(PointSets(), description="Data sets to be clustered.")


class ClusteringRounds(Group):
    """Settings of private k-means."""

    @classmethod
    def key(cls) -> str:
        return "lloyd"

    iterations: Rounds = 10
    mixing: Mixing = 0.5


class FigureSizes(Closed):
    """Expected sample sizes on one data set."""

    rows: Sizes = Field(description="Sizes of Figures 3 and 6.")
    curve: Sizes = Field(description="Sizes of Figures 4 and 7.")


FIGURE_SIZES = {
    name: FigureSizes(rows=rows, curve=curve)
    # As the paper's figures have them: three sizes in 3 and 6, more of them in 4 and 7.
    for name, rows, curve in (
        ("kdd_protein", (5000, 10000, 15000), (5000, 10000, 15000)),
        ("rna", (5000, 20000, 50000), (5000, 10000, 15000, 20000, 50000)),
        ("song", (5000, 20000, 50000), (5000, 10000, 15000, 20000, 50000)),
        ("covertype", (5000, 20000, 75000), (5000, 10000, 15000, 20000, 50000, 75000)),
        ("ijcnn1", (5000, 10000, 15000), (3000, 4000, 5000, 6000, 7000, 10000, 15000, 20000)),
        ("pose", (3000, 5000, 8000), (3000, 4000, 5000, 6000, 7000, 8000)),
        ("miniboone", (4000, 5000, 7000), (4000, 5000, 6000, 7000)),
        ("fma", (5000, 10000, 15000), (5000, 10000, 15000)),
    )
}


class TargetsAndSizes(Closed):
    """Targets and expected sample sizes; of the targets the text has 30, the released plots 50."""

    epsilons: Listed[Positive] = Field(
        # 30 is the text's, 50 that of the released plots (IM20).
        (0.5, 1, 3, 10, 30, 50, 100, 300, 1000),
        description="Targets of Figures 3 and 6, in nats.",
    )
    size_epsilons: Listed[Positive] = Field(
        (3, 100), description="Targets of Figures 4 and 7, in nats."
    )
    sizes: dict[PointSetName, FigureSizes] = Field(
        FIGURE_SIZES, description="Expected sample sizes by data set."
    )

    def check(self) -> None:
        check_sizes({name: (*sizes.rows, *sizes.curve) for name, sizes in self.sizes.items()})


class OnCells(Group):
    """Samplers, sizes and targets of the clustering."""

    cells: TargetsAndSizes = Field(
        TargetsAndSizes(), description="Targets and expected sample sizes."
    )


class FirstSizes(Group):
    """One size a data set: the first of Figures 3 and 6."""

    sizes: dict[PointSetName, Count] = Field(
        {name: sizes.rows[0] for name, sizes in FIGURE_SIZES.items()},
        min_length=1,
        description="Expected sample size by data set.",
    )

    def check(self) -> None:
        check_sizes({name: (m,) for name, m in self.sizes.items()})
