"""Fixed settings of the papers' example and captions."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from dpsub.reproduce import settings as kinds

Noises = Annotated[kinds.Listed[kinds.NoiseMultiplier], Field(description="Noise multipliers.")]
Epochs = Annotated[kinds.Listed[kinds.Count], Field(description="Numbers of epochs.")]
Batches = Annotated[kinds.Listed[kinds.SampleSize], Field(description="Sizes of batches.")]


class TargetOfFigures(kinds.Group):
    """The target of Figures 3 and 6. The number of records could not be read: it is 1 / delta."""

    n: kinds.FrameSize = 36_800_000
    epsilon: kinds.Epsilon = 5.0
    delta: kinds.Delta = 2.7e-8
