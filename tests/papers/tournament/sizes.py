"""Sizes at which the conformance tests run the experiments of this paper."""

from __future__ import annotations

LONG = ("tournament_training",)
"""Whose records take seconds."""
LONGEST = (
    "tournament_noise",
    "tournament_targets",
)
"""Whose records take minutes."""
