"""Settings that the experiments of the fair comparison share."""

from __future__ import annotations

from pydantic import Field

from dpsub.reproduce.settings import (
    AnyOf,
    Closed,
    Count,
    Delta,
    Group,
    Iterations,
    Listed,
    Name,
    Positive,
    Several,
    Sizes,
)

SAMPLERS = ("poisson", "wor", "wr", "must_oo", "must_ow", "must_ww")


class Entry(Closed):
    """All combinations of its lists."""

    dataset: Name = Field(description="linear, adult, breast_cancer, digits, ijcnn1 or bootstrap_mean.")
    samplers: Listed[Name] = Field(
        SAMPLERS, description="Names, or stages such as wor:500,wr:200 whose last one leaves m slots."
    )
    m: Sizes = Field(description="(Expected) batch sizes.")
    b: AnyOf[Count] = Field((), description="First stages of two-stage samplers.")
    steps: Iterations
    target_epsilon: Listed[Positive] = Field(description="Targets for all steps together, in nats.")
    target_delta: Delta = 1e-5


def entry(dataset: str, m: int, b: int, steps: int, target_epsilon: tuple[float, ...]) -> Entry:
    """Return one entry with all samplers at one size."""
    return Entry(dataset=dataset, m=(m,), b=(b,), steps=steps, target_epsilon=target_epsilon)


class FairGrid(Group):
    """The cells that are trained."""

    grid: Several[Entry] = Field(
        (
            entry("linear", 100, 200, 200, (0.5, 2)),
            entry("adult", 300, 500, 200, (1,)),
            entry("breast_cancer", 40, 80, 100, (0.5, 2)),
            entry("digits", 100, 200, 100, (0.5, 2)),
            entry("ijcnn1", 300, 500, 200, (1,)),
            entry("bootstrap_mean", 30, 50, 200, (1,)),
            Entry(dataset="linear", samplers=("wor:500,wr:200,wor:100",), m=(100,), steps=200, target_epsilon=(0.5,)),
        ),
        description="Entries, each standing for all combinations of its lists.",
    )

    def check(self) -> None:
        from dpsub.papers.fair.experiments.fair_cells import check_grid

        check_grid(self.grid)
