"""Privacy amplification by subsampling: one theorem, read off a multiplicity law and a group profile."""

from __future__ import annotations

from dpsub.amplification.categories import aligned_profile, category
from dpsub.amplification.theorem import Amplified, amplified_epsilon, amplify, base_epsilon

__all__ = ["Amplified", "aligned_profile", "amplified_epsilon", "amplify", "base_epsilon", "category"]
