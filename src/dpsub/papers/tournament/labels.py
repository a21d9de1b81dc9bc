"""Display names that only this study uses."""

from __future__ import annotations

from typing import ClassVar

from dpsub.reproduce.labels import Labels


class TournamentLabels(Labels):
    """Display names in tables, figures and the report."""

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
        "importance": {
            "label": "importance",
            "color": "#999933",
            "marker": "v",
            "linestyle": (0, (1, 1, 4, 1)),
        },
    }
