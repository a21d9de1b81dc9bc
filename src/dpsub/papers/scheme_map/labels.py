"""Display names that only the map uses."""

from __future__ import annotations

from typing import ClassVar

from dpsub.papers.scheme_map.schemes import TRAININGS
from dpsub.reproduce.labels import Labels


class MapLabels(Labels):
    """Display names in tables, figures and the report."""

    name = "scheme_map"
    words: ClassVar = {one.name: one.title for one in TRAININGS.values()}
    samplers: ClassVar = {
        "shuffle_drop_last": {
            "label": "shuffle, rest dropped",
            "color": "#882255",
            "marker": ">",
            "linestyle": "-",
        }
    }
