"""Privacy amplification by subsampling: one theorem, read off a multiplicity law and a group
profile (`amplify`).

`translate` names the bound for a sampler and its neighbouring relations, and refuses where none
exists.
"""

from __future__ import annotations

from dpsub.amplification.bounds import Bound, DeclaredProfile, theorem_14, translate
from dpsub.amplification.theorem import (
    Amplified,
    amplified_epsilon,
    amplify,
    base_epsilon,
    category,
)

__all__ = [
    "Amplified",
    "Bound",
    "DeclaredProfile",
    "amplified_epsilon",
    "amplify",
    "base_epsilon",
    "category",
    "theorem_14",
    "translate",
]
