"""Settings of the experiments of the first paper's package, about which both packages are asked."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from dpsub.errors import ArgumentError
from dpsub.reproduce import settings as kinds

RANDOM_ALLOCATION, PLD_ACCOUNTING = "random-allocation 1.0.5", "PLD_accounting 2.0"
"""The packages, at the versions that were asked."""
LOWER = "lower"
"""The method of either package whose answer is a lower bound; all others are upper bounds."""
ASKED = ("t", "k", "noise", "delta")
"""Columns that name a question."""


class AllocationQuestion(kinds.Closed):
    """Every record takes part in k of t steps, drawn for each record alone, once."""

    t: Annotated[kinds.Count, Field(description="Steps t.")]
    k: Annotated[kinds.Count, Field(description="Steps k in which every record takes part.")] = 1
    noise: kinds.NoiseMultiplier
    delta: kinds.Delta

    def check(self) -> None:
        if self.t % self.k:
            raise ArgumentError(
                f"t must be a multiple of k, for k epochs of t/k steps, got t = {self.t}, "
                f"k = {self.k}; use another t"
            )


QUESTIONS = (
    # fifth experiment of the package: an end of its range of noise for each t
    AllocationQuestion(t=100, noise=0.8, delta=1e-10),
    AllocationQuestion(t=1000, noise=0.65, delta=1e-10),
    AllocationQuestion(t=10_000, noise=0.9, delta=1e-10),
    # third experiment: the smallest of its numbers of steps
    AllocationQuestion(t=25, noise=0.3, delta=1e-4),
    # fourth experiment, without its two largest k
    *(AllocationQuestion(t=1024, k=k, noise=0.6, delta=1e-6) for k in (1, 2, 4, 8, 16)),
    # of our own: several participations, in few steps
    AllocationQuestion(t=100, k=5, noise=0.6, delta=1e-5),
)
