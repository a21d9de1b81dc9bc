"""Sizes at which the conformance tests run the experiments of this paper."""

from __future__ import annotations

LONG = ("bun_bounds",)
"""Experiments whose records take seconds."""
