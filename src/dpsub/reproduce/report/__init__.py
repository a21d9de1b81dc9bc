"""The readable report of a run: what came out, what it means, and where everything is."""

from __future__ import annotations

from dpsub.reproduce.report.index import Run, write_report
from dpsub.reproduce.report.takeaways import REGISTRY, Takeaways

__all__ = ["REGISTRY", "Run", "Takeaways", "write_report"]
