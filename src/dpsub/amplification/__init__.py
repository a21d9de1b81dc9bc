"""Privacy amplification by subsampling: one theorem, read off a multiplicity law and a group profile.

`translate` names the bound for a sampler and its neighbouring relations, and refuses where none exists.
"""

from __future__ import annotations

from dpsub.amplification.bounds import (
    Bound,
    DeclaredProfile,
    PoissonAddRemove,
    ThroughPairs,
    WorSubstitute,
    WrAddRemove,
    WrSubstitute,
)
from dpsub.amplification.categories import aligned_profile, category
from dpsub.amplification.poisson_substitution import (
    PoissonSubstitute,
    PoissonSubstituteBySize,
    PoissonSubstituteFromAddRemove,
)
from dpsub.amplification.theorem import Amplified, amplified_epsilon, amplify, base_epsilon
from dpsub.amplification.translator import translate

__all__ = [
    "Amplified", "Bound", "DeclaredProfile", "PoissonAddRemove", "PoissonSubstitute", "PoissonSubstituteBySize",
    "PoissonSubstituteFromAddRemove", "ThroughPairs", "WorSubstitute", "WrAddRemove", "WrSubstitute",
    "aligned_profile", "amplified_epsilon", "amplify", "base_epsilon", "category", "translate",
]  # fmt: skip
