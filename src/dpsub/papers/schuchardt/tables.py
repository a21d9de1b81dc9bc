"""Number of steps that a group's budget allows, by both analyses."""

from __future__ import annotations

from dpsub.reproduce.layout import Layout
from dpsub.reproduce.tables import Part, Table


class IterationsTable(Table):
    title = "Steps that a group's budget allows"
    name = "iterations"
    caption = (
        "figure6: σ = 5, rate 0.001, 16 records, ε = 2, δ at most 1e-6, and δ after 1000 steps. "
        "training: Figure 24, σ = 0.6, rate 64/55000, 2 records, ε = 8, δ at most 1e-5, and δ "
        "after 6880 steps. Steps, kept: δ is proved to be at most the budget. Steps, broken: it is "
        "more, by an attack on the group or on one record. As done: from the group's own pair."
    )
    keys = ("budget", "analysis")
    layout = Layout(stub=("budget", "analysis"), heads=("column",))
    parts = (
        Part(
            "schuchardt_iterations",
            {name: name for name in ("kept", "broken", "delta_lower", "delta_upper")},
        ),
    )
