"""Noise multipliers of the papers' target by their formulas and our two bounds."""

from __future__ import annotations

from dpsub.reproduce.layout import Layout
from dpsub.reproduce.tables import Part, Table

COLUMNS = ("noise_paper", "noise_lower", "noise_upper", "epsilon_lower", "epsilon_upper")


class NoiseTable(Table):
    title = "Figures 3 and 6. Noise of one target by sampler, and ε at the noise of Poisson samples"
    name = "noise"
    caption = (
        "Noise multipliers for ε = 5 and δ = 2.7e-8, 36.8 million records, one record at 0. Noise, "
        "paper: what the formula of the code gives; for shuffled batches the code calls it a lower "
        "bound. Noise, lower: an attack refutes it. Noise, upper: proved. ε: attained and proved "
        "with the noise that Poisson samples are proved to need, that is where a shuffled loop is "
        "accounted for as Poisson. Poisson samples are truncated ten standard deviations above "
        "their expected size."
    )
    keys = ("figure", "batch", "epochs", "sampler")
    layout = Layout(panels=("figure", "batch", "epochs"), stub=("sampler",), heads=("column",))
    parts = tuple(
        Part(name, {column: column for column in COLUMNS}, variant="stated")
        for name in ("chua_epochs", "chua_batches")
    )
