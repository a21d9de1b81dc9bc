"""The readable report of a run: its results, their meaning, and links to everything else."""

from __future__ import annotations

from dpsub.reproduce.report.findings import Headline
from dpsub.reproduce.report.page import oversized, write_report
from dpsub.reproduce.report.prose import Prose
from dpsub.reproduce.report.run import FinishedRun

__all__ = ["FinishedRun", "Headline", "Prose", "oversized", "write_report"]
