"""Names of samplers and variants as people read them, in tables and in figures."""

from __future__ import annotations

from dpsub.sampling import REGISTRY

NONPRIVATE_LABEL = "non-private"
VARIANT_LABELS = {"stated": "as stated", "as_done": "as done", "consistent": "consistent", "rigorous": "rigorous"}


def scheme_label(scheme: str) -> str:
    """Return the display name of a sampler, "non-private" for the baseline."""
    return NONPRIVATE_LABEL if scheme == "nonprivate" else REGISTRY.get(scheme).label
