"""Settings that the paper's repository names."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from dpsub.reproduce import settings as kinds

Steps = Annotated[kinds.Count, Field(description="Steps T of the training.")]
Chosen = Annotated[kinds.Count, Field(description="Steps k in which every record takes part.")]
Draws = Annotated[kinds.Count, Field(description="Draws of the Monte Carlo accountant.")]
Noises = Annotated[kinds.Listed[kinds.NoiseMultiplier], Field(description="Scales of noise.")]
Weight = Annotated[
    kinds.Share, Field(description="Probability of the first of two steps, if they differ.")
]


class Training(kinds.Group):
    """The example of the repository's first page."""

    steps: Steps = 391
    chosen: Chosen = 5
    epsilon: kinds.Epsilon = 8.0
    delta: kinds.Delta = 1.25e-5


class Cluster(Training):
    """The settings of its job for a cluster."""

    steps: Steps = 10_000
    chosen: Chosen = 205
    delta: kinds.Delta = 1e-5


class Benchmark(Training):
    """The settings of its benchmark, which names no delta; the value is that of the cluster's
    job."""

    steps: Steps = 2000
    chosen: Chosen = 655
    epsilon: kinds.Epsilon = 3.0
    delta: kinds.Delta = 1e-5


class Short(Training):
    """A shorter training, of our own."""

    steps: Steps = 100
    delta: kinds.Delta = 1e-5
