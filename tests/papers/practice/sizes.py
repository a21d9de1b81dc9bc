"""Sizes at which the conformance tests run the experiments of this paper."""

from __future__ import annotations

LONG = ("practice_shuffling", "practice_statements")
"""Experiments whose records take seconds."""
