"""Names of samplers and variants as people read them, in tables and in figures."""

from __future__ import annotations

from dpsub.sampling import REGISTRY

NONPRIVATE_LABEL = "non-private"
VARIANT_LABELS = {"stated": "as stated", "as_done": "as done", "consistent": "consistent", "rigorous": "rigorous"}


def sampler_label(sampler: str) -> str:
    """Return the display name of a sampler, "non-private" for the baseline."""
    return NONPRIVATE_LABEL if sampler == "nonprivate" else REGISTRY.get(sampler).label
