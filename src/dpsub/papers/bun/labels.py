"""Display names that only this paper uses."""

from __future__ import annotations

from typing import ClassVar

from dpsub.reproduce.labels import Labels


class BunLabels(Labels):
    """Display names in tables, figures and the report."""

    name = "bun"
    quantities: ClassVar = {
        "mean_over_n": "mean / n",
        "variance_times_epsilon_squared": "variance × ε²",
    }
    words: ClassVar = {
        "log_uniform": "log-uniform",
        "U004": "Section 2.4, target 0.01",
        "U005": "Section 2.4, target 1",
    }
