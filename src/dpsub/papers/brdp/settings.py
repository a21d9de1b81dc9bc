"""Settings that experiments of this paper share; each stands here once."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any, Literal

from pydantic import Field

from dpsub import checks
from dpsub.reproduce.experiment import columns
from dpsub.reproduce.settings import Closed, Delta, Group, Listed, Several, Share

Amount = Annotated[float, Field(ge=1e-100, le=1e100, description="In units of the query, or nats.")]
Number = Annotated[int, Field(ge=2, le=10_000_000)]
Draws = Annotated[int, Field(ge=100, le=10_000_000)]
RecyclingRate = Annotated[float, Field(ge=0, lt=1, description="Recycling rate.")]
Times = Annotated[int, Field(ge=1, le=100_000, description="Number of releases T.")]
KernelName = Annotated[Literal["gau", "lap"], Field(description="Gaussian or Laplace kernel.")]
QueryName = Annotated[Literal["sum", "avg", "cnt"], Field(description="Sum, average or count.")]


class PanelSettings(Closed):
    """One panel of Figures 7 and 8; the range of epsilon is ours."""

    panel: Literal["a", "b", "c", "d", "e", "f"] = Field(description="Its letter.")
    view: Literal["box", "curve"] = Field(
        description="Boxes of answers at epsilon, or acceptance over epsilons."
    )
    query: QueryName
    clip: Amount
    sensitivity: Amount
    bound: Amount
    epsilon: Amount
    # The figures' axes show no numbers that could be read off: this range is ours (BR21).
    epsilons: Listed[Amount] = Field(
        (0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.5, 2), description="Epsilons of a curve."
    )


def _panel(*values: Any) -> PanelSettings:
    return PanelSettings.model_validate(dict(zip(PanelSettings.model_fields, values, strict=False)))


class QueryAnswers(Group):
    """Answers of six methods on disjoint subsets of one data set: Figures 7 and 8."""

    individuals: Number = Field(10_000, description="Individuals drawn.")
    subsets: Annotated[int, Field(ge=1, le=10_000_000, description="Disjoint subsets of them.")] = (
        10
    )
    repeats: Number = Field(1000, description="Answers a subset.")
    box_mass_pct: Annotated[
        float, Field(gt=0, lt=100, description="Share of answers in a box.")
    ] = 50
    whisker_mass_pct: Annotated[
        float, Field(gt=0, lt=100, description="Share between the whiskers.")
    ] = 95
    delta: Delta = 1e-5
    # As captioned. Panels of a row differ in D and theta, the averages' D belongs to more than 1000
    # records (BR18), and both data sets share one caption.
    panels: Several[PanelSettings] = Field(
        (
            # letter, view, query, clip, sensitivity, bound, epsilon
            _panel("a", "box", "sum", 22, 22, 5, 0.5),
            _panel("b", "curve", "sum", 12, 12, 10, 0.5),
            _panel("c", "box", "avg", 22, 0.0017, 1, 0.05),
            _panel("d", "curve", "avg", 12, 0.0012, 1, 0.05),
            _panel("e", "box", "cnt", 1, 1, 3, 0.1),
            _panel("f", "curve", "cnt", 1, 1, 3, 0.1),
        ),
        description="Panels.",
    )

    def check(self) -> None:
        # A subset of one record has no spread.
        checks.integer("individuals", self.individuals, at_least=2 * self.subsets)
        checks.real("whisker_mass_pct", self.whisker_mass_pct, above=self.box_mass_pct)


class Table1(Group):
    """The question of Table I; sensitivity, bound, delta of a query, and the query that sets the
    rate are ours."""

    epsilon: Amount = 0.1
    n_compositions: Annotated[int, Field(ge=1, le=10_000_000, description="Releases T.")] = 1000
    deltas: Several[Delta] = Field((1e-5, 1e-10), description="Values of delta.")
    # Table I states neither of these (BR19): delta of a query, D, theta and the query that sets p.
    query_delta: Delta = 1e-5
    sensitivity: Amount = 1
    bound: Amount = 3
    n: Number = Field(1000, description="Records of the count that sets the rate.")
    share: Annotated[Share, Field(description="Share p_c of records that are counted.")] = 0.1
    # The split at which the printed numbers of Lap-BRDP are met (BR11).
    low_split: Amount = 0.09

    def check(self) -> None:
        checks.real("low_split", self.low_split, below=self.epsilon)


# each name has one type in all experiments; what is neither text nor a whole number is a real
# number
TEXT = {
    "topic",
    "method",
    "quantity",
    "kernel",
    "conversion",
    "task",
    "query",
    "rule",
    "panel",
    "view",
    "statement",
    "case",
}
WHOLE = {
    "replicate",
    "n",
    "draws",
    "n_samples",
    "n_compositions",
    "n_individuals",
    "n_subsets",
    "n_repeats",
    "n_records",
    "n_events",
    "n_attributes",
}
BUDGET = "sensitivity bound epsilon delta"
RELEASE = "method scale epsilon_y rate acceptance sd exact_delta"
"""Columns of a release in records: epsilon_y is the kernel's at the same delta, `exact_delta` the
true delta of the release."""
schema = partial(columns, text=TEXT, whole=WHOLE)
