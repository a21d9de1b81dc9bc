"""Table of the noise that one proved privacy takes, for every sampler and both variants and adjacencies."""

from __future__ import annotations

import pandas as pd

from dpsub.papers.fair.artefacts.labels import proved_of_noise
from dpsub.reproduce.artefact import Artefact, Records, values_frame
from dpsub.reproduce.layout import Layout

COLUMNS = ("noise_multiplier", "necessary", "epsilon_lower", "epsilon_upper", "epsilon_add_remove", "noise_add_remove")


class Noise(Artefact):
    """Noise multipliers at fixed privacy, with what is proved and refuted about them."""

    paper = "fair"
    name = "noise"
    kind = "table"
    caption = (
        "Noise multipliers (scale of the noise on the sum over the norm bound C of one record) for one target of all "
        "steps together. Rigorous: the upper bound under substitution meets the target; with the necessary noise or "
        "less an attack exceeds it. Consistent: the papers' pair meets the target, and the two epsilon columns say "
        "what is attained and proved with this noise; it is no guarantee. For Poisson the last two columns give what "
        "is proved of the same noise when a record is added or removed, and the noise that this weaker relation needs."
    )
    experiments = ("fair_noise",)
    keys = ("dataset", "epsilon", "steps", "sampler", "m", "b")
    layout = Layout(panels=("dataset", "epsilon", "steps"), stub=("sampler", "m", "b"), heads=("column",))

    def number_kind(self, column: str, variant: str) -> str:
        return proved_of_noise(column, variant)

    def values(self, records: Records) -> pd.DataFrame:
        rows = []
        for record in self.needed(records, "fair_noise").drop_duplicates(
            ["variant", "dataset", "target_epsilon", "steps", "sampler", "m", "b"]
        ).to_dict("records"):  # fmt: skip
            first_stage = {"b": record["b"]} if record["b"] else {}
            row = {"dataset": record["dataset"], "epsilon": record["target_epsilon"],
                   **{name: record[name] for name in ("steps", "sampler", "m")}, **first_stage}  # fmt: skip
            for column in COLUMNS:
                value = float(record[column])
                if value == value and (column != "necessary" or value > 0):
                    rows.append({**row, "column": column, "variant": record["variant"], "value": value})
        return values_frame(rows)
