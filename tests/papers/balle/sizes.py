"""Sizes at which the conformance tests run the experiments of this paper."""

from __future__ import annotations

LONG = ("balle_enumeration",)
"""Experiments whose records take seconds."""
