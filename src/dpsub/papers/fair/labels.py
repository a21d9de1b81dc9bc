"""Display names that only this study uses."""

from __future__ import annotations

from typing import ClassVar

from dpsub.reproduce.labels import Labels


class FairLabels(Labels):
    """Display names in tables, figures and the report."""

    name = "fair"
    words: ClassVar = {
        "bootstrap_mean": "bootstrap mean",
    }
