"""Settings of the map: its trainings, targets and rows."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from dpsub.papers.scheme_map.schemes import SCHEMES, TRAININGS
from dpsub.reproduce.settings import Group, Listed, Positive, known

EFFORT = 4.0
"""Work that a cell may take, that of `recommend` for all schemes."""


class MapTargets(Group):
    """The trainings and targets of all schemes."""

    trainings: Listed[Annotated[str, known("training", lambda: TRAININGS)]] = Field(
        tuple(TRAININGS), description="Trainings."
    )
    target_epsilon: Listed[Positive] = Field(
        (1.0, 3.0, 8.0), description="Targets, at the delta of each training."
    )
    effort: Positive = Field(EFFORT, description="Work that a cell may take.")


Rows = Annotated[
    Listed[Annotated[str, known("scheme", lambda: SCHEMES)]],
    Field(description="Schemes, rows of the map."),
]
