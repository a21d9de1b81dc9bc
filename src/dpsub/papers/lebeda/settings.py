"""Settings of the experiments; those of the paper could not be read."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from dpsub.reproduce import settings as kinds

Noises = Annotated[kinds.Listed[kinds.NoiseMultiplier], Field(description="Noise multipliers.")]
Rate = Annotated[kinds.Share, Field(description="Rate of Poisson sampling.")]
Steps = Annotated[
    kinds.Listed[Annotated[int, Field(ge=1, le=100)]], Field(description="Numbers of steps.")
]
