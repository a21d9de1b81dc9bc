"""Answers of six methods on Gowalla check-ins (Jiang et al., Figure 8)."""

from __future__ import annotations

from typing import ClassVar

from dpsub.papers.brdp.experiments.brdp_cells.panels import Answers


class BrdpGowalla(Answers):
    """Days between the first and the last check-in of a user."""

    name: ClassVar[str] = "brdp_gowalla"
    needs_data: ClassVar[tuple[str, ...]] = ("gowalla",)

    class Settings(Answers.Settings):
        count_above: float = 150  # days
