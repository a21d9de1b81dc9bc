"""Sizes at which the conformance tests run the experiments of the map."""

from __future__ import annotations

LONG = ("map_fresh", "map_uses", "map_kept")
"""Experiments whose records take seconds."""
LONGEST = ("map_epochs",)
"""Experiments whose records take a minute."""
