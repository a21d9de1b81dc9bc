"""Sweeps of the example paper's experiments, in the form of their files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

MEANS: dict[str, Any] = {
    "experiment": "example_means",
    "samplers": ["poisson", "wor", "must_ow"],
    "replicates": 2,
    "vary": {"b": [20, 30], "steps": [5, 10]},
}
"""Eight cells: the first two samplers have no b."""
WALKS: dict[str, Any] = {"experiment": "example_walks", "replicates": 2, "scales": [1, 2, 3]}
"""Three cells."""
LONG = MEANS | {"vary": {"steps": [90000, 90001], "b": [20]}}
"""Six cells that take some seconds."""


def written(path: Path, *blocks: dict[str, Any], **keys: Any) -> Path:
    """Write a sweep."""
    whole = {"seed": 1, **keys, "sweep": list(blocks)}
    path.write_text(yaml.safe_dump(whole), encoding="utf-8")
    return path
