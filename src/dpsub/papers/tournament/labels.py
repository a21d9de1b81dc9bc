"""How names that only this paper uses are shown."""

from __future__ import annotations

from typing import ClassVar

from dpsub.reproduce.labels import Labels


class TournamentLabels(Labels):
    """In tables, figures and the report."""

    name = "tournament"
    quantities: ClassVar = {
        "of_the_scheme": "shown by an attack",
        "of_the_proof": "open",
        "told_apart": "significant",
        "noise_used": "noise multiplier",
    }
    words: ClassVar = {
        "cover": "simulated covertype",
        "mixture": "k-means on a mixture",
        "million": "a million records",
        "ten_digits_perceptron": "ten digits, perceptron",
        "cover_perceptron": "simulated covertype, perceptron",
    }
    samplers: ClassVar = {
        "three_stage": {
            "label": "three stages",
            "color": "#999999",
            "marker": "P",
            "linestyle": "-",
        },
        "k_of_t": {
            "label": "k of t",
            "color": "#56B4E9",
            "marker": "p",
            "linestyle": (0, (2, 1, 2, 1, 5, 1)),
        },
        "importance": {
            "label": "importance",
            "color": "#999933",
            "marker": "v",
            "linestyle": (0, (1, 1, 4, 1)),
        },
    }
