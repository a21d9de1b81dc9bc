"""Settings that the experiments of the fair comparison share."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from dpsub.errors import ArgumentError
from dpsub.reproduce.settings import (
    AnyOf,
    Closed,
    Count,
    Delta,
    Group,
    Iterations,
    Name,
    OneOrMore,
    Positive,
    Several,
    Varied,
)

NONPRIVATE = "nonprivate"
"""The sampler of rows without privacy: Poisson batches, no noise, and no target."""
SAMPLERS = (NONPRIVATE, "poisson", "wor", "wr", "must_oo", "must_ow", "must_ww")


class Entry(Closed):
    """All combinations of its values; each setting is one value or a list."""

    dataset: Varied[Name] = Field(description="linear, adult, breast_cancer, digits, ijcnn1 or bootstrap_mean.")
    samplers: Varied[Name] = Field(
        SAMPLERS,
        description="Names; stages such as wor:500,wr:200 whose last one leaves m slots; or nonprivate, which has no "
        "target and is computed once for all of them.",
    )
    m: Varied[Count] = Field(description="(Expected) batch sizes.")
    b: Annotated[AnyOf[Count], OneOrMore()] = Field((), description="First stages of two-stage samplers.")
    steps: Varied[Iterations] = Field(description="Steps T of DP-SGD.")
    target_epsilon: Annotated[AnyOf[Positive], OneOrMore()] = Field(
        (), description="Targets for all steps together, in nats."
    )
    target_delta: Varied[Delta] = Field((1e-5,), description="Probabilities at which the targets are given.")

    def check(self) -> None:
        if self.samplers != (NONPRIVATE,) and not self.target_epsilon:
            raise ArgumentError(f"samplers other than {NONPRIVATE} need a target_epsilon, got none; add it")


def entry(dataset: str, m: int, b: int, steps: int, *target_epsilon: float) -> Entry:
    """Return one entry with all samplers at one size."""
    return Entry(dataset=(dataset,), m=(m,), b=(b,), steps=(steps,), target_epsilon=target_epsilon)


CHAIN = Entry(dataset=("linear",), samplers=("wor:500,wr:200,wor:100",), m=(100,), steps=(200,), target_epsilon=(0.5,))


class FairGrid(Group):
    """The cells that are trained."""

    grid: Several[Entry] = Field(
        (
            entry("linear", 100, 200, 200, 0.5, 2),
            entry("adult", 300, 500, 200, 1),
            entry("breast_cancer", 40, 80, 100, 0.5, 2),
            entry("digits", 100, 200, 100, 0.5, 2),
            entry("ijcnn1", 300, 500, 200, 1),
            entry("bootstrap_mean", 30, 50, 200, 1),
            CHAIN,
        ),
        description="Entries, each standing for all combinations of its values.",
    )
