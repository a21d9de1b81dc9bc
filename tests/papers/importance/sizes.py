"""Sizes at which the conformance tests run the experiments of this paper."""

from __future__ import annotations

LONG = (
    "importance_clustering",
    "importance_gain",
)
"""Experiments whose records take seconds."""
