"""Answers of six methods on Adult (Jiang et al., Figure 7)."""

from __future__ import annotations

from typing import ClassVar

from dpsub.papers.brdp.experiments.brdp_cells.panels import Answers


class BrdpAdult(Answers):
    """Capital gains in thousands of dollars."""

    name: ClassVar[str] = "brdp_adult"
    needs_data: ClassVar[tuple[str, ...]] = ("adult_gains",)
