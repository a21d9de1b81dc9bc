"""Display names that only this study uses."""

from __future__ import annotations

from typing import ClassVar

from dpsub.reproduce.labels import Labels


class PracticeLabels(Labels):
    """Display names in tables, figures and the report."""

    name = "practice"
    quantities: ClassVar = {
        "epsilon_poisson": "ε of Poisson sampling",
    }
