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
            "color": "#AA4466",
            "marker": "3",
            "linestyle": (0, (4, 1)),
        },
        "reused_sample": {
            "label": "Poisson, 4 steps per sample",
            "color": "#0077BB",
            "marker": "H",
            "linestyle": (0, (4, 1, 1, 1)),
        },
        "users": {
            "label": "Poisson users, 4 records",
            "color": "#33BBEE",
            "marker": "+",
            "linestyle": (0, (3, 1, 1, 1, 1, 1)),
        },
        "banded_cyclic_poisson": {
            "label": "cyclic Poisson, banded noise",
            "color": "#228833",
            "marker": "x",
            "linestyle": (0, (2, 1)),
        },
    }
