"""Sizes at which the conformance tests run the experiments of this paper."""

from __future__ import annotations

from typing import Any

SMALLER: dict[str, dict[str, Any]] = {
    "fair_comparison": {"replicates": 3},
}
"""Settings over those of workflow/smoke.yaml."""
LONG = (
    "fair_comparison",
    "fair_noise",
)
"""Experiments whose records take seconds."""
