"""How names that only this paper uses are shown."""

from __future__ import annotations

from typing import ClassVar

from dpsub.reproduce.labels import Labels


class FairLabels(Labels):
    """In tables, figures and the report."""

    name = "fair"
    words: ClassVar = {
        "bootstrap_mean": "bootstrap mean",
    }
