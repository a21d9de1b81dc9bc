"""Fixed settings of the paper's experiments."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from dpsub.reproduce import settings as kinds

GroupSize = Annotated[
    int, Field(ge=1, le=16, description="Number of records of the group, a power of 2.")
]
Groups = Annotated[kinds.Listed[GroupSize], Field(description="Sizes of groups.")]
Noises = Annotated[kinds.Listed[kinds.NoiseMultiplier], Field(description="Scales of noise.")]
Rate = Annotated[kinds.Share, Field(description="Rate of Poisson sampling.")]
Truth = Annotated[
    float, Field(gt=0.5, lt=1, description="Probability of a true answer of randomised response.")
]
Orders = Annotated[
    kinds.Listed[Annotated[int, Field(ge=2, le=1000)]],
    Field(description="Orders of Rényi divergences."),
]
Steps = Annotated[kinds.Listed[kinds.Count], Field(description="Numbers of steps.")]


class Budget(kinds.Group):
    """Gaussian noise on Poisson samples, and the privacy budget of a group: Figure 6."""

    noise_multiplier: kinds.NoiseMultiplier = 5.0
    rate: Rate = 1e-3
    group: GroupSize = 16
    epsilon: kinds.Epsilon = 2.0
    delta: kinds.Delta = 1e-6
    steps: kinds.Releases = 1000


class Training(Budget):
    """The training of Figure 24: 8 epochs of 55,000 records in batches of 64."""

    noise_multiplier: kinds.NoiseMultiplier = 0.6
    rate: Rate = 64 / 55_000
    group: GroupSize = 2
    epsilon: kinds.Epsilon = 8.0
    delta: kinds.Delta = 1e-5
    steps: kinds.Releases = 6880
