"""Sizes at which the conformance tests run the experiments of this paper."""

from __future__ import annotations

LONG = (
    "brdp_composition",
    "brdp_map",
    "brdp_sampling",
    "brdp_times",
)
"""Experiments whose records take seconds."""
