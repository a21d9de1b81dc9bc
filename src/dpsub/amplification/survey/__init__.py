"""Sampling designs and what they do to privacy: bounds as printed and as corrected, exact worst losses, an auditor.

Survey sampling sets sizes, clusters and inclusion probabilities from auxiliary data. The functions here take these
numbers, never a sampler's draws: a base mechanism that is epsilon-DP on samples, and what the release is on the
population.
"""

from __future__ import annotations

from dpsub.amplification.survey.auditor import DesignAudit, audit, worst_ratio
from dpsub.amplification.survey.rates import amplified, base_for

__all__ = ["DesignAudit", "amplified", "audit", "base_for", "worst_ratio"]
