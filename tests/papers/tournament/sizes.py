"""Sizes at which the conformance tests run the experiments of this paper."""

from __future__ import annotations

LONG = ("tournament_training",)
"""Experiments whose records take seconds."""
LONGEST = (
    "tournament_noise",
    "tournament_targets",
)
"""Experiments whose records take minutes."""
