"""Privacy of survey sampling designs: bounds as printed and as corrected, exact worst losses, and
an auditor.

The functions take the sizes, clusters and inclusion probabilities of a design, never its draws.
They lead from a base mechanism that is epsilon-DP on samples to the loss on the population.
"""

from __future__ import annotations

from dpsub.amplification.survey.auditor import DesignAudit, audit, worst_ratio
from dpsub.amplification.survey.rates import amplified, base_for

__all__ = ["DesignAudit", "amplified", "audit", "base_for", "worst_ratio"]
