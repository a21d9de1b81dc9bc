"""Epsilon of the paper's training by each of its theorems, next to our two bounds."""

from __future__ import annotations

from dpsub.reproduce.layout import Layout
from dpsub.reproduce.tables import Part, Table


class EpsilonTable(Table):
    title = "ε of the paper's training by its theorems, and our two bounds"
    name = "epsilon"
    caption = (
        "ε after 250 epochs with batches of 120 of 50,000 records and noise multiplier 6. ε, "
        "paper: what the theorem's Rényi bound gives by the conversion of the paper's code. ε, "
        "lower: attained by an attack on explicit data sets. ε, upper: proved. The paper prints no "
        "number of this table: its figures show such curves."
    )
    keys = ("theorem", "sampler", "adjacency", "delta")
    layout = Layout(panels=("theorem", "sampler", "adjacency"), stub=("delta",), heads=("column",))
    parts = (
        Part(
            "birrell_epsilon",
            {name: name for name in ("epsilon_paper", "epsilon_lower", "epsilon_upper")},
            variant="stated",
        ),
    )
