"""Display names that only this paper uses."""

from __future__ import annotations

from typing import ClassVar

from dpsub.reproduce.labels import Labels


class BalleLabels(Labels):
    """Display names in tables, figures and the report."""

    name = "balle"
    quantities: ClassVar = {
        "epsilon0": "ε₀",
        "delta0": "δ₀",
    }
    words: ClassVar = {
        "Theorem 2 on triples": "our bound from an add/remove profile",
        "Theorem 2 given the size": "our bound by sample size",
        "white_box": "white-box groups",
        "black_box": "black-box groups",
        "B006": "Theorem 3, ε ≥ θ",
    }
