"""Figures of the MUST paper, and three of this project on the same mechanisms."""

from __future__ import annotations

from dpsub.papers.must.tables import MustTable


class MustFigure(MustTable):
    """A figure, whose values are declared as those of a table are."""

    kind = "figure"
