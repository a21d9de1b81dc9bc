"""How names that only this paper uses are shown."""

from __future__ import annotations

from typing import ClassVar

from dpsub.reproduce.labels import Labels


class PracticeLabels(Labels):
    """In tables, figures and the report."""

    name = "practice"
    quantities: ClassVar = {
        "epsilon_poisson": "ε of Poisson sampling",
    }
