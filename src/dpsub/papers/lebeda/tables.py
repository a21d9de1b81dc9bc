"""Epsilon by sampler and adjacency, and of a removed record next to the worst adversary."""

from __future__ import annotations

from dpsub.reproduce.layout import Layout
from dpsub.reproduce.tables import Part, Table


class SamplersTable(Table):
    title = "ε of Poisson samples and of samples without replacement, by adjacency"
    name = "samplers"
    caption = (
        "ε at δ = 1e-6 after 1000 steps with 1000 of a million records, by noise multiplier: what "
        "an attack attains and what is proved. add_remove: a record is added or removed. zero_out: "
        "it contributes 0. substitute: another one takes its place. The paper's own example could "
        "not be read; this one shows what its abstract says."
    )
    keys = ("noise", "sampler", "adjacency")
    statements = ("gap",)
    layout = Layout(panels=("noise",), stub=("sampler", "adjacency"), heads=("column",))
    parts = (
        Part(
            "lebeda_samplers",
            {name: name for name in ("epsilon_lower", "epsilon_upper")},
            variant="stated",
        ),
    )


class RemovedTable(Table):
    title = "A removed record without replacement, and the worst adversary"
    name = "removed"
    caption = (
        "ε at δ = 1e-5 of samples of 200 of 10,000 records without replacement, one record "
        "replaced. Removed: the data sets (C, -C, ..., -C) and (-C, ..., -C) at every step, from "
        "both sides. ε: attained by an attack that chooses the other records by what it has seen, "
        "and proved by the game. Pair, upper: the dominating pair of one step, composed."
    )
    keys = ("noise", "steps")
    statements = ("removed_",)
    layout = Layout(stub=("noise", "steps"), heads=("column",))
    parts = (
        Part(
            "lebeda_removed",
            {
                name: name
                for name in (
                    "removed_lower",
                    "removed_upper",
                    "epsilon_lower",
                    "epsilon_upper",
                    "pair_upper",
                )
            },
            variant="stated",
        ),
    )
