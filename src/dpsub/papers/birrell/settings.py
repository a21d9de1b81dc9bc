"""Fixed settings of the paper's experiments, and the releases in question."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from dpsub.reproduce import settings as kinds

Order = Annotated[float, Field(gt=1, description="Order alpha of a Rényi divergence.")]
Degree = Annotated[
    int, Field(ge=3, le=8, description="Degree m from which the paper's expansions are bounded.")
]
Epochs = Annotated[kinds.Count, Field(description="Epochs of training.")]
Rate = Annotated[kinds.Share, Field(description="Expected copies of a record in a sample.")]


class Training(kinds.Group):
    """The training run of the paper's figures."""

    n: kinds.FrameSize = 50_000
    batch: kinds.SampleSize = 120
    noise_multiplier: kinds.NoiseMultiplier = 6.0
